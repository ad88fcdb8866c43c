"""One execution of a program under a recorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.alignment.flattening import flatten_calls
from hlotool.alignment.graph import Graph
from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.replay.recording import Budget, Recorder, Recording


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """A program and all that was seen of one run.

    Attributes:
        original: the program as it was read.
        module: the copy that was executed: every call has a computation of its own.
        originals: what each instruction of the copy is a copy of.
        recording: values of the copy's instructions.
        result: what it returned.
        arguments: what it was run on.
    """

    original: Module
    module: Module
    originals: dict[Instruction, Instruction]
    recording: Recording
    result: Value
    arguments: Sequence[Value]


def execute(module: Module, arguments: Sequence[Value], backend: str, budget: Budget) -> Execution:
    """Run a program and record what it computes on the way.

    Args:
        module: for one device.
        arguments: one value per entry parameter.
        backend: one whose executables take probes.
        budget: how much is kept, and how long it may take.

    Raises:
        OutOfTime: it takes too long.
        Unsupported: functions call functions so often that they cannot be told apart.
    """
    try:
        flat = flatten_calls(module)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    graph = Graph(flat.module)
    recorder = Recorder(graph, budget)
    result = get_backend(backend).compile(flat.module).run(arguments, recorder)
    for node in graph.nodes:
        if node.literal is not None and isinstance(node.shape, ArrayShape):
            recorder.add_source(node, node.literal.array)
    for parameter, value in zip(flat.module.entry.parameters, arguments):
        recorder.add_source(parameter, value)
    return Execution(module, flat.module, flat.originals, recorder.recording, result, arguments)
