"""Whether a fault shows on the compiler at hand: what is said, and of how many programs compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bisection import bisected, changed_copy, tasks_in, workers

from hlotool.replay.options import RunOptions
from hlotool.search.bisection.records import CulpritRecord, TriggerRecord
from hlotool.search.bisection.trigger import compiler_name, try_culprits
from hlotool.search.steps import Steps
from hlotool.workers.pool import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers() as started:
        yield started


@pytest.fixture(scope="module")
def planted(pool: Pool, corpus: Path) -> CulpritRecord:
    """A fault that no compiler has."""
    [culprit] = bisected(corpus / "planted/model_fn_opcode", pool).culprits
    return culprit


def tried(culprit: CulpritRecord, folder: Path, backend: str) -> CulpritRecord:
    culprits = [culprit]
    try_culprits(culprits, tasks_in(folder), backend, RunOptions(), Steps())
    [found] = culprits
    return found


def trigger(culprit: CulpritRecord, folder: Path, backend: str) -> TriggerRecord:
    found = tried(culprit, folder, backend).trigger
    assert found is not None
    return found


def test_what_no_compiler_does_wrong_does_not_trigger(planted: CulpritRecord, corpus: Path) -> None:
    """The reference is a compiler that has no fault: three forms of the program are tried, no more."""
    found = trigger(planted, corpus / "planted/model_fn_opcode", "numpy:flush")
    assert (found.status, found.reason) == ("does not trigger", "")
    assert found.compiler.endswith("(flush)")
    assert 1 <= found.judged <= 3


@pytest.mark.xla
def test_real_xla_does_not_do_what_was_planted(planted: CulpritRecord, corpus: Path) -> None:
    found = trigger(planted, corpus / "planted/model_fn_opcode", "xla")
    assert str(found).startswith("does not trigger on XLA 0.")
    assert found.judged <= 3


def test_without_a_compiler_the_reason_is_told(planted: CulpritRecord, corpus: Path) -> None:
    found = trigger(planted, corpus / "planted/model_fn_opcode", "xla:python=/bin/false")
    assert found.status == "not checked"
    assert str(found).startswith("not checked on XLA: ")
    assert found.reason


def test_a_dump_of_another_platform_is_not_tried(
    planted: CulpritRecord, corpus: Path, tmp_path: Path
) -> None:
    changed_copy(corpus / "planted/model_fn_opcode", tmp_path, lambda _, text: text)
    [last] = tmp_path.glob("*.cpu_after_optimizations.txt")
    last.rename(last.with_name(last.name.replace("cpu_", "sm_9.0_gpu_")))
    found = trigger(planted, tmp_path, "numpy")
    assert found.status == "not checked"
    assert found.reason == "the dump is of a GPU, the compiler here is for a CPU"
    assert found.judged == 0


def test_compilers_are_called_as_their_trackers_know_them() -> None:
    assert compiler_name("jaxlib 0.10.2", "xla") == "XLA 0.10.2"
    assert compiler_name("jaxlib 0.6.2 (python=/x)", "xla:python=/x") == "XLA 0.6.2"
    assert compiler_name("jaxlib 0.6.2 (opt=0)", "xla:opt=0") == "XLA 0.6.2 (opt=0)"
