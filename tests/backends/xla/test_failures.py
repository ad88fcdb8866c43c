"""Whatever XLA does, the caller gets a typed error and can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.disasters import ABORTS, FOR_EVER, GOOD, LARGE, REVERSES

from hlotool.backends.registry import get_backend
from hlotool.backends.xla.process import XlaProcess, key_for, process_environment, shared_process, typed_error
from hlotool.backends.xla.protocol import Setup
from hlotool.errors import (
    BackendCrashed,
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    BackendUnavailable,
    HlotoolError,
    Unsupported,
    UsageError,
)
from hlotool.parser.reader import parse_module

ONES = np.ones(8, np.float32)


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ("JaxRuntimeError: UNIMPLEMENTED: no acos", Unsupported, "XLA: UNIMPLEMENTED: no acos"),
        ("XlaRuntimeError: INVALID_ARGUMENT: a\n b", Unsupported, "XLA: INVALID_ARGUMENT: a b"),
        ("JaxRuntimeError: NOT_FOUND: no target", Unsupported, "NOT_FOUND"),
        ('JaxRuntimeError: UNKNOWN: <unknown>:0: error: loc("y"): op', Unsupported, "UNKNOWN"),
        (
            "XlaRuntimeError: INTERNAL: Generated function failed: No registered implementation for custom "
            "call to lapack_spotrf_ffi for Host.",
            Unsupported,
            "No registered implementation for custom call to lapack_spotrf_ffi",
        ),
        ("JaxRuntimeError: INTERNAL: RET_CHECK failure", BackendCrashed, "INTERNAL: RET_CHECK failure"),
        ("JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory", BackendOutOfMemory, "Out of memory"),
        ("JaxRuntimeError: INVALID_ARGUMENT: No such compile option: 'x'", UsageError, "No such compile"),
        ("WrongFlag: x takes no value like 1", UsageError, "x takes no value like 1"),
        ("Refused: mhlo.unknown", Unsupported, "XLA: mhlo.unknown"),
        ("NotImplementedError: only jaxlib 0.10.2", BackendUnavailable, "only jaxlib 0.10.2"),
        ("TooFewDevices: the program needs 8 devices", BackendUnavailable, "needs 8 devices"),
        (
            "ModuleNotFoundError: No module named 'jaxlib'",
            BackendUnavailable,
            "backend xla needs jaxlib: pip",
        ),
        ("RuntimeError: Unknown backend: 'gpu' requested", BackendUnavailable, "no such device: Unknown"),
        ("ValueError: anything else", BackendCrashed, "ValueError: anything else"),
    ],
)
def test_messages_of_xla_become_typed_errors(message: str, kind: type[HlotoolError], text: str) -> None:
    error = typed_error(BackendCrashed("xla", message, "last lines"))
    assert type(error) is kind
    assert text in str(error)
    if isinstance(error, BackendFailed):
        assert error.log == "last lines"


def test_a_package_that_is_missing_before_the_first_call() -> None:
    log = "Traceback\nModuleNotFoundError: No module named 'msgspec'"
    assert "needs msgspec" in str(typed_error(BackendCrashed("xla", "a worker did not start", log)))


def test_another_interpreter_borrows_msgspec_and_is_named(tmp_path: Path) -> None:
    """It has nothing: the worker starts all the same, and what XLA's child lacks is said with its place."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    python = str(tmp_path / "bin" / "python")
    process = XlaProcess(key_for("cpu", python, 1, 60.0))
    with pytest.raises(BackendUnavailable, match=f"needs numpy in {python}: {python} -m pip install numpy"):
        process.setup()
    process.close()


def test_an_interpreter_that_is_too_old() -> None:
    log = "Traceback\nImportError: hlotool needs Python 3.11 or newer; /env/bin/python is Python 3.9.18"
    error = typed_error(BackendCrashed("xla", "a worker process did not start", log))
    assert type(error) is BackendUnavailable
    assert str(error) == "backend xla: hlotool needs Python 3.11 or newer; /env/bin/python is Python 3.9.18"


def test_a_jaxlib_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(XlaProcess, "setup", lambda self: Setup("0.4.20", "cpu", "cpu", 1))
    with pytest.raises(BackendUnavailable, match=r"needs jaxlib 0\.4\.26 or newer; this is 0\.4\.20"):
        compiled(GOOD)


