"""What the judge is asked: two results, their programs, what targets may do, what may be spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hlotool.backends.base import Backend, Executable, Probe, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.dataflow import Leaves, join_leaves, leaf_facts
from hlotool.facts.float_order import flush_threshold
from hlotool.facts.result_facts import Facts
from hlotool.ir.arrays import Array
from hlotool.ir.edit_calls import part_for
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, leaves
from hlotool.judge.comparison import Comparison, LeafComparison, compare_values, part_at
from hlotool.judge.rules.freedoms import UNKNOWN_TARGET, Freedoms, makes_pairs
from hlotool.judge.tolerance import ChosenTolerance, Tolerance, few_ulps
from hlotool.judge.verdicts import Verdict

if TYPE_CHECKING:
    from hlotool.runs.exact.result import ExactResult


T = TypeVar("T")

#: Runs a program under a policy: from a backend to a function of nothing that executes once.
Execute = Callable[[Backend], Callable[[], Value]]
#: Compares an output by its name, the expected and the actual array: whether they agree, what is wrong, or
#: None where it has no opinion.
CompareWith: TypeAlias = "Callable[[str, Array, Array], bool | str | None]"
#: Compares both programs as functions of real numbers, within so many seconds, at so many points.
CompareExactly: TypeAlias = "Callable[[float, int], ExactResult]"


#: A part of a program that is not much less is not worth being compiled for itself.
_MOST = 0.75


@dataclass(frozen=True, eq=False)
class Side:
    """One program of a judgement, and how it can be executed.

    Attributes:
        module: the program.
        shape: of its result.
        execute: runs it on the arguments of the judgement, on one device or many.
        watch: runs it under a probe; None where it runs on several devices.
        arguments: of the judgement; None likewise.
        kept: legal executions of it, by what they were drawn with, for the next result that is judged.
    """

    module: Module
    shape: Shape
    execute: Execute
    watch: Callable[[Backend, Probe], Value] | None = None
    arguments: Sequence[Value] | None = None
    kept: dict[object, Any] = field(default_factory=dict)

    def for_output(self, number: int) -> Side | None:
        """What the program does for one output; None where that is most of it, or cannot be told apart."""
        entry = self.module.entry
        is_told = entry.root.opcode == "tuple" and all(o.array_type is not None for o in entry.root.operands)
        if self.arguments is None or not is_told or any(i.control_predecessors for i in entry.instructions):
            return None
        part = part_for(self.module, entry.root.operands[number])
        is_most = len(part.entry.instructions) > _MOST * len(entry.instructions)
        return None if is_most else side_of(part, self.arguments)


def side_of(module: Module, arguments: Sequence[Value]) -> Side:
    """A program for one device on `arguments`."""

    compiled = once_for_each(lambda backend: backend.compile(module))

    def execute(backend: Backend) -> Callable[[], Value]:
        executable = compiled(backend)
        return lambda: executable.run(arguments)

    return Side(module, module.entry.root.shape, execute, watching(module, arguments, compiled), arguments)


def once_for_each(compile: Callable[[Backend], T]) -> Callable[[Backend], T]:
    """`compile`, which is called once for each backend."""
    compiled: WeakKeyDictionary[Backend, T] = WeakKeyDictionary()

    def found(backend: Backend) -> T:
        if backend not in compiled:
            compiled[backend] = compile(backend)
        return compiled[backend]

    return found


def watching(
    module: Module, arguments: Sequence[Value], compiled: Callable[[Backend], Executable]
) -> Callable[[Backend, Probe], Value]:
    """Runs a program for one device under a probe, which sees the arguments first."""

    def watch(backend: Backend, probe: Probe) -> Value:
        for parameter, argument in zip(module.entry.parameters, arguments):
            probe(parameter, argument)
        return compiled(backend).run(arguments, probe)

    return watch


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """One question to the judge.

    Attributes:
        reference: the program as it should be.
        expected: its result.
        actual: the result in question, of the same shape.
        facts: what the leaves depend on, joined over both sides.
        tested: the program that gave `actual`, where that is HLO of its own (after a pass, say).
        seed: of the ensembles.
        tolerance: set by the user, in place of an ensemble.
        tolerances: set for single outputs, by shape index, of arrays or of tuples.
        compare_with: the user's own comparison, before any tolerance.
        deadline: in `time.monotonic`: from then on no execution begins, and a bound decides.
        work: units of work after which none begins either.
        thorough: look for the pattern of every wrong leaf, not only of the worst few.
        freedoms: what the target may do in its hardware, or in the text of `tested`.
        compare_exactly: says whether both programs are the same function; None where that says nothing about
            `actual`, because something else than the reference's interpreter returned it.
        exact: the user wants the same function, not only close values.
    """

    reference: Side
    expected: Value
    actual: Value
    facts: Leaves
    tested: Side | None = None
    seed: int = 0
    tolerance: ChosenTolerance | None = None
    tolerances: Mapping[ShapeIndex, ChosenTolerance] = field(default_factory=dict)
    compare_with: CompareWith | None = None
    deadline: float = math.inf
    work: float = math.inf
    thorough: bool = False
    freedoms: Freedoms = UNKNOWN_TARGET
    compare_exactly: CompareExactly | None = None
    exact: bool = False

    @property
    def product_unit(self) -> float:
        """One ulp at 1 of what products of f32 may be computed in; 0 for f32 itself."""
        return self.freedoms.product.unit

    @cached_property
    def compared(self) -> Comparison:
        """What a comparison of the values says, without another execution."""
        return compare_values(
            self.reference.shape,
            self.expected,
            self.actual,
            actual_shape=self.tested.shape if self.tested is not None else None,
            facts=self.facts,
            tolerance=self.tolerance or self.few,
        )

    @property
    def is_identical(self) -> bool:
        """Whether all bits are the same, and nothing else is asked: then there is nothing to judge."""
        is_asked = self.exact or self.compare_with is not None
        return self.compared.verdict is Verdict.IDENTICAL and not is_asked

    @property
    def has_f64_of_pairs(self) -> bool:
        """Whether what gave `actual` makes f64 of pairs of f32: a TPU, or its program once that says so."""
        if not self.freedoms.f64_unit:
            return False
        return self.tested is None or any(map(makes_pairs, self.tested.module.instructions()))

    def few(self, element_type: ElementType, facts: Facts, scale: float) -> Tolerance:
        """What needs no explanation: a few ulps, of pairs of f32 where the target has no f64 of its own."""
        few, unit = few_ulps(element_type, facts, scale), self.freedoms.f64_unit
        if not unit or element_type.real_part is not ElementType.F64:
            return few
        tiny = flush_threshold(ElementType.F32)
        return replace(
            few, atol=unit * scale, rtol=unit, denormal=tiny, reason="an f64 of a TPU is a pair of f32"
        )

    def leaves(self, compared: Comparison) -> Iterator[Leaf]:
        """The arrays of the result, with what was said of them."""
        said = {leaf.index: leaf for leaf in compared.leaves}
        for number, (index, shape) in enumerate(leaves(self.reference.shape)):
            if isinstance(shape, ArrayShape):
                expected, actual = (np.asarray(part_at(v, index)) for v in (self.expected, self.actual))
                yield Leaf(number, shape, self.facts[number], expected, actual, said[index])


def judgement_of(
    reference: Module,
    arguments: Sequence[Value],
    actual: Value,
    *,
    expected: Value | None = None,
    tested: Module | None = None,
    seed: int = 0,
    tolerance: ChosenTolerance | None = None,
    compare_exactly: CompareExactly | None = None,
    exact: bool = False,
    freedoms: Freedoms = UNKNOWN_TARGET,
) -> Judgement:
    """The judgement on a result of a program for one device.

    Args:
        reference: the program as it should be, such as the module before optimizations.
        arguments: one value per entry parameter, of both programs.
        actual: the result in question: of another program, another backend, or captured.
        expected: what the numpy backend returns for `reference`; None has it computed.
        tested: the program that gave `actual`, where that is another one.
        seed: of the ensembles.
        tolerance: set by the user.
        compare_exactly: both programs as functions, where the numpy backend executed both.
        exact: the user wants the same function.
        freedoms: what the target may do.

    Raises:
        Unsupported: the numpy backend cannot execute `reference`.
        InputDataError: the arguments do not fit.
    """
    if expected is None:
        expected = NumpyBackend().compile(reference).run(arguments)
    facts = leaf_facts(reference)
    return Judgement(
        reference=side_of(reference, arguments),
        expected=expected,
        actual=actual,
        facts=facts if tested is None else join_leaves(facts, leaf_facts(tested)),
        tested=None if tested is None else side_of(tested, arguments),
        seed=seed,
        tolerance=tolerance,
        compare_exactly=compare_exactly,
        exact=exact,
        freedoms=freedoms,
    )


class Leaf(Struct, frozen=True, eq=False):
    """One array of the results.

    Attributes:
        number: of the leaf in tuple order; tokens count.
        shape: declared by the reference.
        facts: what it depends on.
        expected: the reference's.
        actual: the one in question.
        compared: what a comparison of the two says.
    """

    number: int
    shape: ArrayShape
    facts: Facts
    expected: Array
    actual: Array
    compared: LeafComparison

    @property
    def is_inexact(self) -> bool:
        """Whether its elements are rounded."""
        return self.shape.element_type.is_inexact
