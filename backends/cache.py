"""The folder of what hlotool keeps between runs and can do without."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where hlotool keeps what it can do without: `$HLOTOOL_CACHE`, else the platform's place for that."""
    if given := os.environ.get("HLOTOOL_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "hlotool" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hlotool"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hlotool"
