"""Sets of inputs: what one is, the leaves it is made for, and results that HLO leaves unspecified.

Each leaf of a program's parameters is known with what its uses ask of it; the program's scalar constants
are what its comparisons may be with. Sets whose unusual numbers reach an operation for which HLO does not say
what comes of them are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hlotool.backends.base import Value
from hlotool.facts.demands import InRange
from hlotool.facts.ranges import Interval
from hlotool.facts.recognition import TRANSPARENT
from hlotool.facts.work import of_drawing
from hlotool.inputs.constraints import Constraint, Finding, combine, parameter_demands
from hlotool.inputs.demand_rules import TRIP_COUNT
from hlotool.ir.arrays import Array, flatten, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType, ShapeIndex
from hlotool.system.resources import spend

#: The name of the set that a replay always takes.
PLAIN = "plain"
#: The kind of a set with such indices, which XLA clamps or skips.
OUT_OF_RANGE = "indices out of range"
#: The kind of a set with numbers outside a function's domain: the logarithm of -1 is NaN, a shift
#: by more bits than there are is 0.
OUT_OF_DOMAIN = "numbers out of a domain"


class InputSet(Struct, frozen=True, eq=False):
    """Arguments for one run.

    Attributes:
        name: short, such as `ties`; unique among the sets of a program.
        values: one per entry parameter.
        odd: kinds of values that are legal, but that a framework may never pass: `NaN`, `indices out of
            range`; empty for ordinary values.
        aims: the outcomes that it was made for, in words.
        is_hard: rounding is at its worst on such numbers (all alike, sorted, far apart, large): between
            programs on one backend that is the same for both, between backends it was not measured.
    """

    name: str
    values: tuple[Value, ...]
    odd: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()
    is_hard: bool = False

    @property
    def suits_other_backends(self) -> bool:
        """Whether backends must agree on it: of unusual values only indices out of range have one meaning."""
        return set(self.odd) <= {OUT_OF_RANGE} and not self.is_hard

    @property
    def is_plain(self) -> bool:
        """Whether it is the set that every replay takes."""
        return self.name == PLAIN


def in_words(one: InputSet) -> str:
    """A set as reports name it: what it was made for, and its unusual values."""
    odd = f", with {' and '.join(one.odd)}" if one.odd else ""
    aims = f" ({', '.join(one.aims)})" if one.aims else ""
    return f"set `{one.name}`{aims}{odd}"


# Input kinds for which HLO leaves the result unspecified: such sets are left out.

#: Odd values that operations may spread.
_NO_NUMBERS = frozenset({"NaN", "infinity", "extreme numbers", OUT_OF_DOMAIN})
#: Libraries that compilers call, and never rewrite: both sides make the same call.
_LAPACK: Final = ("lapack_", "blas_")
#: LAPACK's balancing before eigenvalues refuses a NaN with a message, and returns what was in memory.
_BALANCED: Final = ("geev",)


def unspecified(module: Module, is_bounded: bool = False) -> frozenset[str]:
    """Kinds of unusual values for which HLO leaves this program's result unspecified.

    Bounds of the user (`is_bounded`) leave none of it. Linear algebra is a library's affair: of NaN LAPACK
    makes NaN, or says in its `info` that it failed, and XLA's CPU client and the reference call the same
    routines; infinities and the ends of the range depend on how a routine scales. Batch normalization is
    arithmetic (XLA: operation_semantics.md), in an order that is open where a number is infinite. And whether
    a convolution multiplies by the zeros of its padding, which makes NaN of infinity, is up to the compiler.
    """
    if is_bounded:
        return _NO_NUMBERS | {"negative zeros"}
    found: frozenset[str] = frozenset()
    for instruction in module.instructions():
        found |= _open_in(instruction)
    return found


def _open_in(instruction: Instruction) -> frozenset[str]:
    if instruction.opcode == "custom-call":
        target = instruction.custom_call_target
        if target in TRANSPARENT:
            return frozenset()
        is_known = target.startswith(_LAPACK) and not any(name in target for name in _BALANCED)
        return _NO_NUMBERS - {"NaN"} if is_known else _NO_NUMBERS
    if instruction.opcode == "convolution" or instruction.opcode.startswith("batch-norm-"):
        return _NO_NUMBERS - {"NaN"}
    return _NO_NUMBERS if instruction.row.opcode_class is Class.LIBRARY else frozenset()


#: Constants that are larger say nothing that a parameter could be compared with.
_LARGEST: Final = 1e6


def scalar_constants(module: Module) -> list[float]:
    """The scalar constants of a program that are real numbers of moderate size, each once."""
    found: dict[float, None] = {}
    for instruction in module.instructions():
        literal = instruction.literal
        shape = instruction.shape
        if literal is None or literal.has_elided or not isinstance(shape, ArrayShape) or shape.rank:
            continue
        if shape.element_type.is_complex:
            continue
        value = float(np.asarray(literal.array).astype(np.float64))
        if abs(value) <= _LARGEST:
            found[value] = None
    return list(found)


class Leaf(Struct, frozen=True, eq=False):
    """One array among the arguments.

    Attributes:
        parameter: that it belongs to.
        index: within the parameter.
        element_type: of its elements.
        plain: what it holds in the plain set.
        constraint: all that is asked of it.
        required: without wishes: out of these bounds the program is not defined, or never ends.
        is_index: whether a wish is about a position, which XLA clamps or skips when it is out of range.
    """

    parameter: Instruction
    index: ShapeIndex
    element_type: ElementType
    plain: Array
    constraint: Constraint
    required: Constraint
    is_index: bool

    @property
    def name(self) -> str:
        """As reports name it: `%p.1`."""
        return "".join([f"%{self.parameter.name}", *(f".{i}" for i in self.index)])

    @property
    def is_free(self) -> bool:
        """Whether other values are worth a try: it is no identity, no matrix, no state of random numbers."""
        asked = self.constraint
        return asked.exactly is None and asked.matrix is None and not asked.all_bits and self.plain.size > 0

    @property
    def bounds(self) -> Interval:
        """The numbers that are allowed at every position."""
        return InRange(self.constraint.intervals).narrowest

    @property
    def as_required(self) -> Leaf:
        """The same leaf, without its wishes: positions may be out of range."""
        return replace(self, constraint=self.required)

    @property
    def needs_order(self) -> bool:
        """Whether the program declares that its elements are distinct or sorted: a promise.

        One element, or one vector, always is.
        """
        order = self.constraint.order
        if order is None:
            return False
        axis = self.constraint.axis if order.axis is None else order.axis
        vector = 1 if axis is None or axis >= self.plain.ndim else self.plain.shape[axis]
        return self.plain.size > vector


#: `(low, high)` of floats that no use bounds, where the user gave one (`--input-range`).
Range: TypeAlias = "tuple[float, float] | None"
_Constraints: TypeAlias = dict[tuple[int, ShapeIndex], Constraint]
#: New values for a leaf; None leaves it as it is in the plain set.
Chooser: TypeAlias = Callable[[Leaf], "Array | None"]


def leaves_of(module: Module, plain: Sequence[Value], within: Range = None) -> list[Leaf]:
    """All array leaves of the parameters, in order.

    Args:
        module: the program.
        plain: its plain arguments.
        within: bounds of floats that no use bounds.
    """
    everything, required, positions = _asked(module)

    def bounded(constraint: Constraint, element_type: ElementType) -> Constraint:
        if within is None or constraint.is_bounded or not element_type.is_inexact:
            return constraint
        return replace(constraint, intervals=(Interval(*within),))

    return [
        Leaf(
            parameter,
            index,
            shape.element_type,
            np.asarray(value),
            bounded(everything.get((number, index), Constraint()), shape.element_type),
            bounded(required.get((number, index), Constraint()), shape.element_type),
            (number, index) in positions,
        )
        for number, parameter in enumerate(module.entry.parameters)
        for index, shape, value in flatten(parameter.shape, plain[number])
        if isinstance(shape, ArrayShape)
    ]


@lru_cache(maxsize=2)
def _asked(module: Module) -> tuple[_Constraints, _Constraints, frozenset[tuple[int, ShapeIndex]]]:
    """All constraints of a module, those without wishes, and the places of wishes; found once."""
    findings = parameter_demands(module, may_skip=True)
    wished = frozenset((f.number, f.index) for f in findings if not _is_required(f))
    return combine(findings), combine(f for f in findings if _is_required(f)), wished


def _is_required(finding: Finding) -> bool:
    """Loops must end, however their counts came to be mere wishes."""
    demand = finding.demand
    return not isinstance(demand, InRange) or demand.required or finding.purpose.startswith(TRIP_COUNT)


def _chosen(leaf: Leaf, choose: Chooser) -> Array | None:
    spend(of_drawing(leaf.plain.size))
    return choose(leaf)


def with_chosen(
    module: Module, plain: Sequence[Value], leaves: Sequence[Leaf], choose: Chooser
) -> tuple[tuple[Value, ...], list[Leaf]]:
    """The plain arguments with other values where `choose` has some, and the leaves that were changed."""
    changed: list[Leaf] = []
    by_place = {(leaf.parameter.parameter_number, leaf.index): leaf for leaf in leaves}

    def parts(number: int, parameter: Instruction) -> Iterator[Value]:
        for index, _, value in flatten(parameter.shape, plain[number]):
            leaf = by_place.get((number, index))
            new = _chosen(leaf, choose) if leaf is not None and leaf.is_free else None
            if leaf is None or new is None:
                yield value
                continue
            changed.append(leaf)
            yield new

    values: tuple[Any, ...] = tuple(
        unflatten(parameter.shape, list(parts(number, parameter)))
        for number, parameter in enumerate(module.entry.parameters)
    )
    return values, changed
