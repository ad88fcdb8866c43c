"""Which stages are compared with which."""

from __future__ import annotations

import pytest

from hlotool.errors import UsageError
from hlotool.runs.task import select_stages
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage


def stage(label: str, kind: Kind = Kind.PASS, platform: str = "") -> Stage:
    return Stage(kind, label, platform, text=Source(f"m.{label}.txt"))


BEFORE = stage("before_optimizations", Kind.BEFORE_OPTIMIZATIONS)
ALGSIMP = stage("simplification.after_algsimp.before_dce")
FUSION = stage("fusion.after_fusion.before_pipeline-end")
CPU = stage("cpu_after_optimizations", Kind.AFTER_OPTIMIZATIONS, "cpu")
GPU = stage("sm_9.0_gpu_after_optimizations", Kind.AFTER_OPTIMIZATIONS, "sm_9.0_gpu")
EARLY_GPU = stage(
    "sm_9.0_gpu_after_optimizations_before_buffer_assignment", Kind.AFTER_OPTIMIZATIONS, "sm_9.0_gpu"
)


def module(*stages: Stage) -> DumpModule:
    return DumpModule(0, "jit_f", stages=stages)


def test_before_against_after() -> None:
    chosen = select_stages(module(BEFORE, ALGSIMP, FUSION, CPU))
    assert (chosen.reference, chosen.tested) == (BEFORE, (CPU,))


def test_every_platform_is_tested() -> None:
    assert select_stages(module(BEFORE, CPU, GPU)).tested == (CPU, GPU)


def test_the_last_stage_of_a_platform_is_what_runs() -> None:
    assert select_stages(module(BEFORE, EARLY_GPU, GPU)).tested == (GPU,)


def test_a_compilation_that_did_not_finish_is_tested_as_far_as_it_came() -> None:
    assert select_stages(module(BEFORE, ALGSIMP, FUSION)).tested == (FUSION,)


def test_one_stage_has_nothing_to_be_compared_with() -> None:
    chosen = select_stages(module(CPU))
    assert (chosen.reference, chosen.tested) == (CPU, ())


def test_no_stage() -> None:
    chosen = select_stages(module())
    assert (chosen.reference, chosen.tested) == (None, ())


@pytest.mark.parametrize(
    ("patterns", "reference", "tested"),
    [
        (["before_*", "*algsimp*"], BEFORE, (ALGSIMP,)),
        (["before_optimizations", "*"], BEFORE, (ALGSIMP, FUSION, CPU)),
        (["*algsimp*", "*fusion*", "cpu_*"], ALGSIMP, (FUSION, CPU)),
        (["*fusion*"], FUSION, ()),
        (["*"], BEFORE, (ALGSIMP, FUSION, CPU)),
    ],
)
def test_patterns(patterns: list[str], reference: Stage, tested: tuple[Stage, ...]) -> None:
    chosen = select_stages(module(BEFORE, ALGSIMP, FUSION, CPU), patterns)
    assert (chosen.reference, chosen.tested) == (reference, tested)


def test_an_extracted_fusion_is_no_stage_of_the_program() -> None:
    cut = stage("gemm_fusion_0.dot", Kind.FUSION)
    dumped = DumpModule(0, "jit_f", stages=(BEFORE, GPU), others=(cut,))
    assert select_stages(dumped, ["*"]).tested == (GPU,)
    assert select_stages(dumped, ["gemm_fusion*"]).reference == cut


def test_a_pattern_without_a_stage_names_those_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"no stage matches --stages 'gpu_\*'; it has: before_optimizations, cpu"
    ):
        select_stages(module(BEFORE, CPU), ["before*", "gpu_*"])
