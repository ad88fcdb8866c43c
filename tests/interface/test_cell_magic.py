"""`%%hlotool` with a stand-in for IPython's shell: what becomes of the cell, of its output and of errors."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.capture import stub_of_jaxlib
from support.notebook import Shell

import hlotool
from hlotool.errors import UsageError
from hlotool.notebook import ExecResult

ROOT = Path(__file__).resolve().parents[2]
COMPILE = "from jaxlib import xla_client; xla_client.CompileOptions(); xla_client.compile"

#: One of each: a program that agrees, and one with a planted fault.
HEALTHY, WRONG = "jax/model_fn", "planted/slices_off_by_one"


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.fixture
def run_cell(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """The magic of a shell that has the extension; cells find a stand-in for jaxlib."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = stub_of_jaxlib(tmp_path / "stub", ["dump_large_constants"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(path), str(ROOT)]))
    monkeypatch.chdir(tmp_path)
    hlotool.load_ipython_extension(shell)
    return shell.magics["cell", "hlotool"]


class Pretty:
    """The printer that IPython gives to `_repr_pretty_`."""

    def __init__(self) -> None:
        self.shown = ""

    def text(self, text: str) -> None:
        self.shown += text


def test_a_wrong_cell(run_cell: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It imports what lies beside the notebook; its number is in the name that reports have for it."""
    (tmp_path / "beside.py").write_text("NAME = 'imported'")
    cell = f"import beside; print(beside.NAME)\n{COMPILE}({HEALTHY!r}, {WRONG!r})\n"
    found = run_cell("--quiet --snapshots 0", cell)
    assert isinstance(found, ExecResult)
    assert [row.verdict.value for row in found] == ["identical", "wrong"]
    assert (found.exit_code, found.record.program.status) == (1, 0)
    assert Path(found.record.program.command[1]).name == "cell_7.py"
    assert "imported\n" in capsys.readouterr().out
    pretty = Pretty()
    found._repr_pretty_(pretty, False)
    assert "✗ wrong" in pretty.shown
    shown = found._repr_html_()
    assert shown.startswith("<pre")
    assert "✗ wrong" in unescape(shown)
    assert "jit_model_fn" in found.to_html()
    assert "jit_model_fn" not in shown  # which agrees, and --quiet leaves that out


def test_a_cell_that_fails_without_xla(run_cell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Its traceback names its lines; the note of the command appears, too."""
    found = run_cell("", "x = 1\nx / 0\n")
    assert (found.exit_code, len(found.rows)) == (1, 0)
    out, err = capsys.readouterr()
    assert 'cell_7.py", line 2' in out
    assert "ZeroDivisionError" in out
    assert "no process of the program was seen to load" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--frobnicate", "what is wrong stands above"),
        ("--keep 'x", "No closing quotation"),
        ("python train.py", "the cell is the program"),
        ("-- python", "the cell is the program"),
        ("--keep .", "ended with 2; what it said stands above"),
    ],
)
def test_wrong_options_are_errors(run_cell: Any, line: str, message: str) -> None:
    """A notebook that is executed without a reader must not go on."""
    with pytest.raises(UsageError, match=message):
        run_cell(line, "pass")


def test_help(run_cell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cell("--help", "pass") is None
    assert "hlotool exec" in capsys.readouterr().out


def test_an_interrupted_cell_is_reported(
    run_cell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the kernel gets is passed on, once; what was compiled until then is judged."""
    up = tmp_path / "up"
    waits = f"try:\n  open({str(up)!r}, 'w').close()\n  time.sleep(60)"
    caught = f"import time\n{waits}\nexcept KeyboardInterrupt:\n  print('once')\ntime.sleep(.5)"
    cell = f"{COMPILE}({HEALTHY!r})\n{caught}\n"

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not up.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        # Any thread of a kernel may be the one that takes it, and the one that waits is then not woken.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    user = threading.Thread(target=interrupt)
    user.start()
    found = run_cell("--snapshots 0", cell)
    user.join()
    assert "once" in capsys.readouterr().out
    assert found.record.program.status == 0
    assert [row.verdict.value for row in found] == ["identical"]


def test_other_cells_by_number_and_values_by_name(
    shell: Shell, run_cell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one module, each with the file and the lines of its own."""
    shell.user_ns |= {
        "In": ["", "base = 1", "raise SystemExit", "def add(x):\n    return x / base"],
        "unit": {"m": 5},
    }
    cell = "print(add(unit['m']), __name__)\nbase = 0\nadd(1)\n"
    found = run_cell("--cells 1,3 --names unit --snapshots 0", cell)
    out = capsys.readouterr().out
    assert "5.0 __main__\n" in out
    assert re.search(r'cell_7.py", line 3, in <module>.*cell_3.py", line 2, in add', out, re.DOTALL)
    assert "ZeroDivisionError" in out
    assert found.exit_code == 1
    assert "cells_to_7.py" in found.record.program.command[1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--cells 9", r"no cell \[9\] before"),
        ("--cells 7", r"no cell \[7\] before"),
        ("--cells 0", r"no cell \[0\] before"),
        ("--cells x", "'x' is no number of a cell"),
        ("--cells", "expected one argument"),
        ("--names valves", "no such value.*values"),
        ("--names lock", "cannot be handed to another process"),
    ],
)
def test_what_cannot_be_had_of_the_notebook(
    options: str, complaint: str, shell: Shell, run_cell: Any
) -> None:
    shell.user_ns |= {"In": [""] * 8, "values": 1, "lock": threading.Lock()}
    with pytest.raises(UsageError, match=complaint):
        run_cell(options, "pass")


def test_places_are_cells_by_number(run_cell: Any) -> None:
    """Text and HTML, whatever folder the kernel has them in; the record has the files, which can be read."""
    found = run_cell("--snapshots 0", f"{COMPILE}({HEALTHY!r})\n")
    assert Path(found.record.program.command[1]).is_file()
    assert "cell [7]: exit status 0" in found.report()
    assert "cell [7]" in found.to_html()
    assert "hlotool-cells-" not in found.report() + found.to_html()
