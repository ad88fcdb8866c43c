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
    estimate = Estimate(machine, sizes or Sizes())
    roles = roles_of_arguments(module) if machine.donates else [Role.KEPT for _ in _places(entry)]
    arguments = sum(map(estimate.bytes_of, entry.parameters))
    constants = sum(estimate.bytes_of(i) for i in module.instructions() if i.opcode == "constant")
    most = estimate.peak(entry, roles)
    given_away = sum(
        size for role, size in zip(roles, estimate.sizes_of_parameters(entry)) if role is Role.DONATED
    )
    return Memory(
        arguments=arguments,
        results=estimate.bytes_of(entry.root),
        constants=constants,
        peak=constants + arguments - given_away + most,
    )


def roles_of_arguments(module: Module) -> list[Role]:
    """Of each leaf of the entry's parameters, where donated arguments are overwritten."""
    donated = {(alias.parameter, alias.parameter_index) for alias in parameter_aliases(module)}
    return [Role.DONATED if place in donated else Role.KEPT for place in _places(module.entry)]


def parameter_aliases(module: Module) -> tuple[ParameterAlias, ...]:
    """Which results take over the memory of which parameters."""
    return module.listed("input_output_alias", ParameterAlias, ())


def _places(entry: Computation) -> Iterator[tuple[int, ShapeIndex]]:
    """Number and index of the leaves of the parameters."""
    for number, parameter in enumerate(entry.parameters):
        for index, _ in leaves(parameter.shape):
            yield number, index


class Role(enum.Enum):
    """What becomes of an argument's memory."""

    #: It stays as it is; the caller counts it.
    KEPT = "kept"
    #: The loop's next value is written there; the caller counts it.
    OVERWRITTEN = "overwritten"
    #: It is the computation's own, and free after the last use.
    DONATED = "donated"


