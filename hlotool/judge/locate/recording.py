"""One execution of a program under a recorder, a probe that folds what it sees into frames.

The probe sees a flat stream in which the instructions of a callee come before the instruction that called
it; here the stream is folded back into the tree of calls.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from hlotool.backends.base import Probe, Value
from hlotool.backends.numpy import NumpyBackend, NumpyExecutable
from hlotool.backends.numpy.custom_calls import computes_wide
from hlotool.errors import Unsupported
from hlotool.facts.retyping import retyped_value, widened
from hlotool.inputs.frames import Compile, Frame, Kept, Spread, Trace, compile_on_numpy
from hlotool.inputs.recorded_values import Budget, Deadline, OutOfTime, Sample, Store
from hlotool.ir.attributes import Mesh
from hlotool.ir.edit_programs import flattened
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.walk import Context, call_sites, contexts

_CALLING = opcodes_with(Trait.INLINED) | {"async-start"}


def trace(module: Module, arguments: Sequence[Value], budget: Budget | None = None) -> Frame:
    """Execute `module` on the reference and keep what every instruction returned.

    Raises:
        Unsupported: it cannot be executed, or makes more values than the budget allows to look at.
        OutOfTime: it takes too long.
    """
    executable = NumpyBackend().compile(module)
    if not isinstance(executable, NumpyExecutable):
        raise Unsupported("a program with regions for each device has no single trace")
    recorder = Recorder(module, budget or Budget())
    executable.run(arguments, recorder)
    entry = recorder.frame(arguments)
    if entry.trace.incomplete:
        raise Unsupported(f"more than {entry.trace.count} values")
    return entry


class _Event(Struct, eq=False):
    instruction: Instruction
    kept: Any
    frames: list[Frame]


class Recorder:
    """A probe for one device.

    Args:
        module: that is executed.
        budget: how much is kept.
    """

    def __init__(self, module: Module, budget: Budget) -> None:
        kinds = contexts(module)
        self._module = module
        self._budget = budget
        self._store = Store(budget)
        self._trace = Trace((self._store,))
        self._home = {
            i: c for c in module.computations if kinds[c] - {Context.EMBEDDED} for i in c.instructions
        }
        self._callees = {i: frozenset(i.called) for i in self._home if any(True for _ in i.called)}
        self._pending: list[_Event] = []
        self._end = time.monotonic() + budget.seconds

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if instruction not in self._home or self._trace.incomplete:
            return
        if self._trace.count >= self._budget.samples:
            self._trace.incomplete = True
            return
        if self._trace.count % 64 == 0 and time.monotonic() > self._end:
            raise OutOfTime(f"stopped after {self._budget.seconds:g} s")
        callees = self._callees.get(instruction)
        frames = self._fold(callees) if callees else []
        self._pending.append(_Event(instruction, self._keep(value), frames))

    def frame(self, arguments: Sequence[Value]) -> Frame:
        """The frame of the entry.

        Args:
            arguments: that the program was given.
        """
        if self._trace.incomplete:
            self._close_calls()
        entry = Frame(self._module.entry, self._trace)
        for parameter, value in zip(self._module.entry.parameters, arguments):
            entry.values[parameter] = self._keep(value, -1)
        for event in self._pending:
            _record(entry, event)
        return entry

    def _keep(self, value: Value, order: int | None = None) -> Kept:
        if isinstance(value, tuple):
            return tuple(self._keep(part, order) for part in value)
        if not isinstance(value, np.ndarray | np.generic):
            return None
        if order is None:
            order = self._trace.count
            self._trace.count += 1
        return self._store.sample(order, np.asarray(value))

    def _fold(self, callees: frozenset[Computation]) -> list[Frame]:
        """Take the events of `callees` at the end of the stream and make frames of them."""
        start = len(self._pending)
        while start and self._home[self._pending[start - 1].instruction] in callees:
            start -= 1
        events = self._pending[start:]
        del self._pending[start:]
        frames: list[Frame] = []
        for event in events:
            home = self._home[event.instruction]
            # A computation that is at work on the same instruction again was called again.
            if not frames or frames[-1].computation is not home or event.instruction in frames[-1].values:
                frames.append(Frame(home, self._trace))
            _record(frames[-1], event)
        return frames

    def _close_calls(self) -> None:
        """End the calls that were at work when the last value was looked at, without results."""
        sites = call_sites(self._module)
        while self._pending:
            home = self._home[self._pending[-1].instruction]
            if home is self._module.entry:
                return
            call = sites[home][-1].instruction
            self._pending.append(_Event(call, None, self._fold(self._callees[call])))


def _record(frame: Frame, event: _Event) -> None:
    instruction = event.instruction
    frame.values[instruction] = event.kept
    frames = event.frames
    if not frames and instruction.opcode in _CALLING:
        # A callee that hands on its parameters leaves no events.
        frames = [Frame(c, frame.trace) for c in instruction.called]
    adopt(frame, instruction, frames)


def adopt(frame: Frame, instruction: Instruction, frames: list[Frame]) -> None:
    """Make frames the callees of an instruction of another one."""
    if not frames:
        return
    frame.callees[instruction] = frames
    count: Counter[Computation] = Counter()
    for callee in frames:
        callee.caller = (frame, instruction)
        callee.iteration = count[callee.computation]
        count[callee.computation] += 1
    if instruction.opcode == "while":
        body = instruction.computation("body")
        frame.bodies[instruction] = [f for f in frames if f.computation is body]


def merged(devices: Sequence[Frame]) -> Frame:
    """One tree of frames for what several devices did.

    A loop or branch in which the devices go different ways stays closed: it is an operation like any other.

    Args:
        devices: the frame of the entry, of each device.
    """
    traces = [device.trace for device in devices]
    whole = Trace(
        tuple(store for each in traces for store in each.stores),
        any(each.incomplete for each in traces),
        traces[0].count,
    )
    return _merged(devices, whole)


def _merged(devices: Sequence[Frame], whole: Trace) -> Frame:
    first = devices[0]
    frame = Frame(first.computation, whole)
    for instruction in first.values:
        frame.values[instruction] = _together([device.values.get(instruction) for device in devices])
    for instruction, callees in first.callees.items():
        rows = [device.callees.get(instruction, []) for device in devices]
        if all(([f.computation for f in callees] == [f.computation for f in row]) for row in rows):
            adopt(frame, instruction, [_merged(column, whole) for column in zip(*rows)])
    return frame


def _together(kept: Sequence[Any]) -> Any:
    """What several devices have of one value."""
    if all(isinstance(part, tuple) for part in kept):
        return tuple(_together(column) for column in zip(*kept))
    samples = tuple(part for part in kept if isinstance(part, Sample))
    return Spread(samples) if len(samples) == len(kept) else None


#: Gives a probe for each device, from the arguments of each.
Watch: TypeAlias = Callable[[Sequence[Sequence[Value]]], Sequence[Probe]]

#: Runs a copy of a program, each device under its probe, and returns what it returned as a whole.
Run: TypeAlias = Callable[[Module, Watch], Value]


class Subject(Struct, frozen=True):
    """A program to look into, and how it is run.

    Attributes:
        module: as it was read.
        run: runs a copy of it on the arguments in question.
        elsewhere: the program on other arguments, from a seed; None where that is not possible.
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
        others: gives other arguments, from a seed.
    """

    def run(copy: Module, watch: Watch) -> Value:
        values = [retyped_value(v, p.shape) for v, p in zip(arguments, copy.entry.parameters)]
        return compile_on_numpy(copy).run(values, watch([values])[0])

    def elsewhere(seed: int) -> Subject:
        assert others is not None
        return on_one_device(module, others(seed))

    return Subject(module, run, elsewhere if others is not None else None)


class Execution(Struct, frozen=True, eq=False):
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
        elsewhere: the frame of the entry in a run on other arguments, from a seed; None where there are none.
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
    flat = flattened(module)
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
