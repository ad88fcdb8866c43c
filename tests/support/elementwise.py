"""Elementwise operations against XLA: values that matter, several operations a module, equality to the bit.

XLA's CPU run time treats subnormal f32 and f64 numbers, operands and results alike, as zero; the numpy
backend keeps them, as XLA's evaluator does. Elements that this touches are compared with a flushed zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hlotool.lab.conformance.agreement import differing, flushed
from hlotool.lab.conformance.generators.cases import corner_values
from support.differential import Array, run
from support.xla import oracle

PRED = "pred"
SIGNED = ("s2", "s4", "s8", "s16", "s32", "s64")
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
F8 = ("f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz")
NARROW = ("f4e2m1fn", *F8, "f8e8m0fnu", "f16", "bf16")
FLOATS = (*NARROW, "f32", "f64")
COMPLEX = ("c64", "c128")


def by_speed(names: tuple[str, ...], quick: str) -> list[Any]:
    """Test parameters: the types in `quick` always, the others in the slow run."""
    return [n if n in quick.split() else pytest.param(n, marks=pytest.mark.slow) for n in names]


def corner_pairs(name: str, limit: int = 4000) -> tuple[Array, Array]:
    """Corner values against each other; a random choice where there are more than `limit` pairs."""
    values = corner_values(name)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    if len(a) > limit:
        chosen = np.random.default_rng(0).choice(len(a), limit, replace=False)
        a, b = a[chosen], b[chosen]
    return a, b


@dataclass(frozen=True)
class Operation:
    """One instruction of a test module.

    Attributes:
        opcode: what it does.
        result: element type of the result.
        operands: numbers of the parameters it takes.
        attributes: as HLO text, with a leading comma.
    """

    opcode: str
    result: str
    operands: tuple[int, ...]
    attributes: str = ""


def module_text(operations: list[Operation], types: list[str], size: int) -> str:
    """A module that applies `operations` to vectors of `types` and returns all results."""
    lines = [f"  p{i} = {name}[{size}] parameter({i})" for i, name in enumerate(types)]
    for i, operation in enumerate(operations):
        operands = ", ".join(f"p{p}" for p in operation.operands)
        shape = f"{operation.result}[{size}]"
        lines.append(f"  r{i} = {shape} {operation.opcode}({operands}){operation.attributes}")
    shapes = ", ".join(f"{operation.result}[{size}]" for operation in operations)
    results = ", ".join(f"r{i}" for i in range(len(operations)))
    lines.append(f"  ROOT result = ({shapes}) tuple({results})")
    return "\n".join(["HloModule elementwise", "ENTRY e {", *lines, "}"])


def both(operations: list[Operation], types: list[str], arguments: list[Array]) -> list[tuple[Array, Array]]:
    """Results of the numpy backend and of XLA, operation by operation."""
    text = module_text(operations, types, len(arguments[0]))
    return list(zip(run(text, arguments), oracle().run(text, arguments), strict=True))


def check_operations(operations: list[Operation], types: list[str], arguments: list[Array]) -> None:
    """All results equal to the bit, flushed subnormals aside."""
    for operation, (ours, theirs) in zip(operations, both(operations, types, arguments)):
        operands = [arguments[i] for i in operation.operands]
        wrong = differing(ours, theirs) & ~flushed(ours, theirs, operands)
        shown = [(*(o[i] for o in operands), ours[i], theirs[i]) for i in np.flatnonzero(wrong)[:5]]
        assert not wrong.any(), f"{operation}: (operands, ours, XLA's) {shown}"


@np.errstate(all="ignore")
def ulp_distance(ours: Array, theirs: Array) -> Array:
    """Steps between two float arrays on the grid of their type; infinite where only one is NaN."""
    steps = np.abs(_grid(ours) - _grid(theirs)).astype(np.float64)
    nan_ours, nan_theirs = (np.isnan(a.astype(np.float64)) for a in (ours, theirs))
    return np.where(nan_ours & nan_theirs, 0.0, np.where(nan_ours | nan_theirs, np.inf, steps))


def _grid(array: Array) -> Array:
    """Consecutive integers for consecutive floats, as exact Python numbers."""
    bits = array.view(f"i{array.dtype.itemsize}").astype(object)
    magnitude = bits & ((1 << (8 * array.dtype.itemsize - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)
