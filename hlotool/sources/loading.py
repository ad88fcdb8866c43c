"""From the files of a dump: a stage to a module that can run, a captured execution to its values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hlotool.errors import DumpError, ElidedConstant
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import for_grid, inferred_grid
from hlotool.sources.elided import elided_constants, refill
from hlotool.sources.file_names import Format, Kind
from hlotool.sources.records import Capture, DumpModule, Stage
from hlotool.sources.stages import read_stage

if TYPE_CHECKING:
    from hlotool.parser.proto.executions import Execution


def load_stage(
    owner: DumpModule,
    stage: Stage,
    *,
    may_compile: bool = True,
    may_be_cut: bool = False,
    may_be_elided: bool = False,
) -> Module:
    """Parse a stage and fill in the constants that its text elides.

    Args:
        owner: the dump's module that the stage belongs to.
        stage: one of its stages.
        may_compile: elided constants may be recovered by compiling `module.mlir` again, if jaxlib is
            installed; this takes as long as the compilation.
        may_be_cut: a text that ends too early will do.
        may_be_elided: constants whose values cannot be found may stay without.

    Raises:
        DumpError: the file cannot be read, or its text ends too early.
        HloSyntaxError: its text is not HLO.
        ProtoError: its proto is damaged.
        ElidedConstant: a constant's value is nowhere to be found.
    """
    if (known := owner.programs.get(str(stage.source))) is not None:
        return clone_module(known).module
    module = read_stage(stage, entry=owner.entry)
    if module.cut and not may_be_cut:
        raise DumpError(f"{module.path}: {module.cut}: the rest of the program is missing")
    _give_devices(module, owner)
    module.has_stand_ins = owner.takes_opaque
    if elided_constants(module):
        refill(module, owner, stage, read_stage, _recompile if may_compile else _never)
    if not may_be_elided and (missing := elided_constants(module)):
        if owner.generates_elided is None:
            raise ElidedConstant(missing[0].name, module.location(missing[0]))
        from hlotool.sources.elided import fill_generated

        fill_generated(module, owner, stage, partial(load_stage, owner, may_compile=may_compile))
    return module


def _give_devices(module: Module, owner: DumpModule) -> None:
    """Let the header speak of the devices that the user names, or else of those that collectives speak of."""
    grid = owner.devices or inferred_grid(module)
    if len(grid) > 1 and (module.replica_count, module.num_partitions) != (grid.replicas, grid.partitions):
        module.attributes = for_grid(module, grid).attributes


def _recompile(owner: DumpModule, stage: Stage) -> Module | None:
    from hlotool.sources.elided import recompile

    return recompile(owner, stage)


def _never(owner: DumpModule, stage: Stage) -> Module | None:
    return None


def captured_program(capture: Capture) -> Module:
    """The program inside a captured execution.

    Raises:
        ElidedConstant: XLA had dropped a constant before it wrote the execution.
    """
    module = read_execution(capture).module
    if missing := elided_constants(module):
        raise ElidedConstant(missing[0].name, module.location(missing[0]))
    return module


def read_execution(capture: Capture) -> Execution:
    """Decode a captured execution; raises ProtoError."""
    from hlotool.parser.proto.executions import (
        parse_snapshot,
        parse_unoptimized_snapshot,
        parse_unoptimized_snapshot_text,
    )

    path = str(capture.source)
    if capture.kind is Kind.SNAPSHOT:
        return parse_snapshot(capture.source.read_bytes(), path)
    if capture.format is Format.TEXT_PROTO:
        return parse_unoptimized_snapshot_text(capture.source.read_text(), path)
    return parse_unoptimized_snapshot(capture.source.read_bytes(), path)
