"""Judges what tests compiled, each by itself as soon as it has run, from where XLA writes."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hlotool.errors import DumpError, HlotoolError, UsageError
from hlotool.interface.api.calls import Ending, options_from
from hlotool.interface.api.replay import Replayed, ReplayResult, record_of, replay_on
from hlotool.judge.verdicts import AGREEING, DIFFERING, EXCUSED, Verdict
from hlotool.runs.capture import process
from hlotool.runs.capture.launch import DumpWishes, environment_of
from hlotool.runs.capture.watch import Watch, still_files
from hlotool.sources.file_names import Kind, parse_name

if TYPE_CHECKING:
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import ModuleRecord
    from hlotool.system.pool import Pool


#: Holds the folder of the whole run, for the processes of pytest-xdist.
_ROOT = "HLOTOOL_PYTEST"
#: The environment variables that are set for the dump; their values before are restored.
_VARIABLES = (
    "JAX_ENABLE_COMPILATION_CACHE",
    "PYTHONPATH",
    "TF_DUMP_GRAPH_PREFIX",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    process.VARIABLE,
)
#: The hook of `hlotool.runs.capture` in a process that was started below one that is watched.
_INHERITED = "_hlotool_capture_process"
#: Kinds of files that hold a program, and not an execution of one that may have been compiled long before.
_PROGRAMS = frozenset({Kind.BEFORE_OPTIMIZATIONS, Kind.AFTER_OPTIMIZATIONS})
#: What the dump of a process may take on the disk, as under `hlotool exec`.
_MOST_BYTES = 10 << 30

_before: dict[str, str | None] = {}


def prepare(keep: str | None, snapshots: int) -> None:
    """Let XLA in this process, and in those that it starts, dump to folders of this run.

    Args:
        keep: folder for the dumps of wrong programs; a temporary one when None.
        snapshots: executions of each program that are wanted, with arguments and results.

    Raises:
        pytest.UsageError: the folder cannot be made, or somebody else watches already.
    """
    try:
        folder = _own_root(keep)
        _unwatch()
        _before.update({name: os.environ.get(name) for name in _VARIABLES})
        os.environ.update(environment_of(DumpWishes(folder, snapshots > 0), os.environ))
    except (OSError, UsageError) as error:
        raise pytest.UsageError(f"--hlotool: {error}") from error
    process.install()
    watch = sys.meta_path[0]
    for package in [name for name in process.PROBES if name in sys.modules]:
        watch.find_spec(package, None)


def _own_root(keep: str | None) -> Path:
    """The folder of this process, below that of the run."""
    root = os.environ.get(_ROOT)
    if root is None:
        if process.VARIABLE in os.environ:
            raise UsageError("hlotool exec watches this process already: leave one of the two out")
        root = keep or tempfile.mkdtemp(prefix="hlotool-pytest-")
        root = os.environ[_ROOT] = str(Path(root).resolve())
        if keep is None:
            atexit.register(_remove_empty, Path(root))
    folder = _folder_below(root)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _folder_below(root: str) -> Path:
    """What this process has of the folder of the run."""
    return Path(root, os.environ.get("PYTEST_XDIST_WORKER", "main"))


def _remove_empty(root: Path) -> None:
    """Remove what holds no dump of a wrong program."""
    if not any(path.is_file() for path in root.rglob("*")):
        shutil.rmtree(root, ignore_errors=True)


def _unwatch() -> None:
    """End the watch that this process inherited from the one that started it: it would mix up their files."""
    inherited = sys.modules.pop(_INHERITED, None)
    if inherited is not None:
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, inherited.Watch)]


def unwatched(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment as it would be without `prepare`, for processes whose programs are no test's."""
    kept = {name: value for name, value in environment.items() if name not in _before}
    return kept | {name: value for name, value in _before.items() if value is not None}


