"""Whether a rewrite preserves results: programs before and after it, on the reference, by our own verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import evaluate_constant
from hlotool.errors import ElidedConstant, InputError
from hlotool.facts.dataflow import join_leaves, leaf_facts
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.types import TupleShape
from hlotool.ir.verifier import verify, verify_or_raise
from hlotool.judge.comparison import Comparison, compare_values
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.manager import PassManager
from hlotool.rewrite.passes.pipeline import parse_pipeline
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import load_stage

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


def modules(*folders: str) -> Iterator[tuple[str, Module]]:
    """Every module of the corpus folders that parses and verifies, with its name.

    Of dumps with all passes only what is before and after them: the stages in between are alike.
    """
    for folder in folders:
        for path in sorted((CORPUS / folder).iterdir()):
            dump = open_dump(path)
            for owner in dump.modules:
                for stage in (s for s in (*owner.stages, *owner.others) if s.kind is not Kind.PASS):
                    try:
                        module = load_stage(owner, stage, may_compile=False)
                        verify_or_raise(module)
                    except (ElidedConstant, InputError):
                        continue
                    yield (
                        f"{path.relative_to(CORPUS)}:{owner.number}:{stage.title}",
                        module,
                    )


def rewrite(module: Module, pipeline: str) -> tuple[Module, PassManager]:
    """A rewritten copy; every pass is verified."""
    copy = clone_module(module).module
    manager = PassManager(Context(evaluate=evaluate_constant))
    manager.run(copy, parse_pipeline(pipeline))
    return copy, manager


class Program:
    """A module with its results on generated inputs.

    Args:
        module: verified.

    Raises:
        Unsupported: the reference cannot run it.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.devices = module.replica_count * module.num_partitions if is_per_device(module) else 1
        self.inputs = [generate_inputs(module, seed).values for seed in range(self.devices)]
        self.results = self.run(module)

    def run(self, module: Module) -> tuple[Any, ...]:
        """The result of `module` on each device."""
        if self.devices == 1:
            return (NumpyBackend().compile(module).run(self.inputs[0]),)
        grid = DeviceGrid(module.replica_count, module.num_partitions)
        return tuple(NumpyBackend().compile_devices(module, grid).run_devices(self.inputs))

    def compare(self, other: Module) -> Comparison:
        """The verdict over `other`, which takes the same inputs."""
        facts = join_leaves(leaf_facts(self.module), leaf_facts(other)) * self.devices
        shapes = [TupleShape((m.entry.root.shape,) * self.devices) for m in (self.module, other)]
        return compare_values(shapes[0], self.results, self.run(other), actual_shape=shapes[1], facts=facts)


def check(program: Program, pipeline: str, *, exact: bool = True) -> PassManager:
    """Assert that `pipeline` preserves the results, and gives what can be printed, read and verified.

    Args:
        program: to be rewritten.
        pipeline: as on the command line.
        exact: every bit must stay; otherwise rounding may differ.
    """
    rewritten, manager = rewrite(program.module, pipeline)
    text = rewritten.to_text()
    read = parse_module(text)
    assert verify(read) == []
    assert read.to_text() == text
    comparison = program.compare(read)
    allowed = {Verdict.IDENTICAL, Verdict.NOT_COMPARABLE} | (set() if exact else {Verdict.AGREE})
    assert comparison.verdict in allowed, comparison.reason
    return manager
