"""Modules compiled for the field, for one device or several.

What a run returns is as it is compared: of a float the residue (u64) of the trial's half, of a complex number
both in one u64; integers and preds are themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from hlotool.backends.base import Probe, ReadingProbe, Value
from hlotool.backends.field import rules
from hlotool.backends.field.lowering import FieldLowering, LogicalFieldLowering
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.unknown import BlackBox
from hlotool.backends.field.values import is_float, residues
from hlotool.backends.field.words import INF, NAN, NEG_INF
from hlotool.backends.numpy.executables import execute, execute_devices
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.errors import BackendTimeout
from hlotool.facts.signs import Law, Signs
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import NotSeparable, is_one_program_with_regions

NAME = "field"

#: Importing them registers what every opcode means.
_RULES = rules


class FieldBackend:
    """Compiles both programs of a pair, the reference first, for one trial that they share.

    Args:
        trial: the point at which they are evaluated; it may be moved between runs.
        deadline: when every run must be over, in `time.monotonic`; None for no limit.
        knows_signs: inequalities of the programs count (`FieldLowering`).
        reading: makes what sees the operands of a program's instructions, in every run of it without a
            probe; it is told whether the program is the reference.

    Attributes:
        trial: see above.
        name: of the backend.
        version: what reports cite.
        boxes: of each program, in the order of compilation: what is an unknown function.
        laws: by which orders and signs were known, in either program.
        readings: what `reading` made, of each program.
    """

    name: str = NAME
    version: str = NAME

    def __init__(
        self,
        trial: Trial,
        deadline: float | None = None,
        knows_signs: bool = False,
        reading: Callable[[Module, bool], ReadingProbe] | None = None,
    ) -> None:
        self.boxes: list[list[BlackBox]] = []
        self.readings: list[ReadingProbe] = []
        self._reading = reading
        self.laws: set[Law] = set()
        self._knows_signs = knows_signs
        self.trial = trial
        self._deadline = deadline

    def reading_of(self, lowering: FieldLowering) -> ReadingProbe | None:
        """What is to see the runs of a program; None where nothing is."""
        if self._reading is None:
            return None
        self.readings.append(self._reading(lowering.module, lowering.is_reference))
        return self.readings[-1]

    def compile(self, module: Module) -> FieldExecutable | Everywhere:
        """For one device; manual regions of a program on global arrays are executed on all partitions.

        Raises:
            Unsupported: naming the first instruction that has no meaning in the field.
        """
        if not is_one_program_with_regions(module):
            return self.compile_devices(module, ONE_DEVICE)
        grid = DeviceGrid(1, module.num_partitions)
        inside = self._lowering(module, grid)
        try:
            around = LogicalFieldLowering(inside)
            return FieldExecutable(self, around, around.plan(module.entry))
        except NotSeparable:
            return Everywhere(FieldExecutable(self, inside, inside.plan(module.entry)))

    def compile_watched(self, module: Module) -> FieldExecutable | Everywhere:
        """The same for a probe, which must see the program as it is.

        Around manual regions, too, it is executed on all partitions.
        """
        if not is_one_program_with_regions(module):
            return self.compile(module)
        return Everywhere(self.compile_devices(module, DeviceGrid(1, module.num_partitions)))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> FieldExecutable:
        """For all devices of `grid`; see `compile`."""
        lowering = self._lowering(module, grid)
        return FieldExecutable(self, lowering, lowering.plan(module.entry))

    def _lowering(self, module: Module, grid: DeviceGrid) -> FieldLowering:
        signs = Signs(module) if self._knows_signs else None
        lowering = FieldLowering(module, self.trial, grid, is_reference=not self.boxes, signs=signs)
        lowering.laws = self.laws
        self.boxes.append(lowering.boxes)
        return lowering

    def watch(self, probe: Probe | None) -> Probe | None:
        """A probe that ends a run that is late."""
        deadline, trial = self._deadline, self.trial
        if deadline is None:
            return probe
        limit: float = deadline

        def watch(instruction: Instruction, value: Value) -> None:
            if time.monotonic() > limit:
                raise BackendTimeout(
                    NAME, f"the time limit is over, at {instruction.opcode} %{instruction.name}"
                )
            if trial.watches_infinities and not trial.has_infinities:
                trial.has_infinities = _has_infinities(instruction, value)
            if probe is not None:
                probe(instruction, value)

        return watch


def _has_infinities(instruction: Instruction, value: Value) -> bool:
    """Whether a value that is no constant, nor a copy of one, has words that stand for no real number."""
    if not is_float(instruction.shape) or instruction.opcode in ("constant", "broadcast", "parameter"):
        return False
    words = np.asarray(value)
    return bool(np.any((words == INF) | (words == NEG_INF) | (words == NAN)))


class FieldExecutable:
    """A module ready to run on words."""

    def __init__(self, backend: FieldBackend, lowering: FieldLowering, plan: Plan) -> None:
        self.module = lowering.module
        self.grid = lowering.grid
        self._backend = backend
        self._plan = plan
        self._reading = backend.reading_of(lowering)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once on one device.

        Args:
            arguments: one per parameter, words where floats are (`held`).
            probe: sees the words of every instruction.

        Raises:
            Unsupported: data-dependent limits.
            BackendTimeout: the backend's deadline has passed.
        """
        return self._result(self.held(arguments, probe))

    def held(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """What `run` returns as whole words (see `held`); arguments and probe are as there."""
        reading = self._reading if probe is None else None
        return execute(self._plan, list(arguments), Run(self._backend.watch(probe), reading=reading))

    def held_on_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """What `run_devices` returns as whole words; arguments and probes are as there."""
        seen = [self._backend.watch(probe) for probe in probes or [None] * len(self.grid)]
        reading = None if any(probes or ()) else self._reading
        return execute_devices(self._plan, [list(own) for own in arguments], self.grid, seen, reading)

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `run` and `DevicesExecutable`."""
        return [self._result(result) for result in self.held_on_devices(arguments, probes)]

    def _result(self, value: Value) -> Value:
        found: Value = residues(self.module.entry.root.shape, value, self._backend.trial.half)
        return found


class Everywhere:
    """A program on global arrays that every device executes, on the same arguments."""

    def __init__(self, executable: FieldExecutable) -> None:
        self.module = executable.module
        self._executable = executable

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """See `FieldExecutable.run`; the probe sees the first device."""
        return self._executable.run_devices(*self._for_all(arguments, probe))[0]

    def held(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """See `FieldExecutable.held`; the probe sees the first device."""
        return self._executable.held_on_devices(*self._for_all(arguments, probe))[0]

    def _for_all(
        self, arguments: Sequence[Value], probe: Probe | None
    ) -> tuple[Sequence[Sequence[Value]], Sequence[Probe | None]]:
        count = len(self._executable.grid)
        return [arguments] * count, [probe, *[None] * (count - 1)]
