"""Fixtures that all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no fault of what is tested.
hypothesis.settings.register_profile("hlotool", deadline=None)
hypothesis.settings.load_profile("hlotool")

# XLA computes with one thread: sums in the same order on every machine, and on processors with AVX-512 but
# without bf16 no deadlock of oneDNN's threads in its products of bf16.
os.environ.setdefault("NPROC", "1")
# So does each product of matrices, as in the processes that replay: with `-n` threads of several processes
# wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent
GOLDEN = REPOSITORY / "tests" / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/")
    parser.addoption(
        "--next-lines", action="store_true", help="at the end execute all `next:` lines that were printed"
    )


def pytest_configure() -> None:
    """What commands advise is kept for --next-lines and tests/interface/test_next_lines.py, which is last.

    Verdicts of earlier sessions are not asked: a test that wants a replay shall have one.
    """
    from support import next_lines

    next_lines.watch()
    _own_verdicts()
    # What a shell starts in the background ignores Ctrl-C, and so would every command that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _own_verdicts() -> None:
    """A cache of this session alone, in which kernels compiled earlier are still found."""
    from hlotool.system.cache import cache_folder
    from hlotool.system.files import passing_folder

    kernels = cache_folder() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    own = passing_folder()
    (own / "kernels").symlink_to(kernels, target_is_directory=True)
    os.environ["HLOTOOL_CACHE"] = str(own)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --next-lines: every command that a test of this session saw advised is executed, and works.

    That is for the first process, which comes to its end when all others have.
    """
    config = session.config
    if not config.getoption("--next-lines") or hasattr(config, "workerinput"):
        return
    from support import next_lines

    lines = next_lines.recorded()
    with tempfile.TemporaryDirectory() as cache:
        ends = next_lines.execute(lines, Path(cache))
    terminal = config.pluginmanager.getplugin("terminalreporter")
    terminal.write_line(
        f"\n{ends.count} `next:` lines of {len({line.test for line in lines})} tests were executed:"
        f" {len(ends.failures)} failed, {ends.at_work} were ended while they were at work"
    )
    for failure in ends.failures:
        terminal.write_line(failure, red=True)
    if ends.failures:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


#: The working directory at the end of a test, before its fixtures change it back.
_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What no test read of its output is kept, too."""
    from support import next_lines

    report = yield
    if report.when == "call":
        item.stash[_FOLDER] = os.getcwd()
    elif report.when == "teardown":
        for text in (report.capstdout, report.capstderr):
            next_lines.record(text, item.stash.get(_FOLDER, None), item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test keeps the others waiting for ever."""
    from support.time_limit import watching

    with watching(item):
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == "test_next_lines.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is marked `xla` is skipped where no XLA runs. No test has the verdicts of another one."""
    shutil.rmtree(os.path.join(os.environ["HLOTOOL_CACHE"], "verdicts"), ignore_errors=True)
    if item.get_closest_marker("xla"):
        from support.oracle import need_xla

        need_xla()


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
