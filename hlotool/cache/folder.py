"""Where hlotool keeps what it can do without."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """`$HLOTOOL_CACHE`, else the platform's place for caches, such as `~/.cache/hlotool`.

    Users without such a place (no home, or one that cannot be written) have a folder among the temporary
    files.
    """
    if given := os.environ.get("HLOTOOL_CACHE"):
        return Path(given)
    import platformdirs

    try:
        folder = platformdirs.user_cache_path("hlotool", appauthor=False)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows where home is
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK) else _temporary_folder()


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
