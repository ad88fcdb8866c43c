"""Strings, docstrings and comments of the product are plain English: they do not speak of "nobody"."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_RIDDLE = re.compile(r"\b(?:nobody|whoever|anybody)\b", re.IGNORECASE)


def _riddles(source: str) -> list[int]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.start[0] for token in tokens if token.type in _TEXTS and _RIDDLE.search(token.string)]


def test_texts_are_plain() -> None:
    rooms = (_ROOT / room for room in ("backends", "grammar", "hlotool"))
    paths = sorted(path for room in rooms for path in room.rglob("*.py"))
    found = {str(path.relative_to(_ROOT)): _riddles(path.read_text(encoding="utf-8")) for path in paths}
    assert not {path: lines for path, lines in found.items() if lines}


def test_it_sees_one() -> None:
    assert _riddles('x = 1\n# Nobody knows\ny = f"{x} whoever"\nz = "anybody"\n') == [2, 3, 4]
