"""The instruction at which two programs part as functions of real numbers.

The one search for faults (`judge.locate`) executes both at a random point of the field, where two values
correspond or do not: no rounding hides a difference, and none looks like one. What it finds it shows in
numbers, from a second execution of both.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hlotool.backends.base import Executable, Probe, Value
from hlotool.backends.field.executable import Everywhere, FieldBackend, FieldExecutable
from hlotool.backends.field.values import held, marked, marked_residues
from hlotool.errors import Unsupported
from hlotool.inputs.generate import InputGenerator
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.judge.locate.locator import Search
from hlotool.judge.locate.recording import Subject, Watch
from hlotool.runs.exact.compare import Assumed, at_point, attempts, trial_of, with_points
from hlotool.runs.exact.points import Options, number_arguments, point_arguments
from hlotool.runs.exact.result import Relation
from hlotool.runs.observed_programs import Probing, leaves_of, meshes_of, subjects
from hlotool.runs.program import Program
from hlotool.runs.runners import OneDevice


class Points:
    """Two programs at a point and, for what must hold everywhere, at others.

    Args:
        reference: the program as it should be.
        tested: the other one.
        options: of `compare`.
        number: of the point.
        assumed: beyond the laws of the field.
    """

    def __init__(
        self, reference: Program, tested: Program, options: Options, number: int, assumed: Assumed
    ) -> None:
        self._programs = reference, tested
        self._options = options
        self._number = number
        self._assumed = assumed
        self._known: dict[int, _Point] = {}

    def subjects(self, shift: int = 0) -> tuple[Subject, Subject]:
        """Both programs, so many points later; they meet in the same points."""
        one, other = (self._subject(program, shift) for program in self._programs)
        return one, other

    def _subject(self, program: Program, shift: int) -> Subject:
        if shift not in self._known:
            self._known[shift] = self._point(self._number + shift)
        point = self._known[shift]

        def elsewhere(seed: int) -> Subject:
            return self._subject(program, shift + seed)

        if isinstance(program.runner, OneDevice):

            def run(copy: Module, watch: Watch) -> Value:
                given = point.marked(copy, point.arguments)
                return point.compile(copy).run(given, watch([given])[0])

            return Subject(program.module, run, elsewhere, compile=point.compile)

        def run_devices(copy: Module, watch: Watch) -> Value:
            def seen(devices: Sequence[Sequence[Value]]) -> Sequence[Probe]:
                return [point.seen(probe) for probe in watch([point.marked(copy, own) for own in devices])]

            runner = program.compiled_by(Probing(copy, seen, point.engine))
            whole = None if program.whole is None else point.expected
            found = runner.run(point.arguments, whole).value
            value: Value = marked_residues(runner.result, found, point.half)
            return value

        copies, meshes = program.runner.copies, meshes_of(program)
        return Subject(program.module, run_devices, elsewhere, meshes, copies, point.compile)

    def _point(self, number: int) -> _Point:
        reference, tested = self._programs
        trial = trial_of(reference.module, tested.module, self._assumed)
        engine = FieldBackend(trial, knows_signs=self._assumed.inequalities)
        # What the reference folds explains constants of the other program: it is compiled first.
        runner = reference.compiled_by(engine)
        tested.compiled_by(engine)  # both say what sizes numbers may have
        inputs = InputGenerator(reference.module)
        arguments = point_arguments(inputs, runner, self._options, number, trial.constants)
        trial.restart(self._options.seed + number, self._options.around)
        return _Point(engine, arguments, reference)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the field.

    Attributes:
        engine: evaluates programs there.
        arguments: of both programs, as they are held; where each device has its own, a tuple for each.
        reference: the program as it should be.
    """

    engine: FieldBackend
    arguments: Sequence[Any]
    reference: Program

    @property
    def half(self) -> int:
        """In which residue values are compared."""
        return self.engine.trial.half

    @cached_property
    def expected(self) -> Value:
        """What the reference returns, by which the result of a partitioned program is put together."""
        value: Value = self.reference.compiled_by(self.engine).run(self.arguments).value
        return value

    def compile(self, module: Module) -> Executable:
        """A program for one device that takes, shows and returns marked words.

        Raises:
            Unsupported: it has no meaning in the field.
        """
        return _OnMarked(self.engine.compile_watched(module), self)

    def marked(self, module: Module, arguments: Sequence[Value]) -> list[Value]:
        """Arguments of a program, with marks."""
        return [marked(p.shape, v, self.half) for p, v in zip(module.entry.parameters, arguments)]

    def seen(self, probe: Probe) -> Probe:
        """A probe that hands values on with marks."""

        def seen(instruction: Instruction, value: Value) -> None:
            probe(instruction, marked(instruction.shape, value, self.half))

        return seen


