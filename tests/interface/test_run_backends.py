"""`hlotool run --reference … --test …`: any two backends, and whatever these do to themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.disasters import ABORTS, FOR_EVER, GOOD, LARGE, REVERSES

from hlotool.backends.xla import options
from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "good.hlo"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


def record_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main(["run", *arguments, "--json"])
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert record["exit_code"] == code
    return record


@pytest.mark.xla
@pytest.mark.parametrize(
    ("reference", "test"), [("numpy", "xla"), ("stablehlo", "xla:disable=algsimp,opt=0")]
)
def test_one_file_and_two_backends(
    reference: str, test: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = record_of(capsys, file, "--reference", reference, "--test", test)
    [row] = record["modules"]
    assert row["verdict"] == "identical"
    _, _, given = test.partition(":")
    assert row["tested"].endswith(f"({given})" if given else row["tested"])
    assert row["reference"] != row["tested"]


def test_one_file_and_one_backend_compares_nothing(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert record_of(capsys, file)["exit_code"] == ExitCode.NOTHING_COMPARED


@pytest.mark.parametrize("side", ["--reference", "--test"])
@pytest.mark.parametrize(
    ("backend", "code", "message"),
    [
        (
            "numpi",
            ExitCode.USAGE,
            "no backend 'numpi'; there are: aot, cuda, cuda-emu, gpu-ptx, iree, numpy, opt, pjrt, stablehlo",
        ),
        ("xla:fast", ExitCode.USAGE, "backend xla has no option 'fast'; it knows: cpu, gpu"),
        ("xla:", ExitCode.USAGE, "'' is not an option"),
        ("xla:opt=9", ExitCode.USAGE, "opt=9 is no level from 0 to 3"),
        ("xla", ExitCode.NOTHING_COMPARED, "backend xla needs jax: pip install 'hlotool[xla]'"),
    ],
)
def test_a_backend_that_cannot_be_is_one_line(
    side: str,
    backend: str,
    code: int,
    message: str,
    file: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    assert main(["run", file, side, backend]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.xla
def test_a_device_that_is_not_there(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = record_of(capsys, file, "--test", "xla:tpu")["modules"]
    assert row["error"]["kind"] == "BackendUnavailable"
    assert row["verdict"] == "unsupported"


#: What must be said of each file, by its name.
DISASTERS = {
    "a_aborts": (ABORTS, "crashed", "xla: the process died of SIGABRT"),
    "b_reverses": (REVERSES, "crashed", "xla: the process died of SIGABRT"),
    "c_good": (GOOD, "identical", ""),
    "d_killed": (FOR_EVER, "out of memory", "killed by SIGKILL from outside"),
    "e_large": (LARGE, "out of memory", "100000000000 bytes"),
    "f_hangs": (FOR_EVER, "timeout", "no answer within 20 s"),
    "g_good": (GOOD, "identical", ""),
}


def workers_of_workers(pid: int) -> set[int]:
    """The processes that hold XLA: grandchildren of the command."""
    return {grandchild for child in children(pid) for grandchild in children(child)}


def children(pid: int) -> set[int]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(word) for file in files for word in file.read_text(encoding="utf-8").split()}


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_when_busy(process: subprocess.Popen[str], finished: threading.Event) -> None:
    """Kill the process that holds XLA as soon as it runs the program after the third."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.lstrip().startswith("3/"):
            break
    [holder] = workers_of_workers(process.pid)
    idle = processor_seconds(holder)
    while processor_seconds(holder) < idle + 2:
        time.sleep(0.05)
    os.kill(holder, signal.SIGKILL)
    finished.set()
    process.stderr.read()


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")
def test_a_directory_of_disasters_is_reported_in_full(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    for name, (text, _, _) in DISASTERS.items():
        (folder / f"{name}.hlo").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "hlotool", "run", str(folder), "--json", "--verbose", "--jobs=1"]
    backends = ["--reference", "xla", "--test", "xla:route=pre", "--timeout", "20"]
    killed = threading.Event()
    with subprocess.Popen(
        [*command, *backends],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        threading.Thread(target=kill_when_busy, args=(process, killed), daemon=True).start()
        assert process.stdout is not None
        record = json.loads(process.stdout.read())
        assert process.wait(timeout=120) == ExitCode.BACKEND_FAILED
    assert killed.is_set()
    rows = {row["name"].removesuffix(".hlo"): row for row in record["modules"]}
    assert set(rows) == set(DISASTERS)
    for name, (_, verdict, reason) in DISASTERS.items():
        assert rows[name]["verdict"] == verdict, name
        assert reason in rows[name]["reason"], name
