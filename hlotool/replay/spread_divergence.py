"""The first diverging instruction of a program that was partitioned over several devices.

The reference is one program on global arrays. What the devices of the partitioned program hold of a value is
put together, in the arrangement that fits the reference's value best, and compared as one array. Values that
are parts of a sum, or of which the devices hold what fits nowhere, count as unknown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np

from hlotool.alignment.flattening import Flattened, flatten_calls
from hlotool.alignment.graph import Graph
from hlotool.backends.base import DevicesExecutable, Probe, Value
from hlotool.backends.registry import get_devices_backend
from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.attributes import Mesh
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.locate.records import DivergenceRecord
from hlotool.parse.sdy import module_meshes
from hlotool.replay.divergence import Comparison
from hlotool.replay.execution import Execution, execute, record_sources
from hlotool.replay.first_divergence import divergence_of
from hlotool.replay.program import Program
from hlotool.replay.recording import Budget, Deadline, Iteration, Recorder, Recording
from hlotool.values.infer_sharding import infer_sharding
from hlotool.values.sharding import assemble

_BACKEND = "numpy"


def spread_divergence(
    reference: Program,
    tested: Program,
    arguments: Sequence[Value],
    outputs: Sequence[ShapeIndex],
    budget: Budget,
) -> DivergenceRecord:
    """Find where a partitioned program parts from the one on global arrays that it was made from.

    Args:
        reference: on global arrays.
        tested: partitioned.
        arguments: global ones.
        outputs: shape indices of results that differ.
        budget: how much may be kept of each device, and how many seconds each part of the search may take.

    Raises:
        NotFound: no instruction is known to differ.
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """
    with (
        closing(execute(reference.module, arguments, _BACKEND, budget)) as left,
        closing(_Devices(tested, arguments, left.result, budget)) as devices,
    ):
        meshes = tuple(module_meshes(reference.module).values())
        comparison = _SpreadComparison(left, devices.execution(), devices.recordings, meshes)
        return divergence_of(comparison, outputs, budget)


class _Devices:
    """One recorded run of a partitioned program.

    Args:
        program: partitioned.
        arguments: global ones.
        expected: the reference's result.
        budget: how much is kept of each device.

    Attributes:
        recordings: one per device.
    """

    def __init__(self, program: Program, arguments: Sequence[Value], expected: Value, budget: Budget) -> None:
        try:
            self._flat: Flattened = flatten_calls(program.module)
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self._program = program
        self._arguments = arguments
        self._expected = expected
        self._graph = Graph(self._flat.module)
        self._budget = budget
        self.recordings: list[Recording] = []

    def execution(self) -> Execution:
        """The run, with the recording of the first device."""
        recorders: list[Recorder] = []

        def probes(devices: Sequence[Sequence[Value]]) -> list[Probe | None]:
            recorders.extend(Recorder(self._graph, self._budget) for _ in devices)
            for recorder, own in zip(recorders, devices):
                record_sources(recorder, self._graph, own)
            return list(recorders)

        began = time.monotonic()
        result = self._run(probes)
        seconds = time.monotonic() - began
        self.recordings = [recorder.recording for recorder in recorders]
        flat = self._flat
        return Execution(
            self._program.module,
            flat.module,
            flat.originals,
            False,
            self.recordings[0],
            result,
            self._again,
            seconds,
        )

    def close(self) -> None:
        """Give back what was stored outside of memory."""
        for recording in self.recordings:
            recording.store.close()

    def _again(self, limit: float) -> Value:
        return self._run(lambda devices: [Deadline(limit) for _ in devices])

    def _run(self, probes: Any) -> Value:
        runner = self._program.compiled_by(_Probing(self._flat.module, probes))
        value: Value = runner.run(self._arguments, self._expected).value
        return value


class _Probing:
    """A backend that executes a flattened copy in place of what it is given, with a probe on each device."""

    name = _BACKEND
    version = _BACKEND

    def __init__(self, copy: Module, probes: Any) -> None:
        self._copy = copy
        self._probes = probes
        self._executable: DevicesExecutable | None = None

    def compile(self, module: Module) -> Any:
        """See `Backend`; this one is for several devices."""
        raise Unsupported("a program for one device")

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """See `DevicesBackend`."""
        self._executable = get_devices_backend(_BACKEND).compile_devices(self._copy, grid)
        return self

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """See `DevicesExecutable`."""
        assert self._executable is not None
        return self._executable.run_devices(arguments, self._probes(arguments))


class _SpreadComparison(Comparison):
    """Compares what all devices hold with the reference's global values."""

    def __init__(
        self,
        reference: Execution,
        tested: Execution,
        recordings: Sequence[Recording],
        meshes: Sequence[Mesh],
    ) -> None:
        self._recordings = recordings
        self._meshes = meshes
        super().__init__(reference, tested)

    def has_bits(self, node: Instruction, iteration: Iteration, digest: bytes) -> bool:
        """Whether every device holds these bits."""
        samples = (recording.samples.get(node, {}).get(iteration) for recording in self._recordings)
        return all(sample is not None and sample.digest == digest for sample in samples)

    def tested_value(self, node: Instruction, iteration: Iteration, expected: Array | None) -> Array | None:
        """The global value that the devices hold parts or copies of."""
        found = [recording.value(node, iteration) for recording in self._recordings]
        parts = [part for part in found if part is not None]
        if expected is None or len(parts) < len(found):
            return None
        if parts[0].shape == expected.shape:
            same = all(np.array_equal(parts[0], part) for part in parts[1:])
            return parts[0] if same else None
        try:
            sharding = infer_sharding(parts, expected, self._meshes)
            return assemble(parts, expected.shape, sharding)[0]
        except (ValueError, HlotoolError):
            return None
