"""What the processes of a program do to their flags: only what their XLA knows, each its own folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.capture import stub_of_jaxlib

from hlotool.runs.capture.launch import DumpWishes, environment_of, names_for_xla
from hlotool.runs.capture.process import accepted, merged


def test_flags_are_added_to_those_of_the_user() -> None:
    assert merged("--xla_a=1  --xla_b", ["--xla_c"]) == "--xla_a=1 --xla_b --xla_c"


def test_ours_win_and_what_moves_the_dump_goes() -> None:
    given = "--xla_dump_to=mine --xla_dump_hlo_pass_re=dce --xla_dump_include_timestamp --xla_b"
    assert (
        merged(given, ["--xla_dump_to=ours"], ["--xla_dump_hlo_pass_re=.*"]) == "--xla_b --xla_dump_to=ours"
    )


def test_flags_may_stand_in_a_file(tmp_path: Path) -> None:
    """XLA: parse_flags_from_env.cc, a value that does not begin with `-` is the name of a file."""
    (tmp_path / "flags").write_text("--xla_a\n--xla_b\n")
    assert merged(str(tmp_path / "flags"), ["--xla_c"]) == "--xla_a --xla_b --xla_c"


@pytest.mark.parametrize(
    ("only", "told"),
    [
        (None, ""),
        ("train_step|loss", "train.step|loss"),
        ("^module_0004", ""),  # of the title, which XLA does not know
        ("module", ""),
        ("process_12", ""),
    ],
)
def test_xla_is_told_only_what_means_the_same_there(only: str | None, told: str) -> None:
    assert names_for_xla(only) == told


@pytest.mark.xla
def test_a_flag_that_jaxlib_does_not_know_is_found() -> None:
    """The message is that of the installed jaxlib."""
    wanted = ["--xla_no_such_flag=1", "--xla_dump_large_constants", "--xla_nor_this"]
    assert accepted("jaxlib", wanted, []) == ["--xla_dump_large_constants"]


def test_an_xla_that_does_not_start_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("raise SystemExit('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert accepted("jaxlib", ["--xla_dump_large_constants"], []) is None


def test_a_flag_that_is_fatal_without_a_word_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `--xla_dump_hlo_snapshots` is for TensorFlow 2.21."""
    monkeypatch.setenv("PYTHONPATH", str(stub_of_jaxlib(tmp_path, known=["a", "b", "c"], fatal="b")))
    assert accepted("jaxlib", ["--xla_a", "--xla_b", "--xla_c"], []) == ["--xla_a", "--xla_c"]


def test_an_xla_that_computes_for_ever_is_ended(tmp_path: Path) -> None:
    """By processor time, and no later than the process that asks would be: here after two seconds."""
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("while True: pass")
    source = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (2, 2)); import process; "
        "print(process.accepted('jaxlib', ['--xla_a'], []))"
    )
    capture = Path(__file__).resolve().parents[2] / "hlotool" / "runs" / "capture"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, capture)))}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, env=variables, capture_output=True, encoding="utf-8", timeout=120)
    assert done.stdout.strip() == "None"


def test_a_flag_is_asked_about_once(tmp_path: Path) -> None:
    """The first time it is said; the value of a flag makes it no other one."""
    stub = stub_of_jaxlib(tmp_path / "stub", known=["dump_large_constants", "dump_hlo_pass_re"])
    first = run_below_exec(f"import sys; sys.stderr = sys.stdout; import jaxlib; {SHOW}", tmp_path, stub)
    again = run_below_exec(f"import sys; sys.stderr = sys.stdout; import jaxlib; {SHOW}", tmp_path, stub)
    assert first.startswith("hlotool: asking jaxlib ")
    assert first.endswith(again)


def run_below_exec(source: str, folder: Path, path: Path, **variables: str) -> str:
    """What a program prints that is started as `hlotool exec` starts it."""
    wishes = DumpWishes(folder, passes=True)
    given = {**os.environ, "PYTHONPATH": str(path), "HLOTOOL_CACHE": str(folder / "cache"), **variables}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HLOTOOL_CACHE", str(folder / "cache"))
        environment = environment_of(wishes, given)
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SHOW = "import os, sys; print(os.environ['XLA_FLAGS'].replace(str(os.getpid()), 'PID'))"


def test_flags_are_complete_when_the_package_is_imported(tmp_path: Path) -> None:
    stub = stub_of_jaxlib(tmp_path / "stub", known=["dump_large_constants", "dump_hlo_pass_re"])
    basic = f"--xla_dump_to={tmp_path}/process_PID --xla_dump_hlo_as_text"
    assert run_below_exec(SHOW, tmp_path, stub) == basic
    complete = run_below_exec(f"import jaxlib; {SHOW}", tmp_path, stub)
    assert complete == f"{basic} --xla_dump_large_constants --xla_dump_hlo_pass_re=.*"
    [record] = [json.loads(path.read_text()) for path in tmp_path.glob("process_*.json")]
    assert record["unknown"] == ["--xla_dump_hlo_snapshots"]


def test_a_program_may_set_its_own_flags_first(tmp_path: Path) -> None:
    stub = stub_of_jaxlib(tmp_path / "stub", known=["dump_large_constants"])
    source = f"import os; os.environ['XLA_FLAGS'] = '--xla_mine'; import jaxlib; {SHOW}"
    assert run_below_exec(source, tmp_path, stub).startswith("--xla_mine --xla_dump_to=")


def test_a_child_has_a_folder_of_its_own_and_no_flags_of_another_xla(tmp_path: Path) -> None:
    stub = stub_of_jaxlib(tmp_path / "stub", known=["dump_large_constants"])
    source = f"import jaxlib, subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)"
    shown = run_below_exec(source, tmp_path, stub)
    assert shown == f"--xla_dump_to={tmp_path}/process_PID --xla_dump_hlo_as_text"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_fork_has_a_folder_of_its_own(tmp_path: Path) -> None:
    source = (
        f"import os, sys\nif os.fork(): os.wait()\nelse:\n    {SHOW}\n    sys.stdout.flush()\n    os._exit(0)"
    )
    assert "process_PID" in run_below_exec(source, tmp_path, tmp_path)


def test_the_environments_own_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customized = True")
    shown = run_below_exec("print(customized, __import__('sitecustomize').__file__)", tmp_path, tmp_path)
    assert shown == f"True {tmp_path}/sitecustomize.py"
