"""One execution of a program under a recorder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.backends.base import Probe, Value
from hlotool.backends.numpy.custom_calls import computes_wide
from hlotool.errors import Unsupported
from hlotool.ir.attributes import Mesh
from hlotool.ir.edit_flatten import flatten_calls
from hlotool.ir.module import Instruction, Module
from hlotool.locate.frames import Compile, Frame, compile_on_numpy
from hlotool.locate.recorder import Recorder, merged
from hlotool.locate.store import Budget, Deadline
from hlotool.numerics.retyping import retyped_value, widened

#: Gives a probe for each device, told the arguments of each.
Watch: TypeAlias = Callable[[Sequence[Sequence[Value]]], Sequence[Probe]]

#: Runs a copy of a program, each device under its probe, and returns what it returned as a whole.
Run: TypeAlias = Callable[[Module, Watch], Value]


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to look into, and how it is run.

    Attributes:
        module: as it was read.
        run: runs a copy of it on the arguments in question.
        elsewhere: the program on other arguments, told a seed; None where that is not possible.
        meshes: of devices, that the program speaks of.
        copies: of its result that a run returns: one, or a tuple with that of each device.
        compile: makes programs that go on computing with its values.
    """

    module: Module
    run: Run
    elsewhere: Callable[[int], Subject] | None = None
    meshes: Sequence[Mesh] = ()
    copies: int = 1
    compile: Compile = compile_on_numpy


def on_one_device(
    module: Module, arguments: Sequence[Value], others: Callable[[int], Sequence[Value]] | None = None
) -> Subject:
    """A program for one device.

    Args:
        module: the program.
        arguments: one value per entry parameter.
        others: gives other arguments, told a seed.
    """

    def run(copy: Module, watch: Watch) -> Value:
        values = [retyped_value(v, p.shape) for v, p in zip(arguments, copy.entry.parameters)]
        return compile_on_numpy(copy).run(values, watch([values])[0])

    def elsewhere(seed: int) -> Subject:
        assert others is not None
        return on_one_device(module, others(seed))

    return Subject(module, run, elsewhere if others is not None else None)


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """A program and all that was seen of one run.

    Attributes:
        original: the program as it was read.
        module: the copy that was executed: every call has a computation of its own.
        originals: what each instruction of the copy stands for.
        is_wide: the copy computes in f64.
        entry: the frame of the entry.
        result: what it returned.
        copies: of its result that this is; see `Subject`.
        again: runs the copy as it is now, with a time limit in seconds; raises OutOfTime.
        elsewhere: the frame of the entry in a run on other arguments, told a seed; None where there are none.
        seconds: how long the run took.
    """

    original: Module
    module: Module
    originals: Mapping[Instruction, Instruction]
    is_wide: bool
    entry: Frame
    result: Value
    copies: int
    again: Callable[[float], Value]
    elsewhere: Callable[[int], Frame] | None
    seconds: float

    def close(self) -> None:
        """Give back what was stored outside of memory."""
        self.entry.trace.close()


def execute(
    subject: Subject, budget: Budget, is_wide: bool = False, like: Execution | None = None
) -> Execution:
    """Run a program and record what it computes on the way.

    Args:
        subject: the program.
        budget: how much is kept, and how long it may take.
        is_wide: compute in f64, where legal rewrites agree to many digits.
        like: an execution of the same program, whose copy is executed again: of its nodes there are others in
            the same places (`frames.same_place`).

    Raises:
        OutOfTime: it takes too long.
        Unsupported: functions call functions so often that they cannot be told apart.
    """
    copy, originals = (like.module, like.originals) if like else _prepared(subject.module, is_wide)
    entry, result, seconds = _recorded(copy, subject, budget)

    def again(limit: float) -> Value:
        return subject.run(copy, lambda devices: [Deadline(limit) for _ in devices])

    def elsewhere(seed: int) -> Frame:
        assert subject.elsewhere is not None
        return _recorded(copy, subject.elsewhere(seed), budget)[0]

    others = elsewhere if subject.elsewhere is not None else None
    return Execution(
        subject.module, copy, originals, is_wide, entry, result, subject.copies, again, others, seconds
    )


def _recorded(copy: Module, subject: Subject, budget: Budget) -> tuple[Frame, Value, float]:
    """The frame of the entry, the result, and the seconds it took."""
    recorders: list[Recorder] = []
    given: list[Sequence[Value]] = []

    def watch(devices: Sequence[Sequence[Value]]) -> Sequence[Probe]:
        given.extend(devices)
        recorders.extend(Recorder(copy, budget) for _ in devices)
        return recorders

    began = time.monotonic()
    result = subject.run(copy, watch)
    seconds = time.monotonic() - began
    frames = [recorder.frame(arguments) for recorder, arguments in zip(recorders, given)]
    entry = frames[0] if len(frames) == 1 else merged(frames)
    entry.trace.compile = subject.compile
    return entry, result, seconds


def _prepared(module: Module, is_wide: bool) -> tuple[Module, Mapping[Instruction, Instruction]]:
    """The copy that is executed, and what its instructions stand for."""
    try:
        flat = flatten_calls(module)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    if not is_wide:
        return flat.module, flat.originals
    wide = widened(flat.module, computes_wide=computes_wide)
    originals: dict[Instruction, Instruction] = {}
    for instruction in wide.module.instructions():
        if (origin := wide.origins.get(instruction)) in flat.originals:
            originals[instruction] = flat.originals[origin]
        elif instruction.operands:
            # A conversion that was put in stands for what it converts.
            originals[instruction] = originals.get(instruction.operands[0], instruction)
    return wide.module, originals
