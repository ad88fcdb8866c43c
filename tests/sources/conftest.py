"""Fixtures of the tests of dump directories."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dumps import Write, module_text


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Make a dump directory."""
    root = tmp_path / "dump"

    def files(*items: str | tuple[str, str | bytes]) -> Path:
        root.mkdir(exist_ok=True)
        for item in items:
            name, content = item if isinstance(item, tuple) else (item, module_text())
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return files
