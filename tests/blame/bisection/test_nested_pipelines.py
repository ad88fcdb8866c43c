"""Passes that run a pipeline of their own: what the first dump of that pipeline is blamed on.

The names are those that jaxlib 0.10.2 gives the dumps of a program for eight devices, some of them left out.
"""

from __future__ import annotations

import re

import pytest

from hlotool.blame.bisection.passes import Turn
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump

NAMES = (
    "before_optimizations",
    "0000.async-collective.after_pipeline-start.before_async-collective-replacer",
    "0001.spmd-partitioner.after_pipeline-start.before_flatten-call-graph",
    "0002.spmd-partitioner.after_shardy-xla.before_spmd-partitioning",
    "0003.spmd-cleanup.after_pipeline-start.before_dce",
    "0004.spmd-cleanup.after_dce.before_tuple-simplifier",
    "0005.spmd-cleanup.after_cse.before_pipeline-end",
    "0006.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter",
    "0007.SubbytePacker_pipeline.after_pipeline-start.before_sub-byte-size-setter",
    "0008.HLO_passes_through_layout_assignment.after_pipeline-start.before_batched_gather_scatter_normalizer",
    "0009.simplification.after_pipeline-start.before_algsimp",
    "0010.simplification.after_reshape-mover.before_constant_folding",
    "0011.simplification.after_pipeline-start.before_algsimp",
    "0012.simplification.after_reshape-mover.before_constant_folding",
    "0013.HLO_passes_through_layout_assignment.after_simplification.before_select_and_scatter_expander",
    "0014.copy-insertion.after_adding_special-case_copies",
    "0015.HLO_passes_after_layout_assignment.after_copy-insertion.before_small-while-loop-hoisting",
    "0016.HLO_passes_after_scheduling.after_pipeline-start.before_apply-xla-transforms",
    "cpu_after_optimizations",
)

#: The last right stage and the first wrong one, as positions; the pass, its pipeline.
TURNS = [
    # Nothing ran before the first pipeline, as far as dumps tell.
    (0, 1, "", "async-collective"),
    # The partitioner rewrites the program, and only then runs the pipeline that cleans up.
    (3, 4, "spmd-partitioning", "spmd-partitioner"),
    (4, 5, "dce", "spmd-cleanup"),
    (6, 7, "spmd-partitioning", "spmd-partitioner"),
    # A pipeline among the passes of another one does nothing before it begins: the pass before it is named.
    (9, 10, "batched_gather_scatter_normalizer", "HLO_passes_through_layout_assignment"),
    # A second round of the same pipeline is not inside of the first.
    (11, 12, "constant_folding", "simplification"),
    (13, 14, "simplification", "HLO_passes_through_layout_assignment"),
    (14, 15, "copy-insertion", ""),
]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("dump")
    for name in NAMES:
        (folder / f"module_0000.jit_f.{name}.txt").write_text("HloModule jit_f\n")
    [module] = open_dump(folder).modules
    titles = [re.sub(r"^\d{4}\.", "", name) for name in NAMES]
    assert [stage.title for stage in module.stages] == titles
    return Task(module, ReplayOptions())


@pytest.mark.parametrize(("good", "bad", "name", "pipeline"), TURNS)
def test_the_pass_around_a_pipeline_is_named(
    good: int, bad: int, name: str, pipeline: str, task: Task
) -> None:
    [found] = turn(task, good, bad).candidates
    assert (found.name, found.pipeline) == (name, pipeline)


def test_all_that_ran_between_is_a_candidate(task: Task) -> None:
    names = [candidate.name for candidate in turn(task, 3, 7).candidates]
    assert names == ["spmd-partitioning", "dce", "cse", "spmd-partitioning"]


def turn(task: Task, good: int, bad: int) -> Turn:
    comparison = ModuleRecord(path="", name="", verdict=Verdict.WRONG)
    return Turn(task, 0, good, bad, comparison, confirmed=True)
