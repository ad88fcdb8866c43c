"""Compiled kernels on disk, found again by what they were made from."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hlotool.cache.folder import cache_folder

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a compiled kernel lies.

    Attributes:
        library: the file that holds it, perhaps among others.
        details: numbers that the compiler said of it, such as registers.
    """

    library: Path
    details: Mapping[str, int] = field(default_factory=dict)


class KernelCache:
    """Libraries, and for each kernel which of them holds it.

    Files are written under other names first and then moved, so that several processes can share the folder.

    Args:
        key: of everything besides the source that a compiled kernel depends on.
        folder: another place than the cache folder.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.folder = (folder or cache_folder() / "kernels") / key

    def find(self, kernel: str) -> Entry | None:
        """The entry of a kernel, if there is one that can be read."""
        try:
            known = json.loads((self.folder / f"{kernel}.json").read_text(encoding="utf-8"))
            entry = Entry(self.folder / known["library"], known["details"])
        except (OSError, ValueError, KeyError):
            return None
        if not entry.library.exists():
            return None
        _logger.debug("kernel %s: compiled before, in %s", kernel, entry.library)
        return entry

    def add(self, library: Path, details: Mapping[str, Mapping[str, int]]) -> dict[str, Entry]:
        """Move a library into the cache.

        Args:
            library: a file on the same file system.
            details: of each kernel that it holds.
        """
        place = self.folder / library.name
        library.replace(place)
        for kernel, known in details.items():
            pending = self.folder / f"{kernel}.{os.getpid()}.tmp"
            pending.write_text(json.dumps({"library": place.name, "details": known}), encoding="utf-8")
            pending.replace(self.folder / f"{kernel}.json")
        return {kernel: Entry(place, known) for kernel, known in details.items()}
