"""An estimate of the memory that a program needs: which values are alive at once.

Instructions run in the order of the text, which in a scheduled module is the order that XLA chose. A value
lives from the instruction that makes it to the last one that reads it; arguments and results live to the end.
What works element by element, or updates in place, writes into the memory of an operand that dies with it.
What XLA allocates is more where memory falls to pieces, and where results get memory before they are made.
The interpreter (`INTERPRETER`) allocates more than XLA inside fusions, and less for what it shows as views.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hlotool.facts.buffers import Sizes, handed_on
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ShapeIndex, leaves
from hlotool.ir.walk import Context, context_of_callees

#: Besides elementwise operations: what may write where an operand of the same size lies.
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter", "sort"})


@dataclass(frozen=True, slots=True)
class Machine:
    """How what executes a program uses memory.

    Attributes:
        views: opcodes whose result shows the memory of the first operand, or is no larger than a row of it,
            beside what hands values on everywhere (`handed_on`).
        steps_through: how computations run whose instructions allocate one by one.
        donates: arguments that the program may overwrite are overwritten.
        hands_over: a loop gives up its state to its body, which allocates the next one; otherwise the body
            writes where its state lies.
    """

    views: frozenset[str]
    steps_through: frozenset[Context]
    donates: bool
    hands_over: bool


#: Compiled by XLA: a fusion is one kernel, and every other instruction has a result of its own.
XLA: Final = Machine(
    views=frozenset(), steps_through=frozenset({Context.CONTROL_FLOW}), donates=True, hands_over=False
)
#: The numpy backend (`backends/numpy`): `kernels/movement.py` has what is a view, `kernels/control.py` loops.
INTERPRETER: Final = Machine(
    views=opcodes_with(Trait.REGROUPS) - {"bitcast", "reshape"} | {"iota", "reverse"},
    steps_through=frozenset({Context.CONTROL_FLOW, Context.FUSED}),
    donates=False,
    hands_over=True,
)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that one execution of a program needs.

    Attributes:
        arguments: of the entry.
        results: of the entry.
        constants: of all computations.
        peak: the most that is needed at once, all of these included.
    """

    arguments: int
    results: int
    constants: int
    peak: int


def memory_of(module: Module, machine: Machine = XLA, sizes: Sizes | None = None) -> Memory:
    """Estimate the memory that `module` needs.

    Args:
        module: with its instructions in the order of execution.
        machine: what executes it.
        sizes: of its shapes, where somebody has counted them.
    """
    entry = module.entry
    estimate = _Estimate(machine, sizes or Sizes())
    aliases = parameter_aliases(module) if machine.donates else ()
    donated = {(alias.parameter, alias.parameter_index) for alias in aliases}
    roles = [_Role.DONATED if place in donated else _Role.KEPT for place in _places(entry)]
    arguments = sum(map(estimate.bytes_of, entry.parameters))
    constants = sum(estimate.bytes_of(i) for i in module.instructions() if i.opcode == "constant")
    most = estimate.peak(entry, roles)
    given_away = sum(
        size for role, size in zip(roles, estimate.sizes_of_parameters(entry)) if role is _Role.DONATED
    )
    return Memory(
        arguments=arguments,
        results=estimate.bytes_of(entry.root),
        constants=constants,
        peak=constants + arguments - given_away + most,
    )


def parameter_aliases(module: Module) -> tuple[ParameterAlias, ...]:
    """Which results take over the memory of which parameters."""
    return module.listed("input_output_alias", ParameterAlias, ())


def _places(entry: Computation) -> Iterator[tuple[int, ShapeIndex]]:
    """Number and index of the leaves of the parameters."""
    for number, parameter in enumerate(entry.parameters):
        for index, _ in leaves(parameter.shape):
            yield number, index


class _Role(enum.Enum):
    """What becomes of an argument's memory."""

    #: It stays as it is; the caller counts it.
    KEPT = "kept"
    #: The loop's next value is written there; the caller counts it.
    OVERWRITTEN = "overwritten"
    #: It is the computation's own, and free after the last use.
    DONATED = "donated"


@dataclass(eq=False, slots=True)
class _Value:
    """An array in memory.

    Attributes:
        size: in bytes.
        is_own: the computation allocates it.
        may_be_overwritten: once it has been read for the last time.
        last_use: position of the last instruction that reads it.
    """

    size: int
    is_own: bool = True
    may_be_overwritten: bool = True
    last_use: int = -1


