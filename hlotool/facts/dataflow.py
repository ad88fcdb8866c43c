"""Forward data flow: from a module to the facts of each result leaf, and the instruction that makes it.

Values flow leaf by leaf through tuples, calls, fusions, branches and loops; a loop body is evaluated until
nothing changes. What one instruction adds of its own stands in `contributions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import TypeAlias

from hlotool.facts.buffers import handed_on
from hlotool.facts.result_facts import NOTHING, Facts, contribution
from hlotool.facts.trip_counts import loop_repetitions
from hlotool.ir.attributes import Metadata
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.printed_annotations import SourcePosition, source_position, user_position
from hlotool.ir.types import Shape, ShapeIndex, leaves
from hlotool.ir.walk import through_tuple
from hlotool.system.records import SourceRecord

#: One entry per leaf of a value, in tuple order.
Leaves: TypeAlias = tuple[Facts, ...]


def leaf_facts(module: Module) -> Leaves:
    """Facts of every leaf of the entry's result, in tuple order."""
    analysis = _Analysis(loop_repetitions(module), module.replica_count * module.num_partitions)
    arguments = [(NOTHING,) * leaf_count(p.shape) for p in module.entry.parameters]
    return analysis.evaluate(module.entry, tuple(arguments))


def is_exact(leaves: Leaves) -> bool:
    """Whether nothing is rounded on the way to any of them, so that every difference is a fault."""
    return all(leaf == NOTHING for leaf in leaves)


def join_leaves(a: Leaves, b: Leaves) -> Leaves:
    """Facts of two results, such as those of a program before and after optimisation, leaf by leaf."""
    return tuple(x.join(y) for x, y in zip(a, b))


def leaf_count(shape: Shape) -> int:
    """Number of leaves of `shape`."""
    return sum(1 for _ in leaves(shape))


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
                values[instruction] = self._computed(instruction, values, repetitions)
        return values[computation.root]

    def _computed(
        self, instruction: Instruction, values: Mapping[Instruction, Leaves], repetitions: int
    ) -> Leaves:
        """Leaves that an instruction returns as it got them, and those that depend on all it reads."""
        handed = handed_on(instruction, values)
        if len(handed) == leaf_count(instruction.shape):
            return tuple(handed[index] for index, _ in leaves(instruction.shape))
        inherited = _join_all(values[operand] for operand in instruction.operands)
        own = contribution(instruction, inherited, repetitions, self._devices)
        return tuple(handed.get(index, facts) for (index, _), facts in zip(leaves(instruction.shape), own))

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


def _call(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    return analysis.evaluate(next(instruction.called), tuple(operands))


def _async_start(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    """Its result is ((operands), result, context…); the context holds nothing of interest."""
    result = _call(analysis, instruction, operands)
    found = (*chain.from_iterable(operands), *result)
    return found + (NOTHING,) * (leaf_count(instruction.shape) - len(found))


def _while(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    return analysis.fixpoint(
        instruction.computation("body"), instruction.computation("condition"), operands[0]
    )


def _conditional(analysis: _Analysis, instruction: Instruction, operands: list[Leaves]) -> Leaves:
    control = _join_all(operands[:1]).control
    branches = [analysis.evaluate(c, (operand,)) for c, operand in zip(instruction.called, operands[1:])]
    return tuple(_join_all([leaf]).join(control) for leaf in zip(*branches))


_RULES: dict[str, _Rule] = {
    "call": _call,
    "fusion": _call,
    "async-start": _async_start,
    "while": _while,
    "conditional": _conditional,
}


#: Their result is their operand's value: the instruction that made that is meant.
_PASS_THROUGH = opcodes_with(Trait.SAME_ORDER) | {"opt-barrier", "domain"}

_NOWHERE = SourcePosition("")


def source_of_output(module: Module, index: ShapeIndex) -> SourceRecord:
    """What the module says about the origin of the leaf `index` of its result.

    The position is that of the instruction, or else of the innermost call around it that has one. Frames of
    installed packages are passed over for those that called them.
    """
    return source_of(module, producers(module.entry, index))


def source_of(module: Module, chain: Sequence[Instruction]) -> SourceRecord:
    """What the module says about the last instruction of `chain`; before it stand the calls to it."""
    *calls, instruction = chain
    innermost, position = _positions(module, (instruction, *reversed(calls)))
    return SourceRecord(
        instruction=instruction.name,
        opcode=instruction.opcode,
        line=instruction.line,
        op_name=_metadata(instruction).op_name,
        file=position.file,
        file_line=position.line,
        function=position.function,
        columns=position.columns,
        library=str(innermost) if innermost.is_installed else "",
    )


def _positions(module: Module, around: Sequence[Instruction]) -> tuple[SourcePosition, SourcePosition]:
    """The innermost frame of the first instruction that has one, and its innermost one of the user's code.

    A line of the user's that belongs to a call around it says less than the instruction's own operation: a
    fusion bears the line of its root.
    """
    tables = module.stack_frames
    for instruction in around:
        metadata = _metadata(instruction)
        if (innermost := source_position(metadata, tables)) is not None:
            return innermost, user_position(metadata, tables) or _NOWHERE
    return _NOWHERE, _NOWHERE


def producers(computation: Computation, index: ShapeIndex) -> list[Instruction]:
    """The instruction that computes the leaf `index` of a result, after the calls that lead to it."""
    instruction = computation.root
    while True:
        if (source := through_tuple(instruction, index)) is not None:
            instruction, index = source
        elif instruction.opcode in _PASS_THROUGH and not instruction.metadata:
            instruction = instruction.operands[0]
        elif instruction.opcode == "call":
            return [instruction, *producers(next(instruction.called), index)]
        else:
            return [instruction]


def _metadata(instruction: Instruction) -> Metadata:
    """Its own metadata, or that of what it calls, as fusions made by the compiler have none."""
    if instruction.metadata is not None:
        return instruction.metadata
    for computation in instruction.called:
        if computation.root.metadata is not None:
            return computation.root.metadata
    return Metadata()
