"""What makes two failures one fault, and what an answer about a program is called."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseOutcome, CaseQuestion, failure_of
from hlotool.blame.repro.texts import issue_text
from hlotool.errors import KernelFault, Unsupported
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Kind, Tally
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.lab.fuzz import confirmation
from hlotool.lab.fuzz.attribution import Blame, Deadline, LimitedJudge, OutOfTime, fault_bundle
from hlotool.lab.fuzz.campaign import counted
from hlotool.lab.fuzz.confirmation import kind_of
from hlotool.lab.fuzz.known import families_of, is_same, key_of
from hlotool.lab.fuzz.oracle import FLAKY, Question, _ended, judge_meant, judge_program, patient
from hlotool.lab.fuzz.triage import Settings, Triage
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions, RunOptions


def fault(*opcodes: str, level: str = "pass", pass_name: str = "algsimp") -> FaultRecord:
    return FaultRecord(
        status="new",
        kind="wrong",
        key=f"{level} {pass_name} {opcodes}",
        level=level,
        pass_name=pass_name,
        cure=[pass_name] if pass_name else [],
        work=[*opcodes],
    )


def test_faults_of_one_pass_are_one_where_the_work_of_one_is_in_the_other() -> None:
    assert is_same(fault("slice"), fault("slice", "add"))
    assert not is_same(fault("slice", "pad"), fault("slice", "add"))
    assert not is_same(fault("slice"), fault("slice", pass_name="cse"))
    # Programs that only move values share nothing that could be told apart.
    assert not is_same(fault(), fault("slice"))


def test_deaths_in_one_line_of_the_compiler_are_one_fault() -> None:
    words = "BackendCrashed: the process died of SIGABRT: partitioner.cc:# Check failed: maps.size() == #"
    one, other = (
        replace(fault(*work, "bitcast-convert"), kind="crashed", signature=words)
        for work in (("clamp", "all-gather"), ("dot", "slice"))
    )
    assert is_same(one, other)
    assert not is_same(one, replace(other, pass_name="cse"))
    assert not is_same(one, replace(other, work=["dot", "slice"]))
    alone = "BackendCrashed: the process died of SIGSEGV"
    assert not is_same(*(replace(each, signature=alone) for each in (one, other)))


def test_what_is_folded_wrongly_is_one_fault_whatever_makes_its_operands() -> None:
    padded, turned = (
        replace(fault(*work, pass_name="constant_folding"), signature="wrong: value of convolution")
        for work in (("pad", "convolution"), ("transpose", "convolution"))
    )
    assert is_same(padded, turned)
    assert not is_same(padded, replace(turned, signature="wrong: value of dot"))
    assert not is_same(*(replace(one, signature="wrong") for one in (padded, turned)))
    assert not is_same(*(replace(one, pass_name="algsimp") for one in (padded, turned)))


def test_what_no_gpu_defines_is_a_failure() -> None:
    fault = KernelFault("bounds", "accesses 4 bytes out of bounds", "k")
    judged = _ended(fault, "gpu-ptx:h100", "plain", b"")
    assert judged.kind == kind_of(failure_of(fault)) == "crashed"


def test_maps_that_are_composed_have_no_order_on_gpus() -> None:
    """Threads of GPUs combine elements that are no neighbours; processors do so in order."""
    text = """HloModule m
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  p = s32[] multiply(a, c)
  q = s32[] multiply(c, b)
  r = s32[] add(q, d)
  ROOT t = (s32[], s32[]) tuple(p, r)
}
ENTRY e {
  x = s32[3] parameter(0)
  y = s32[3] parameter(1)
  one = s32[] constant(1)
  zero = s32[] constant(0)
  ROOT z = (s32[], s32[]) reduce(x, y, one, zero), dimensions={0}, to_apply=f
}
"""
    said = [
        judge_program(Question(text, ReplayOptions(backend=backend)))
        for backend in ("cuda-emu", "gpu-ptx:h100")
    ]
    assert "the order of a reduce is open" not in said[0].reason
    assert said[1].kind == "unjudged"
    assert "the order of a reduce is open" in said[1].reason


def test_what_is_frequent_is_cured_without_its_pass() -> None:
    """Only where all of its operations are there, and there are passes that can be left out."""
    text = "HloModule m\nENTRY e {\n  x = s32[3] parameter(0)\n  ROOT r = s32[3] negate(x)\n}\n"
    settings = Settings(RunOptions(backend="xla"), Path("nowhere"))
    often = replace(fault("negate"), number=1, count=2, backend="xla")
    others = (
        replace(often, count=1),
        replace(often, work=["negate", "slice"]),
        replace(often, families=["negate of floating"]),
        replace(often, families=["negate of signed, narrow"]),
        replace(often, pass_name="", cure=[]),
        replace(often, backend="numpy"),
    )
    assert Triage(settings, [*others]).cures(parse_module(text)) == ()
    module = parse_module(text)
    assert families_of(module, ["negate"]) == ["negate of signed"]
    for same in (often, replace(often, families=["negate of signed"])):
        assert Triage(settings, [*others, same]).cures(module) == ("xla:disable=algsimp",)
    code = replace(often, level="codegen", pass_name="", cure=["gemm-rewriter", "cse"])
    assert Triage(settings, [*others, code]).cures(module) == ("xla:disable=gemm-rewriter+cse",)


def death(words: str, *opcodes: str, pass_name: str = "") -> FaultRecord:
    failure = Signature(kind="BackendCrashed", words=words)
    level = "pass" if pass_name else "import"
    blame = Blame(level=level, pass_name=pass_name)
    outcome = CaseOutcome(answer=Answer.BAD, failure=failure)
    return FaultRecord(
        status="new",
        kind="crashed",
        key=key_of("crashed", outcome, blame, opcodes),
        signature=str(failure),
        level=level,
        pass_name=pass_name,
        cure=[pass_name] if pass_name else [],
        work=[*opcodes],
    )


def test_code_that_packs_has_faults_of_its_own() -> None:
    """An update of two bits with the wrong neighbours is no update in place that reads what it wrote."""
    narrow, wide = "dynamic-update-slice of signed, narrow", "dynamic-update-slice of signed"
    bits = replace(fault("convert", "dynamic-update-slice", level="codegen", pass_name=""), families=[narrow])
    again = replace(fault("dynamic-update-slice", level="codegen", pass_name=""), families=[narrow])
    shifted = replace(again, families=[wide, "slice of signed, narrow"])
    assert is_same(bits, replace(again, key="other"))
    assert not is_same(bits, shifted)
    of_a_pass = [replace(found, level="pass", pass_name="algsimp") for found in (bits, shifted)]
    assert is_same(*of_a_pass)


def test_deaths_are_one_where_words_pass_and_work_are() -> None:
    """A signal alone says nothing of what died: two of them are two faults where other work was done."""
    assert is_same(death("SIGFPE", "remainder"), death("SIGFPE", "remainder", "add"))
    assert not is_same(death("SIGFPE", "remainder"), death("SIGFPE", "reduce-window"))
    assert not is_same(death("SIGFPE", "remainder"), death("SIGFPE", "remainder", pass_name="algsimp"))
    assert not is_same(death("SIGFPE", "remainder"), death("SIGSEGV", "remainder"))


def test_deaths_are_one_whatever_the_rank_of_the_shapes_that_they_name() -> None:
    """Words end at some length, so that those with the longer shapes say less."""
    said = "context [hlo verifier]: Expected instruction to have shape equal to {}, actual shape is {}"
    long, short = said.format("#[#,#,#]", "#[#,#,#"), said.format("#[#]", "#[#,#]: # = #")
    assert is_same(death(long, "bitcast-convert"), death(short, "bitcast-convert"))
    assert not is_same(
        death(long, "bitcast-convert"), death(short.replace("actual", "other"), "bitcast-convert")
    )
    assert not is_same(death("SIGABRT", "pad"), death("SIGABRT: Check failed", "pad"))


@pytest.mark.parametrize(
    ("answer", "failure", "kind"),
    [
        (Answer.GOOD, None, "agree"),
        (Answer.UNUSABLE, None, "unjudged"),
        (Answer.BAD, Signature(kind="wrong with NaN"), "wrong"),
        (Answer.BAD, Signature(kind="structural"), "wrong"),
        (Answer.BAD, Signature(kind="BackendCrashed", words="died"), "crashed"),
        (Answer.BAD, Signature(kind="BackendTimeout"), "hang"),
        (Answer.BAD, FLAKY, "nondeterministic"),
    ],
)
def test_kinds(answer: Answer, failure: Signature | None, kind: Kind) -> None:
    assert kind_of(CaseOutcome(answer=answer, failure=failure)) == kind


@pytest.mark.parametrize(
    ("kind", "by_others", "asked", "problem"),
    [
        ("f32", Answer.GOOD, 2, "not by other perturbed executions: near"),
        ("f32", Answer.BAD, 4, "Unsupported: made small"),
        ("s32", Answer.GOOD, 1, "Unsupported: made small"),
    ],
)
def test_what_is_rounded_is_wrong_by_every_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by_others: Answer, asked: int, problem: str
) -> None:
    """Where nothing is rounded nothing is drawn, and it is asked for again once."""
    seeds: list[int] = []

    def answered(case: object, options: RunOptions, kind: Kind) -> CaseOutcome:
        seeds.append(options.seed)
        answer = Answer.BAD if options.seed == 5 else by_others
        return CaseOutcome(answer=answer, failure=Signature(kind="wrong"), reason="near")

    def made_small(*given: object) -> object:
        raise Unsupported("made small")

    monkeypatch.setattr(confirmation, "asked_again", answered)
    monkeypatch.setattr(Triage, "_reduced", made_small)
    path = tmp_path / "m.hlo"
    opcode = "tanh" if kind == "f32" else "negate"
    path.write_text(
        f"HloModule m\nENTRY e {{\n  c = {kind}[] constant(3)\n  ROOT r = {kind}[] {opcode}(c)\n}}\n"
    )
    failure = FailureRecord(index=0, kind="wrong", backend="numpy", program=str(path))
    found = Triage(Settings(RunOptions(seed=5), tmp_path)).look_into(failure)
    assert seeds == [5, 6, 7, 8][:asked]
    assert (found.status, found.problems) == ("unconfirmed", [problem])


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ("wrong wrong", "Unsupported: made small"),
        ("wrong agree", "not a second time, in a fresh process: GOOD"),
        ("agree", "not a second time, in a fresh process: GOOD"),
        ("nondeterministic", "Unsupported: made small"),
    ],
)
def test_runs_that_differed_may_be_wrong_alike_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str, problem: str
) -> None:
    """As where memory is read that nobody wrote; what is wrong then is so twice, and made small as that."""
    outcomes = {
        "wrong": CaseOutcome(answer=Answer.BAD, failure=Signature(kind="wrong")),
        "agree": CaseOutcome(answer=Answer.GOOD, reason="GOOD"),
        "nondeterministic": CaseOutcome(answer=Answer.BAD, failure=FLAKY),
    }
    left = [outcomes[word] for word in answers.split()]
    kinds: list[Kind] = []

    def made_small(self: object, loaded: object, options: object, kind: Kind, problems: object) -> object:
        kinds.append(kind)
        raise Unsupported("made small")

    monkeypatch.setattr(confirmation, "asked_again", lambda *_: left.pop(0))
    monkeypatch.setattr(Triage, "_reduced", made_small)
    path = tmp_path / "m.hlo"
    path.write_text("HloModule m\nENTRY e {\n  c = s32[] constant(3)\n  ROOT r = s32[] negate(c)\n}\n")
    failure = FailureRecord(index=0, kind="nondeterministic", backend="numpy", program=str(path))
    found = Triage(Settings(RunOptions(), tmp_path)).look_into(failure)
    assert left == []
    assert (found.status, found.problems) == ("unconfirmed", [problem])
    assert kinds == ([answers.split()[0]] if "made small" in problem else [])


def test_a_backend_is_not_waited_for_unless_the_user_says_how_long() -> None:
    assert patient("xla:opt=0") == "xla:opt=0,timeout=30"
    assert patient("xla:timeout=5") == "xla:timeout=5"
    assert patient("numpy") == "numpy"


class Never:
    """A judge that must not be asked."""

    name, width = "never", 2

    def run(self, cases: object) -> object:
        raise AssertionError


def test_a_judge_whose_time_is_over_calls_nothing_a_failure() -> None:
    judge = LimitedJudge(Never(), 0.0)  # type: ignore[arg-type]
    outcomes = dict(judge.run([None, None]))  # type: ignore[list-item]
    assert {outcome.answer for outcome in outcomes.values()} == {Answer.UNUSABLE}
    assert len(outcomes) == 2
    assert judge.is_over


def test_a_search_ends_with_its_time() -> None:
    Deadline(1000.0).step("", "", 0.0, False)
    over = Deadline(0.0)
    time.sleep(0.01)
    with pytest.raises(OutOfTime):
        over.phase("")


def test_reasons_are_counted_without_names_and_numbers() -> None:
    from hlotool.lab.fuzz.oracle import Judged

    tally = Tally()
    for number in (1, 22):
        judged = Judged(kind="refused", reason=f"%add.{number}: no such thing as f{number}")
        tally = counted(tally, "graph", ["add"], judged)
    assert tally.refused == {"·: no such thing as ·": 2}
    assert (tally.drawn, tally.accepted, tally.words) == (2, 0, [])


@pytest.mark.parametrize(
    ("body", "window", "kind"),
    [
        ("ROOT s = s32[] add(a, b)", "size=2", "agree"),
        ("ROOT s = s32[] copy(b)", "size=2", "unjudged"),
        ("ROOT s = s32[] add(a, b)", "size=2 stride=2 pad=1_0", "unjudged"),
    ],
)
def test_an_order_that_is_open_decides_nothing(body: str, window: str, kind: Kind) -> None:
    """Two windows choose the same element: what is scattered there last depends on the order.

    Which of two equal elements is chosen does, too, and XLA has another one where windows are padded.
    """
    text = f"""HloModule m
