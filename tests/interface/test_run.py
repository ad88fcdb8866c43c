"""`hlotool run`: outputs, exit codes, bad input, interruption."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.budget import HUNG, processor_budget, slowness
from support.programs import BROKEN, DOUBLE, PAIR, SQUARE, SUM, UNKNOWN_CALL, write_module
from support.shell import Shell, seconds_of_children

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("run", "run-1.json", capsys)


def test_agreement(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    write_module(dump, 2, PAIR, PAIR, "jit_g")
    assert run(dump) == ExitCode.AGREE
    assert "module_0000.jit_f" in run.out
    assert "2 results: 2 identical" in run.out
    # How many extra sets fit into the time is a matter of the machine.
    inputs = r"inputs generated with seed 0(, .* extra input sets.*)?; reference numpy"
    assert re.search(f"checked with: {inputs}", run.out)
    assert "next:" not in run.out
    assert run.error == ""


def test_a_difference_and_the_next_command(run: Shell, dump: Path, tmp_path: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    write_module(dump, 1, DOUBLE, SQUARE, "jit_g")
    assert run(dump) == ExitCode.MISMATCH
    assert "model.py:7" in run.out
    assert "4 of 4 (100 %) elements outside the rounding range" in run.out
    assert run.out.splitlines()[-1].startswith(f"next: hlotool bisect {dump} --only ")
    assert run(dump, "--verbose") == ExitCode.MISMATCH
    last = run.out.splitlines()[-1]
    assert last.startswith(f"next: hlotool run {dump} --save-outputs hlotool-outputs")
    command = shlex.split(last)[2:]
    command[command.index("hlotool-outputs")] = str(tmp_path / "saved")
    assert main(command) == ExitCode.MISMATCH
    shown = run.capsys.readouterr().out
    assert "module_0000.jit_f" not in shown
    saved = sorted(path.name for path in (tmp_path / "saved").rglob("*.npy"))
    assert saved == ["out.actual.npy", "out.expected.npy"]
    assert "--seed 1" in shown.splitlines()[-1]


def test_arguments_that_lie_in_the_dump_are_named(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    np.savez(dump / "inputs.npz", x=np.ones(4, np.float32))
    assert run(dump) == ExitCode.AGREE
    assert f"{dump / 'inputs.npz'} was not used: --inputs {dump / 'inputs.npz'} does" in run.error
    run(dump, "--inputs", dump / "inputs.npz")
    assert "was not used" not in run.error


def test_json(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SQUARE)
    write_module(dump, 1, DOUBLE, UNKNOWN_CALL, "jit_g")
    record = run.json(dump, "--seed", 3, "--input-range", "-2,2", "--jobs", 1)
    assert record["schema"] == "hlotool.run/1"
    assert record["summary"] == {"unsupported": 1, "wrong": 1}
    assert [m["verdict"] for m in record["modules"]] == ["wrong", "unsupported"]
    assert record["options"]["seed"] == 3
    assert record["options"]["input_range"] == [-2.0, 2.0]
    assert record["versions"]["numpy"]
    assert record["error"] is None
    # What is wrong is named while others run.
    assert [line.split("  ")[:2] for line in run.error.splitlines()] == [
        ["hlotool: ✗ wrong", "module_0000.jit_f"]
    ]


def test_the_same_seed_gives_the_same_record(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SQUARE)
    first, again = (run.json(dump)["modules"][0] for _ in range(2))
    assert first | {"seconds": 0} == again | {"seconds": 0}


def test_one_file_alone(run: Shell, tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(PAIR, encoding="utf-8")
    assert run(path) == ExitCode.NOTHING_COMPARED
    assert "out[0]  s32[]" in run.out
    assert "first   7" in run.out
    assert "to compare:" in run.out


def test_quiet_and_verbose(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    write_module(dump, 1, DOUBLE, SUM, "jit_g")
    assert run(dump, "--quiet") == ExitCode.AGREE
    assert run.out.splitlines()[0].startswith("2 results")
    assert run(dump, "--verbose", "--jobs", 1) == ExitCode.AGREE
    assert "out  f32[4]  ✓ identical" in run.out
    assert run.error.splitlines()[0].startswith("1/2  ✓ identical  module_0000.jit_f")


def test_only(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    write_module(dump, 1, DOUBLE, SQUARE, "jit_g")
    assert run(dump, "--only", "jit_f$") == ExitCode.AGREE
    assert run(dump, "--only", "nothing") == ExitCode.USAGE
    assert "no module matches --only 'nothing'; there are: module_0000.jit_f, module_0001.jit_g" in run.error


def test_stages(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    (dump / "module_0000.jit_f.0001.simplification.after_algsimp.before_dce.txt").write_text(
        SQUARE, encoding="utf-8"
    )
    assert run(dump) == ExitCode.AGREE
    assert run(dump, "--stages", "before_optimizations,*algsimp*") == ExitCode.MISMATCH
    assert run(dump, "--stages", "before_optimizations,*") == ExitCode.MISMATCH
    assert "1 identical · 1 wrong" in run.out


def test_several_paths(run: Shell, dump: Path, tmp_path: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    alone = tmp_path / "alone.hlo"
    alone.write_text(PAIR, encoding="utf-8")
    record = run.json(dump, alone)
    assert [m["verdict"] for m in record["modules"]] == ["identical", "not compared"]


def test_unsupported(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, UNKNOWN_CALL)
    assert run(dump) == ExitCode.NOTHING_COMPARED
    assert "my_kernel" in run.out


def bad_paths(folder: Path) -> Iterator[tuple[str, Path, str]]:
    (folder / "empty").mkdir()
    yield "empty directory", folder / "empty", "empty"
    yield "missing path", folder / "missing", "missing"
    (folder / "binary.hlo").write_bytes(bytes(range(256)) * 20)
    yield "binary garbage", folder / "binary.hlo", "binary.hlo"
    (folder / "broken.hlo").write_text(BROKEN, encoding="utf-8")
    yield "broken text", folder / "broken.hlo", "broken.hlo:"
    (folder / "cut.hlo").write_text(DOUBLE[: len(DOUBLE) // 2], encoding="utf-8")
    yield "truncated text", folder / "cut.hlo", "cut.hlo"
    (folder / "nothing.hlo").write_text("", encoding="utf-8")
    yield "empty file", folder / "nothing.hlo", "nothing.hlo"
    (folder / "cut.hlo.pb").write_bytes(b"\n\x10truncated")
    yield "truncated proto", folder / "cut.hlo.pb", "cut.hlo.pb"
    (folder / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08\x00garbage")
    yield "broken archive", folder / "cut.tar.gz", "cut.tar.gz"


def test_bad_input_is_one_clear_line(run: Shell, tmp_path: Path) -> None:
    for what, path, name in bad_paths(tmp_path):
        with processor_budget(5):
            assert run(path) == ExitCode.USAGE, what
        assert run.out == "", what
        lines = run.error.splitlines()
        assert lines[0].startswith("hlotool: error: "), what
        assert name in lines[0], what
        assert len(lines) == 1 or lines[-1].strip() == "^", what
        record = run.json(path)
        assert record["exit_code"] == ExitCode.USAGE, what


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(run: Shell, tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(DOUBLE, encoding="utf-8")
    path.chmod(0)
    assert run(path) == ExitCode.USAGE
    assert "ermission" in run.error


def test_a_broken_module_among_others_does_not_hide_them(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, BROKEN)
    write_module(dump, 1, DOUBLE, SUM, "jit_g")
    assert run(dump) == ExitCode.USAGE
    assert "1 identical · 1 bad input" in run.out


_INTERRUPTIBLE = """
import signal, sys
from hlotool.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


