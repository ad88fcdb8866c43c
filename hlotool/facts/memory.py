"""An estimate of the memory that a program needs: which values are alive at once.

Instructions run in the order of the text, which in a scheduled module is the order that XLA chose. A value
lives from the instruction that makes it to the last one that reads it; arguments and results live to the end.
What works element by element, or updates in place, writes into the memory of an operand that dies with it.
XLA gives results their memory from the beginning, and puts there what is dead when they are made; what it
allocates besides is more where memory falls to pieces. Other memory spaces are not counted.
The interpreter (`INTERPRETER`) allocates more than XLA inside fusions, and less for what it shows as views.

XLA: buffer_assignment.cc (BufferAssigner).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from hlotool.facts.buffers import Sizes, handed_on
from hlotool.facts.lives import Lives, Role, Value
from hlotool.facts.placement import Stay, packed, reserve, stays
from hlotool.facts.platforms import compiled_for
from hlotool.facts.taking_over import TakingOver, is_update
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import leaves
from hlotool.ir.walk import Context, context_of_callees, contexts


class Machine(Struct, frozen=True):
    """How what executes a program uses memory.

    Attributes:
        views: opcodes whose result shows the memory of the first operand, or is no larger than a row of it,
            beside what hands values on everywhere (`handed_on`).
        steps_through: how computations run whose instructions allocate one by one.
        reserves: arguments that the program may overwrite are overwritten; results have memory from the
            beginning; other memory spaces are others' memory.
        hands_over: a loop gives up its state to its body, which allocates the next one; otherwise the body
            writes where its state lies.
    """

    views: frozenset[str]
    steps_through: frozenset[Context]
    reserves: bool
    hands_over: bool


#: Compiled by XLA: a fusion is one kernel, and every other instruction has a result of its own.
XLA: Final = Machine(
    views=frozenset(), steps_through=frozenset({Context.CONTROL_FLOW}), reserves=True, hands_over=False
)
#: The numpy backend (`backends/numpy`): `kernels/movement.py` has what is a view, `kernels/control.py` loops.
INTERPRETER: Final = Machine(
    views=opcodes_with(Trait.REGROUPS) - {"bitcast", "reshape"} | {"iota", "reverse"},
    steps_through=frozenset({Context.CONTROL_FLOW, Context.FUSED}),
    reserves=False,
    hands_over=True,
)


class Memory(Struct, frozen=True):
    """Bytes that one execution of a program needs.

    Attributes:
        arguments: of the entry.
        results: of the entry.
        constants: in memory.
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
    estimate = Estimate(module, machine, sizes or Sizes())
    return Memory(
        arguments=sum(map(estimate.bytes_of, module.entry.parameters)),
        results=estimate.bytes_of(module.entry.root),
        constants=sum(map(estimate.bytes_of, estimate.constants)),
        peak=estimate.kept() + estimate.allocated(),
    )


def all_values(module: Module) -> int:
    """Bytes of the results of all instructions, each once: a peak is no more than that."""
    sizes = Sizes()
    return sum(sizes.total(instruction.shape) for instruction in module.instructions())


def parameter_aliases(module: Module) -> tuple[ParameterAlias, ...]:
    """Which results take over the memory of which parameters."""
    return module.listed("input_output_alias", ParameterAlias, ())


class Moment(Struct, frozen=True):
    """While an instruction runs.

    Attributes:
        own: bytes that its computation has allocated.
        callee: of the computations that it runs, the one that allocates the most.
        within: what that one allocates.
    """

    own: int
    callee: Computation | None = None
    within: int = 0


def _arguments(computation: Computation, lives: Lives) -> Iterable[Value]:
    """The values of its parameters, each once."""
    return dict.fromkeys(value for p in computation.parameters for value in lives.values[p])


