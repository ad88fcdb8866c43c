"""What is drawn more often (types, sizes, words that guidance weighs), and what is not drawn at all."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hlotool.ir.attributes import PaddingDim, SliceDim, Window, WindowDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, TypeClass, array_shapes

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


# Measured with jaxlib 0.10.2.


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

    Of several results XLA drops those that are not read: what is left of an argmax is no opcode of theirs.
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


#: Element types by how often programs hold them; s1 and u1 are left out, which XLA's CPU compiler lacks.
_TYPE_SHARES = {
    "f32": 10, "s32": 8, "bf16": 4, "f16": 3, "f64": 3, "s64": 3, "u32": 3, "s8": 3, "u8": 3, "pred": 4,
    "s16": 2, "u16": 2, "u64": 2, "s4": 1.5, "u4": 1.5, "c64": 2, "c128": 1, "f8e4m3fn": 1, "f8e5m2": 1,
    "f8e4m3fnuz": 0.5, "f8e5m2fnuz": 0.5, "f8e4m3b11fnuz": 0.5, "f8e3m4": 0.5, "f8e4m3": 0.5,
    "f8e8m0fnu": 0.3, "f4e2m1fn": 0.5, "s2": 0.5, "u2": 0.5,
}  # fmt: skip

#: Sizes of dimensions: corners, odd numbers and powers of two, so that vector loops have remainders.
_SIZES = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16, 17)
_LARGE_MINOR = (31, 33, 64, 65, 100, 127, 128, 257, 513)

#: No array has more elements; the reference computes them one program after the other.
MOST_ELEMENTS = 2000

#: Of programs on large arrays: libraries and parallel loops divide these into parts, and the last part is
#: another than the others. The powers of two next to which the sizes are go from a part of a cache to what
#: 16 bits count; those at which a number of 16 bits ends, with a sign and without, are three times as likely.
MOST_OF_LARGE = 1 << 18
_POWERS = (11, 12, 13, 14, 15, 15, 15, 16, 16, 16)
#: What libraries have code for. Narrow floats are left out: of sums of thousands of them no digit is certain.
_OF_LIBRARIES = {"f32": 10, "f64": 1, "s32": 3, "s8": 1, "u8": 1, "s64": 1, "pred": 0.5}


@dataclass(frozen=True)
class Preferences:
    """What a source prefers.

    Attributes:
        integers_only: no floats, where every difference counts.
        devices: that take part.
        partitioned: the program is on whole arrays, and XLA divides them among the devices; else all devices
            run it as replicas, and it says what they exchange.
        weights: how much more often than otherwise what a word stands for is chosen.
        large: one dimension of some arrays is long, and element types are those of libraries.
        offloads: arrays may lie in the host's memory.
    """

    integers_only: bool = False
    devices: int = 1
    partitioned: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    large: bool = False
    offloads: bool = False

    @property
    def most_elements(self) -> int:
        """No array has more."""
        return MOST_OF_LARGE if self.large else MOST_ELEMENTS

    @property
    def exchanges(self) -> bool:
        """Whether programs say what devices send each other."""
        return self.devices > 1 and not self.partitioned

    def one_of(self, rng: random.Random, base: Mapping[str, float]) -> str:
        """One of the words, as often as `base` and the weights say."""
        words = list(base)
        return rng.choices(words, [base[w] * self.weights.get(w, 1.0) for w in words])[0]

    def kind(self, rng: random.Random, families: Collection[TypeClass] = ()) -> ElementType:
        """An element type, of one of the families where some are given."""
        allowed = {
            name: weight
            for name, weight in (_OF_LIBRARIES if self.large else _TYPE_SHARES).items()
            if (not families or ELEMENT_TYPES[name].family in families)
            and not (self.integers_only and ELEMENT_TYPES[name].is_inexact)
            and not (self.partitioned and ELEMENT_TYPES[name].bits < LEAST_PARTITIONED)
        }
        return ELEMENT_TYPES[self.one_of(rng, allowed)]

    def dims(
        self, rng: random.Random, low_rank: int = 0, high_rank: int = 3, *, may_be_empty: bool = True
    ) -> tuple[int, ...]:
        """Sizes of a quarter of MOST_ELEMENTS at most; a few are empty, or have a large minor dimension.

        Of a large program half of them have one long dimension, and are within `most_elements`.
        """
        rank = rng.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4) if low_rank <= r <= high_rank])
        if self.large and high_rank and rng.random() < 0.5:
            return long_dims(rng, max(rank, 1))
        while True:
            dims = [rng.choice(_SIZES) for _ in range(rank)]
            if rank and rng.random() < 0.125:
                dims[-1] = rng.choice(_LARGE_MINOR)
            if may_be_empty and rank and rng.random() < 0.025:
                dims[rng.randrange(rank)] = 0
            size = 1
            for n in dims:
                size *= n
            if size <= MOST_ELEMENTS // 4:
                return tuple(dims)


def long_dims(rng: random.Random, rank: int) -> tuple[int, ...]:
    """Sizes one of which is a power of two, next to one, or a little above."""
    power = 1 << rng.choice(_POWERS)
    long = power + rng.choice([-1, 0, 1, rng.randint(2, power // 4), rng.randint(2, power // 4)])
    room = MOST_OF_LARGE // long
    dims = []
    for _ in range(rank - 1):
        dims.append(rng.choice([n for n in _SIZES if n <= room]))
        room //= dims[-1]
    dims.insert(rng.randrange(rank), long)
    return tuple(dims)
