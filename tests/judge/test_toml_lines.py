"""Lines of keys in TOML files, counted by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hlotool.errors import UsageError
from hlotool.system.paths import read_toml
from hlotool.system.user_input import KeyPath, line_of

DOCUMENT = '''\
# [run]
jobs = 2  # "[run]"
"quoted.key" = """
[run]
jobs = 3
""" # five

[run]
stages = [
  "a",  # ]
  "b]",
]
deep.er = {
  x = 1 }

[ tool . "hlo tool".check ]
skip = ['=']
[[check.ignore]]
rule = "a"
[[check.ignore]]

rule = "b"
[check.ignore.more]
why = \'\'\'
it's\'\'\'
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("jobs",), 2),
        (("quoted.key",), 3),
        (("run",), 8),
        (("run", "stages"), 9),
        (("run", "stages", 1), 9),
        (("run", "deep", "er"), 13),
        (("run", "deep", "er", "x"), 13),
        (("tool", "hlo tool", "check"), 16),
        (("tool", "hlo tool", "check", "skip"), 17),
        (("check", "ignore", 0), 18),
        (("check", "ignore", 0, "rule"), 19),
        (("check", "ignore", 1, "rule"), 22),
        (("check", "ignore", 1, "more", "why"), 24),
        (("nothing",), 0),
    ],
)
def test_lines(path: KeyPath, line: int) -> None:
    assert line_of(DOCUMENT, path) == line


class Row(msgspec.Struct, forbid_unknown_fields=True):
    rule: str


class File(msgspec.Struct, forbid_unknown_fields=True):
    row: list[Row] = []
    count: int = 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[row]]\nrule = 'a'\n[[row]]\nrule = 5\n", ":4: Expected `str`, got `int` at row[1].rule"),
        ("count = 1\nother = 2\n", ": Object contains unknown field `other`"),
        ("count = 1\ncount = = 2\n", ":2:9: Invalid value"),
        ("count = 1\n\n\ncount = 2\n", ":4:10: Cannot overwrite a value"),
        ("count = 'a'", ":1: Expected `int`, got `str` at count"),
    ],
)
def test_what_is_wrong_has_its_line(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as problem:
        read_toml(path, File, UsageError)
    assert str(problem.value) == f"{path}{complaint}"
