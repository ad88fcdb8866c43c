"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus folder of this repository."""
    return REPOSITORY / "corpus"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real HLO data kept beside the checkout; tests that need it are skipped without it."""
    path = REPOSITORY.parent / "shared"
    if not (path / "hlo").is_dir():
        pytest.skip("no ../shared/hlo beside the checkout")
    return path