@dataclass(eq=False, slots=True)
class Value:
    """An array in memory.

    Attributes:
        size: in bytes.
        made: position of the instruction that makes it; of an argument -1.
        is_own: the computation allocates it.
        may_be_overwritten: once it has been read for the last time.
        last_use: position of the last instruction that reads it.
        is_taken: that instruction writes its own result there.
    """

    size: int
    made: int = -1
    is_own: bool = True
    may_be_overwritten: bool = True
    last_use: int = -1
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class Lives:
    """The values of a computation.

    Attributes:
        values: of each instruction, one per leaf; what hands values on has those of its operands.
        made: what each instruction makes.
        dying: what is read for the last time, by position; what is never read is not in it.
    """

    values: Mapping[Instruction, Sequence[Value]]
    made: Sequence[Sequence[Value]]
    dying: Mapping[int, Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Moment:
    """While an instruction runs.

    Attributes:
        own: bytes that its computation has allocated.
        callee: of the computations that it runs, the one that allocates the most.
        within: what that one allocates.
    """

    own: int
    callee: Computation | None = None
    within: int = 0


class Estimate:
    """Peaks of computations, each worked out once for each role of its arguments."""

    def __init__(self, machine: Machine, sizes: Sizes) -> None:
        self._machine = machine
        self._sizes = sizes
        self._known: dict[tuple[Computation, Role], int] = {}

    def bytes_of(self, instruction: Instruction) -> int:
        """Of all arrays of its result."""
        return sum(size for _, size in self._sizes.of_leaves(instruction.shape))

    def sizes_of_parameters(self, computation: Computation) -> Iterator[int]:
        """The bytes of the leaves of all parameters, in order."""
        for parameter in computation.parameters:
            yield from (size for _, size in self._sizes.of_leaves(parameter.shape))

    def peak(self, computation: Computation, arguments: Sequence[Role], is_entry: bool = True) -> int:
        """The most that `computation` allocates at once, with what it calls.

        Args:
            computation: in question.
            arguments: of each leaf of its parameters.
            is_entry: it allocates its result, too; that of others lies in memory of their callers.
        """
        found = self.moments(computation, self.lives(computation, arguments, is_entry))
        return max(moment.own + moment.within for moment in found)

    def moments(self, computation: Computation, lives: Lives) -> Iterator[Moment]:
        """What is allocated while each of the instructions runs; afterwards `lives` tells what is its own."""
        given = dict.fromkeys(value for p in computation.parameters for value in lives.values[p])
        live = sum(value.size for value in given if value.is_own)
        for position, (instruction, made) in enumerate(zip(computation.instructions, lives.made)):
            dying = lives.dying.get(position, ())
            fresh = [value for value in made if value.is_own]
            taken = _taken_over(instruction, fresh, dying) if fresh and dying else {}
            for value, place in taken.items():
                value.is_own = place.is_own
                place.is_taken = True
            live += sum([value.size for value in fresh if value not in taken])
            callee, within = None, 0
            for called in self._run_by(instruction):
                needed = self._called(instruction, called)
                if callee is None or needed > within:
                    callee, within = called, needed
            yield Moment(live, callee, within)
            live -= sum([value.size for value in dying if value.is_own and not value.is_taken])

    def _run_by(self, instruction: Instruction) -> Iterator[Computation]:
        """Computations that run one instruction after the other, with values in memory."""
        is_run = context_of_callees(instruction) in self._machine.steps_through
        if is_run and instruction.opcode != "async-done":
            yield from instruction.called

    def _called(self, instruction: Instruction, callee: Computation) -> int:
        """What a computation allocates at most, beside what its caller holds."""
        role = self.role_in(instruction, callee)
        key = (callee, role)
        if key not in self._known:
            parameters = list(self.sizes_of_parameters(callee))
            most = self.peak(callee, [role] * len(parameters), is_entry=role is Role.DONATED)
            self._known[key] = most - sum(parameters) if role is Role.DONATED else most
        return self._known[key]

    def role_in(self, instruction: Instruction, callee: Computation) -> Role:
        """What becomes of the arguments of a computation that `instruction` runs."""
        if instruction.opcode == "while" and callee is not instruction.attributes.get("condition"):
            return Role.DONATED if self._machine.hands_over else Role.OVERWRITTEN
        return Role.KEPT

    def lives(self, computation: Computation, arguments: Sequence[Role], is_entry: bool) -> Lives:
        """Which values there are, and when; see `peak`."""
        values: dict[Instruction, list[Value]] = {}
        made: list[list[Value]] = []
        remaining = iter(arguments)
        for parameter in computation.parameters:
            sizes = self._sizes.of_leaves(parameter.shape)
            values[parameter] = [_given(size, next(remaining)) for _, size in sizes]
        for position, instruction in enumerate(computation.instructions):
            new: list[Value] = []
            made.append(new)
            if instruction not in values:
                values[instruction] = self._results(instruction, values, new)
            for value in new:
                value.made = value.last_use = position
            for operand in instruction.operands:
                for value in values[operand]:
                    value.last_use = position
        for value in values[computation.root]:
            value.last_use = len(made)
            value.is_own = value.is_own and is_entry
        return Lives(values, made, _by_last_use(values))

    def _results(
        self, instruction: Instruction, values: Mapping[Instruction, list[Value]], made: list[Value]
    ) -> list[Value]:
        """One per leaf; what is no operand's value is new, and added to `made`."""
        handed = handed_on(instruction, values)
        if instruction.opcode in self._machine.views:
            return values[instruction.operands[0]] if instruction.operands else [Value(0)]
        results = []
        for index, size in self._sizes.of_leaves(instruction.shape):
            value = handed.get(index)
            if value is None:
                # The memory of constants is counted apart.
                value = Value(0 if instruction.opcode == "constant" else size)
                made.append(value)
            results.append(value)
        return results


def _given(size: int, role: Role) -> Value:
    return Value(size, is_own=role is Role.DONATED, may_be_overwritten=role is not Role.KEPT)


def _by_last_use(values: Mapping[Instruction, list[Value]]) -> dict[int, list[Value]]:
    """The values that die at each position; those that are never read are in no list."""
    dying: dict[int, list[Value]] = {}
    for value in dict.fromkeys(value for parts in values.values() for value in parts):
        if value.last_use >= 0:
            dying.setdefault(value.last_use, []).append(value)
    return dying


def _taken_over(
    instruction: Instruction, made: Sequence[Value], dying: Sequence[Value]
) -> dict[Value, Value]:
    """Which of the values that are made lies where one that dies has lain."""
    if not _works_in_place(instruction):
        return {}
    free = [value for value in dying if value.may_be_overwritten and value not in made]
    taken: dict[Value, Value] = {}
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
