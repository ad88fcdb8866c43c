"""The folder of what hlotool keeps between runs and can do without."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """Where hlotool keeps what it can do without: `$HLOTOOL_CACHE`, else the platform's place for that.

    Users without such a place (no home, or one that cannot be written) have a folder among the temporary
    files.
    """
    if given := os.environ.get("HLOTOOL_CACHE"):
        return Path(given)
    try:
        folder = _platforms_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: Python does not know where home is
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK) else _temporary_folder()


def _platforms_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "hlotool" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hlotool"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hlotool"


def _temporary_folder() -> Path:
    """One for all processes of this user and for nobody else, as compiled kernels are loaded from it."""
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"hlotool-{user}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user
    if is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    return Path(tempfile.mkdtemp(prefix="hlotool-"))
