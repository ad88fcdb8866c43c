"""Inputs for programs whose real ones were not captured, and values for constants left out of a dump.

The uses of every entry parameter are followed through the module, so that indices are in range, divisors
are not zero, loops end, and so on. What was assumed of each parameter is part of the result. Constants that
are left out get values in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np
from msgspec import Struct

from hlotool.errors import InputDataError
from hlotool.facts.ranges import ANY, Interval
from hlotool.facts.work import of_drawing, of_following
from hlotool.inputs.constraints import Constraint, combine, demands_on, parameter_demands
from hlotool.inputs.generators import Draw, generate, generator_of, holds, integer_range
from hlotool.inputs.given import Keep, as_it_is
from hlotool.ir.arrays import Array, Literal, Value, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import (
    UNBOUNDED,
    ArrayShape,
    ElementType,
    Shape,
    ShapeIndex,
    TokenShape,
    TupleShape,
    leaves,
)
from hlotool.system.resources import spend

#: Actual size of a dimension without a bound: more than one, so that orders and strides can be wrong.
_UNBOUNDED_SIZE = 4


class LeafDescription(Struct, frozen=True):
    """What was generated for one leaf of one parameter.

    Attributes:
        number: of the parameter.
        name: of the parameter.
        index: of the leaf within the parameter; empty for arrays.
        shape: actual shape, such as `s32[8]`.
        rule: what its values are, such as `in [0, 99], distinct`; empty for the default of the type.
        purposes: the instructions that ask for it, such as `indices of gather %g.1`.
        unmet: those whose wishes contradict the rule.
    """

    number: int
    name: str
    index: ShapeIndex
    shape: str
    rule: str
    purposes: tuple[str, ...]
    unmet: tuple[str, ...]


class GeneratedInputs(Struct, frozen=True):
    """Arguments for a run.

    Attributes:
        values: one per entry parameter.
        descriptions: one per array leaf, in order.
        seed: that it was made from.
    """

    values: tuple[Value, ...]
    descriptions: tuple[LeafDescription, ...]
    seed: int


class InputGenerator:
    """Draws arguments for one program, which must not change meanwhile; its uses are followed once.

    Args:
        module: the program.
        value_range: see `generate_inputs`, as for what is raised.

    Attributes:
        module: the program.
    """

    def __init__(self, module: Module, value_range: tuple[float, float] | None = None) -> None:
        if value_range is not None and not value_range[0] <= value_range[1]:
            raise InputDataError(f"the input range {value_range[0]}:{value_range[1]} is empty")
        self.module = module
        self._range = value_range

    def draw(self, seed: int = 0, keep: Keep = as_it_is) -> GeneratedInputs:
        """Arguments that make sense to the program; see `generate_inputs`."""
        descriptions: list[LeafDescription] = []
        values = self.values(seed, keep, descriptions)
        return GeneratedInputs(values, tuple(descriptions), seed)

    def values(
        self, seed: int, keep: Keep = as_it_is, descriptions: list[LeafDescription] | None = None
    ) -> tuple[Value, ...]:
        """The arguments alone; what they are is added to `descriptions`."""
        values = []
        for parameter in self.module.entry.parameters:
            arrays = _parameter_leaves(parameter, self._constraints, seed, self._range, keep, descriptions)
            values.append(unflatten(parameter.shape, arrays))
        return tuple(values)

    @cached_property
    def _constraints(self) -> dict[tuple[int, ShapeIndex], Constraint]:
        """What the program asks of its arguments: to find it costs more than to make them."""
        spend(of_following(self.module))
        return combine(parameter_demands(self.module))


def generate_inputs(
    module: Module,
    seed: int = 0,
    value_range: tuple[float, float] | None = None,
    keep: Keep = as_it_is,
) -> GeneratedInputs:
    """Arguments for `module` that make sense to it.

    Equal seeds give equal values; the values of a parameter depend on its number, shape and uses only, so
    that parameters of the same role get the same values in another version of the program.

    Args:
        module: the program.
        seed: any integer from 0.
        value_range: `(low, high)` for floats, instead of normal numbers; what uses demand still holds.
        keep: called with every array as soon as it is made; returns one of the same values to use instead.

    Raises:
        InputDataError: a parameter is of a type that has no values (`opaque[]`, a buffer), or the range is
            empty.
    """
    return InputGenerator(module, value_range).draw(seed, keep)


def _parameter_leaves(
    parameter: Instruction,
    constraints: dict[tuple[int, ShapeIndex], Constraint],
    seed: int,
    value_range: tuple[float, float] | None,
    keep: Keep,
    descriptions: list[LeafDescription] | None,
) -> list[Array | None]:
    """Values of the leaves of one parameter; adds what they are to `descriptions`, if that is asked for."""
    number = parameter.parameter_number or 0
    arrays: list[Array | None] = []
    for index, shape in leaves(parameter.shape):
        if isinstance(shape, TokenShape):
            arrays.append(None)
            continue
        if not isinstance(shape, ArrayShape):
            raise InputDataError(
                f"parameter {number} (%{parameter.name}) is of shape {shape}: no values exist"
            )
        constraint = constraints.get((number, index), Constraint())
        dims = _actual_dims(shape, seed)
        draw = Draw(
            generator_of(seed, number, *index),
            seed + number,
            value_range,
            shape.element_type.real_part is ElementType.F64,
        )
        spend(of_drawing(prod(dims)))
        arrays.append(keep(generate(shape.element_type, dims, constraint, draw)))
        if descriptions is not None:
            actual = ArrayShape(shape.element_type, dims)
            descriptions.append(_describe(parameter, index, actual, constraint))
    return arrays


def _actual_dims(shape: ArrayShape, seed: int) -> tuple[int, ...]:
    """Sizes of dynamic dimensions: equal for equal bounds, since arrays that meet must match."""
    return tuple(
        _actual_size(size, seed) if shape.is_dynamic_dimension(d) else size
        for d, size in enumerate(shape.dims)
    )


def _actual_size(bound: int, seed: int) -> int:
    """Between half of the bound and the bound."""
    if bound == UNBOUNDED:
        return _UNBOUNDED_SIZE
    return int(np.random.default_rng([seed, bound]).integers((bound + 1) // 2, bound, endpoint=True))


def _describe(
    parameter: Instruction, index: ShapeIndex, shape: ArrayShape, constraint: Constraint
) -> LeafDescription:
    return LeafDescription(
        parameter.parameter_number or 0,
        parameter.name,
        index,
        shape.logical_text(),
        ", ".join(_rules(shape.element_type, constraint)),
        tuple(dict.fromkeys(constraint.purposes)),
        tuple(dict.fromkeys(constraint.unmet)),
    )


def _rules(element_type: ElementType, constraint: Constraint) -> list[str]:
    """The constraint in words."""
    if constraint.exactly is not None:
        return [constraint.exactly.value]
    if constraint.matrix is not None:
        return [constraint.matrix.value]
    words = []
    if constraint.all_bits:
        words.append("all bits random")
    if constraint.is_bounded:
        intervals = dict.fromkeys(_interval_text(element_type, i) for i in constraint.intervals if i != ANY)
        words.append(" × ".join(intervals))
    if constraint.order is not None and constraint.order.distinct:
        words.append("distinct")
    if constraint.order is not None and constraint.order.ascending:
        words.append("ascending")
    if constraint.scale != 1:
        words.append(f"scaled by {constraint.scale:.3g}")
    return words


def _interval_text(element_type: ElementType, interval: Interval) -> str:
    """The interval; of integers the one that values were really drawn from."""
    if not element_type.is_integer:
        return str(interval)
    drawn = integer_range(element_type, interval)
    return str(
        Interval(drawn.start, drawn.stop - 1, interval.avoid if holds(drawn, interval.avoid) else None)
    )


# Values for constants that a dump leaves out, made as inputs are: so that the program makes sense.


def generate_constants(module: Module, constants: Sequence[Instruction], seed: int) -> None:
    """Give `constants` of `module` values that follow from `seed`, their names, shapes and uses."""
    constraints = combine(demands_on(module, {c: number for number, c in enumerate(constants)}))
    for number, constant in enumerate(constants):
        constraint = constraints.get((number, ()), Constraint())
        key = zlib.crc32(f"{constant.name} {constant.shape}".encode())
        constant.literal = _literal(constant.shape, constraint, [seed, key])


def _literal(shape: Shape, constraint: Constraint, key: list[int]) -> Literal:
    if isinstance(shape, TupleShape):
        parts = (_literal(part, Constraint(), [*key, n]) for n, part in enumerate(shape.elements))
        return Literal(shape, tuple(parts))
    if not isinstance(shape, ArrayShape):
        return Literal(shape, None)
    is_wide = shape.element_type.real_part is ElementType.F64
    draw = Draw(np.random.default_rng(key), key[-1], wide=is_wide)
    return Literal(shape, generate(shape.element_type, shape.dims, constraint, draw))
