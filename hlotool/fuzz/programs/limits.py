"""What is not drawn: what XLA's CPU compiler does not compile, and what has no place in a drawn program.

Measured with jaxlib 0.10.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlotool.ir.attributes import PaddingDim, SliceDim, Window, WindowDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, array_shapes

_FLOATS = "f16 bf16 f32 f64"
_NARROW = "f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz f8e4m3b11fnuz f8e3m4 f8e4m3 f4e2m1fn"
_INTEGERS = "s8 s16 s32 s64 u8 u16 u32 u64"

#: XLA has no code for these, and expands them before; in the bodies of loops it does not.
_EXPANDED = opcodes_with(Trait.EXPANDED)

#: Types of the first operand, for operations that are not compiled for all that they are defined for. Sorts
#: of types below a byte corrupt memory; functions of floats below 16 bits are rounded twice, by each library
#: in its way.
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(sorted(_EXPANDED), "bf16"),
    **dict.fromkeys(("cbrt", "erf"), _FLOATS),
    **dict.fromkeys(
        opcodes_with(Trait.TRANSCENDENTAL) - _EXPANDED - {"cbrt", "erf"},
        f"{_INTEGERS} s4 u4 {_FLOATS} c64 c128",
    ),
    "sort": f"pred {_INTEGERS} {_FLOATS}",
    "topk": f"{_INTEGERS} {_FLOATS}",
    "dot": f"{_INTEGERS} {_FLOATS} c64 c128 f8e4m3fn f8e5m2",
    "convolution": f"{_INTEGERS} {_FLOATS} c64 c128 f8e4m3fn f8e5m2",
    **dict.fromkeys(
        opcodes_with(Class.LIBRARY) - {"custom-call", "fft"},
        "f32 f64",
    ),
    "remainder": f"{_INTEGERS} s4 u4 s2 u2 {_FLOATS} {_NARROW}",
}  # fmt: skip

_BY_PASSES = "made by passes: frontends, and StableHLO, have no word for it"
_HOST = "waits for the host, which takes no part"
_NOT_COMPILED = "XLA's CPU compiler has no code for it"

#: Opcodes that no program is drawn with, and why.
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(opcodes_with(Trait.LATE), _BY_PASSES),
    **dict.fromkeys(opcodes_with(Class.HOST), _HOST),
    **dict.fromkeys(("ragged-dot", "collective-broadcast", "ragged-all-to-all"), _NOT_COMPILED),
    **dict.fromkeys(("mulhi", "scaled-dot"), "XLA cannot write it as StableHLO, which jaxlib compiles"),
    "custom-call": "each target has a meaning of its own",
    "dynamic-reshape": "sizes known at run time are drawn with set-dimension-size, and end where they began",
    "rng": "its numbers are not specified",
    "rng-get-and-update-state": "its state is the device's",
}  # fmt: skip

#: Where the start indices of an operation begin among its operands.
_STARTS = {"dynamic-slice": 1, "dynamic-update-slice": 2}

#: XLA's CPU compiler dies of arrays of two bits here.
_NOT_OF_TWO_BITS = frozenset({"concatenate", "pad"})

#: f8e8m0fnu has no zero, which the imaginary part of a real number is, and 0.5 rounded to a whole number, and
#: no negative numbers: there is NaN or another number, as XLA folds it or does not.
_NOT_OF_SCALES = frozenset(
    {"acos", "acosh", "cosine", "floor", "imag", "log", "negate", "remainder", "sine", "subtract", "tan"}
    | {"round-nearest-afz", "round-nearest-even"}
)

#: XLA's partitioner dies of these, or of where their shardings go.
_NOT_PARTITIONED = frozenset({"scan", "set-dimension-size"})
#: It makes a convolution of each device's features that is no longer divisible into the groups, and dies.
_GROUPS = ("feature_group_count", "batch_group_count")
#: Types of indices that it has code for: it dies of others.
_INDICES = {"gather": frozenset({ElementType.S32, ElementType.S64}), "scatter": frozenset({ElementType.S32})}

#: What devices that share the elements of a reduction can combine their parts by: XLA's CPU collectives have
#: these, and of predicates also `and` and `or`.
_ARITHMETIC = opcodes_with(Trait.ASSOCIATIVE) - opcodes_with(Trait.BITWISE)
_OF_PREDICATES = frozenset({"and", "or"})

#: Bits of the types that devices exchange: all-reduces of narrower ones are not implemented.
LEAST_PARTITIONED = 8

_COMPILED = {opcode: frozenset(ELEMENT_TYPES[k] for k in kinds.split()) for opcode, kinds in _TYPES.items()}


def compiles(opcode: str, kind: ElementType) -> bool:
    """Whether XLA's CPU compiler takes the operation with a first operand of this type."""
    if opcode in _NOT_OF_TWO_BITS and kind.bits == 2:
        return False
    if opcode in _NOT_OF_SCALES and kind is ElementType.F8E8M0FNU:
        return False
    kinds = _COMPILED.get(opcode)
    return kinds is None or kind in kinds