ge {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT p = pred[] compare(a, b), direction=GE
}}
scatter {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  {body}
}}
ENTRY e {{
  x = s32[3] parameter(0)
  y = s32[2] parameter(1)
  z = s32[] constant(0)
  ROOT r = s32[3] select-and-scatter(x, y, z), window={{{window}}}, select=ge, scatter=scatter
}}"""
    options = ReplayOptions(backend="opt:passes=simplify")
    assert judge_program(Question(text, options)).kind == kind


@pytest.mark.parametrize(("root", "answer"), [("r", Answer.GOOD), ("a", Answer.UNUSABLE)])
def test_a_smaller_program_has_to_mean_something(root: str, answer: Answer) -> None:
    """A reduction may take the operation out of a reducer: the order then decides which argument is left."""
    text = f"""HloModule m
or {{
  {"ROOT " * (root == "a")}a = s32[] parameter(0)
  b = s32[] parameter(1)
  {"ROOT " * (root == "r")}r = s32[] or(a, b)
}}
ENTRY e {{
  x = s32[1,2] parameter(0)
  z = s32[] constant(0)
  ROOT r = s32[2] reduce(x, z), dimensions={{0}}, to_apply=or
}}"""
    options = ReplayOptions(backend="opt:passes=simplify")
    found = judge_meant(CaseQuestion(text, (np.array([[4, 2]], np.int32),), options))
    assert found.answer is answer


@pytest.mark.parametrize(
    ("opcode", "start", "kind"),
    [
        ("add", 0, "agree"),
        ("add", 1, "unjudged"),
        ("and", -1, "agree"),
        ("and", 1, "unjudged"),
        ("maximum", -2147483648, "agree"),
        ("maximum", 1, "unjudged"),
        ("multiply", 1, "agree"),
    ],
)
@pytest.mark.parametrize("by", ["reduce(x, z), dimensions={0}", "reduce-window(x, z), window={size=40}"])
def test_how_often_a_reduction_begins_decides_nothing(by: str, opcode: str, start: int, kind: Kind) -> None:
    """XLA combines with the initial value in each part of a reduction, or nowhere; padding is one, too."""
    text = f"""HloModule m
