"""Compiled kernels on disk, found again by what they were made from."""

from __future__ import annotations

import os
from pathlib import Path

from hlotool.backends.cache import cache_folder


class KernelCache:
    """Libraries, and for each kernel the name of the library that holds it.

    Files are written under other names first and then moved, so that several processes can share the folder.

    Args:
        key: of everything besides the source that a compiled kernel depends on.
        folder: another place than the cache folder.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.folder = (folder or cache_folder() / "kernels") / key

    def library_of(self, kernel: str) -> Path | None:
        """The library that holds a kernel, if there is one."""
        try:
            library = self.folder / (self.folder / f"{kernel}.in").read_text(encoding="utf-8")
        except OSError:
            return None
        return library if library.exists() else None

    def add(self, library: Path, kernels: list[str]) -> Path:
        """Move a library into the cache; returns its place."""
        place = self.folder / library.name
        library.replace(place)
        for kernel in kernels:
            pending = self.folder / f"{kernel}.{os.getpid()}.tmp"
            pending.write_text(place.name, encoding="utf-8")
            pending.replace(self.folder / f"{kernel}.in")
        return place
