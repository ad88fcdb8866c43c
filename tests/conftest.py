"""Fixtures that all tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
GOLDEN = REPOSITORY / "tests" / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares a text with the file of that name in tests/golden/ (or rewrites it)."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path} differs; --update-golden rewrites it"

    return check


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
