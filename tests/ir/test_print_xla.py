"""Our print and the original mean the same to XLA: it prints both alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.shape_cases import valid_cases
from support.xla import in_older_words, oracle

from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla

MODULES = sorted((Path(__file__).parents[2] / "corpus" / "modules").glob("*.hlo"))

#: XLA prints the negative zero `-0` and reads that as +0, so a text that holds it changes when XLA reads it.
_NEGATIVE_ZERO = re.compile(r"-0(?![.\d])")


def meaning(text: str) -> str:
    """XLA's print, signs of zero aside."""
    return _NEGATIVE_ZERO.sub("0", oracle().canonical(text))


def check(text: str) -> None:
    assert meaning(parse_module(text).to_text()) == meaning(text)


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_every_opcode(start: int) -> None:
    """The shape tables hold every opcode with its attributes."""
    for case in valid_cases()[start : start + 20]:
        if case.opcode not in ("send", "recv"):  # XLA gives them the shape it thinks right
            check(case.text())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    check(path.read_text(encoding="utf-8"))


def test_golden_file_is_what_xla_prints() -> None:
    text = (Path(__file__).parents[1] / "golden" / "ir" / "everything.hlo").read_text(encoding="utf-8")
    assert in_older_words(oracle().canonical(text)) == text


@pytest.mark.slow
def test_real_models_print_unchanged(shared: Path) -> None:
    """Texts that XLA wrote come back to the letter, shorter forms with the same meaning."""
    for path in sorted((shared / "hlo" / "models").rglob("*.txt")):
        text = path.read_text(encoding="utf-8")
        if "\n%" in text:
            assert parse_module(text).to_text().strip() == text.strip(), path
        elif "{...}" not in text:  # XLA fills what is elided with numbers of its own
            check(text)


@pytest.mark.slow
def test_optimised_dumps_mean_the_same(shared: Path) -> None:
    for path in sorted((shared / "dumps").rglob("*.txt")):
        check(path.read_text(encoding="utf-8"))
