"""Words that people read are plain, and those of the field: no banned one in any text of the product."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

#: What earlier texts said in words of their own, and what says it plainly.
BANNED = {
    r"\bnobody\b": "no one; or say who",
    r"\blegal (?:execution|spread|rewrite)": "correct run",
    r"\bas far off as\b|\btimes as far\b": "× what rounding can cause",
    r"where nothing is rounded": "in double precision; in exact arithmetic",
    r"functions? of real numbers|\bother functions? (?:in|of)\b|another function of": (
        "(not) mathematically equivalent"
    ),
    r"\brests on\b": "checked with",
    r"\bnothing (?:can be|is) (?:said|claimed|known) of\b|of which nothing": "not checked; undecided",
    r"\bout of reach\b": "outside the rounding range",
    r"computes? something else": "became; returns other values",
    r"\bby itself wrong\b": "given correct operands it still computes wrong values",
    r"\baccus(?:e|es|ed|ing|ation)\b": "reports a fault",
    r"\bto blame\b": "changed; wrong",
    r"\bodd (?:inputs?|values?|mixture|sets?)\b": "unusual",
    r"\bfurther (?:input|set)s?\b": "extra input sets",
    r"\bon the way to it\b": "before it",
    r"(?:can|could) ?not be told\b|\bcould be told\b|\btold by\b|no dump tells|is told how": (
        "derived; determined"
    ),
    r"\basked again\b": "a second run",
    r"\b(?:command|call) goes on\b": "run the same command again to resume",
    r"\bdies? of\b": "crashes on",
    r"\bbegin no more\b|\breports for others\b": "stop after; report formats",
    r"covers \d+ of|\bdecisions? that\b": "inputs reached N of M cases",
    r"\b1 (?:elements|modules|results) are\b": "number agreement",
}

#: Texts of programs and of tables, which are no sentences.
NOT_SENTENCES = {
    "hlotool/facts/thresholds.py",
    "hlotool/ir/opcode_table.py",
    "hlotool/ir/opcodes.py",
    "hlotool/judge/tolerance.py",
}


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a module but for docstrings, with their lines; parts of one f-string together."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                passed.add(id(first.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [v for v in node.values if isinstance(v, ast.Constant)]
            passed.update(map(id, parts))
            yield (
                node.lineno,
                "".join(str(v.value) if isinstance(v, ast.Constant) else "·" for v in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


def _banned(text: str) -> list[str]:
    return [f"{found[0]!r}: {plain}" for word, plain in BANNED.items() if (found := re.search(word, text))]


def test_no_text_of_the_product_uses_private_words() -> None:
    found = []
    for room in ("hlotool", "backends"):
        for file in sorted((REPOSITORY / room).rglob("*.py")):
            name = file.relative_to(REPOSITORY).as_posix()
            if name in NOT_SENTENCES:
                continue
            texts = _texts(ast.parse(file.read_text(encoding="utf-8")))
            found += [f"{name}:{line}: {why}" for line, text in texts for why in _banned(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "file",
    [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))],
    ids=lambda file: file.relative_to(REPOSITORY).as_posix(),
)
def test_no_page_uses_private_words(file: Path) -> None:
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{number}: {why}" for number, line in lines for why in _banned(line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("3 legal executions of the reference", True),
        ("in f64, where nothing is rounded, the programs differ", True),
        ("an odd number of operands", False),
        ("the search was interrupted; the same command goes on with what is left", True),
        ("constant 0.1 became 0.2", False),
    ],
)
def test_what_the_list_finds(text: str, is_found: bool) -> None:
    assert bool(_banned(text)) is is_found
