"""The way of a dump in CONTRIBUTING.md: every stop is there, and few enough to be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: `12  ╎  FILE   NAME   what happens there`.
STOPS = re.findall(
    r"^ ?(\d+)  (?:╎  )?(hlotool/\S+\.py) +(\w+)  +\S",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_stops_are_numbered_and_at_most_fifteen() -> None:
    assert [int(number) for number, *_ in STOPS] == list(range(1, len(STOPS) + 1))
    assert 10 <= len(STOPS) <= 15


@pytest.mark.parametrize(("path", "name"), [stop[1:] for stop in STOPS])
def test_a_stop_defines_what_it_is_named_after(path: str, name: str) -> None:
    defined = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    assert name in {node.name for node in defined if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
