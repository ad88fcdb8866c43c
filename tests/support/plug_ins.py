"""Backends as plug-ins: a distribution on the search path, which worker processes inherit."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(folder: Path, name: str, source: str, patch: pytest.MonkeyPatch) -> None:
    """A distribution with a module `NAME_backend` whose function `create` makes the backend `name`.

    Args:
        folder: gets it.
        name: of the backend.
        source: of the module.
        patch: puts the folder on the search path as long as the test runs.
    """
    (folder / f"{name}_backend.py").write_text(source)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[hlotool.backends]\n{name} = {name}_backend:create\n")
    patch.syspath_prepend(folder)
