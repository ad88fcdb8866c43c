"""Element types in generated code: in memory, in computations, and how they are rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.ir.arrays import Array, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType


class NotGenerated(Exception):
    """There is no kernel for this: the caller decides what runs it instead.

    Args:
        reason: in one clause.
        instruction: that cannot be written.
    """

    def __init__(self, reason: str, instruction: Instruction) -> None:
        super().__init__(f"{instruction.opcode} {instruction.name}: {reason}")
        self.reason = reason
        self.instruction = instruction


def refuse_structure(instruction: Instruction) -> None:
    """Raise NotGenerated for a contraction whose operands are sparse or have scales by blocks."""
    for name in ("sparsity_config", "block_scaling_config"):
        if name in instruction.attributes:
            raise NotGenerated(f"operands with a {name}", instruction)


#: Storage types whose names are not those of the element types.
_STORED = {
    ElementType.PRED: "bool",
    ElementType.F32: "float",
    ElementType.F64: "double",
    ElementType.C64: "Complex<float>",
    ElementType.C128: "Complex<double>",
}


def array_shape(instruction: Instruction) -> ArrayShape:
    """The shape of an array-valued instruction of static size.

    Raises:
        NotGenerated: it is none.
    """
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        raise NotGenerated(f"{shape} is not an array of fixed size", instruction)
    return shape


def element_type(instruction: Instruction) -> ElementType:
    """The element type of such an instruction."""
    return array_shape(instruction).element_type


def is_sub_byte(kind: ElementType) -> bool:
    """An integer narrower than the byte that holds it."""
    return kind.is_integer and kind.bits < 8


def stored(kind: ElementType) -> str:
    """The C++ type of an element in memory."""
    if is_sub_byte(kind):
        return "s8" if kind.is_signed else "u8"
    return _STORED.get(kind, kind.value)


def computed(kind: ElementType) -> str:
    """The C++ type in which values of `kind` are held between memory accesses."""
    return "float" if kind.is_narrow_float else stored(kind)


def load(pointer: str, index: str, kind: ElementType) -> str:
    """The expression that reads an element."""
    element = f"{pointer}[{index}]"
    if kind.is_narrow_float:
        return f"unpack({element})"
    # ml_dtypes keeps only the low bits of a signed number narrower than a byte.
    return wrapped(element, kind) if is_sub_byte(kind) else element


def store(pointer: str, index: str, value: str, kind: ElementType) -> str:
    """The statement that writes an element."""
    if kind is ElementType.BF16:  # a value of the type: its other bits are zero
        value = f"bf16{{(u16)(bits_as<u32>({value}) >> 16)}}"
    elif kind.is_narrow_float:
        value = f"Pack<{stored(kind)}>::of({value})"
    elif kind in (ElementType.S2, ElementType.S4):
        value = f"{value} & {(1 << kind.bits) - 1}"
    return f"{pointer}[{index}] = {value};"


def wrapped(value: str, kind: ElementType) -> str:
    """The low bits of an 8-bit result as a number of a type narrower than a byte."""
    return f"wrap_{'signed' if kind.is_signed else 'unsigned'}<{kind.bits}>({value})"


def finished(value: str, kind: ElementType, *, is_from_kind: bool = False) -> str:
    """A result in the precision of its declared type: HLO rounds after every operation.

    Args:
        value: the expression of the result.
        kind: the declared type.
        is_from_kind: all operands are of that type, too, which makes rounding simpler.
    """
    if kind.is_narrow_float:
        return f"rounded{'_result' if is_from_kind else ''}<{stored(kind)}>({value})"
    return wrapped(value, kind) if is_sub_byte(kind) else value


def literal(value: Array, kind: ElementType) -> str:
    """The expression of a scalar constant, to the bit."""
    if kind.is_complex:
        parts = (literal(np.asarray(part), kind.real_part) for part in (value.real, value.imag))
        return f"make_complex({', '.join(parts)})"
    if kind.is_floating:
        wide = value.astype(np.float64 if kind is ElementType.F64 else np.float32)
        bits = int(wide.view(f"u{wide.dtype.itemsize}"))
        return f"bits_as<{computed(kind)}>({bits:#x}{'ull' if wide.dtype.itemsize == 8 else 'u'})"
    if kind is ElementType.PRED:
        return "true" if value else "false"
    return integer_literal(int(value), kind)


def integer_literal(value: int, kind: ElementType) -> str:
    """The expression of an integer of type `kind`."""
    return f"({computed(kind)}){value % (1 << 64)}ull"


def converted(value: str, source: ElementType, target: ElementType) -> str:
    """The expression of `value` in another type, by the rules of `convert`.

    XLA: operation_semantics.md#convertelementtype; `backends/numpy/precision.py` says which rules these are.
    """
    if source is target:
        return value
    if source.is_complex:
        if not target.is_complex:
            return converted(f"{value}.re", source.real_part, target)
        part = computed(target.real_part)
        return f"make_complex(({part}){value}.re, ({part}){value}.im)"
    if target.is_complex:
        part = computed(target.real_part)
        return f"make_complex(({part})({converted(value, source, target.real_part)}), ({part})0)"
    if target is ElementType.PRED:
        return f"({value} != 0)"
    if target.is_integer:
        if source.is_floating:
            return _truncated(value, source, target)
        return finished(f"({computed(target)}){value}", target)
    if source is ElementType.F64 and target.is_narrow_float and target.bits < 16:
        return finished(f"round_to_odd({value})", target)
    return finished(f"({computed(target)}){value}", target)


def _truncated(value: str, source: ElementType, target: ElementType) -> str:
    low, high = integer_limits(target)
    kind = computed(source)
    below = f"({kind}){float(low)}" if low else f"({kind})-1"
    limit = f"({kind}){float(high + 1)}"
    limits = f"{integer_literal(low, target)}, {integer_literal(high, target)}"
    return f"float_to_integer<{computed(target)}, {kind}>({value}, {below}, {limit}, {limits})"


# Bits of elements as unsigned words in generated code, and elements of bits. A word holds up to 64 bits; c128
# takes two, the real part first.

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