class Estimate:
    """Peaks of computations, each worked out once for each role of its arguments."""

    def __init__(
        self, module: Module, machine: Machine, sizes: Sizes, donated: Sequence[ParameterAlias] = ()
    ) -> None:
        self._module = module
        self._machine = machine
        self._sizes = sizes
        #: How XLA's compiler for that platform puts values together.
        self._platform = compiled_for(module) if machine.reserves else None
        self._taking_over = TakingOver(is_lenient=not machine.reserves or self._platform == "gpu")
        self._known: dict[tuple[Computation, Role], int] = {}
        self._lives: dict[tuple[Computation, Role], Lives] = {}
        aliases = (*parameter_aliases(module), *donated) if machine.reserves else ()
        given = {(alias.parameter, alias.parameter_index) for alias in aliases}
        places = ((n, index) for n, p in enumerate(module.entry.parameters) for index, _ in leaves(p.shape))
        roles = [Role.DONATED if place in given else Role.KEPT for place in places]
        stepped = machine.steps_through if machine.reserves else set(Context)
        #: Those in memory: the ones of a kernel are part of it.
        self.constants = [
            instruction
            for computation, found in contexts(module).items()
            if found & stepped
            for instruction in computation.instructions
            if instruction.opcode == "constant"
        ]
        #: The values of the entry.
        self.lives = self._lives_of(module.entry, roles, is_entry=True)
        self._staying: list[Stay] = []
        if machine.reserves:
            self._staying = stays(module.entry, self.lives, self._run_with)
            reserve(module.entry, self.lives, aliases, self._staying, self.may_take_over)

    def kept(self) -> int:
        """Bytes that are there whatever runs: constants, and arguments that are not given away."""
        constants = sum(map(self.bytes_of, self.constants))
        given = _arguments(self._module.entry, self.lives)
        return constants + sum(v.size for v in given if not v.is_own and self._counts(v.space))

    def allocated(self) -> int:
        """Bytes of all else, as they lie in memory."""
        most = max(moment.own + moment.within for moment in self.moments(self._module.entry, self.lives))
        if not self._machine.reserves:
            return most
        given = _arguments(self._module.entry, self.lives)
        fixed = sum(v.size for v in given if v.is_own) + self._reserved(self.lives)
        return max(most, fixed + packed(self._staying, self._platform == "tpu"))

    def _reserved(self, lives: Lives) -> int:
        """Bytes of the results that have memory from the beginning."""
        return sum(v.size for new in lives.made for v in new if v.is_own and v.is_reserved)

    def bytes_of(self, instruction: Instruction) -> int:
        """Of all arrays of its result that lie in the memory that is counted."""
        return sum(size for _, size, space in self._sizes.of_leaves(instruction.shape) if self._counts(space))

    def _counts(self, space: int) -> bool:
        return not (self._machine.reserves and space)

    def moments(self, computation: Computation, lives: Lives) -> Iterator[Moment]:
        """What is allocated while each of the instructions runs; afterwards `lives` tells what is its own."""
        given = _arguments(computation, lives)
        live = sum(value.size for value in given if value.is_own)
        live += self._reserved(lives)
        for position, (instruction, made) in enumerate(zip(computation.instructions, lives.made)):
            dying = lives.dying.get(position, ())
            fresh = [value for value in made if value.is_own and not value.is_reserved]
            taken = (
                self._taken_over(computation, instruction, fresh, dying, lives.values)
                if fresh and dying
                else {}
            )
            for value, place in taken.items():
                value.is_own = place.is_own
                place.is_taken = True
                lives.taken[value] = place
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
            found = self.moments(callee, self.lives_in(instruction, callee))
            most = max(moment.own + moment.within for moment in found)
            given = sum(map(self.bytes_of, callee.parameters)) if role is Role.DONATED else 0
            self._known[key] = most - given
        return self._known[key]

    def _run_with(self, instruction: Instruction) -> Iterator[tuple[Computation, Lives]]:
        for callee in self._run_by(instruction):
            yield callee, self.lives_in(instruction, callee)

    def lives_in(self, instruction: Instruction, callee: Computation) -> Lives:
        """The values of a computation that `instruction` runs."""
        role = self.role_in(instruction, callee)
        if (callee, role) not in self._lives:
            roles = [role for p in callee.parameters for _ in self._sizes.of_leaves(p.shape)]
            self._lives[callee, role] = self._lives_of(callee, roles, is_entry=role is Role.DONATED)
        return self._lives[callee, role]

    def role_in(self, instruction: Instruction, callee: Computation) -> Role:
        """What becomes of the arguments of a computation that `instruction` runs."""
        if instruction.opcode == "while" and callee is not instruction.attributes.get("condition"):
            return Role.DONATED if self._machine.hands_over else Role.OVERWRITTEN
        return Role.KEPT

    def _lives_of(self, computation: Computation, arguments: Sequence[Role], is_entry: bool) -> Lives:
        """Which values there are, and when.

        Args:
            computation: in question.
            arguments: of each leaf of its parameters.
            is_entry: it allocates its result, too; that of others lies in memory of their callers.
        """
        values: dict[Instruction, list[Value]] = {}
        made: list[list[Value]] = []
        remaining = iter(arguments)
        for parameter in computation.parameters:
            sizes = self._sizes.of_leaves(parameter.shape)
            values[parameter] = [self._given(size, space, next(remaining)) for _, size, space in sizes]
        for position, instruction in enumerate(computation.instructions):
            new: list[Value] = []
            made.append(new)
            if instruction not in values:
                values[instruction] = self._results(instruction, values, new)
            for value in new:
                value.made = value.last_use = position
            # What takes an element reads no other one.
            is_part = instruction.opcode == "get-tuple-element"
            for read in [instruction] if is_part else instruction.operands:
                for value in values[read]:
                    value.last_use = position
        for value in values[computation.root]:
            value.last_use = len(made)
            value.is_own = value.is_own and is_entry
        return Lives(values, made, _by_last_use(values))

    def may_take_over(
        self,
        instruction: Instruction,
        made: Value,
        place: Value,
        values: Mapping[Instruction, Sequence[Value]],
    ) -> bool:
        """Whether what an instruction makes may lie where an operand lies that dies with it."""
        return (place.size, place.space) == (made.size, made.space) and any(
            place in values[operand] and self._taking_over.may(instruction, number, made.index)
            for number, operand in enumerate(instruction.operands)
        )

    def _taken_over(
        self,
        computation: Computation,
        instruction: Instruction,
        made: Sequence[Value],
        dying: Sequence[Value],
        values: Mapping[Instruction, Sequence[Value]],
    ) -> dict[Value, Value]:
        """Which of the values that are made lies where one that dies has lain."""
        free = [value for value in dying if value.may_be_overwritten and value not in made]
        if self._machine.reserves and not is_update(instruction):
            # What is handed through a tuple or a bitcast keeps its memory to itself.
            makers = computation.instructions
            free = [v for v in free if v.made < 0 or makers[v.made] in instruction.operands]
        taken: dict[Value, Value] = {}
        for value in made:
            place = next((o for o in free if self.may_take_over(instruction, value, o, values)), None)
            if place is not None:
                free.remove(place)
                taken[value] = place
        return taken

    def _given(self, size: int, space: int, role: Role) -> Value:
        return Value(
            size,
            space=space,
            is_own=role is Role.DONATED and self._counts(space),
            may_be_overwritten=role is not Role.KEPT,
        )

    def _results(
        self, instruction: Instruction, values: Mapping[Instruction, list[Value]], made: list[Value]
    ) -> list[Value]:
        """One per leaf; what is no operand's value is new, and added to `made`."""
        handed = handed_on(instruction, values)
        if instruction.opcode in self._machine.views:
            return values[instruction.operands[0]] if instruction.operands else [Value(0)]
        results = []
        for index, size, space in self._sizes.of_leaves(instruction.shape):
            value = handed.get(index)
            if value is None:
                # The memory of constants is counted apart.
                size = 0 if instruction.opcode == "constant" else size
                value = Value(size, index, space, is_own=self._counts(space))
                made.append(value)
            results.append(value)
        return results


def _by_last_use(values: Mapping[Instruction, list[Value]]) -> dict[int, list[Value]]:
    """The values that die at each position; those that are never read are in no list."""
    dying: dict[int, list[Value]] = {}
    for value in dict.fromkeys(value for parts in values.values() for value in parts):
        if value.last_use >= 0:
            dying.setdefault(value.last_use, []).append(value)
    return dying
