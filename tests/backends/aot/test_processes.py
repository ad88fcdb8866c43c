"""Compilers that die, hang or are missing, each in a process of its own: one row, with their own words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hlotool.backends.aot import backend as aot
from hlotool.backends.aot import child
from hlotool.backends.aot.options import TARGETS
from hlotool.backends.aot.protocol import LIBRARY, TargetRequest
from hlotool.backends.registry import brief
from hlotool.backends.xla.process import ProcessKey, XlaProcess
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks

pytestmark = pytest.mark.xla


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes that hold compilers hold the stand-in, one for each key."""
    processes: dict[ProcessKey, XlaProcess] = {}

    def process(key: ProcessKey) -> XlaProcess:
        if key not in processes:
            with_it = (*key.preload, "support.dying_compiler")
            processes[key] = XlaProcess(replace(key, preload=with_it))
        return processes[key]

    monkeypatch.setattr(aot, "shared_process", process)
    yield
    for each in processes.values():
        each.close()


def _row(folder: Path, name: str, backend: str) -> ModuleRecord:
    path = folder / "p.hlo"
    path.write_text(f"HloModule {name}\nENTRY e {{ x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }}\n")
    [task] = find_tasks([str(path)], RunOptions(backend=backend), [])
    [row] = replay_module(task)
    return row


@pytest.mark.parametrize(
    ("name", "backend", "verdict", "message"),
    [
        ("says_why", "aot:v5e", "crashed", "died of SIGABRT: rewriter.cc:34 Check failed: operand.IsTuple()"),
        ("SIGSEGV", "aot:h100", "crashed", "the process died of SIGSEGV"),
        ("SIGFPE", "aot:v5e", "crashed", "the process died of SIGFPE"),
        ("SIGKILL", "aot:v5e", "out of memory", "killed by SIGKILL from outside"),
        ("hangs", "aot:v5e,timeout=1", "timeout", "no answer within 1 s; the process was killed"),
        ("other", "aot:v5e", "crashed", "RuntimeError: what to do about other?"),
    ],
)
@pytest.mark.usefixtures("dying")
def test_a_compiler_that_fails_is_one_row_under_its_name(
    name: str, backend: str, verdict: str, message: str, tmp_path: Path
) -> None:
    row = _row(tmp_path, name, backend)
    assert (row.verdict.value, row.leaves) == (verdict, [])
    assert row.error is not None
    assert row.error.message.startswith(f"{brief(backend)}: ")
    assert message in row.error.message


@pytest.mark.usefixtures("dying")
def test_the_next_program_has_a_new_process(tmp_path: Path) -> None:
    errors = [_row(tmp_path, name, "aot:v5e").error for name in ("SIGSEGV", "other")]
    assert ["SIGSEGV" in error.message for error in errors if error] == [True, False]


def test_a_library_that_is_none_is_named(tmp_path: Path) -> None:
    """With the loader's words; nothing is to be installed."""
    library = tmp_path / "libtpu.so"
    library.write_text("no library")
    row = _row(tmp_path, "m", f"aot:v5e,libtpu={library}")
    assert row.verdict.value == "unsupported"
    assert row.error is not None
    assert row.error.message.startswith(f"libtpu={library} cannot be loaded (")


def test_the_version_stands_beside_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where pip installed it; else the number of its build is all that it says."""
    client = SimpleNamespace(platform_version="cl/1")
    device = SimpleNamespace(client=client, device_kind="TPU v0")
    monkeypatch.setattr(child, "_devices", lambda *_: [device])
    (tmp_path / "libtpu").mkdir()
    library = tmp_path / "libtpu" / "libtpu.so"
    monkeypatch.setenv(LIBRARY, str(library))
    target = TargetRequest("tpu", TARGETS["v5e"].topology(1))
    assert child.describe(target).compiler == "libtpu cl/1"
    info = tmp_path / "libtpu-0.0.99.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: libtpu\nVersion: 0.0.99\n")
    assert child.describe(target).compiler == "libtpu 0.0.99"
