"""The instruction at which two programs part as functions of real numbers.

The one search for faults (`hlotool.locate`) executes both at a random point of the field, where two values
correspond or do not: no rounding hides a difference, and none looks like one. What it finds it shows in
numbers, from a second execution of both.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlotool.backends.base import Executable, Probe, Value
from hlotool.backends.field.executable import FieldBackend, FieldExecutable
from hlotool.backends.field.marked import held, marked
from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.locate.execution import Subject, Watch, on_one_device
from hlotool.locate.locator import Search
from hlotool.locate.store import Budget
from hlotool.replay.devices.runners import OneDevice
from hlotool.replay.exact.arguments import Options, Side, point_arguments, point_numbers
from hlotool.replay.exact.compare import Assumed, at_point, attempts, trial_of, with_points
from hlotool.replay.exact.result import Relation
from hlotool.values.generate import InputGenerator


def open_search(
    reference: Side,
    tested: Side,
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
        outputs: the leaves of the result that differ there.
        words: the reference and the tested program, computing with exact words.
        numbers: both, computing with numbers.
    """

    outputs: tuple[ShapeIndex, ...]
    words: tuple[Subject, Subject]
    numbers: tuple[Subject, Subject]


def parting(reference: Side, tested: Side, outputs: Collection[ShapeIndex], options: Options) -> Parting:
    """The first point at which two programs differ, under what lets fewest of their results differ.

    Args:
        reference: the program as it should be.
        tested: the other one.
        outputs: leaves of the result, of which one must differ.
        options: of `compare`.

    Raises:
        BackendTimeout: the time limit is over.
        Unsupported: they run on several devices or have no meaning in the field, or no output is known to
            differ.
    """
    options = with_points(options, reference.module, tested.module)
    number, assumed, differing = next(_differences(reference, tested, outputs, options), (0, Assumed(), ()))
    if not differing:
        raise Unsupported("the programs are not known to be different functions")
    modules = reference.module, tested.module
    given = point_numbers(InputGenerator(reference.module), options, number)
    points = _Points(modules, options, number, assumed)
    one, other = (on_one_device(module, given) for module in modules)
    return Parting(differing, (points.subject(modules[0]), points.subject(modules[1])), (one, other))


def _differences(
    reference: Side, tested: Side, outputs: Collection[ShapeIndex], options: Options
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
    reference: Side, tested: Side, options: Options, number: int, assumed: Assumed, deadline: float
) -> list[ShapeIndex] | None:
    """The leaves that differ at a point; None where there is nothing to assume."""
    trial = trial_of(reference.module, tested.module, assumed)
    engine = FieldBackend(trial, deadline, assumed.inequalities)
    runners = reference.compiled_by(engine), tested.compiled_by(engine)
    if not all(isinstance(runner, OneDevice) for runner in runners):
        raise Unsupported("exact arithmetic does not look into programs for several devices")
    if assumed.inequalities and not engine.laws:
        return None
    arguments = point_arguments(InputGenerator(reference.module), runners[0], options, number)
    leaves = at_point(*runners, arguments, trial, options.seed + number)
    return [leaf.index for leaf in leaves if leaf.relation is Relation.UNEQUAL]


class _Points:
    """Two programs at a point and, for what must hold everywhere, at others."""

    def __init__(
        self, modules: tuple[Module, Module], options: Options, number: int, assumed: Assumed
    ) -> None:
        self._modules = modules
        self._options = options
        self._number = number
        self._assumed = assumed
        self._known: dict[int, _Point] = {}

    def subject(self, module: Module, shift: int = 0) -> Subject:
        """One of the programs, so many points later; both meet in the same points."""
        if shift not in self._known:
            self._known[shift] = self._point(self._number + shift)
        point = self._known[shift]

        def run(copy: Module, watch: Watch) -> Value:
            given = [marked(p.shape, v, point.half) for p, v in zip(copy.entry.parameters, point.arguments)]
            return point.compile(copy).run(given, watch([given])[0])

        def elsewhere(seed: int) -> Subject:
            return self.subject(module, shift + seed)

        return Subject(module, run, elsewhere, compile=point.compile)

    def _point(self, number: int) -> _Point:
        reference, tested = self._modules
        trial = trial_of(reference, tested, self._assumed)
        trial.restart(self._options.seed + number)
        engine = FieldBackend(trial, knows_signs=self._assumed.inequalities)
        # What the reference folds explains constants of the other program: it is compiled first.
        runner = OneDevice(reference, engine.compile(reference))
        arguments = point_arguments(InputGenerator(reference), runner, self._options, number)
        return _Point(engine, arguments)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A point of the field.

    Attributes:
        engine: evaluates programs there.
        arguments: of both programs, as they are held.
    """

    engine: FieldBackend
    arguments: Sequence[Any]

    @property
    def half(self) -> int:
        """In which residue values are compared."""
        return self.engine.trial.half

    def compile(self, module: Module) -> Executable:
        """A program that takes, shows and returns marked words.

        Raises:
            Unsupported: it has manual regions for several devices, or no meaning in the field.
        """
        executable = self.engine.compile(module)
        if not isinstance(executable, FieldExecutable):
            raise Unsupported("a program with regions for each device has no single trace")
        return _OnMarked(executable, self.half)


class _OnMarked:
    """An executable of the field on marked words."""

    def __init__(self, executable: FieldExecutable, half: int) -> None:
        self._executable = executable
        self._half = half

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """See `Executable`."""

        def seen(instruction: Instruction, value: Value) -> None:
            assert probe is not None
            probe(instruction, marked(instruction.shape, value, self._half))

        found = self._executable.held(held(tuple(arguments)), seen if probe is not None else None)
        value: Value = marked(self._executable.module.entry.root.shape, found, self._half)
        return value
