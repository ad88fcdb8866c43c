"""One version measured: its interpreter dumps each kind of program, `hlotool run` reads what it dumped."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks import ROOT
from benchmarks.dumps.table import Cell, Column

_HEALTHY = ("identical", "agree", "rounding")
#: Seconds for one compilation; libtpu takes minutes for some sorts.
_TIMEOUT = 150
_CHANGELIST = re.compile(r"\.cl_(\d+)[./]")


class _Row(msgspec.Struct):
    """What is read of a row of `hlotool run --json`."""

    name: str
    verdict: str
    reason: str


class _Run(msgspec.Struct):
    modules: list[_Row] = []
    notes: list[str] = []
    error: object = None


class _Line(msgspec.Struct):
    """A line of `child.py`."""

    kind: str = ""
    why: str | None = None
    jax: str = ""
    jaxlib: str = ""
    python: str = ""


class Work:
    """Measures one version; goes to another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, unit: str) -> list[Column | Cell]:
        """The column of a version and its cells."""
        python, _, libtpu = unit.partition("=")
        into = self.folder / re.sub(r"\W+", "_", unit).strip("_")
        lines = _dumped(python, libtpu, into)
        head, *kinds = lines
        column = Column(unit, head.jax, head.jaxlib, head.python, *_library(libtpu, into))
        rows = _replayed(into)
        cells = [_cell(unit, line, rows) for line in kinds]
        doubtful = [c.kind for c in cells if c.verdict == "wrong"] if libtpu else []
        if doubtful:
            strict = into / "highest"
            _dumped(python, libtpu, strict, "--precision=highest", f"--kinds={','.join(doubtful)}")
            again = {c.kind: c for c in (_cell(unit, _Line(kind), _replayed(strict)) for kind in doubtful)}
            cells = [_explained(cell, again.get(cell.kind)) for cell in cells]
        return [column, *cells]


def _dumped(python: str, libtpu: str, into: Path, *more: str) -> list[_Line]:
    command = [python, str(ROOT / "benchmarks/dumps/child.py"), str(into), f"--timeout={_TIMEOUT}", *more]
    if libtpu:
        command += ["--platform=tpu", f"--libtpu={libtpu}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    into.mkdir(parents=True, exist_ok=True)
    (into / "errors.log").write_text(done.stderr)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr[-2000:]}")
    return [msgspec.json.decode(line, type=_Line) for line in done.stdout.splitlines()]


def _library(libtpu: str, into: Path) -> tuple[str, str]:
    """The version of a libtpu, as installed, and the change list that it writes into names of files."""
    if not libtpu:
        return "", ""
    versions = [p.name.split("-")[1] for p in Path(libtpu).parents[1].glob("libtpu-*.dist-info")]
    names = (found[1] for p in into.rglob("*") if (found := _CHANGELIST.search(p.name)))
    return ", ".join(v.removesuffix(".dist") for v in versions), ", ".join(sorted(set(names)))


def _replayed(into: Path) -> list[_Row]:
    """What `run` says of every module below a folder."""
    command = [sys.executable, "-m", "hlotool", "run", str(into), "--json", "--timeout", "120"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        run = msgspec.json.decode(done.stdout, type=_Run)
    except msgspec.DecodeError as error:
        raise RuntimeError(f"{command}: {error}: {done.stderr[-2000:]}") from error
    if run.error or "Traceback" in done.stderr:
        raise RuntimeError(f"{command}: {run.error} {done.stderr[-2000:]}")
    return run.modules


def _cell(unit: str, line: _Line, rows: Iterable[_Row]) -> Cell:
    """The one program of a kind; a second row is one too many and shows."""
    own = [row for row in rows if f"/{row.name}".rpartition(f"/{line.kind}/")[1]]
    if line.why is not None:
        return Cell(unit, line.kind, "no program", line.why, len(own))
    if not own:
        return Cell(unit, line.kind, "unread", "compiled, and no row of it", 0)
    program = next((r for r in own if r.name.endswith(f"jit_{line.kind}")), own[0])
    return Cell(unit, line.kind, program.verdict, program.reason, len(own))


def _explained(cell: Cell, strict: Cell | None) -> Cell:
    """A cell that is wrong, if the program is right where the compiler may not lower the precision."""
    if strict is None or cell.verdict != "wrong" or strict.verdict not in _HEALTHY:
        return cell
    return msgspec.structs.replace(
        cell, verdict="default precision", reason=f"{strict.verdict} when compiled at precision highest"
    )