class _OnMarked:
    """An executable of the field on marked words."""

    def __init__(self, executable: FieldExecutable | Everywhere, point: _Point) -> None:
        self._executable = executable
        self._point = point

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """See `Executable`."""
        seen = None if probe is None else self._point.seen(probe)
        found = self._executable.held(held(tuple(arguments)), seen)
        value: Value = marked(self._executable.module.entry.root.shape, found, self._point.half)
        return value


def open_search(
    reference: Program,
    tested: Program,
    outputs: Collection[ShapeIndex],
    options: Options,
    budget: Budget,
) -> tuple[Search, tuple[ShapeIndex, ...]]:
    """Two programs that are different functions, open for questions, and the outputs that show it.

    Args:
        reference: the program as it should be.
        tested: the other one.
        outputs: leaves of the result, of which one must differ.
        options: of `compare`; the budget takes the place of its time limit.
        budget: how much may be kept, and how many seconds each part of the search may take.

    Raises:
        BackendTimeout: finding a point takes too long.
        OutOfTime: recording an execution takes too long.
        Unsupported: as `parting`, or the calls of a program cannot be flattened.
    """
    found = parting(reference, tested, outputs, replace(options, time_limit=budget.seconds))
    return Search(*found.words, budget, numbers=found.numbers), found.outputs


@dataclass(frozen=True, slots=True)
class Parting:
    """Two programs that are different functions, and a point that shows it.

    Attributes:
        outputs: the leaves of the programs' own results that differ there, on whichever device.
        words: the reference and the tested program, computing with exact words.
        numbers: both, computing with numbers.
    """

    outputs: tuple[ShapeIndex, ...]
    words: tuple[Subject, Subject]
    numbers: tuple[Subject, Subject]


def parting(
    reference: Program, tested: Program, outputs: Collection[ShapeIndex], options: Options
) -> Parting:
    """The first point at which two programs differ, under what lets fewest of their results differ.

    Args:
        reference: the program as it should be.
        tested: the other one.
        outputs: leaves of the result, of which one must differ.
        options: of `compare`.

    Raises:
        BackendTimeout: the time limit is over.
        Unsupported: they have no meaning in the field, or no output is known to differ.
    """
    options = with_points(options, reference.module, tested.module)
    number, assumed, differing = next(_differences(reference, tested, outputs, options), (0, Assumed(), ()))
    if not differing:
        raise Unsupported("the programs are not known to be different functions")
    words = Points(reference, tested, options, number, assumed).subjects()
    given = number_arguments(InputGenerator(reference.module), reference.runner, options, number)
    return Parting(tuple(leaves_of(reference, differing)), words, subjects(reference, tested, given))


def _differences(
    reference: Program, tested: Program, outputs: Collection[ShapeIndex], options: Options
) -> Iterator[tuple[int, Assumed, tuple[ShapeIndex, ...]]]:
    """The points at which outputs differ, the assumption by which fewest do, and these outputs."""
    deadline = time.monotonic() + options.time_limit
    for number in range(options.trials):
        best: tuple[Assumed, tuple[ShapeIndex, ...]] | None = None
        for assumed in attempts(reference.module, tested.module):
            if assumed.roots:
                continue  # it has points of its own
            found = _differing(reference, tested, options, number, assumed, deadline)
            differing = tuple(index for index in found or () if index in outputs)
            if not differing and best is None:
                break
            # One point at which nothing differs by an assumption proves nothing: the outputs are unequal.
            if differing and (best is None or len(differing) < len(best[1])):
                best = assumed, differing
        if best is not None:
            yield number, *best


def _differing(
    reference: Program, tested: Program, options: Options, number: int, assumed: Assumed, deadline: float
) -> list[ShapeIndex] | None:
    """The leaves that differ at a point; None where there is nothing to assume."""
    trial = trial_of(reference.module, tested.module, assumed)
    engine = FieldBackend(trial, deadline, assumed.inequalities)
    runners = reference.compiled_by(engine), tested.compiled_by(engine)
    if assumed.inequalities and not engine.laws:
        return None
    inputs = InputGenerator(reference.module)
    arguments = point_arguments(inputs, runners[0], options, number, trial.constants)
    leaves = at_point(*runners, arguments, trial, options.seed + number, options.around)
    return [leaf.index for leaf in leaves if leaf.relation is Relation.UNEQUAL]
