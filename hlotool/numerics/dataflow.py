"""Forward data-flow analysis: from a module to the facts of each of its result leaves.

Values flow leaf by leaf through tuples, calls, fusions, branches and loops; a loop body is evaluated until
nothing changes. What one instruction adds of its own stands in `contributions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import chain
from typing import TypeAlias

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import Shape, TupleShape
from hlotool.numerics.contributions import contribution
from hlotool.numerics.facts import NOTHING, Facts
from hlotool.numerics.loops import loop_repetitions

#: One entry per leaf of a value, in tuple order.
Leaves: TypeAlias = tuple[Facts, ...]


def leaf_facts(module: Module) -> Leaves:
    """Facts of every leaf of the entry's result, in tuple order."""
    analysis = _Analysis(loop_repetitions(module), module.replica_count * module.num_partitions)
    arguments = [(NOTHING,) * leaf_count(p.shape) for p in module.entry.parameters]
    return analysis.evaluate(module.entry, tuple(arguments))


def join_leaves(a: Leaves, b: Leaves) -> Leaves:
    """Facts of two results, such as those of a program before and after optimisation, leaf by leaf."""
    return tuple(x.join(y) for x, y in zip(a, b))


def leaf_count(shape: Shape) -> int:
    """Number of leaves of `shape`."""
    if isinstance(shape, TupleShape):
        return sum(leaf_count(e) for e in shape.elements)
    return 1


class _Analysis:
    """Evaluates computations on facts, each (computation, arguments) once."""

    def __init__(self, repetitions: Mapping[Computation, int], devices: int) -> None:
        self._repetitions = repetitions
        self._devices = devices
        self._results: dict[tuple[Computation, tuple[Leaves, ...]], Leaves] = {}

    def evaluate(self, computation: Computation, arguments: tuple[Leaves, ...]) -> Leaves:
        key = (computation, arguments)
        if key not in self._results:
            self._results[key] = self._evaluate(computation, arguments)
        return self._results[key]

    def _evaluate(self, computation: Computation, arguments: tuple[Leaves, ...]) -> Leaves:
        repetitions = self._repetitions[computation]
        values: dict[Instruction, Leaves] = dict(zip(computation.parameters, arguments))
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                continue
            operands = [values[o] for o in instruction.operands]
            rule = _RULES.get(instruction.opcode)
            if rule is not None:
                values[instruction] = rule(self, instruction, operands)
            else:
                inherited = _join_all(operands)
                values[instruction] = contribution(instruction, inherited, repetitions, self._devices)
        return values[computation.root]

    def fixpoint(self, body: Computation, condition: Computation, state: Leaves) -> Leaves:
        """Facts of the state after any number of iterations."""
        while True:
            control = self.evaluate(condition, (state,))[0].control
            step = self.evaluate(body, (state,))
            following = tuple(s.join(n).join(control) for s, n in zip(state, step))
            if following == state:
                return state
            state = following


_Rule: TypeAlias = Callable[[_Analysis, Instruction, "list[Leaves]"], Leaves]


def _join_all(operands: Iterable[Leaves]) -> Facts:
    """Facts of something that depends on all leaves of all operands."""
    return reduce(Facts.join, chain.from_iterable(operands), NOTHING)


def _tuple(_: _Analysis, __: Instruction, operands: list[Leaves]) -> Leaves:
    return tuple(leaf for operand in operands for leaf in operand)


def _get_tuple_element(_: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    before = instruction.operands[0].tuple_shape.elements[: instruction.integer("index")]
    start = sum(map(leaf_count, before))
    return operands[0][start : start + leaf_count(instruction.shape)]


def _identity(_: _Analysis, __: Instruction, operands: list[Leaves]) -> Leaves:
    return operands[0]


def _call(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    return analysis.evaluate(next(instruction.called), tuple(operands))


def _async_start(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    """Its result is ((operands), result, context…); the context holds nothing of interest."""
    result = _call(analysis, instruction, operands)
    leaves = _tuple(analysis, instruction, operands) + result
    return leaves + (NOTHING,) * (leaf_count(instruction.shape) - len(leaves))


def _async_done(_: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    skipped = leaf_count(instruction.operands[0].tuple_shape.elements[0])
    return operands[0][skipped : skipped + leaf_count(instruction.shape)]


def _while(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    return analysis.fixpoint(
        instruction.computation("body"), instruction.computation("condition"), operands[0]
    )


def _conditional(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    control = _join_all(operands[:1]).control
    branches = [analysis.evaluate(c, (operand,)) for c, operand in zip(instruction.called, operands[1:])]
    return tuple(_join_all([leaf]).join(control) for leaf in zip(*branches))


_RULES: dict[str, _Rule] = {
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _identity,
    "domain": _identity,
    "add-dependency": _identity,
    "async-update": _identity,
    "call": _call,
    "fusion": _call,
    "async-start": _async_start,
    "async-done": _async_done,
    "while": _while,
    "conditional": _conditional,
}