class Dumps:
    """What XLA writes in this process and in those that it starts.

    XLA writes every execution of every program; those that are not wanted are deleted meanwhile.

    Args:
        snapshots: executions of each program that are kept.

    Attributes:
        is_silent: nothing was ever written.
    """

    def __init__(self, snapshots: int) -> None:
        self._root = _folder_below(os.environ[_ROOT])
        self._snapshots = snapshots
        self._count = len(list((self._root / "wrong").glob("*")))  # an earlier run may have kept some
        self.is_silent = True
        self._watch = Watch(self._root, snapshots, _MOST_BYTES)
        self._watch.__enter__()

    def close(self) -> list[str]:
        """Leave nothing but what was taken; returns what was deleted that somebody might miss."""
        self._watch.stop()
        for path in self._root.glob("process_*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return self._watch.notes

    def take(self, name: str) -> Path | None:
        """Move what was written since the last call to a folder of its own.

        Args:
            name: of the test that compiled it.

        Returns:
            the folder; None where no program was compiled.
        """
        files = still_files(self._root)
        programs = {_module(path) for path in files if parse_name(path.name).kind in _PROGRAMS}
        if not programs:
            # Executions of programs that were judged long ago.
            for path in files:
                path.unlink(missing_ok=True)
            return None
        self.is_silent = False
        self._count += 1
        folder = self._root / "wrong" / f"{self._count:04}.{_plain(name)}"
        for path in self._wanted(files, programs):
            target = folder / (path.name if path.parent == self._mine else path.relative_to(self._root))
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # an execution too many
                path.replace(target)
        return folder

    @property
    def _mine(self) -> Path:
        """Where this very process writes, and not one of its children."""
        return self._root / f"process_{os.getpid()}"

    def _wanted(self, files: list[Path], programs: set[tuple[Path, int | None]]) -> Iterator[Path]:
        """What belongs to a program that is new, with its first executions; the rest is deleted."""
        kept: Counter[tuple[Path, int | None]] = Counter()
        for path in sorted(files, key=_age):
            module = _module(path)
            is_execution = parse_name(path.name).kind is Kind.SNAPSHOT
            kept[module] += is_execution
            if module in programs and not (is_execution and kept[module] > self._snapshots):
                yield path
            else:
                path.unlink(missing_ok=True)


def _age(path: Path) -> tuple[int, str]:
    """Sorts files by the time at which they were written."""
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def _plain(name: str) -> str:
    """The end of a test's name as a part of a path."""
    return re.sub(r"[^\w.+=-]+", "_", name)[-80:]


def _module(path: Path) -> tuple[Path, int | None]:
    """The process and the number of the module that a file is of."""
    return path.parent, parse_name(path.name).module_number


#: Verdicts of programs that were compared.
_COMPARED = AGREEING | DIFFERING | EXCUSED | {Verdict.DIFFERS}
#: What needs no permission.
_FINE = frozenset({Verdict.IDENTICAL, Verdict.AGREE})
#: Lines of the summary about what could not be judged.
_MOST_REASONS = 20
#: What a worker of pytest-xdist hands to the process that reports.
_OUTPUT = "hlotool"


class Suite:
    """The plugin of one run.

    Args:
        config: of the run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._dumps = Dumps(config.getoption("--hlotool-snapshots"))
        self._pool: Pool | None = None
        self._counts: Counter[str] = Counter()
        self._tests = 0
        self._stray: list[str] = []
        self._unjudged: list[str] = []
        self._silent: list[bool] = []

    # What is compiled within a test.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """What was compiled before belongs to no test."""
        self._judge_stray()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Judge what the test compiled, also where it fails for another reason."""
        try:
            result = yield
        except BaseException:
            self._judge_beside(item)
            raise
        self.check(item, {})
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Judge what is compiled when its fixtures are taken down."""
        result = yield
        self.check(item, {})
        return result

    def check(self, item: pytest.Item, options: Mapping[str, object]) -> ReplayResult:
        """Judge what `item` has compiled since the last call; fails the test where a program is wrong.

        Args:
            item: a test, whose markers say how.
            options: in place of what they say.
        """
        wishes = _wishes(item) | dict(options)
        allowed, run_options = _understood(wishes)
        folder = self._dumps.take(item.nodeid)
        if folder is None:
            return ReplayResult(record_of([], run_options, [], Ending(), [], 0.0))
        self._tests += 1
        found = self._replay(item.nodeid, folder, run_options)
        if refused := _refused(found, allowed):
            names = ", ".join(dict.fromkeys(f"{row.name}: {row.verdict.value}" for row in refused))
            pytest.fail(f"hlotool: {names}\n\n{found}", pytrace=False)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    def _judge_beside(self, item: pytest.Item) -> None:
        """Add what is wrong with the programs of a test that has failed anyway."""
        try:
            self.check(item, {})
        except pytest.fail.Exception as failure:
            item.add_report_section("call", "hlotool", str(failure))

    # What is compiled outside of tests: while they are collected, say.

    def _judge_stray(self) -> None:
        folder = self._dumps.take("outside-of-tests")
        if folder is None:
            return
        found = self._replay("outside of tests", folder, _understood({})[1])
        if found.wrong:
            self._stray.append(str(found))
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def _replay(self, who: str, folder: Path, options: RunOptions) -> ReplayResult:
        """Every program in `folder`, which `who` compiled, in a process that lives as long as the run."""
        start = time.perf_counter()
        found, end = Replayed(), Ending()
        try:
            replay_on(self._worker(), [str(folder)], options, found, resume=False)
        except DumpError as error:
            end.problem = error
            self._unjudged.append(f"{who}: {error}")
        if found.journal is not None:
            found.journal.remove()
        self._counts.update(row.verdict.value for row in found.rows)
        reasons = dict.fromkeys(row.reason for row in found.rows if row.verdict not in _COMPARED)
        self._unjudged += [f"{who}: {reason.replace(f'{folder}/', '')}" for reason in reasons]
        elapsed = time.perf_counter() - start
        return ReplayResult(record_of([str(folder)], options, found.rows, end, found.notes, elapsed))

    def _worker(self) -> Pool:
        """It must not be watched: what it compiles is no program of a test."""
        if self._pool is None:
            from hlotool.runs.options.kept import PRELOAD, RunOptions
            from hlotool.system.executor import Limits
            from hlotool.system.pool import Pool, worker_environment

            environment = unwatched(worker_environment(1))
            self._pool = Pool(Limits(1, RunOptions().timeout), PRELOAD, "numpy", environment)
        return self._pool

    # The end of the run.

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """A wrong program that no test compiled makes the run fail, too."""
        if exitstatus != pytest.ExitCode.INTERRUPTED:
            self._judge_stray()
        if self._pool is not None:
            self._pool.close()
        self._unjudged += self._dumps.close()
        self._silent.append(self._dumps.is_silent)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = {
                "counts": dict(self._counts),
                "tests": self._tests,
                "stray": self._stray,
                "unjudged": self._unjudged,
                "silent": self._dumps.is_silent,
            }
        result = yield
        if self._stray and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker of pytest-xdist found."""
        output = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if output is not None:
            self._counts.update(output["counts"])
            self._tests += output["tests"]
            self._stray += output["stray"]
            self._unjudged += output["unjudged"]
            self._silent.append(output["silent"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What was judged, and what could not be."""
        write = terminalreporter.write_line
        terminalreporter.section("hlotool")
        for report in self._stray:
            write("compiled outside of tests:")
            write(report)
        known = [verdict for verdict in Verdict if self._counts[verdict.value]]
        verdicts = " · ".join(f"{self._counts[verdict.value]} {verdict.value}" for verdict in known)
        write(f"{self._counts.total()} programs of {self._tests} tests: {verdicts or 'none was compiled'}")
        if not self._counts and all(self._silent):
            write("no dump was written: nothing was compiled by XLA, or it was started before pytest was")
        for reason in self._unjudged[:_MOST_REASONS]:
            write(f"not judged: {reason}")
        if (hidden := len(self._unjudged) - _MOST_REASONS) > 0:
            write(f"not judged: {hidden} more")


def _wishes(item: pytest.Item) -> dict[str, Any]:
    """What the markers of a test say, the nearest one last."""
    wishes: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("hlotool"))):
        if marker.args:
            pytest.fail(f"hlotool: {item.nodeid}: the marker takes keyword arguments only", pytrace=False)
        wishes |= marker.kwargs
    return wishes


def _understood(wishes: Mapping[str, Any]) -> tuple[frozenset[Verdict] | None, RunOptions]:
    """The verdicts that are allowed, None for all that are no failures, and the options of the replay."""
    from hlotool.runs.options.kept import RunOptions

    given = dict(wishes)
    try:
        names = given.pop("allow", None)
        allowed = None if names is None else _FINE | {Verdict(name) for name in names}
        unknown = set(given) - set(RunOptions.__struct_fields__)
        if unknown:
            raise UsageError(f"no such argument: {', '.join(sorted(unknown))}")
        return allowed, options_from(given)
    except (HlotoolError, ValueError) as error:
        pytest.fail(f"hlotool: {error}", pytrace=False)


def _refused(found: ReplayResult, allowed: frozenset[Verdict] | None) -> list[ModuleRecord]:
    """The rows that fail a test. What could not be compared never does: it shows no fault."""
    if allowed is None:
        return found.wrong
    return [row for row in found if row.verdict in _COMPARED and row.verdict not in allowed]