class _Estimate:
    """Peaks of computations, each worked out once for each role of its arguments."""

    def __init__(self, machine: Machine, sizes: Sizes) -> None:
        self._machine = machine
        self._sizes = sizes
        self._known: dict[tuple[Computation, _Role], int] = {}

    def bytes_of(self, instruction: Instruction) -> int:
        """Of all arrays of its result."""
        return sum(size for _, size in self._sizes.of_leaves(instruction.shape))

    def sizes_of_parameters(self, computation: Computation) -> Iterator[int]:
        """The bytes of the leaves of all parameters, in order."""
        for parameter in computation.parameters:
            yield from (size for _, size in self._sizes.of_leaves(parameter.shape))

    def peak(self, computation: Computation, arguments: Sequence[_Role], is_entry: bool = True) -> int:
        """The most that `computation` allocates at once, with what it calls.

        Args:
            computation: in question.
            arguments: of each leaf of its parameters.
            is_entry: it allocates its result, too; that of others lies in memory of their callers.
        """
        given = zip(self.sizes_of_parameters(computation), arguments)
        live = most = sum(size for size, role in given if role is _Role.DONATED)
        lives = self._lives(computation, arguments, is_entry)
        for instruction, (made, dying) in zip(computation.instructions, lives):
            fresh = [value for value in made if value.is_own]
            taken = _taken_over(instruction, fresh, dying) if fresh and dying else {}
            for value, place in taken.items():
                value.is_own = place.is_own
            live += sum([value.size for value in fresh if value not in taken])
            for callee in self._run_by(instruction):
                most = max(most, live + self._called(instruction, callee))
            most = max(most, live)
            kept = set(taken.values())
            live -= sum([value.size for value in dying if value.is_own and value not in kept])
        return most

    def _run_by(self, instruction: Instruction) -> Iterator[Computation]:
        """Computations that run one instruction after the other, with values in memory."""
        is_run = context_of_callees(instruction) in self._machine.steps_through
        if is_run and instruction.opcode != "async-done":
            yield from instruction.called

    def _called(self, instruction: Instruction, callee: Computation) -> int:
        """What a computation allocates at most, beside what its caller holds."""
        role = _Role.KEPT
        if instruction.opcode == "while" and callee is not instruction.attributes.get("condition"):
            role = _Role.DONATED if self._machine.hands_over else _Role.OVERWRITTEN
        key = (callee, role)
        if key not in self._known:
            parameters = list(self.sizes_of_parameters(callee))
            most = self.peak(callee, [role] * len(parameters), is_entry=role is _Role.DONATED)
            self._known[key] = most - sum(parameters) if role is _Role.DONATED else most
        return self._known[key]

    def _lives(
        self, computation: Computation, arguments: Sequence[_Role], is_entry: bool
    ) -> Iterator[tuple[Sequence[_Value], Sequence[_Value]]]:
        """The values that each instruction makes, and those that it reads as the last; see `peak`."""
        values: dict[Instruction, list[_Value]] = {}
        made: list[list[_Value]] = []
        remaining = iter(arguments)
        for parameter in computation.parameters:
            sizes = self._sizes.of_leaves(parameter.shape)
            values[parameter] = [_given(size, next(remaining)) for _, size in sizes]
        for position, instruction in enumerate(computation.instructions):
            new: list[_Value] = []
            made.append(new)
            if instruction not in values:
                values[instruction] = self._results(instruction, values, new)
            for value in new:
                value.last_use = position
            for operand in instruction.operands:
                for value in values[operand]:
                    value.last_use = position
        for value in values[computation.root]:
            value.last_use = len(made)
            value.is_own = value.is_own and is_entry
        dying = _by_last_use(values)
        return ((new, dying.get(position, ())) for position, new in enumerate(made))

    def _results(
        self, instruction: Instruction, values: Mapping[Instruction, list[_Value]], made: list[_Value]
    ) -> list[_Value]:
        """One per leaf; what is no operand's value is new, and added to `made`."""
        handed = handed_on(instruction, values)
        if instruction.opcode in self._machine.views:
            return values[instruction.operands[0]] if instruction.operands else [_Value(0)]
        results = []
        for index, size in self._sizes.of_leaves(instruction.shape):
            value = handed.get(index)
            if value is None:
                # The memory of constants is counted apart.
                value = _Value(0 if instruction.opcode == "constant" else size)
                made.append(value)
            results.append(value)
        return results


def _given(size: int, role: _Role) -> _Value:
    return _Value(size, is_own=role is _Role.DONATED, may_be_overwritten=role is not _Role.KEPT)


def _by_last_use(values: Mapping[Instruction, list[_Value]]) -> dict[int, list[_Value]]:
    """The values that die at each position; those that are never read are in no list."""
    dying: dict[int, list[_Value]] = {}
    for value in dict.fromkeys(value for parts in values.values() for value in parts):
        if value.last_use >= 0:
            dying.setdefault(value.last_use, []).append(value)
    return dying


def _taken_over(
    instruction: Instruction, made: Sequence[_Value], dying: Sequence[_Value]
) -> dict[_Value, _Value]:
    """Which of the values that are made lies where one that dies has lain."""
    if not _works_in_place(instruction):
        return {}
    free = [value for value in dying if value.may_be_overwritten and value not in made]
    taken: dict[_Value, _Value] = {}
    for value in made:
        place = next((other for other in free if other.size == value.size), None)
        if place is not None:
            free.remove(place)
            taken[value] = place
    return taken


def _works_in_place(instruction: Instruction) -> bool:
    if instruction.opcode == "fusion":
        return instruction.attributes.get("kind") == "kLoop"
    return instruction.opcode in _IN_PLACE or instruction.row.opcode_class is Class.ELEMENTWISE
