"""A computation under construction: what is added to it, and numbers that make sense in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite, prod
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from hlotool.ir.arrays import Literal, dtype_of, integer_limits
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.builder import Builder
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, opcodes_with
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, Shape, TypeClass, array_shapes
from hlotool.lab.fuzz.programs.limits import Preferences, objection

_T = TypeVar("_T")
Dims = tuple[int, ...]

#: What is made of nothing, on every device alike.
GIVEN = opcodes_with(Class.SOURCE) - {"partition-id", "replica-id"}

#: What parameters are taken to hold at most: inputs are drawn around zero.
PARAMETER_REACH = 8.0

#: Beyond this share of the largest number of a type, an operand is made smaller before it is computed with.
_HEADROOM = 1 / 16


class Declined(Exception):
    """An operation has no place here: its result would be too large, or what it needs is not there."""


@dataclass
class Shared:
    """What all computations of a program have in common.

    Attributes:
        rng: where all choices come from.
        preferences: what is chosen more often.
        room: for so many more instructions.
        helpers: computations that several instructions may call, by what they do.
        idioms: names of the patterns that were emitted.
        callees: how many computations have a name of their own.
    """

    rng: random.Random
    preferences: Preferences
    room: int
    helpers: dict[Hashable, Computation] = field(default_factory=dict)
    idioms: set[str] = field(default_factory=set)
    callees: int = 0


class Draft:
    """One computation under construction: values to choose from, and operations on them.

    Args:
        name: of the computation.
        shared: what it has in common with the others of its program.
        depth: how many computations it is called through.
    """

    def __init__(self, name: str, shared: Shared, depth: int = 0) -> None:
        self.builder = Builder(name)
        self.shared = shared
        self.rng = shared.rng
        self.preferences = shared.preferences
        self.depth = depth
        #: Arrays of static shape, which operations may take, oldest first.
        self.values: list[Instruction] = []
        #: Bounds on the magnitude of floats; what is not here may be anything.
        self.reach: dict[Instruction, float] = {}
        self._parameters = 0

    # What is there already.

    @property
    def is_entry(self) -> bool:
        """Whether the program begins here: only there may be new parameters."""
        return self.depth == 0

    def pick(self, fits: Callable[[ArrayShape], bool] = lambda shape: True) -> Instruction | None:
        """One of the arrays whose shape fits, more often a late one; None where there is none."""
        found = [v for v in self.values if fits(v.array_shape)]
        if not found:
            return None
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found)

    def chance(self, probability: float = 0.5) -> bool:
        """Whether something happens."""
        return self.rng.random() < probability

    def choose(self, options: Sequence[_T]) -> _T:
        """One of several."""
        return self.rng.choice(options)

    def word(self, options: str | Iterable[str]) -> str:
        """One of several words, as often as the preferences say."""
        words = options.split() if isinstance(options, str) else options
        return self.preferences.one_of(self.rng, dict.fromkeys(words, 1.0))

    # What is added.

    def op(
        self,
        opcode: str,
        *operands: Instruction,
        shape: Shape | None = None,
        reach: float | None = None,
        **attributes: AttributeValue,
    ) -> Instruction:
        """Add an instruction; an array among the values that others may take.

        Args:
            opcode: HLO name.
            operands: of this computation.
            shape: of the result; inferred when None.
            reach: bound on the magnitude of a float result; that of the operands when None.
            attributes: by HLO name.

        Raises:
            Declined: the result would be too large, there is no room, or XLA has no such operation.
            VerificationError: operands and attributes do not fit.
        """
        return self.with_attributes(opcode, operands, attributes, shape, reach)

    def with_attributes(
        self,
        opcode: str,
        operands: Sequence[Instruction],
        attributes: Mapping[str, AttributeValue],
        shape: Shape | None = None,
        reach: float | None = None,
    ) -> Instruction:
        """`op` for attributes that are in a mapping."""
        result = infer_shape(opcode, [o.shape for o in operands], attributes) if shape is None else shape
        return self.add(Instruction(opcode, opcode, result, tuple(operands), attributes), reach)

    def add(self, instruction: Instruction, reach: float | None = None) -> Instruction:
        """Add an instruction made elsewhere; raises as `op`."""
        if any(part.size > self.preferences.most_elements for part in array_shapes(instruction.shape)):
            raise Declined(f"{instruction.opcode} would give {instruction.shape}")
        if why := objection(instruction, self.preferences.partitioned, not self.is_entry):
            raise Declined(why)
        if self.shared.room <= 0:
            raise Declined("the program is long enough")
        self.shared.room -= 1
        added = self.builder.add(instruction)
        if reach is None:
            reach = max((self.reach_of(o) for o in added.operands), default=float("inf"))
        self.reach[added] = reach
        if isinstance(added.shape, ArrayShape) and not added.shape.is_dynamic:
            self.values.append(added)
        return added

    def attempt(self, step: Callable[[], _T]) -> _T | None:
        """What `step` returns, or None, and nothing added, where it declines."""
        before = len(self.builder.instructions), len(self.values), self._parameters
        room, helpers, idioms = self.shared.room, dict(self.shared.helpers), set(self.shared.idioms)
        try:
            return step()
        except Declined:
            del self.builder.instructions[before[0] :]
            del self.values[before[1] :]
            self._parameters = before[2]
            self.shared.room, self.shared.helpers, self.shared.idioms = room, helpers, idioms
            return None

    def kind(self, families: Iterable[TypeClass] = ()) -> ElementType:
        """An element type, of one of the families where some are given.

        Raises:
            Declined: the program must do without all of them.
        """
        wanted = frozenset(families)
        if wanted and self.preferences.integers_only and not wanted - {TypeClass.FLOATING, TypeClass.COMPLEX}:
            raise Declined("there are only integers")
        return self.preferences.kind(self.rng, wanted)

    def parameter(self, shape: Shape, reach: float = PARAMETER_REACH) -> Instruction:
        """The next parameter."""
        added = self.add(
            Instruction(f"p{self._parameters}", "parameter", shape, parameter_number=self._parameters), reach
        )
        self._parameters += 1
        return added

    def constant(self, value: Any, kind: ElementType, dims: Dims = ()) -> Instruction:
        """A constant: `value` is one number, or an array of `dims`."""
        with np.errstate(all="ignore"):
            held = np.broadcast_to(np.asarray(value).astype(dtype_of(kind)), dims).copy()
        shape = ArrayShape(kind, dims)
        reach = _largest(held) if kind.is_inexact else float("inf")
        return self.add(Instruction("constant", "constant", shape, literal=Literal(shape, held)), reach)

    def filled(self, value: Any, like: ArrayShape) -> Instruction:
        """An array of the type and dimensions of `like` that holds `value` everywhere."""
        scalar = self.constant(value, like.element_type)
        return scalar if not like.dims else self.broadcast(scalar, like.dims, ())

    def broadcast(self, x: Instruction, dims: Dims, dimensions: Dims) -> Instruction:
        """`x` with dimension i as dimension `dimensions[i]` of `dims`."""
        shape = ArrayShape(x.array_shape.element_type, dims)
        return self.op("broadcast", x, shape=shape, dimensions=dimensions)

    def reshape(self, x: Instruction, dims: Dims) -> Instruction:
        """The same elements in other dimensions."""
        return self.op("reshape", x, shape=ArrayShape(x.array_shape.element_type, dims))

    def convert(self, x: Instruction, kind: ElementType) -> Instruction:
        """Another element type; what a float type does not hold is scaled down before."""
        source = x.array_shape.element_type
        if source is kind:
            return x
        if source.is_complex and not kind.is_complex:
            x = self.op("real", x)
        x = self.tamed(x, limit_of(kind))
        known = self.reach_of(x)
        if kind.is_inexact and not isfinite(known) and not source.is_inexact:
            known = float(max(map(abs, integer_limits(source))))
        return self.op("convert", x, shape=ArrayShape(kind, x.array_shape.dims), reach=known)

    def iota(self, kind: ElementType, dims: Dims, dimension: int) -> Instruction:
        """Indices along one dimension."""
        return self.op(
            "iota", shape=ArrayShape(kind, dims), reach=float(dims[dimension]), iota_dimension=dimension
        )

    # Numbers.

    def number(self, kind: ElementType) -> Any:
        """A number that rewrites may look for: small, or at the end of the type; finite but for one in 50."""
        if kind is ElementType.PRED:
            return self.chance()
        if kind.is_integer:
            low, high = integer_limits(kind)
            corner = self.choose([0, 0, 1, 1, 2, 3, 7, -1, low, high, low + 1, high - 1])
            return min(max(corner, low), high)
        if kind is ElementType.F8E8M0FNU:
            return self.choose([0.5, 1.0, 2.0, 4.0])
        real = self.choose([0.0, 1.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, 1.5, -2.0])
        if self.chance(0.02):
            real = self.choose([-0.0, float("inf"), float("-inf"), float("nan")])
        return complex(real, self.choose([0.0, 1.0, -0.5])) if kind.is_complex else real

    def numbers(self, kind: ElementType, dims: Dims) -> Any:
        """An array of small numbers, among them corners."""
        count = prod(dims)
        if kind.is_inexact and kind is not ElementType.F8E8M0FNU:
            flat: list[Any] = [self.rng.randint(-16, 16) / 4 for _ in range(count)]
        else:
            flat = [self.number(kind) for _ in range(count)]
        return np.array(flat).reshape(dims)

    def reach_of(self, x: Instruction) -> float:
        """A bound on the magnitude of `x`; infinite where none is known."""
        return self.reach.get(x, float("inf"))

    def tamed(self, x: Instruction, limit: float | None = None) -> Instruction:
        """`x` such that no magnitude is above `limit`: itself, scaled down, or clamped. Floats only.

        Where one number overflows all that follows is infinite or NaN, and any two programs agree on it.
        """
        shape = x.array_shape
        limit = limit_of(shape.element_type) if limit is None else limit
        reach = self.reach_of(x)
        if not shape.element_type.is_inexact or reach <= limit:
            return x
        if not shape.element_type.is_complex and (not isfinite(reach) or self.chance(0.3)):
            low, high = (self.constant(v, shape.element_type) for v in (-limit, limit))
            return self.op("clamp", low, x, high, reach=limit)
        if not isfinite(reach):
            return x
        factor = 2.0 ** np.floor(np.log2(limit / reach))
        if factor < _limits(shape.element_type)[0]:
            return x
        return self.op("multiply", x, self.filled(factor, shape), reach=reach * factor)


def limit_of(kind: ElementType) -> float:
    """The largest magnitude that is computed with: far below where floats end."""
    if not kind.is_inexact:
        return float("inf") if kind is ElementType.PRED else float(integer_limits(kind)[1])
    return _limits(kind)[1] * _HEADROOM


@cache
def _limits(kind: ElementType) -> tuple[float, float]:
    """Smallest normal and largest magnitude of a float type, or of a complex one's parts."""
    info = ml_dtypes.finfo(dtype_of(kind.real_part))  # type: ignore[no-untyped-call]
    return float(info.smallest_normal), float(info.max)


def typed(*names: str) -> tuple[ElementType, ...]:
    """Element types by name."""
    return tuple(ELEMENT_TYPES[name] for name in names)


def _largest(held: Any) -> float:
    """The largest magnitude in an array of floats; infinite where it holds NaN."""
    if not held.size:
        return 0.0
    wide = np.abs(held.astype(np.complex128))
    return float("inf") if np.isnan(wide).any() else float(wide.max())
