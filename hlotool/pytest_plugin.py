"""The pytest plugin: `pytest --hlotool` replays what each test compiled, and fails it where that is wrong.

pytest loads this file on every run; what takes time is imported where `--hlotool` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hlotool.interface.api.replay import ReplayResult
    from hlotool.interface.pytest_suite import Suite

_SUITE = "hlotool-suite"
_MARKER = (
    "hlotool(allow=[...], rtol=..., atol=..., seed=..., exact=..., ...): how --hlotool judges what the test"
    " compiles: verdicts accepted beside `identical` and `agree`, and arguments of hlotool.replay"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--hlotool` and what belongs to it."""
    group = parser.getgroup("hlotool", "programs that tests compile with XLA")
    group.addoption(
        "--hlotool", action="store_true", help="replay them, and fail the tests whose programs are wrong"
    )
    group.addoption(
        "--hlotool-keep", metavar="DIR", help="folder for the dumps of wrong programs [a temporary one]"
    )
    group.addoption(
        "--hlotool-snapshots",
        metavar="N",
        type=int,
        default=1,
        help="executions of each program that are judged with their real arguments and results [1]",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set XLA's flags before the first conftest can start it."""
    options = early_config.known_args_namespace
    if options.hlotool:
        from hlotool.interface.pytest_suite import prepare

        prepare(options.hlotool_keep, options.hlotool_snapshots)


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker; under `--hlotool`, begin to watch."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--hlotool"):
        from hlotool.interface.pytest_suite import Suite

        config.pluginmanager.register(Suite(config), _SUITE)


@pytest.fixture
def hlotool_check(request: pytest.FixtureRequest) -> Callable[..., ReplayResult]:
    """Judges what this test has compiled so far, or since the last call: `hlotool_check(rtol=1e-3)`.

    It takes what the marker takes, returns a `ReplayResult`, and fails the test where a program is wrong. The
    test is skipped without `--hlotool`.
    """
    suite: Suite | None = request.config.pluginmanager.get_plugin(_SUITE)
    if suite is None:
        pytest.skip("hlotool_check needs pytest --hlotool")

    def check(**options: object) -> ReplayResult:
        return suite.check(request.node, options)

    return check
