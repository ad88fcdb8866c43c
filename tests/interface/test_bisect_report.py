"""How bisections and reductions read on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hlotool.blame.bisection.records import (
    BisectedModule,
    CandidateRecord,
    CulpritRecord,
    SpotRecord,
    Verification,
)
from hlotool.errors import ExitCode
from hlotool.interface.report.bisect import BisectReport, ReduceReport, VerifyReport
from hlotool.interface.report.command_records import (
    BisectRecord,
    ReduceRecord,
    VerifyRecord,
    bisect_exit_code,
    verify_exit_code,
)
from hlotool.interface.report.console import plain_text
from hlotool.interface.report.next_command import command_after_bisect as next_command
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import SourceRecord

SOURCE = SourceRecord(
    instruction="mul.0",
    opcode="add",
    line=30,
    op_name="jit(f)/mul",
    file="/home/user/model.py",
    file_line=25,
    function="f",
)
HEADER = "HloModule m\n\nENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {\n"
PARAMETERS = "  %x = f32[4]{0} parameter(0)\n  %y = f32[4]{0} parameter(1)\n"


def program(opcode: str) -> str:
    return f"{HEADER}{PARAMETERS}  ROOT %mul.0 = f32[4]{{0}} {opcode}(%x, %y)\n}}\n"


def culprit(**changes: object) -> CulpritRecord:
    fields: dict[str, object] = {
        "module": "module_0000.jit_f",
        "level": "pass",
        "pass_name": "algsimp",
        "pipeline": "simplification",
        "candidates": [CandidateRecord(name="algsimp", pipeline="simplification", stage="after_algsimp")],
        "stage": "simplification.after_algsimp.before_dce",
        "stage_before": "simplification.after_pipeline-start.before_algsimp",
        "signature": "wrong: value of add",
        "instructions": ["constant.1", "mul.0"],
        "opcodes": ["constant", "add"],
        "place": ["body of while %loop, iteration 3", "fusion %f"],
        "source": SOURCE,
        "reduced_instructions": 1,
        "repro": "hlotool-repro/1.jit_f",
        "confirmed": True,
        "evidence": ["both asked again: the same answers"],
        "spot": SpotRecord(
            instructions=["mul.0"], opcodes=["add"], before=program("multiply"), after=program("add")
        ),
        "others": ["module_0004.jit_g"],
    }
    return CulpritRecord(**(fields | changes))  # type: ignore[arg-type]


def record(*culprits: CulpritRecord, **changes: object) -> BisectRecord:
    fields: dict[str, object] = {
        "versions": {},
        "paths": ["dump"],
        "options": RunOptions(),
        "culprits": list(culprits),
        "healthy": ["module_0002.jit_h"],
        "comparisons": 17,
        "exit_code": 1,
        "seconds": 2.5,
    }
    return BisectRecord(**(fields | changes))  # type: ignore[arg-type]


def test_a_pass(golden: Callable[[str, str], None]) -> None:
    golden("report/bisect_pass.txt", plain_text(BisectReport(record(culprit())), 120))


def test_several_culprits_and_silent_modules(golden: Callable[[str, str], None]) -> None:
    kernel = culprit(
        level="runtime-library",
        pass_name="",
        pipeline="",
        candidates=[],
        place=[],
        stage="result",
        confirmed=False,
        others=[],
        spot=SpotRecord(instructions=["f"], opcodes=["dot"], after=program("dot")),
        minimal=program("multiply"),
    )
    modules = [
        BisectedModule(name="module_0006.jit_k", path="p", verdict="unsupported", reason="infeed"),
        BisectedModule(
            name="module_0000.jit_f",
            path="p",
            verdict="wrong",
            is_monotonic=False,
            history=["a is right, b is wrong", "b is wrong, c is right", "c is right, d is wrong"],
            culprits=[kernel],
        ),
    ]
    text = plain_text(BisectReport(record(culprit(), kernel, modules=modules)), 120)
    golden("report/bisect_many.txt", text)


def test_quiet_is_one_line_for_each() -> None:
    lines = plain_text(BisectReport(record(culprit(), culprit()), quiet=True)).splitlines()
    assert [line.startswith("✗ culprit") for line in lines] == [True, True, False, False]


def test_the_next_command() -> None:
    assert next_command(record(culprit())) == "hlotool repro verify hlotool-repro/1.jit_f"
    no_dump = culprit(pass_name="", candidates=[CandidateRecord(name="", pipeline="", stage="")])
    assert "--xla_dump_hlo_pass_re=.*" in next_command(record(no_dump))
    # What was dumped need not be dumped again.
    dumped = culprit(pass_name="", candidates=[CandidateRecord(name="", pipeline="spmd", stage="")])
    assert "--xla_dump_hlo_pass_re=.*" not in next_command(record(dumped))
    assert next_command(record(interrupted=True)) == "hlotool bisect dump"
    assert next_command(record()) == ""


def test_what_the_compiler_in_question_dies_of_is_made_small_with_it(tmp_path: Path) -> None:
    """It is the program as given, not what the compiler wrote of it."""
    program = tmp_path / "p.hlo"
    program.touch()
    modules = [
        BisectedModule(name="m", path=str(program), verdict="crashed"),
        BisectedModule(name="m", path=str(tmp_path), verdict="not compiled"),
    ]
    options = RunOptions(backend="aot:v5e,timeout=9")
    found = next_command(record(modules=modules, options=options))
    assert found == f"hlotool reduce {program} --backend aot:v5e,timeout=9"


def test_exit_codes_of_bisections() -> None:
    wrong = BisectedModule(name="m", path="p", verdict="wrong")
    silent = BisectedModule(name="m", path="p", verdict="unsupported")
    assert bisect_exit_code([culprit()], [], []) is ExitCode.MISMATCH
    assert bisect_exit_code([culprit(confirmed=False)], [], []) is ExitCode.INCONCLUSIVE
    assert bisect_exit_code([], [wrong], ["h"]) is ExitCode.INCONCLUSIVE
    judged = BisectedModule(name="m", path="p", verdict="unsupported", judged=3)
    crashed = BisectedModule(name="m", path="p", verdict="crashed")
    assert bisect_exit_code([], [], ["h"]) is ExitCode.AGREE
    assert bisect_exit_code([], [silent], ["h"]) is ExitCode.INCONCLUSIVE
    assert bisect_exit_code([], [judged], []) is ExitCode.INCONCLUSIVE
    assert bisect_exit_code([], [silent], []) is ExitCode.NOTHING_COMPARED
    assert bisect_exit_code([], [crashed], []) is ExitCode.BACKEND_FAILED
    assert bisect_exit_code([], [], []) is ExitCode.NOTHING_COMPARED


def verification(fails: bool | None, same: bool = False) -> Verification:
    return Verification(
        folder="bundle",
        title="algsimp changes the result",
        fails=fails,
        same=same,
        expected="wrong: value of add",
        found="structural" if fails else "",
        reason="as it was",
        comparison=ModuleRecord(path="p", name="n", verdict=Verdict.WRONG) if fails else None,
    )


def test_verifications(golden: Callable[[str, str], None]) -> None:
    bundles = [verification(True, True), verification(True), verification(False), verification(None)]
    record = VerifyRecord(bundles=bundles, exit_code=verify_exit_code(bundles))
    golden("report/repro_verify.txt", plain_text(VerifyReport(record), 80))
    assert verify_exit_code(bundles) is ExitCode.MISMATCH
    assert verify_exit_code(bundles[1:]) is ExitCode.INCONCLUSIVE
    assert verify_exit_code(bundles[2:]) is ExitCode.NOTHING_COMPARED
    assert verify_exit_code(bundles[2:3]) is ExitCode.AGREE
    assert VerifyRecord(bundles=bundles, exit_code=1).schema == "hlotool.repro/1"


def test_a_reduction(golden: Callable[[str, str], None]) -> None:
    reduction = ReduceRecord(
        versions={},
        path="big.hlo",
        options=RunOptions(),
        check="./fails.sh -x",
        failure="bad",
        reason="exit status 1",
        failure_rate=0.25,
        instructions_before=20001,
        instructions_after=1,
        program=program("multiply"),
        output="small.hlo",
        passing="small.passing.hlo",
        programs_judged=86,
        exit_code=1,
        seconds=31.4,
    )
    golden("report/reduce.txt", plain_text(ReduceReport(reduction), 80))
