"""A stage of a dump, ready to be run on a backend."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hlotool.backends.base import Executable
from hlotool.backends.registry import get_backend
from hlotool.dump.loading import load_stage
from hlotool.dump.records import Capture, DumpModule, Stage
from hlotool.errors import Location, Unsupported
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.numerics.dataflow import Leaves, leaf_facts
from hlotool.replay.trials import captured_program


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled program.

    Attributes:
        label: of its stage.
        path: of its file.
        module: parsed and verified.
        executable: runs it.
        backend: name and version of what runs it.
    """

    label: str
    path: str
    module: Module
    executable: Executable
    backend: str

    @cached_property
    def facts(self) -> Leaves:
        """What each leaf of its result depends on."""
        return leaf_facts(self.module)


def load_program(owner: DumpModule, stage: Stage, backend: str) -> Program:
    """Read, parse, verify and compile a stage.

    Raises:
        DumpError: the file cannot be read.
        InputError: it holds no valid HLO.
        Unsupported: elided constants, several devices, or something the backend cannot execute.
        UsageError: no such backend.
    """
    label = stage.label or stage.kind.value
    return compile_program(label, str(stage.source), load_stage(owner, stage), backend)


def snapshot_program(capture: Capture, backend: str) -> Program:
    """The program inside a captured execution, for dumps that hold nothing else; raises as `load_program`."""
    return compile_program(capture.kind.value, str(capture.source), captured_program(capture), backend)


def compile_program(label: str, path: str, module: Module, backend: str) -> Program:
    """Verify and compile `module`; raises as `load_program`."""
    verify_or_raise(module)
    devices = module.replica_count * module.num_partitions
    if devices > 1:
        reason = f"compiled for {devices} devices; programs of one device are replayed"
        raise Unsupported(reason, location=Location(path))
    engine = get_backend(backend)
    return Program(label, path, module, engine.compile(module), engine.version)
