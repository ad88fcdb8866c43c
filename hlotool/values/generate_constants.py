"""Values for constants that a dump leaves out, made as inputs are: so that the program makes sense."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.values.constraints import Constraint, combine
from hlotool.values.demand_flow import demands_on
from hlotool.values.generators import Draw, generate


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
