"""Whether a fault shows on the compiler at hand: what is said, and of how many programs compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.bisection import Here, bisected, changed_copy, tasks_in, written_dump
from support.odd_compiler import ENTRY
from support.reduction import PlantedJudge, holds

import hlotool
from hlotool.backends.registry import BUILT_IN
from hlotool.blame.bisection.compiler import compiler_name
from hlotool.blame.bisection.records import CulpritRecord, TriggerRecord
from hlotool.blame.bisection.trigger import RightWithout, try_culprits
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.oracle import asked_afresh
from hlotool.blame.repro.bundle import write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.blame.steps import Steps
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.system.executor import Limits


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real XLA has a process of its own; what asks it needs none in these tests."""
    monkeypatch.setattr("hlotool.blame.bisection.trigger.Pool", Here)
    monkeypatch.setattr("hlotool.blame.reduction.oracle.Pool", Here)


@pytest.fixture(scope="module")
def planted(corpus: Path) -> CulpritRecord:
    """A fault that no compiler has."""
    [culprit] = bisected(corpus / "planted/model_fn_opcode", Here()).culprits
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
    assert found.summary.startswith("does not trigger on jaxlib 0.")
    assert found.judged <= 3


def test_without_a_compiler_the_reason_is_told(planted: CulpritRecord, corpus: Path) -> None:
    found = trigger(planted, corpus / "planted/model_fn_opcode", "xla:python=/bin/false")
    assert found.status == "not checked"
    assert found.summary.startswith("not checked on XLA: ")
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


def test_what_fails_only_sometimes_is_not_tried(corpus: Path) -> None:
    flaky = CulpritRecord(module="m", level="flaky")
    found = trigger(flaky, corpus / "planted/model_fn_opcode", "numpy")
    assert (found.status, found.judged) == ("not checked", 0)
    assert "differ from each other" in found.summary


def test_compilers_are_called_as_their_trackers_know_them() -> None:
    assert compiler_name("jaxlib 0.10.2", "xla") == "jaxlib 0.10.2"
    assert compiler_name("jaxlib 0.6.2 (python=/x)", "xla:python=/x") == "jaxlib 0.6.2"
    gpu = "jax-cuda12-pjrt 0.10.2 for NVIDIA H100 80GB HBM3"
    assert compiler_name(gpu, "aot:h100,python=/x") == "jax-cuda12-pjrt 0.10.2 (h100)"
    assert compiler_name("jaxlib 0.6.2 (opt=0)", "xla:opt=0") == "jaxlib 0.6.2 (opt=0)"


#: A pass takes the maximum for the minimum; what the compiler at hand does so for, the sine, stands far away.
GIVEN = """HloModule far
ENTRY main {
  p = f32[16] parameter(0)
  a = f32[16] sine(p)
  b = f32[16] cosine(a)
  c = f32[16] tanh(b)
  half = f32[] constant(0.25)
  many = f32[16] broadcast(half), dimensions={}
  d = f32[16] minimum(c, many)
  e = f32[16] multiply(d, p)
  ROOT r = (f32[16], f32[16]) tuple(e, b)
}
"""


def planted_in(given: str, folder: Path) -> CulpritRecord:
    """The culprit of a dump in which a pass took the maximum for the minimum."""
    dump = written_dump(folder, given, given.replace("minimum(", "maximum("))
    [culprit] = bisected(dump, Here()).culprits
    return culprit


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT_IN, "odd", ENTRY)


@pytest.mark.usefixtures("odd")
def test_the_larger_form_is_taken_where_the_spot_alone_does_not_trigger(tmp_path: Path) -> None:
    culprit = planted_in(GIVEN, tmp_path)
    assert culprit.spot is not None
    assert culprit.spot.around is not None
    assert "sine" not in culprit.spot.around.before
    found = tried(culprit, tmp_path, "odd")
    assert found.trigger is not None
    assert found.trigger.summary == "triggers on odd 1.0"
    assert found.trigger.form == "the program as given"
    opcodes = {i.opcode for i in hlotool.parse(found.minimal).instructions()}
    assert {"sine", "minimum"} <= opcodes <= {"sine", "minimum", "parameter", "constant", "tuple"}
    assert "without algsimp (xla_disable_hlo_passes) its result there is right" in found.evidence


@pytest.mark.usefixtures("odd")
def test_a_bundle_of_it_is_verified_on_that_compiler(tmp_path: Path) -> None:
    found = tried(planted_in(GIVEN, tmp_path), tmp_path, "odd")
    bundle = bundle_of(found, ReplayOptions(), {})
    assert bundle is not None
    assert (bundle.kind, bundle.backend) == ("backend", "odd")
    assert "minimum(" in bundle.pass_before
    write_bundle(bundle, tmp_path / "bundle")
    verified = verify(tmp_path / "bundle")
    assert verified.same
    assert verified.compared == "repro.hlo on odd and on numpy"
    assert verify(tmp_path / "bundle", "numpy").fails is False


@pytest.mark.usefixtures("odd")
def test_a_fault_in_another_output_is_another_fault(tmp_path: Path) -> None:
    """The compiler at hand is right about the minimum here, for there is no sine, and wrong about `ceil`."""
    given = (
        GIVEN.replace("sine(p)", "ceil(p)").replace("cosine(a)", "negate(a)").replace("tanh(b)", "tanh(p)")
    )
    found = trigger(planted_in(given, tmp_path), tmp_path, "odd")
    assert found.status == "does not trigger"
    assert "fails in another way" in found.reason


def test_what_is_wrong_without_the_accused_pass_too_is_no_smaller_form_of_its_fault() -> None:
    wrong, spared = PlantedJudge(holds("minimum")), PlantedJudge(holds("minimum", "ceil"))
    cases = [
        Case(hlotool.parse(f"HloModule m\nENTRY e {{ p = f32[] parameter(0) {text} }}"), (np.float32(1),))
        for text in (
            "ROOT m = f32[] minimum(p, p)",
            "c = f32[] ceil(p) ROOT m = f32[] minimum(p, c)",
            "ROOT c = f32[] ceil(p)",
        )
    ]
    answers = {n: outcome.answer for n, outcome in RightWithout(wrong, spared).run(cases)}
    assert answers == {0: Answer.BAD, 1: Answer.UNUSABLE, 2: Answer.GOOD}


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize(
    ("right_below", "size", "told"),
    [(0, 3, 0), (5, 8, 1), (100, 3, 2)],
    ids=["fails", "the larger one fails", "none fails"],
)
def test_the_program_to_file_fails_in_a_process_of_its_own(
    right_below: int, size: int, told: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without earlier programs in its process a compiler that reads what they left may be right."""

    def afresh(case: Case, options: ReplayOptions, limits: Limits) -> CaseOutcome:
        return (
            CaseOutcome(answer=Answer.GOOD)
            if case.size < right_below
            else asked_afresh(case, options, limits)
        )

    monkeypatch.setattr("hlotool.blame.reduction.oracle.asked_afresh", afresh)
    found = tried(planted_in(GIVEN, tmp_path), tmp_path, "odd")
    assert found.reduced_instructions == size
    said = [line for line in found.evidence if "only where others had run in the same process" in line]
    assert len(said) == told
