"""The dump of a test process: where XLA writes, and what it wrote while a test ran."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from hlotool.errors import UsageError
from hlotool.runs.capture import process
from hlotool.runs.capture.launch import DumpWishes, environment_of
from hlotool.runs.capture.watch import Watch, still_files
from hlotool.sources.file_names import Kind, parse_name

#: Holds the folder of the whole run, for the processes of pytest-xdist.
_ROOT = "HLOTOOL_PYTEST"
#: The environment variables that are set for the dump; their values before are restored.
_VARIABLES = (
    "JAX_ENABLE_COMPILATION_CACHE",
    "PYTHONPATH",
    "TF_DUMP_GRAPH_PREFIX",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    process.VARIABLE,
)
#: The hook of `hlotool.runs.capture` in a process that was started below one that is watched.
_INHERITED = "_hlotool_capture_process"
#: Kinds of files that hold a program, and not an execution of one that may have been compiled long before.
_PROGRAMS = frozenset({Kind.BEFORE_OPTIMIZATIONS, Kind.AFTER_OPTIMIZATIONS})
#: What the dump of a process may take on the disk, as under `hlotool exec`.
_MOST_BYTES = 10 << 30

_before: dict[str, str | None] = {}


def prepare(keep: str | None, snapshots: int) -> None:
    """Let XLA in this process, and in those that it starts, dump to folders of this run.

    Args:
        keep: folder for the dumps of wrong programs; a temporary one when None.
        snapshots: executions of each program that are wanted, with arguments and results.

    Raises:
        pytest.UsageError: the folder cannot be made, or somebody else watches already.
    """
    try:
        folder = _own_root(keep)
        _unwatch()
        _before.update({name: os.environ.get(name) for name in _VARIABLES})
        os.environ.update(environment_of(DumpWishes(folder, snapshots > 0), os.environ))
    except (OSError, UsageError) as error:
        raise pytest.UsageError(f"--hlotool: {error}") from error
    process.install()
    watch = sys.meta_path[0]
    for package in [name for name in process.PROBES if name in sys.modules]:
        watch.find_spec(package, None)


def _own_root(keep: str | None) -> Path:
    """The folder of this process, below that of the run."""
    root = os.environ.get(_ROOT)
    if root is None:
        if process.VARIABLE in os.environ:
            raise UsageError("hlotool exec watches this process already: leave one of the two out")
        root = keep or tempfile.mkdtemp(prefix="hlotool-pytest-")
        root = os.environ[_ROOT] = str(Path(root).resolve())
        if keep is None:
            atexit.register(_remove_empty, Path(root))
    folder = _folder_below(root)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _folder_below(root: str) -> Path:
    """What this process has of the folder of the run."""
    return Path(root, os.environ.get("PYTEST_XDIST_WORKER", "main"))


def _remove_empty(root: Path) -> None:
    """Remove what holds no dump of a wrong program."""
    if not any(path.is_file() for path in root.rglob("*")):
        shutil.rmtree(root, ignore_errors=True)


def _unwatch() -> None:
    """End the watch that this process inherited from the one that started it: it would mix up their files."""
    inherited = sys.modules.pop(_INHERITED, None)
    if inherited is not None:
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, inherited.Watch)]


def unwatched(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment as it would be without `prepare`, for processes whose programs are no test's."""
    kept = {name: value for name, value in environment.items() if name not in _before}
    return kept | {name: value for name, value in _before.items() if value is not None}


class Dumps:
    """What XLA writes in this process and in those that it starts.

    XLA writes every execution of every program; those that are not wanted are deleted meanwhile.

    Args:
        snapshots: executions of each program that are kept.

    Attributes:
        is_silent: nothing was ever written.
    """

    def __init__(self, snapshots: int) -> None:
        self._root = _folder_below(os.environ[_ROOT])
        self._snapshots = snapshots
        self._count = len(list((self._root / "wrong").glob("*")))  # an earlier run may have kept some
        self.is_silent = True
        self._watch = Watch(self._root, snapshots, _MOST_BYTES)
        self._watch.__enter__()

    def close(self) -> list[str]:
        """Leave nothing but what was taken; returns what was deleted that somebody might miss."""
        self._watch.stop()
        for path in self._root.glob("process_*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return self._watch.notes

    def take(self, name: str) -> Path | None:
        """Move what was written since the last call to a folder of its own.

        Args:
            name: of the test that compiled it.

        Returns:
            the folder; None where no program was compiled.
        """
        files = still_files(self._root)
        programs = {_module(path) for path in files if parse_name(path.name).kind in _PROGRAMS}
        if not programs:
            # Executions of programs that were judged long ago.
            for path in files:
                path.unlink(missing_ok=True)
            return None
        self.is_silent = False
        self._count += 1
        folder = self._root / "wrong" / f"{self._count:04}.{_plain(name)}"
        for path in self._wanted(files, programs):
            target = folder / (path.name if path.parent == self._mine else path.relative_to(self._root))
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # an execution too many
                path.replace(target)
        return folder

    @property
    def _mine(self) -> Path:
        """Where this very process writes, and not one of its children."""
        return self._root / f"process_{os.getpid()}"

    def _wanted(self, files: list[Path], programs: set[tuple[Path, int | None]]) -> Iterator[Path]:
        """What belongs to a program that is new, with its first executions; the rest is deleted."""
        kept: Counter[tuple[Path, int | None]] = Counter()
        for path in sorted(files, key=_age):
            module = _module(path)
            is_execution = parse_name(path.name).kind is Kind.SNAPSHOT
            kept[module] += is_execution
            if module in programs and not (is_execution and kept[module] > self._snapshots):
                yield path
            else:
                path.unlink(missing_ok=True)


def _age(path: Path) -> tuple[int, str]:
    """Sorts files by the time at which they were written."""
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def _plain(name: str) -> str:
    """The end of a test's name as a part of a path."""
    return re.sub(r"[^\w.+=-]+", "_", name)[-80:]


def _module(path: Path) -> tuple[Path, int | None]:
    """The process and the number of the module that a file is of."""
    return path.parent, parse_name(path.name).module_number
