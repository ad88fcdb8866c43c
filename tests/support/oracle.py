"""When real XLA cannot be the judge: it is not there, or it dies of a program on this machine.

XLA is compiled for its processor at run time, and some of what it contains (oneDNN above all) lives on some
processors only. The process that holds the oracle can die of a fault of ours, too. Which of the two it was is
asked of XLA alone, in a process that runs nothing but jaxlib: where that dies in the same way, there is no
oracle, and a test goes by a stored answer or is skipped.
"""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.xla.process import ProcessKey, key_for, process_environment
from hlotool.backends.xla.protocol import CompileRequest
from hlotool.errors import BackendFailed, BackendTimeout

#: What is run alone.
CHILD = Path(__file__).with_name("xla_alone.py")

HANG = "hang"

#: Seconds for jax to be imported, on a machine that has other things to do.
_START = 60.0

_SIGNAL = re.compile(r"the process died of (\w+)|killed by (SIGKILL)")

#: Of the program, what XLA alone is told.
_SETTINGS = ("text", "flags", "replicas", "partitions", "shardy")

_SMALLEST = "HloModule m\nENTRY e { x = f32[] parameter(0) ROOT y = f32[] add(x, x) }\n"


class OracleUnable(pytest.skip.Exception):
    """XLA alone dies of the program on this machine. As it is, it skips the test that asked."""

    def __init__(self, message: str) -> None:
        super().__init__(message, _use_item_location=True)


def unable(
    program: CompileRequest, rows: Sequence[Sequence[Any]], key: ProcessKey, error: Exception
) -> str | None:
    """Why the oracle cannot judge `program`, after it failed with `error`.

    Args:
        program: what it was to compile, as StableHLO.
        rows: per device, one array per parameter.
        key: of the oracle's process: XLA alone gets the same devices, variables and time.
        error: how that process failed.

    Returns:
        A line for the reader; None where the process did not die, or XLA alone does not die likewise.
    """
    death = death_of(error)
    if death is None or death != death_alone(program, rows, key):
        return None
    died = "never ends" if death == HANG else f"dies of {death}"
    return f"on this machine XLA alone {died} with this program"


def death_of(error: Exception) -> str | None:
    """The name of the signal, or HANG; None for errors that are answers."""
    if isinstance(error, BackendTimeout):
        return HANG
    found = _SIGNAL.search(str(error)) if isinstance(error, BackendFailed) else None
    return found and (found[1] or found[2])


def death_alone(program: CompileRequest, rows: Sequence[Sequence[Any]], key: ProcessKey) -> str | None:
    """How XLA alone dies of a program, as `death_of`; None where it lives."""
    try:
        done = _run_alone(program, rows, key)
    except subprocess.TimeoutExpired:
        return HANG
    return signal.Signals(-done.returncode).name if done.returncode < 0 else None


def _run_alone(
    program: CompileRequest, rows: Sequence[Sequence[Any]], key: ProcessKey
) -> subprocess.CompletedProcess[bytes]:
    settings = {
        name: getattr(program, name) for name in ("text", "flags", "replicas", "partitions", "shardy")
    }
    return subprocess.run(
        [key.python or sys.executable, str(CHILD)],
        input=pickle.dumps((settings, [[np.asarray(value) for value in row] for row in rows])),
        capture_output=True,
        env=process_environment(key),
        timeout=None if key.timeout is None else key.timeout + _START,
    )


@cache
def reason_for_no_xla() -> str | None:
    """Why no test can ask XLA here; None where it runs the smallest program."""
    if find_spec("jaxlib") is None or find_spec("jax") is None:
        return "jaxlib is not installed"
    try:
        done = _run_alone(CompileRequest(_SMALLEST), [[np.float32(1)]], key_for("cpu", "", 1, 60.0))
    except subprocess.TimeoutExpired:
        return "jaxlib is installed, but does not end on this machine"
    if done.returncode == 0:
        return None
    *_, last = ["", *done.stderr.decode(errors="replace").splitlines()]
    return f"jaxlib is installed, but ends with status {done.returncode} on this machine: {last}"


def need_xla() -> None:
    """Skip the test where there is no XLA that runs."""
    if reason := reason_for_no_xla():
        pytest.skip(reason)
