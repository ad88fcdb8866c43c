"""Looks at a dump while it is written: which modules are finished, and what of it can go.

XLA writes a file for every execution and every kernel, and does not say when it is done with one. A file is
complete when nothing has changed about it for a while; a module, when its last stage is complete, and as many
executions as are wanted.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hlotool.parser.proto.schema import fields
from hlotool.runs.capture.program_text import ends_a_module, is_for_several_devices
from hlotool.sources.file_names import Format, Kind, parse_name

#: Seconds in which nothing happens to a file that is complete.
_QUIET = 1.0
#: Seconds between two looks, at least; and how many times as long as a look takes.
_PAUSE, _PAUSE_FACTOR = 0.2, 30.0
#: Seconds between two looks of somebody who waits for complete files, and for which he waits at most.
_GLANCE, _PATIENCE = 0.01, 5.0
#: Seconds without another execution after which no more are waited for: a helper may be executed just once.
_NO_MORE = 10.0
#: How files end that nothing in hlotool reads.
_LITTER = (".ll", ".o", ".s", ".mlir", ".dot", ".html", ".pbtxt")


@dataclass(frozen=True, slots=True)
class Finished:
    """A module that can be replayed.

    Attributes:
        folder: of its process.
        number: of the module in that process.
        captures: files of complete executions, with which execution of the module each is, from 1.
    """

    folder: Path
    number: int
    captures: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _File:
    """A file as it was at the last look.

    Attributes:
        stamp: size in bytes and time of the last change.
        since: `time.monotonic()` of the look that found it so first.
        module: folder and number of the module that it is of.
    """

    stamp: tuple[int, int]
    since: float
    module: tuple[Path, int] | None = None


@dataclass(slots=True)
class _Module:
    """What is known of one module so far.

    Attributes:
        last: file of its last stage, empty as long as there is none.
        platform: that it was compiled for.
        awaited: executions that are waited for; None as long as the last stage is not complete.
        captures: files of executions that are kept, in their order, with their number, from 1.
        uncounted: executions that have no number yet: time, number in the name of the file, path.
        executed: how many executions were seen.
        is_taken: it was handed out.
        is_settled: its files are not needed any more.
    """

    last: str = ""
    platform: str = ""
    awaited: int | None = None
    captures: dict[str, int] = field(default_factory=dict)
    uncounted: list[tuple[int, int, str]] = field(default_factory=list)
    executed: int = 0
    is_taken: bool = False
    is_settled: bool = False


class Watch:
    """Watches the folders below `folder` in a thread of its own, as long as its `with` block lasts.

    Args:
        folder: holds a folder for each process, or the files of a process that has none.
        snapshots: how many executions of a module are kept and waited for; later ones are deleted.
        max_size: bytes that all files may take, 0 for no limit.
        passed_over: executions that are less telling than those behind them, and are kept only where there
            are no others: a learning rate that warms up from 0 and a head that starts at 0 hide most of the
            first one.
        is_chosen: executions that come were chosen within the program (`executions`), all of them are kept,
            and their files have their numbers; they are judged when the program has ended.

    Attributes:
        notes: what was deleted that somebody might miss.
        folder: as given.
    """

    def __init__(
        self,
        folder: Path,
        snapshots: int,
        max_size: int,
        passed_over: int = 0,
        is_chosen: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self.folder = folder
        self._snapshots = snapshots
        self._passed_over = passed_over if snapshots else 0
        self._max_size = max_size or float("inf")
        self._is_chosen = is_chosen
        self._files: dict[str, _File] = {}
        self._modules: dict[tuple[Path, int], _Module] = {}
        self._deleted: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch of a dump", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Look a last time, and no more."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._thread.join()
            self._look()
            for module in self._modules.values():
                self._forget_torn(module)
                self._choose_last(module)
            self.notes += [f"--max-size: deleted {count} {what}" for what, count in self._deleted.items()]

    def take(self) -> list[Finished]:
        """The finished modules that were not taken before, in the order of their numbers."""
        with self._lock:
            now = time.monotonic()
            waiting = sorted(key for key, module in self._modules.items() if not module.is_taken)
            found = [key for key in waiting if self._is_finished(self._modules[key], now)]
            for key in found:
                self._modules[key].is_taken = True
                self._choose_last(self._modules[key])
            return [Finished(*key, dict(self._modules[key].captures)) for key in found]

    def ordinals(self) -> dict[str, int]:
        """Which execution of its module each kept file holds, from 1."""
        with self._lock:
            return {path: n for module in self._modules.values() for path, n in module.captures.items()}

    def settle(self, folder: Path, number: int) -> None:
        """Note that the files of this module are not needed any more."""
        with self._lock:
            if module := self._modules.get((folder, number)):
                module.is_settled = True

    def folders(self) -> list[Path]:
        """Those that hold modules: one for each process that compiled something."""
        with self._lock:
            return sorted({folder for folder, _ in self._modules})

    def _watch(self) -> None:
        while True:
            start = time.monotonic()
            self._look()
            took = time.monotonic() - start
            if self._stopped.wait(max(_PAUSE, _PAUSE_FACTOR * took)):
                return

    def _look(self) -> None:
        with self._lock:
            now = time.monotonic()
            for folder in (self.folder, *_folders(self.folder)):
                self._look_at(folder, now)
            for module in self._modules.values():
                self._forget_executions(module)
            self._shrink()

    def _look_at(self, folder: Path, now: float) -> None:
        found = set()
        for entry, stamp in _stamped(folder):
            known = self._files.get(entry.path)
            if known is None:
                known = self._files[entry.path] = _File(stamp, now)
                if module := self._meet(folder, entry, known):
                    number = parse_name(entry.name).execution or 0
                    module.uncounted.append((stamp[1], number, entry.path))
            elif known.stamp != stamp:
                known.stamp, known.since = stamp, now
            if known.module is not None:
                found.add(known.module)
        for key in found:
            self._count(self._modules[key])

    def _count(self, module: _Module) -> None:
        """Number the executions in their order; those of one time are told apart by their names."""
        for _, number, path in sorted(module.uncounted):
            module.executed += 1
            module.captures[path] = number if self._is_chosen else module.executed
        module.uncounted.clear()

    def _meet(self, folder: Path, entry: os.DirEntry[str], file: _File) -> _Module | None:
        """A new file; the module whose execution it holds."""
        name = parse_name(entry.name)
        if name.module_number is None:
            return None
        file.module = folder, name.module_number
        module = self._modules.setdefault(file.module, _Module())
        if name.kind is Kind.AFTER_OPTIMIZATIONS and name.format is Format.TEXT:
            module.last, module.platform = entry.path, name.platform
        return module if name.kind is Kind.SNAPSHOT else None

    def _is_finished(self, module: _Module, now: float) -> bool:
        if self._is_chosen:
            return False
        if module.awaited is None and self._is_complete(module.last, now) and ends_a_module(module.last):
            is_captured = module.platform == "cpu" and not is_for_several_devices(module.last)
            module.awaited = self._snapshots + self._passed_over if is_captured else 0
        if module.awaited is None or not all(self._is_complete(path, now) for path in module.captures):
            return False
        return len(module.captures) >= module.awaited or self._waits_in_vain(module, now)

    def _waits_in_vain(self, module: _Module, now: float) -> bool:
        """Whether enough executions are there, and those that would show more do not come."""
        if len(module.captures) < self._snapshots:
            return False
        files = [file for path in module.captures if (file := self._files.get(path))]
        return all(now - file.since >= _NO_MORE for file in files)

    def _is_complete(self, path: str, now: float) -> bool:
        file = self._files.get(path)
        return file is not None and now - file.since >= _QUIET

    def _forget_executions(self, module: _Module) -> None:
        """Delete what was captured beyond the wanted number; XLA, if still writing it, does not mind."""
        kept = self._snapshots + (0 if module.is_taken else self._passed_over)
        if not self._is_chosen:
            self._delete_executions(module, list(module.captures)[kept:])

    def _forget_torn(self, module: _Module) -> None:
        """Of several executions, do without one that XLA was still writing when the program died."""
        last = next(reversed(module.captures), "")
        if len(module.captures) > 1 and not _is_whole_proto(last):
            self._delete_executions(module, [last])

    def _choose_last(self, module: _Module) -> None:
        """Of what is there to be judged, delete the executions that show less."""
        if not self._is_chosen:
            self._delete_executions(module, list(module.captures)[: len(module.captures) - self._snapshots])

    def _delete_executions(self, module: _Module, paths: Sequence[str]) -> None:
        for path in paths:
            self._delete(path)
            del module.captures[path]

    def _shrink(self) -> None:
        """Keep below the size that is allowed: unneeded files go first, unread ones last."""
        for what, paths in self._dispensable():
            if sum(file.stamp[0] for file in self._files.values()) <= self._max_size:
                return
            self._deleted[what] = self._deleted.get(what, 0) + sum(map(self._delete, paths))
            for module in self._modules.values():
                module.captures = {p: n for p, n in module.captures.items() if p in self._files}

    def _dispensable(self) -> Iterator[tuple[str, Sequence[str]]]:
        yield "files of kernels", [path for path in self._files if path.endswith(_LITTER)]
        settled = {key for key, module in self._modules.items() if module.is_settled}
        yield (
            "files of modules that agree",
            [path for path, file in self._files.items() if file.module in settled],
        )
        waiting = [module for module in self._modules.values() if not module.is_taken]
        yield "captured executions", [path for module in waiting for path in module.captures]

    def _delete(self, path: str) -> bool:
        self._files.pop(path, None)
        try:
            os.unlink(path)
        except OSError:
            return False
        return True


def still_files(folder: Path) -> list[Path]:
    """The files in the folders of processes below `folder`, once nothing changes and every text has its end.

    Files of a process that died while it wrote, or that goes on and on, are not waited for to their end.
    """
    limit = time.monotonic() + _PATIENCE
    found = _stamps(folder)
    while found and time.monotonic() < limit:
        time.sleep(_GLANCE)
        before, found = found, _stamps(folder)
        if before == found and all(map(_is_whole, found)):
            break
    return sorted(map(Path, found))


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {entry.path: stamp for process in _folders(folder) for entry, stamp in _stamped(process)}


def _is_whole(path: str) -> bool:
    name = parse_name(os.path.basename(path))
    is_last = name.kind is Kind.AFTER_OPTIMIZATIONS and name.format is Format.TEXT
    return not is_last or ends_a_module(path)


def _is_whole_proto(path: str) -> bool:
    """Whether a file holds a proto that is not cut short."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return bool(list(fields(content, 0, len(content))))
    except (OSError, ValueError):  # there is nothing to map in an empty file
        return False


def _folders(folder: Path) -> list[Path]:
    return [
        Path(entry.path) for entry in _scan(folder) if entry.name.startswith("process_") and entry.is_dir()
    ]


def _stamped(folder: Path) -> Iterator[tuple[os.DirEntry[str], tuple[int, int]]]:
    """The files of a folder, each with its size in bytes and the time of its last change."""
    for entry in _scan(folder):
        with suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                yield entry, (status.st_size, status.st_mtime_ns)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
