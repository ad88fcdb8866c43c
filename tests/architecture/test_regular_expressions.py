"""No regular expression asks for what Python before 3.11.5 matches wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotool import grammar
from hlotool.grammar.build import PATTERNS

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = [path for room in ("backends", "grammar", "hlotool") for path in (_ROOT / room).rglob("*.py")]

#: A group that is repeated and gives nothing back, `(...)*+`. Where the group can backtrack Python's engine
#: lost its place until 3.11.5 (https://github.com/python/cpython/issues/106052); `(?>(...)*)` means the same
#: everywhere.
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)[*?+]\+")


@pytest.mark.parametrize("path", sorted(_SOURCES), ids=lambda path: str(path.relative_to(_ROOT)))
def test_no_group_is_possessive(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if _POSSESSIVE_GROUP.search(line) and not line.lstrip().startswith("#")]
    assert not found


@pytest.mark.parametrize("rule", sorted(PATTERNS))
def test_nor_is_one_of_the_grammar(rule: str) -> None:
    assert not _POSSESSIVE_GROUP.search(grammar.pattern(rule))


def test_it_sees_one() -> None:
    assert _POSSESSIVE_GROUP.search(r"(?:\s|//[^\n]*+)*+x")
    assert not _POSSESSIVE_GROUP.search(r"(?>(?:\s|//[^\n]*+)*)x[()]*+\)*+")
