"""Forms that are no text: protos, profiles, StableHLO."""
from __future__ import annotations
from pathlib import Path
def write(folder: Path, sources: dict[str, Path]) -> list[str]:
    return []
