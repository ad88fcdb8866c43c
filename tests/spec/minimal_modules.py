"""Reads minimal_modules.txt: the smallest module of every opcode, for any element type."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ELEMENT_TYPES, ElementType

FILE = Path(__file__).with_suffix(".txt")


def minimal_texts(opcode: str, kind: ElementType) -> list[str]:
    """HLO text of modules with that opcode, about that element type; they need not be valid."""
    return [_filled(template, kind) for template in _templates().get(opcode) or [_elementwise(opcode)]]


def _filled(text: str, kind: ElementType) -> str:
    part = kind.real_part
    unsigned = f"u{kind.bits}" if f"u{kind.bits}" in ELEMENT_TYPES else "u64"
    words = {
        "T[": f"{kind}[",
        "P[": f"{part}[",
        "C[": f"{'c128' if part is ElementType.F64 else 'c64'}[",
        "U[": f"{unsigned}[",
        "ONE": "(1, 1)" if kind.is_complex else "-1" if kind is ElementType.S1 else "1",
    }
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


def _elementwise(opcode: str) -> str:
    operands = ", ".join(["T[2]"] * OPCODES[opcode].min_operands)
    return f"r = T[2] {opcode}({operands})"


@cache
def _templates() -> dict[str, list[str]]:
    pieces: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("$"):
            word, _, meaning = line.partition(" = ")
            pieces[word] = meaning
        elif line and not line.startswith("#"):
            opcodes, _, text = line.partition(" | ")
            for word, meaning in pieces.items():
                text = text.replace(word, meaning)
            for opcode in opcodes.split():
                found.setdefault(opcode, []).append(text)
    return found