def child(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    """A process that Ctrl-C reaches, even when a shell runs the tests in the background."""
    return subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, "run", *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **settings,
    )


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_error(form: list[str], dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    with child(dump, *form) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == ExitCode.AGREE


def endless(name: str) -> str:
    """A program that runs for hours."""
    return f"""HloModule {name}

body {{
  p = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(p, one)
}}

condition {{
  q = s32[] parameter(0)
  limit = s32[] constant(2000000000)
  ROOT c = pred[] compare(q, limit), direction=LT
}}

ENTRY main {{
  zero = s32[] constant(0)
  ROOT w = s32[] while(zero), condition=condition, body=body
}}
"""


def test_a_timeout(run: Shell, dump: Path) -> None:
    write_module(dump, 0, endless("jit_slow"), endless("jit_slow"), "jit_slow")
    write_module(dump, 1, DOUBLE, SUM)
    assert run(dump, "--timeout", 3) == ExitCode.BACKEND_FAILED
    assert "1 identical · 1 timeout" in run.out
    assert (
        run.out.splitlines()[-1] == f"next: hlotool run {dump} --timeout 30 --only '^module_0000\\.jit_slow$'"
    )


def test_a_memory_limit(run: Shell, dump: Path) -> None:
    huge = DOUBLE.replace("[4]", "[2000000000]")
    write_module(dump, 0, huge, huge)
    assert run(dump, "--memory-limit", "3G", "--scale", "never") == ExitCode.BACKEND_FAILED
    assert "numpy: needs more memory than the limit of 3 GiB: " in run.out


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_what_is_finished_and_the_same_command_goes_on(name: str, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    slow = write_module(dump, 1, endless("jit_slow"), None, "jit_slow")
    process = child(dump, "--jobs", 1, "--verbose", "--json")
    assert process.stderr is not None
    assert "1/2" in process.stderr.readline()
    process.send_signal(getattr(signal, name))
    out, error = process.communicate(timeout=HUNG)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in error
    first = json.loads(out)
    assert first["interrupted"]
    assert [m["name"] for m in first["modules"]] == ["module_0000.jit_f"]
    (dump / f"{slow}.before_optimizations.txt").write_text(DOUBLE, encoding="utf-8")
    out, _ = child(dump, "--jobs", 1, "--json").communicate(timeout=HUNG)
    second = json.loads(out)
    assert [m["verdict"] for m in second["modules"]] == ["identical", "not compared"]
    assert second["modules"][0] == first["modules"][0]
    assert not second["interrupted"]
    assert list((Path(os.environ["HLOTOOL_CACHE"]) / "journals").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full disk at hand")
def test_a_report_that_finds_a_full_disk_can_be_had_again(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    # Of another shape: the same program would be answered by the first one's line.
    write_module(dump, 1, DOUBLE.replace("[4]", "[5]"), SUM.replace("[4]", "[5]"), "jit_g")
    command = [sys.executable, "-m", "hlotool", "run", str(dump)]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=HUNG, check=False
        )
    assert ended.returncode == ExitCode.USAGE
    assert ended.stderr == "hlotool: error: standard output: cannot be written: No space left on device\n"
    (journal,) = (Path(os.environ["HLOTOOL_CACHE"]) / "journals").iterdir()
    assert journal.read_text().count("\n") == 2
    assert run(dump) == ExitCode.AGREE
    assert not journal.exists()


def test_three_quick_interruptions_are_one(dump: Path) -> None:
    write_module(dump, 0, endless("jit_slow"), None, "jit_slow")
    write_module(dump, 1, endless("jit_slower"), None, "jit_slower")
    process = child(dump, "--jobs", 1, "--log", "debug")
    assert process.stderr is not None
    assert any("task 0" in line for line in process.stderr)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, error = process.communicate(timeout=HUNG)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in error
    assert out.splitlines()[-1] == f"next: hlotool run {dump} --jobs 1"


def test_an_interrupted_report_says_how_to_go_on(dump: Path) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    write_module(dump, 1, endless("jit_slow"), None, "jit_slow")
    process = child(dump, "--jobs", 1, "--verbose", "--timeout", 60)
    assert process.stderr is not None
    assert "1/2" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HUNG)
    assert "1 result: 1 identical" in out
    assert out.splitlines()[-1] == f"next: hlotool run {dump} --timeout 60 --jobs 1"


def test_a_small_program_takes_little_time(tmp_path: Path) -> None:
    """0.4 s of wall time on an idle machine. Processor time is what other work does not change."""
    path = tmp_path / "small.hlo"
    path.write_text(DOUBLE, encoding="utf-8")
    used = []
    for _ in range(3):
        before = seconds_of_children()
        child(path).communicate(timeout=HUNG)
        used.append(seconds_of_children() - before)
    # Twice what it needs without compiled bytecode.
    assert min(used) < 2.0 * slowness()


def test_two_programs_side_by_side_may_be_one_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule f\nENTRY e {{ p = {0} parameter(0) ROOT r = {0} {1} }}\n"
    for name, kind, made in (("a", "f32[4]", "add(p, p)"), ("b", "f32[4]", "negate(p)")):
        (tmp_path / f"{name}.hlo").write_text(text.format(kind, made))
    assert main(["run", str(tmp_path)]) == ExitCode.NOTHING_COMPARED
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"next: hlotool prove {tmp_path}/a.hlo {tmp_path}/b.hlo"
    assert main(shlex.split(last)[2:]) == ExitCode.MISMATCH
    (tmp_path / "b.hlo").write_text(text.format("f32[5]", "add(p, p)"))
    main(["run", str(tmp_path)])
    assert "next:" not in capsys.readouterr().out
