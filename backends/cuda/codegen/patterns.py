"""Bits of elements as unsigned words in generated code, and elements of bits.

A word holds up to 64 bits; c128 takes two, the real part first.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.cuda.codegen.elements import computed, is_sub_byte, stored, wrapped
from hlotool.ir.types import ElementType

#: Bits of a word.
WORD = 64


def patterns(value: str, kind: ElementType) -> list[str]:
    """The words of a value."""
    if kind.is_complex:
        real, imaginary = (patterns(f"{value}.{part}", kind.real_part)[0] for part in ("re", "im"))
        return [real, imaginary] if kind.bits > WORD else [f"({real} | {imaginary} << 32)"]
    if kind.is_narrow_float:
        return [f"(u64)Pack<{stored(kind)}>::of({value}).bits"]
    if kind.is_floating:
        return [f"(u64)bits_as<u{kind.bits}>({value})"]
    return [f"low_bits<{kind.bits}>({value})"]


def of_patterns(words: Sequence[str], kind: ElementType) -> str:
    """The value that has these words; what lies beyond the width of the type is dropped."""
    if kind.is_complex:
        halves = words if kind.bits > WORD else (words[0], f"({words[0]} >> 32)")
        real, imaginary = (of_patterns([half], kind.real_part) for half in halves)
        return f"make_complex({real}, {imaginary})"
    if kind is ElementType.PRED:
        return f"((u8)({words[0]}) != 0)"
    if kind.is_narrow_float:
        return f"unpack(of_bits<{stored(kind)}>({words[0]}))"
    if kind.is_floating:
        return f"bits_as<{computed(kind)}>((u{kind.bits})({words[0]}))"
    number = f"({computed(kind)})({words[0]})"
    return wrapped(number, kind) if is_sub_byte(kind) else number
