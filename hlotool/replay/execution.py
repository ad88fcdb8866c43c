"""One execution of a program under a recorder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hlotool.alignment.flattening import flatten_calls
from hlotool.alignment.graph import Graph
from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.numerics.retyping import retyped_value, widened
from hlotool.replay.recording import Budget, Deadline, Recorder, Recording


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """A program and all that was seen of one run.

    Attributes:
        original: the program as it was read.
        module: the copy that was executed: every call has a computation of its own.
        originals: what each instruction of the copy stands for.
        is_wide: the copy computes in f64.
        recording: values of the copy's instructions.
        result: what it returned.
        again: compiles and runs the copy as it is now, with a time limit in seconds; raises OutOfTime.
        seconds: how long the run took.
    """

    original: Module
    module: Module
    originals: Mapping[Instruction, Instruction]
    is_wide: bool
    recording: Recording
    result: Value
    again: Callable[[float], Value]
    seconds: float

    def close(self) -> None:
        """Give back what was stored outside of memory."""
        self.recording.store.close()


def execute(
    module: Module, arguments: Sequence[Value], backend: str, budget: Budget, is_wide: bool = False
) -> Execution:
    """Run a program and record what it computes on the way.

    Args:
        module: for one device.
        arguments: one value per entry parameter.
        backend: one whose executables take probes.
        budget: how much is kept, and how long it may take.
        is_wide: compute in f64, where legal rewrites agree to many digits.

    Raises:
        OutOfTime: it takes too long.
        Unsupported: functions call functions so often that they cannot be told apart.
    """
    program, originals = _prepared(module, is_wide)
    arguments = [retyped_value(v, p.shape) for v, p in zip(arguments, program.entry.parameters)]
    graph = Graph(program)
    recorder = Recorder(graph, budget)
    began = time.monotonic()
    result = get_backend(backend).compile(program).run(arguments, recorder)
    seconds = time.monotonic() - began
    record_sources(recorder, graph, arguments)

    def again(limit: float) -> Value:
        return get_backend(backend).compile(program).run(arguments, Deadline(limit))

    return Execution(module, program, originals, is_wide, recorder.recording, result, again, seconds)


def record_sources(recorder: Recorder, graph: Graph, arguments: Sequence[Value]) -> None:
    """Record what no probe sees: constants and the arguments of the entry."""
    for node in graph.nodes:
        if node.literal is not None and isinstance(node.shape, ArrayShape):
            recorder.add_source(node, node.literal.array)
    for parameter, value in zip(graph.module.entry.parameters, arguments):
        recorder.add_source(parameter, value)


def _prepared(module: Module, is_wide: bool) -> tuple[Module, Mapping[Instruction, Instruction]]:
    """The copy that is executed, and what its instructions stand for."""
    try:
        flat = flatten_calls(module)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    if not is_wide:
        return flat.module, flat.originals
    wide = widened(flat.module)
    originals: dict[Instruction, Instruction] = {}
    for instruction in wide.module.instructions():
        if (origin := wide.origins.get(instruction)) in flat.originals:
            originals[instruction] = flat.originals[origin]
        elif instruction.operands:
            # A conversion that was put in stands for what it converts.
            originals[instruction] = originals.get(instruction.operands[0], instruction)
    return wide.module, originals
