"""What other tools write."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path) -> list[str]:
    return []
