"""The array leaves of a program's parameters, each with what its uses ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from hlotool.analysis.interval import Interval
from hlotool.analysis.work import of_drawing
from hlotool.backends.base import Value
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, ShapeIndex
from hlotool.values.constraints import Constraint, combine
from hlotool.values.demand_flow import Finding, parameter_demands
from hlotool.values.demand_rules import TRIP_COUNT
from hlotool.values.demands import InRange
from hlotool.values.flatten import flatten, unflatten
from hlotool.workers.work_limit import spend


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
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
        """The same leaf, of which nobody wishes anything: positions may be out of range."""
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
