"""`bisect`, `reduce`, `extract` and `repro` on the command line."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.records import without

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.interface.report.json_schema import FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((FOLDER / f"{name}-1.json").read_text(encoding="utf-8")))
    return found


def test_bisect_names_pass_line_and_repro(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus / "planted/model_fn_opcode")
    assert main(["bisect", path, "--try-on", "none"]) == ExitCode.MISMATCH
    shown = capsys.readouterr()
    for part in ("✗ pass fusion", "jax_programs.py:25", "%mul.0", "before", "after", "differ as well"):
        assert part in shown.out
    assert re.search(r"step 1  before_optimizations  identical  \d", shown.err)
    last = shown.out.strip().splitlines()[-1]
    assert last == "next: hlotool repro verify hlotool-repro/1.module_0000.jit_model_fn"
    assert main(last.split()[2:]) == ExitCode.MISMATCH
    assert "still fails, in the same way" in capsys.readouterr().out


def test_bisect_prints_one_record(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(corpus / "planted/cumulative_window"), "--json", "--no-repro"]) == 1
    found = record("bisect", capsys)
    [culprit] = found["culprits"]
    assert (culprit["level"], culprit["pass"], culprit["confirmed"]) == ("pass", "cse", True)
    assert "reduce_window_max.0" in culprit["instructions"]
    assert found["exit_code"] == ExitCode.MISMATCH
    assert not Path("hlotool-repro").exists()


def test_the_record_of_a_module_leads_to_its_bundle(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus / "planted/cumulative_window")
    assert main(["bisect", path, "--json", "--try-on", "none"]) == ExitCode.MISMATCH
    found = record("bisect", capsys)
    [culprit] = found["culprits"]
    [module] = found["modules"]
    assert module["bundle"] == culprit["repro"] == module["culprits"][0]["repro"]
    assert Path(module["bundle"], "repro.toml").is_file()
    assert culprit["trigger"]["reason"] == "--try-on none"


def test_bisect_of_a_healthy_dump_accuses_nobody(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(corpus / "jax/model_fn"), "-q"]) == ExitCode.AGREE
    assert capsys.readouterr().out.startswith("0 culprits · 1 healthy module")


def test_a_folder_that_cannot_be_written_hides_nothing(
    corpus: Path, scratch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (scratch / "file").write_text("", encoding="utf-8")
    path = str(corpus / "planted/model_fn_opcode")
    arguments = ["bisect", path, "-q", "--try-on", "none", "--repro", str(scratch / "file" / "x")]
    assert main(arguments) == ExitCode.MISMATCH
    shown = capsys.readouterr()
    assert "✗ pass fusion" in shown.out
    assert "no repro bundle" in shown.err


def test_bisect_without_dumps_of_passes_says_how_to_get_them(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(corpus / "planted/slices_off_by_one")
    assert main(["bisect", path, "-q", "--no-repro"]) == ExitCode.MISMATCH
    assert "--xla_dump_hlo_pass_re=.*" in capsys.readouterr().out


def test_nothing_to_bisect_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(tmp_path / "nothing")]) == ExitCode.USAGE
    assert main(["bisect", str(tmp_path / "nothing"), "--json"]) == ExitCode.USAGE
    assert "nothing" in capsys.readouterr().err


def check_script(folder: Path) -> Path:
    script = folder / "fails.sh"
    script.write_text('#!/bin/sh\ngrep -q "tanh(" "$1" && exit 1\nexit 0\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def test_reduce_with_a_command(corpus: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = check_script(scratch)
    path = str(corpus / "jax/dynamic_rnn")
    assert main(["reduce", path, "--check", str(script), "--repro", "bundle", "--json"]) == 1
    found = record("reduce", capsys)
    assert found["instructions_after"] == 1
    assert "tanh" in Path("dynamic_rnn.reduced.hlo").read_text(encoding="utf-8")
    assert Path("dynamic_rnn.reduced.npz").exists()
    assert "tanh" not in Path(found["passing"]).read_text(encoding="utf-8")
    assert main(["repro", "verify", "bundle", "--json"]) == ExitCode.NOTHING_COMPARED
    assert "--trust" in record("repro", capsys)["bundles"][0]["reason"]
    assert main(["repro", "verify", "bundle", "--trust", "--json"]) == ExitCode.MISMATCH
    assert record("repro", capsys)["bundles"][0]["same"]


def test_reduce_needs_to_know_what_fails(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(corpus / "jax/dynamic_rnn")]) == ExitCode.USAGE
    assert "--backend NAME" in capsys.readouterr().err
    assert main(["reduce", str(corpus / "jax/dynamic_rnn"), "--check", "true"]) == ExitCode.USAGE
    assert "does not fail" in capsys.readouterr().err


def test_extract_writes_a_program_and_its_inputs(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus / "planted/model_fn_opcode")
    arguments = ["extract", path, "add_reduce_fusion", "--stage", "cpu_after_optimizations"]
    assert main([*arguments, "--json"]) == ExitCode.AGREE
    found = record("extract", capsys)
    assert found["parameters"] == ["x.1", "y.1", "z.1"]
    assert main(arguments) == ExitCode.AGREE
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("next: hlotool run ")
    assert main(last.split()[2:]) == ExitCode.NOTHING_COMPARED


def killed_and_resumed(arguments: list[str], moment: float | None, cache: Path) -> tuple[str, str, int]:
    """Kill a command after `moment` seconds or its first finished step, and run it again to the end.

    Returns:
        what the first run logged before it was killed, empty when it had come to its end by then; the log of
        the second; its exit code.
    """
    environment = os.environ | {"HLOTOOL_CACHE": str(cache)}
    command = [sys.executable, "-m", "hlotool", *arguments]
    first = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    begun = b""
    if moment is None:
        assert first.stderr is not None
        while not steps_in(begun.decode()):
            begun += first.stderr.readline()
    else:
        time.sleep(moment)
    first.send_signal(signal.SIGKILL)
    shown, rest = first.communicate()
    # With its record on stdout it may forget its steps, however long it takes to end after that.
    log = b"" if shown.endswith(b"\n") else begun + rest
    again = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, timeout=300)
    return log.decode(), again.stderr.decode() + "\n" + again.stdout.decode(), again.returncode


def steps_in(log: str) -> list[tuple[str, bool]]:
    """What each finished step was about, and whether it was known already."""
    found = re.findall(r"^  step \S+  (.*)  (\S+)$|^  step \S+  (.*)  (\d.*) s$", log, re.MULTILINE)
    return [(a or c, b == "known") for a, b, c, _ in found]


def survives_kills(arguments: list[str], moments: Sequence[float | None], scratch: Path) -> None:
    whole = subprocess.run(
        [sys.executable, "-m", "hlotool", *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"HLOTOOL_CACHE": str(scratch / "whole")},
        capture_output=True,
        timeout=300,
    )
    expected = json.loads(whole.stdout)
    for number, moment in enumerate(moments):
        before, after, code = killed_and_resumed(arguments, moment, scratch / str(number))
        found = json.loads(after.strip().splitlines()[-1])
        assert code == whole.returncode
        assert without(found) == without(expected)
        finished = steps_in(before)
        resumed = steps_in(after)
        # What the first run finished, the second one knew.
        assert resumed[: len(finished)] == [(text, True) for text, _ in finished], moment


def test_a_killed_bisection_goes_on(corpus: Path, scratch: Path) -> None:
    arguments = ["bisect", str(corpus / "planted/train_mnist_mlp_constant"), "--json", "--no-repro"]
    survives_kills(arguments, [None, 1.0], scratch)


@pytest.mark.slow
def test_bisections_killed_at_random_moments_go_on(corpus: Path, scratch: Path) -> None:
    draw = random.Random(7)
    moments = [draw.uniform(0.5, 6) for _ in range(20)]
    arguments = ["bisect", str(corpus / "planted/int8_dot_rounding"), "--json", "--no-repro", "--jobs", "1"]
    survives_kills(arguments, moments, scratch)


@pytest.mark.slow
def test_reductions_killed_at_random_moments_go_on(corpus: Path, scratch: Path) -> None:
    script = check_script(scratch)
    draw = random.Random(8)
    moments = [draw.uniform(0.5, 5) for _ in range(20)]
    program, output = str(corpus / "jax/dynamic_rnn"), str(scratch / "small.hlo")
    arguments = ["reduce", program, "--check", str(script), "--json", "-o", output, "--jobs", "1"]
    survives_kills(arguments, moments, scratch)


def test_what_a_dump_cannot_show_is_said(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All stages of this one agree; the code that XLA makes of its fusion in place is wrong."""
    folder = str(corpus / "miscompiles/shifted_update_in_place")
    for command in ("run", "bisect"):
        assert main([command, folder]) == ExitCode.AGREE
        shown = capsys.readouterr()
        assert "code generation and run-time libraries are not in a dump" in shown.out.splitlines()[-1]
        assert "%dynamic_update_slice.2 overwrites what slice %slice.0 reads" in shown.err
        assert "fusion-in-place" in shown.err


def test_a_known_result_is_not_asked_for(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = corpus / "jax/model_fn"
    known = ["--inputs", str(folder / "inputs.npz"), "--outputs", str(folder / "outputs.npz")]
    for command in ("run", "bisect"):
        assert main([command, str(folder), *known]) == ExitCode.AGREE
        assert "not in a dump" not in capsys.readouterr().out