f {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] {opcode}(a, b)
}}
ENTRY e {{
  x = s32[40] parameter(0)
  z = s32[] constant({start})
  ROOT r = s32[{1 if "window" in by else ""}] {by}, to_apply=f
}}"""
    options = ReplayOptions(backend="opt:passes=simplify")
    assert judge_program(Question(text, options)).kind == kind


def test_what_lies_behind_the_end_of_a_result_is_no_question() -> None:
    text = """HloModule m
ENTRY e {
  x = s32[4] parameter(0)
  n = s32[] constant(2)
  ROOT r = s32[<=4] set-dimension-size(x, n), dimensions={0}
}"""
    options = ReplayOptions(backend="opt:passes=simplify")
    assert judge_program(Question(text, options)).reason == "the size of a result is known at run time only"


@pytest.mark.parametrize(
    ("backend", "kind"), [("opt:passes=simplify", "agree"), ("opt:passes=none", "refused")]
)
def test_what_another_set_up_refuses_is_not_refused(backend: str, kind: Kind) -> None:
    text = "HloModule m\nENTRY e {\n  x = s32[4] parameter(0)\n  ROOT r = s32[4] negate(x)\n}"
    question = Question(text, ReplayOptions(backend=backend), variant="opt:passes=none")
    assert judge_program(question).kind == kind


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("xla", "**Triggers on jaxlib 0.10.2.**"),
        ("xla:disable=algsimp", "**Triggers on jaxlib 0.10.2 (disable=algsimp).**"),
        ("opt:passes=cse", ""),
    ],
)
def test_the_issue_of_a_death_says_which_compiler_dies(backend: str, said: str) -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n  x = s32[3] parameter(0)\n  ROOT r = s32[3] negate(x)\n}\n"
    )
    outcome = CaseOutcome(answer=Answer.BAD, failure=Signature(kind="BackendCrashed", words="SIGFPE"))
    options = RunOptions(backend=backend)
    versions = {"backend": "jaxlib 0.10.2"}
    case = Case(module, (np.zeros(3, np.int32),))
    bundle = fault_bundle(death("SIGFPE", "negate"), case, None, Blame(), outcome, options, versions)
    text = issue_text(bundle)
    assert (said in text) if said else ("Triggers" not in text)
