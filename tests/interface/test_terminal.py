"""The report for people, as golden texts of 100 columns without colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence

import msgspec
import pytest
from support import run_records as samples

from hlotool.interface.report.console import console_for, plain_text, render
from hlotool.interface.report.listings import BackendTable
from hlotool.interface.report.next_command import command_after_run as next_command
from hlotool.interface.report.records import BackendRecord, BackendsRecord, RunRecord
from hlotool.interface.report.terminal import RunReport
from hlotool.judge.records import NonFiniteRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import SourceRecord

WIDTH = 100


def many() -> list[ModuleRecord]:
    return [samples.agreeing(f"module_{i:04d}.jit_f") for i in range(3)] + [
        samples.differing(f"module_{i:04d}.jit_g") for i in range(3, 8)
    ]


RUNS: dict[str, tuple[RunRecord, bool, bool]] = {
    "mixed": (samples.mixed(), False, False),
    "mixed_quiet": (samples.mixed(), True, False),
    "mixed_verbose": (samples.mixed(), False, True),
    "explained": (samples.explained(), False, False),
    "explained_verbose": (samples.explained(), False, True),
    "alone": (samples.run([samples.alone()]), False, False),
    "one_agrees": (samples.run([samples.agreeing("module_0000.jit_f")]), False, False),
    "one_differs": (samples.run([samples.differing("module_0000.jit_f")]), False, False),
    "one_crashed": (samples.run([samples.crashed("module_0000.jit_f")]), False, False),
    "all_agree": (samples.run(many()[:3]), False, False),
    "all_agree_quiet": (samples.run(many()[:3]), True, False),
    "many_differ": (samples.run(many()), False, False),
    "interrupted": (samples.run(many()[:2], interrupted=True), False, False),
    "user_tolerance": (samples.run(many()[:2], options=RunOptions(rtol=1e-3)), False, False),
}


@pytest.mark.parametrize("name", RUNS)
def test_report(name: str, golden: Callable[[str, str], None]) -> None:
    run, quiet, verbose = RUNS[name]
    golden(f"report/{name}.txt", plain_text(RunReport(run, quiet, verbose), WIDTH))


def test_no_line_but_the_next_command_exceeds_the_terminal() -> None:
    lines = plain_text(RunReport(samples.mixed()), 80).splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("next: "))


def test_without_a_terminal_nothing_is_folded_or_cut() -> None:
    text = plain_text(RunReport(samples.mixed()))
    assert (
        "module_0002.a_inference_train_mnist_76__XlaMustCompile_true_config_proto_13561_executor_type.6"
        in text
    )
    assert "…" not in text.splitlines()[2]
    assert not any(line.endswith(" ") for line in text.splitlines())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal_unless_unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    report = RunReport(samples.mixed())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31m" in render(console_for(Terminal(), WIDTH), report)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in render(console_for(Terminal(), WIDTH), report)
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in render(console_for(io.StringIO(), WIDTH), report)


def test_backends(golden: Callable[[str, str], None]) -> None:
    backends = [
        BackendRecord(
            name="cuda", available=False, reason="pycuda is not installed: pip install hlotool[cuda]"
        ),
        BackendRecord(name="numpy", available=True, version="numpy 2.4.6", device="cpu"),
    ]
    golden("report/backends.txt", plain_text(BackendTable(BackendsRecord(backends=backends)), WIDTH))


def test_failures_that_are_alike_are_one_cause() -> None:
    rows = [
        samples.unsupported("a.jit_f", "custom-call.3", 12),
        samples.unsupported("b.jit_g", "custom-call.9", 7),
    ]
    lines = plain_text(RunReport(samples.run([*rows, samples.agreeing("c")]))).splitlines()
    assert lines[0].startswith("? unsupported ×2  ")
    assert lines[1].strip().startswith("in a.jit_f (dump/a.jit_f.before_optimizations.txt:12), b.jit_g (")


def test_failures_that_differ_are_two_causes() -> None:
    text = plain_text(RunReport(samples.run([samples.crashed("a"), samples.timed_out("b")])))
    assert "! crashed  " in text
    assert "! timeout  " in text


def test_many_causes_are_cut_and_say_so() -> None:
    rows = [samples.crashed(f"m{i}") for i in range(2)]
    rows += [samples.module(f"n{i}", Verdict.UNSUPPORTED, reason=f"lacks {'x' * i}") for i in range(20)]
    run = samples.run(rows)
    assert "9 more causes (--verbose, or with a search --html FILE)" in plain_text(RunReport(run))
    assert "more cause" not in plain_text(RunReport(run, verbose=True))


def test_many_that_agree_are_a_number() -> None:
    run = samples.run([samples.agreeing(f"m{i}") for i in range(60)] + [samples.differing("bad")])
    text = plain_text(RunReport(run))
    assert text.startswith("✗ wrong  bad")
    assert "✓ 60 results agree (--verbose lists them)" in text
    assert "m17" not in text
    assert "m17" in plain_text(RunReport(run, verbose=True))


def command(modules: Sequence[ModuleRecord], verbose: bool = False, **options: object) -> str:
    return next_command(samples.run(modules, options=RunOptions(**options)), verbose)


def test_the_next_command_after_a_difference_finds_who_did_it() -> None:
    rows = [samples.agreeing("module_0000.jit_f"), samples.differing("module_0001.jit_g")]
    assert command(rows) == r"hlotool bisect dump --only '^module_0001\.jit_g$'"


def test_the_next_command_after_all_details_saves_the_values() -> None:
    rows = [samples.agreeing("module_0000.jit_f"), samples.differing("module_0001.jit_g")]
    assert command(rows, verbose=True) == (
        r"hlotool run dump --save-outputs hlotool-outputs --only '^module_0001\.jit_g$' --verbose"
    )


def test_chosen_stages_are_looked_at_more_closely() -> None:
    assert command([samples.differing("m")], stages=("a", "b")) == (
        "hlotool run dump --stages a,b --save-outputs hlotool-outputs --verbose"
    )


def test_one_module_needs_no_choice() -> None:
    made = msgspec.structs.replace(samples.GENERATED, seed=3)
    row = msgspec.structs.replace(samples.differing("m"), inputs=made)
    assert command([row], seed=3, input_range=(-1.0, 1.0), save_outputs="out") == (
        "hlotool bisect dump --seed 3 --input-range=-1,1"
    )


def test_the_next_command_has_the_inputs_that_were_taken() -> None:
    """Those of the options made nothing but NaN."""
    made = msgspec.structs.replace(samples.GENERATED, seed=2, input_range=(0.125, 1.0))
    row = msgspec.structs.replace(samples.differing("m"), inputs=made)
    assert command([row]) == "hlotool bisect dump --seed 2 --input-range=0.125,1"


def test_when_everything_is_on_the_table_other_inputs_come_next() -> None:
    assert command([samples.differing("m")], verbose=True, save_outputs="out") == (
        "hlotool run dump --seed 1 --save-outputs out"
    )


def test_a_timeout_suggests_more_time() -> None:
    assert command([samples.timed_out("m")]) == "hlotool run dump --timeout 3000"


def test_no_time_is_enough_for_an_endless_loop() -> None:
    assert command([samples.endless("m")]) == ""
    assert "--timeout 3000" in command([samples.endless("m"), samples.timed_out("n")])


def test_lack_of_memory_suggests_more_memory_and_one_process() -> None:
    assert command([samples.out_of_memory("m")], memory_limit=8 << 30) == (
        "hlotool run dump --memory-limit 32G --jobs 1"
    )


def test_a_crash_suggests_the_whole_log() -> None:
    assert command([samples.crashed("m")]) == "hlotool run dump --verbose"


def test_an_interrupted_run_goes_on_with_the_same_command() -> None:
    run = samples.run(
        [], interrupted=True, options=RunOptions(only="f", stages=("a*", "b"), memory_limit=5_000_000)
    )
    assert (
        next_command(run, verbose=False) == "hlotool run dump --stages 'a*,b' --memory-limit 5000000 --only f"
    )


def test_what_cancellations_left_is_counted() -> None:
    row = samples.judged(Verdict.ROUNDING, "cancellation: terms of 0.03 cancel to 0", cancelled=8)
    other = samples.judged(Verdict.ROUNDING, "rounding explains it")
    text = plain_text(RunReport(samples.run([row, other])))
    assert "1 of 2 outputs is in part nothing but rounding error" in " ".join(text.split())
    assert "terms cancel" not in plain_text(RunReport(samples.run([other])))


def test_the_next_command_where_values_say_nothing_asks_about_the_programs() -> None:
    row = samples.judged(Verdict.UNSTABLE, "too sensitive to judge")
    assert command([row]).startswith("hlotool prove ")


def test_nothing_to_do_when_all_is_well() -> None:
    assert command([samples.agreeing("m"), samples.alone("n")]) == ""


def test_the_terminal_width_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    text = render(console_for(Terminal()), RunReport(samples.run([samples.differing("m")])))
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line) for line in text.splitlines() if "next: " not in line) <= 70


def test_what_makes_a_nan_is_said_where_results_are_not_shown_in_full() -> None:
    source = SourceRecord(instruction="d", opcode="divide", file="f.py", file_line=7)
    made = NonFiniteRecord(kind="NaN", source=source, text="%d = f32[] divide(%x, %y)")
    rows = [samples.module(name, Verdict.IDENTICAL, origins=[made]) for name in ("jit_f", "jit_g")]
    lines = [
        line for line in plain_text(RunReport(samples.run(rows)), 120).splitlines() if "first NaN" in line
    ]
    assert lines == ["first NaN of jit_f: f.py:7  %d = f32[] divide(%x, %y)"]
