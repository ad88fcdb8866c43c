"""What computations on large arrays execute when nothing looks on.

Calls are replaced by what they do: programs call small computations for a clip or a choice, where groups of
elementwise instructions would end. Equal expressions are computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlotool.backends.numpy.blocks import Unit
from hlotool.backends.numpy.registry import Calling
from hlotool.facts.expressions import ExpressionKeys, is_interchangeable
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape

#: Computations do not grow beyond so many instructions.
_MOST = 2048


@dataclass(frozen=True, slots=True)
class Body:
    """What a computation executes.

    Attributes:
        units: in order.
        parameters: by number.
        root: the instruction whose value is the result.
        known: values of constants.
        called: instructions of other computations among the units, as they stand there.
    """

    units: Sequence[Unit]
    parameters: Sequence[Instruction]
    root: Instruction
    known: Mapping[Instruction, Any]
    called: frozenset[Instruction]


def inlined(
    computation: Computation,
    units: Sequence[Unit],
    known: Mapping[Instruction, Any],
    bodies: Mapping[Any, Body],
) -> Body:
    """The body of a computation.

    Args:
        computation: the computation.
        units: one for each of its instructions.
        known: values of its constants.
        bodies: by what executes a call, what may stand in its place.
    """
    names: dict[Instruction, Instruction] = {}
    result: list[Unit] = []
    values, called = dict(known), set[Instruction]()
    for unit in units:
        operands = tuple(names.get(o, o) for o in unit.operands)
        body = bodies.get(unit.kernel.function) if isinstance(unit.kernel, Calling) else None
        if body is None or len(result) + len(body.units) > _MOST:
            result.append(Unit(unit.result, operands, unit.kernel))
            continue
        own = dict(zip(body.parameters, operands))
        for inner in body.units:
            # A computation may be called twice.
            own[inner.result] = copy = replace(inner.result)
            result.append(Unit(copy, tuple(own.get(o, o) for o in inner.operands), inner.kernel))
        names[unit.result] = own.get(body.root, body.root)
        values |= body.known
        called |= body.called | {inner.result for inner in body.units}
    root = names.get(computation.root, computation.root)
    return Body(result, computation.parameters, root, values, frozenset(called))


def distinct(body: Body) -> Iterator[Unit]:
    """Its units without those that compute what another one has computed before."""
    keys = ExpressionKeys()
    same: dict[Instruction, Instruction] = {}
    seen: dict[Hashable, Instruction] = {}
    for constant in body.known:
        if isinstance(constant.shape, ArrayShape) and not constant.shape.dims:
            same[constant] = seen.setdefault(keys.instruction(constant, id), constant)
    for unit in body.units:
        operands = tuple(same.get(o, o) for o in unit.operands)
        result = unit.result
        if (
            result is not body.root
            and not isinstance(unit.kernel, Calling)
            and is_interchangeable(result, False)
        ):
            key = (keys.instruction(result, lambda _: 0), operands)
            first = seen.setdefault(key, result)
            if first is not result:
                same[result] = first
                continue
        yield Unit(result, operands, unit.kernel)