def objection(instruction: Instruction, partitioned: bool, is_called: bool = False) -> str:
    """What XLA's CPU compiler has against an instruction; empty where it has nothing.

    Args:
        instruction: any.
        partitioned: XLA divides the program among devices.
        is_called: it is in a computation that another one calls.
    """
    opcode = instruction.opcode
    if is_called and opcode in _EXPANDED:
        return f"XLA expands no {opcode} in the body of a loop"
    first = instruction.operands[0].shape if instruction.operands else None
    if isinstance(first, ArrayShape) and not compiles(opcode, first.element_type):
        return f"XLA compiles no {opcode} of {first.element_type}"
    starts = _STARTS.get(opcode)
    if starts is not None and any(index.array_shape.dims for index in instruction.operands[starts:]):
        return f"StableHLO has no {opcode} whose start is one vector"
    if partitioned and not partitions(instruction):
        return f"XLA partitions no such {opcode} that gives {instruction.shape}"
    return ""


def partitions(instruction: Instruction) -> bool:
    """Whether XLA divides an operation among devices, wherever the shardings of other arrays lead it."""
    opcode = instruction.opcode
    if opcode in _NOT_PARTITIONED or any(instruction.integer(name, 1) > 1 for name in _GROUPS):
        return False
    if opcode in _INDICES:
        indices = instruction.operands[len(instruction.operands) // 2]
        if indices.element_type not in _INDICES[opcode]:
            return False
    if opcode in ("reduce", "scatter") and not _is_exchanged(instruction.computation("to_apply")):
        return False
    if any(_is_lost(part) for part in _parts(instruction)):
        return False
    return all(shape.element_type.bits >= LEAST_PARTITIONED for shape in array_shapes(instruction.shape))


def _is_exchanged(reducer: Computation) -> bool:
    """Whether devices can combine by this function.

    Of several results XLA drops those that nobody reads: what is left of an argmax is no opcode of theirs.
    """
    root = reducer.root
    if len(reducer.parameters) > 2 or {*root.operands} != {*reducer.parameters}:
        return False
    return root.opcode in (_OF_PREDICATES if root.element_type is ElementType.PRED else _ARITHMETIC)


def _parts(instruction: Instruction) -> Iterable[object]:
    """What is said of each dimension by a window, a padding or a slice."""
    for value in instruction.attributes.values():
        if isinstance(value, Window):
            if instruction.opcode == "reduce-window":
                yield from value.dims
        elif isinstance(value, tuple):
            yield from value


def _is_lost(part: object) -> bool:
    """Whether the partitioner dies where the dimension is divided: its shapes or offsets do not fit then.

    These are windows on elements that are moved apart, edges that are cut off such elements, and slices of
    one element with a stride.
    """
    match part:
        case WindowDim():
            return part.base_dilation > 1
        case PaddingDim():
            return part.low < 0 < part.interior
        case SliceDim():
            return part.stride > 1 and part.limit - part.start <= part.stride
    return False
