"""What reductions in blocks of threads have in common: accumulators, what goes into them, and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlotool.backends.cuda.codegen.elements import array_shape, computed, element_type
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Digit, Expr, Variable, split
from hlotool.backends.cuda.codegen.reductions import Accumulator, Combiner, combiner
from hlotool.backends.cuda.codegen.schedules import Part, pointers_of
from hlotool.ir.module import Instruction
from hlotool.passes.fusion_facts import Geometry


def geometry(reduction: Instruction) -> Geometry:
    """What a reduce instruction sums over, and what it keeps."""
    return Geometry(array_shape(reduction.operands[0]).dims, tuple(sorted(reduction.integers("dimensions"))))


def input_index(shape: Geometry, result: Expr, element: Expr) -> list[Expr]:
    """The input's index of an element of a result; both are positions."""
    parts = dict(zip(shape.kept, split(result, [shape.dims[d] for d in shape.kept])))
    parts.update(zip(shape.reduced, split(element, [shape.dims[d] for d in shape.reduced])))
    return [parts[d] for d in range(len(shape.dims))]


@dataclass(frozen=True)
class State:
    """The accumulator of one reduction: a number, or a structure of several.

    Attributes:
        number: of the reduction in its kernel.
        reduction: the instruction.
        parts: what stands for its results.
        slots: memory between two passes, one for each result; none before the second pass.
    """

    number: int
    reduction: Instruction
    parts: tuple[Instruction, ...]
    slots: tuple[Part, ...] = ()

    @cached_property
    def combine(self) -> Combiner:
        """The computation."""
        return combiner(self.reduction)

    @cached_property
    def accumulator(self) -> Accumulator:
        """How it is held."""
        return Accumulator(self.number, self.combine)

    @property
    def ctype(self) -> str:
        """The C++ type of the accumulator."""
        return self.accumulator.ctype

    @property
    def name(self) -> str:
        """What the accumulators of all threads are called."""
        return f"acc{self.number}"

    @property
    def inputs(self) -> tuple[Instruction, ...]:
        """Arrays that it reduces."""
        return self.reduction.operands[: len(self.parts)]

    @property
    def inits(self) -> tuple[Instruction, ...]:
        """Its initial values."""
        return self.reduction.operands[len(self.parts) :]

    def packed(self, values: Sequence[str]) -> str:
        """An accumulator made of its parts."""
        return self.accumulator.packed(values)

    def unpacked(self, accumulator: str) -> list[str]:
        """The parts of an accumulator."""
        return self.accumulator.unpacked(accumulator)

    def declarations(self, emitter: Emitter, width: int) -> Iterator[str]:
        """The type of the accumulator, what combines two, and one for each thread and lane.

        Args:
            emitter: computes what they start with.
            width: how many lanes there are.
        """
        yield from self.accumulator.definitions()
        before = len(emitter.statements)
        start = self.combine.identities() or tuple(emitter.value(init, ()) for init in self.inits)
        yield from emitter.statements[before:]
        yield f"Private<{self.ctype}, {width}> {self.name};"
        yield f"{self.name}.fill({self.packed(start)});"

    def accumulate(self, emitter: Emitter, result: Expr, element: Expr, shape: Geometry) -> None:
        """Combine an element with what the thread has."""
        emitter.add(self.joined(self.element(emitter, result, element, shape)))

    def element(self, emitter: Emitter, result: Expr, element: Expr, shape: Geometry) -> str:
        """An element of a result, as an accumulator."""
        index = input_index(shape, result, element)
        return self.packed([emitter.value(x, index) for x in self.inputs])

    def joined(self, new: str) -> str:
        """The statement that combines `new` with what the thread has."""
        mine = f"{self.name}(t, lane)"
        return f"{mine} = combine{self.number}({mine}, {new});"

    def finish(self, emitter: Emitter, accumulator: str, place: Expr) -> list[str]:
        """Join the initial values, and make the results, in their declared types, known at `place`.

        Returns:
            the names of the results.
        """
        held = self.combine.held
        totals = [emitter.define(computed(k), a) for k, a in zip(held, self.unpacked(accumulator))]
        inits = [emitter.value(init, ()) for init in self.inits]
        joined = self.combine.combined(emitter, inits, totals)
        results = self.combine.results([emitter.define(computed(k), j) for k, j in zip(held, joined)])
        names = [emitter.define(computed(element_type(p)), r) for p, r in zip(self.parts, results)]
        emitter.totals.update((part, (name, place)) for part, name in zip(self.parts, names))
        return names


def states_of(
    members: Sequence[Instruction], parts: Mapping[Instruction, Sequence[Instruction]]
) -> list[State]:
    """The accumulators of the reductions of one kernel."""
    return [State(number, member, tuple(parts[member])) for number, member in enumerate(members)]


def reads_rows(shape: Geometry, states: Sequence[State], inputs: Sequence[Instruction]) -> bool:
    """Whether most of what goes into the same result lies together in memory."""
    trial = Emitter(pointers_of(inputs))
    result, element = (Variable(n, 0, max(0, s - 1)) for n, s in (("r", shape.results), ("e", shape.length)))
    for state in states:
        state.accumulate(trial, Expr(((result, 1),)), Expr(((element, 1),)), shape)
    found = [[p for p in trial.positions if _is_along(p, v)] for v in (element, result)]
    return len(found[0]) > len(found[1]) or (len(found[0]) == len(found[1]) and shape.is_by_row)


def _is_along(position: Expr, variable: Variable) -> bool:
    """Whether neighbours in memory differ in this variable."""
    innermost = [atom for atom, factor in position.terms if abs(factor) == 1]
    return any(
        a == variable or (isinstance(a, Digit) and a.step == 1 and variable in a.of.variables())
        for a in innermost
    )
