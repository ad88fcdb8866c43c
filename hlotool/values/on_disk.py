"""Arrays in files instead of memory: the system reads a page of them when it is asked for, and may forget it.

The files have no names: their room is given back when the last array that shows one is gone, or the process
ends, however it ends. Arrays are read-only, so that nothing that runs on them writes there.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from hlotool.amounts import size_text
from hlotool.errors import InputDataError
from hlotool.ir.dtypes import Array
from hlotool.workers.memory import allow_mapping

#: Smaller arrays stay in memory: a file of its own for each would take longer than it saves.
LEAST: Final = 1 << 20
#: Written at once: what has to be made contiguous for that takes no more memory.
_PIECE: Final = 1 << 24
#: File systems that are memory themselves.
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/mounts")


class NoRoomOnDisk(InputDataError):
    """An array could not be written to a temporary file: the disk is full, or a limit of the system's."""


class OnDisk:
    """Puts arrays on disk.

    Attributes:
        size: bytes that were put there so far.
    """

    def __init__(self) -> None:
        self.size = 0

    def keep(self, value: Any) -> Any:
        """The same value, an array or tuples of values, with its large arrays in files.

        What is there already stays; what is no plain array stays as it is.

        Raises:
            NoRoomOnDisk: there is no room for it, or nowhere to put it.
        """
        if isinstance(value, tuple):
            return tuple(map(self.keep, value))
        if not isinstance(value, np.ndarray) or value.nbytes < LEAST or _is_kept(value):
            return value
        kept = _written(value)
        self.size += value.nbytes
        return kept


def room_on_disk() -> int:
    """Bytes that temporary files may take; 0 where they would lie in memory, or nowhere."""
    try:
        folder = Path(tempfile.gettempdir()).resolve()
        return 0 if _lies_in_memory(folder) else shutil.disk_usage(folder).free
    except OSError:
        return 0


def _is_kept(array: Array) -> bool:
    """Whether an array shows a file already."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def _written(array: Array) -> Array:
    """The array, read from a file without a name."""
    try:
        with tempfile.TemporaryFile(prefix="hlotool-", buffering=0) as file:
            _write(file.write, array)
            allow_mapping(array.nbytes)
            mapped = mmap.mmap(file.fileno(), array.nbytes, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NoRoomOnDisk(
            f"no room for an array of {size_text(array.nbytes)} in {tempfile.gettempdir()}: {reason}"
        ) from error
    shown: Array = np.ndarray(array.shape, array.dtype, mapped)
    return shown


def _write(write: Callable[[Any], int | None], array: Array) -> None:
    """All bytes in row-major order, piece by piece."""
    rows = array if array.ndim else array.reshape(1)
    flat = rows.reshape(-1) if rows.flags.c_contiguous else rows.flat
    step = max(1, _PIECE // array.itemsize)
    for start in range(0, array.size, step):
        piece = np.ascontiguousarray(flat[start : start + step]).view(np.uint8)
        data = piece.data
        while len(data):
            data = data[write(data) or 0 :]


def _lies_in_memory(folder: Path) -> bool:
    """Whether a folder is on a file system that is memory; where nobody says, it is not."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    kinds = {Path(place): kind for _, place, kind, *_ in (line.split() for line in lines)}
    here = next((one for one in (folder, *folder.parents) if one in kinds), None)
    return here is not None and kinds[here] in _IN_MEMORY
