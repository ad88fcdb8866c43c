"""Where hlotool keeps what it can do without."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$HLOTOOL_CACHE`, else the platform's place for caches, such as `~/.cache/hlotool`."""
    if given := os.environ.get("HLOTOOL_CACHE"):
        return Path(given)
    import platformdirs

    return platformdirs.user_cache_path("hlotool", appauthor=False)