def test_a_timeout_stays_one() -> None:
    error = BackendTimeout("xla", "no answer")
    assert typed_error(error) is error


def test_the_users_environment_does_not_change_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/somewhere")
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    monkeypatch.setenv("LANG", "C")
    one = process_environment(key_for("cpu", "", 1, None))
    assert "XLA_FLAGS" not in one
    assert "JAX_ENABLE_X64" not in one
    assert one["LANG"] == "C"
    assert process_environment(key_for("cpu", "", 2, None))["XLA_FLAGS"].endswith("device_count=8")
    assert process_environment(key_for("cpu", "", 9, None))["XLA_FLAGS"].endswith("device_count=9")


def compiled(text: str, spec: str = "xla:opt=0") -> Any:
    return get_backend(spec).compile(parse_module(text))


@pytest.mark.xla
def test_a_crash_costs_one_program() -> None:
    good = compiled(GOOD)
    assert good.run([ONES])[0] == 2
    with pytest.raises(BackendCrashed, match=r"died of SIGABRT: .* Invalid binary instruction") as caught:
        compiled(REVERSES)
    assert "compile_stablehlo" in caught.value.log
    assert good.run([ONES])[0] == 2  # compiled once more, in the next process
    assert compiled(GOOD).run([ONES])[0] == 2


@pytest.mark.xla
def test_a_check_of_xla_that_fails_is_quoted() -> None:
    with pytest.raises(BackendCrashed, match=r"died of SIGABRT: \S+\.\w+:\d+ Check failed: "):
        compiled(ABORTS, "xla:route=pre")


@pytest.mark.xla
def test_a_hang_ends_in_time() -> None:
    spec = "xla:opt=0,timeout=4"
    executable = compiled(FOR_EVER, spec)
    with pytest.raises(BackendTimeout, match="no answer within 4 s"):
        executable.run([np.int32(0)])
    assert compiled(GOOD, spec).run([ONES])[0] == 2


@pytest.mark.xla
def test_too_much_memory_is_said_so() -> None:
    with pytest.raises(BackendOutOfMemory, match="100000000000 bytes"):
        compiled(LARGE).run([np.float32(1)])
    assert compiled(GOOD).run([ONES])[0] == 2


def process_id(_: object) -> int:
    return os.getpid()


@pytest.mark.xla
def test_a_process_killed_from_outside_is_replaced() -> None:
    process = XlaProcess(key_for("cpu", "", 1, 60))
    pid = process.call(f"{__name__}:process_id", None, int)
    killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(BackendOutOfMemory, match="killed by SIGKILL from outside"):
        process.call("time:sleep", 30, type(None))
    assert process.call(f"{__name__}:process_id", None, int) != pid
    process.close()


@pytest.mark.xla
def test_an_interrupted_call_leaves_no_answer_behind() -> None:
    process = XlaProcess(key_for("cpu", "", 1, 60))
    pid = process.call(f"{__name__}:process_id", None, int)
    # A shell that starts jobs in the background has them ignore SIGINT.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            process.call("time:sleep", 30, type(None))
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert process.call(f"{__name__}:process_id", None, int) != pid
    process.close()


@pytest.mark.xla
def test_programs_with_the_same_setup_share_a_process() -> None:
    keys = [key_for("cpu", "", devices, 300.0) for devices in (1, 2, 8)]
    assert shared_process(keys[1]) is shared_process(keys[2])
    assert shared_process(keys[0]) is not shared_process(keys[1])


@pytest.mark.xla
def test_a_device_that_is_not_there_is_unavailable() -> None:
    if any(Path("/dev").glob("accel*")):
        pytest.skip("there is a TPU")
    with pytest.raises(BackendUnavailable, match="no such device"):
        get_backend("xla:tpu").compile(parse_module(GOOD))


@pytest.mark.xla
def test_executables_that_nobody_needs_are_released() -> None:
    process = shared_process(key_for("cpu", "", 1, 300.0))
    process.take_released()
    executable = compiled(GOOD)
    del executable
    assert len(process.take_released()) == 1
