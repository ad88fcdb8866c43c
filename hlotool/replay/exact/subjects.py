"""Two programs at a point of the field, as the search for a fault looks into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hlotool.backends.base import Executable, Probe, Value
from hlotool.backends.field.executable import Everywhere, FieldBackend, FieldExecutable
from hlotool.backends.field.marked import held, marked, marked_residues
from hlotool.ir.module import Instruction, Module
from hlotool.locate.execution import Subject, Watch
from hlotool.replay.devices.looking import Probing, meshes_of
from hlotool.replay.devices.runners import OneDevice
from hlotool.replay.exact.arguments import Options, point_arguments
from hlotool.replay.exact.compare import Assumed, trial_of
from hlotool.replay.program import Program
from hlotool.values.generate import InputGenerator


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
