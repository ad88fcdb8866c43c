"""`hlotool exec`: run a program, and replay what it compiles with its own arguments and results.

The imports that take time stand inside the functions: the program is on its way before they begin.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, Unsupported, UsageError
from hlotool.interface.api.calls import Ending, check_backends, chosen_backends, ending, options_from
from hlotool.interface.api.compile import compile, new_folder
from hlotool.interface.cli.calling import TerminalCourse
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import tell
from hlotool.judge.verdicts import EXCUSED, Verdict
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, Folder, option
from hlotool.runs.options.replaying import Execution, Found, SeveralBackends, TolerancesByOutput
from hlotool.runs.options.shared import Only, Repro

if TYPE_CHECKING:
    from hlotool.interface.report.command_records import BisectRecord
    from hlotool.interface.report.records import CompileRecord, RunRecord
    from hlotool.runs.capture.launch import DumpWishes, Program
    from hlotool.runs.capture.session import Session
    from hlotool.runs.options.kept import RunOptions


#: First executions of a module that are judged only where no others come: a warm-up's learning rate is 0 in
#: the first step, what starts at 0 hides its gradients there, and a moment is no average yet in the second.
_LESS_TELLING = 2
#: What the command that the report ends with looks into although nothing is accused: it needs the dump.
_LOOKED_INTO = EXCUSED | {Verdict.DIFFERS}
#: Why there may be nothing for `--keep-when` and `--repeat` to look at.
_NO_EXECUTIONS = "--keep-when and --repeat saw no execution: they look at JAX's programs for one device"
#: How `--bisect` is to search: options of this command that are arguments of `hlotool.bisect`.
_SHARED = ("seed", "rtol", "atol", "exact", "repro", "timeout", "jobs", "memory_limit")


class _Dumped(Only, group="what to dump"):
    snapshots: int = option(
        "executions of each module that are judged with arguments and results, from the third on or the"
        " last ones of fewer [1]",
        default=1,
        parse=parsers.executions,
    )
    passes: bool = option("the program after every pass, too", default=False)
    max_size: int = option("of the dump on disk [10G]", default=10 << 30, parse=parsers.byte_size)
    keep_when: str | None = option(
        "of all executions keep and judge those with a NaN or an infinity in the result, a scalar F times its"
        " median, and every Nth: nan|inf|jump:F|every:N, or some of it",
        default=None,
        parse=parsers.conditions,
    )
    keep_last: int = option(
        "and so many executions before such a one [3]", default=3, parse=parsers.executions
    )
    keep_bytes: int = option("that these may take on disk [2G]", default=2 << 30, parse=parsers.byte_size)
    keep: Folder = option("a new folder for the dump, which stays", default=None)


class _Compared(SeveralBackends, group="what to compare"):
    seed: int = option("of inputs where none are captured [0]", default=0, parse=parsers.seed)


class _Ahead(Arguments, group="another device"):
    target: str = option(
        "compile for it, too, what the program compiles: v5e, h100, … (see hlotool compile)",
        default="",
        flags=("--for",),
        metavar="TARGET",
    )


class _Bisect(Arguments):
    bisect: bool = option("find what made it wrong (implies --passes)", default=False)


class _Searched(_Bisect, Repro, group="search"):
    repro: Folder = option("for bundles [hlotool-repro]", default=None)


class ExecArguments(_Dumped, _Compared, _Ahead, TolerancesByOutput, Found, _Searched, Execution):
    """What `hlotool exec` takes."""

    program: list[str] = option(
        "and its arguments", kw_only=False, nargs=argparse.REMAINDER, metavar="COMMAND"
    )


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    import msgspec

    from hlotool.runs.capture.launch import Program, environment_of

    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        raise UsageError("which program? It follows the options: hlotool exec -- python train.py")
    if _records(arguments) and not arguments.snapshots:
        raise UsageError("--keep-when and --repeat look at executions, and --snapshots 0 keeps none")
    chosen = chosen_backends(arguments.reference, arguments.backend, arguments.compare, arguments.precision)
    options = options_from(vars(arguments), **chosen)
    if options.backend == options.reference:
        # The reference gives the same every time; the device is asked while the program runs.
        options = msgspec.structs.replace(options, repeat=1)
    if arguments.target:
        from hlotool.backends.registry import get_backend
        from hlotool.runs.ahead import target_spec

        # A compiler that is missing says so now: the program may take hours.
        _ = get_backend(target_spec(arguments.target, arguments.timeout)).version
    missing = check_backends(options)
    folder = new_folder("--keep", arguments.keep)
    try:
        wishes = _wishes(arguments, folder)
        program = Program(words, environment_of(wishes, os.environ), own_stdout=not arguments.json)
        return _accompany(program, wishes, options, list(missing), arguments, start)
    finally:
        with suppress(OSError):
            folder.rmdir()  # of a command that came to nothing


def _wishes(arguments: argparse.Namespace, folder: Path) -> DumpWishes:
    from hlotool.runs.capture.launch import DumpWishes

    passes = arguments.passes or arguments.bisect
    record = _recorded(arguments) if _records(arguments) else None
    return DumpWishes(folder, arguments.snapshots > 0, passes, arguments.only, record)


def _records(arguments: argparse.Namespace) -> bool:
    """Whether executions are looked at within the program."""
    return bool(arguments.keep_when) or arguments.repeat > 1


def _recorded(arguments: argparse.Namespace) -> dict[str, object]:
    """What is looked for in executions, as `executions.Wishes` has it."""
    limits = (size for size in (arguments.keep_bytes, arguments.max_size) if size)
    return {
        "conditions": arguments.keep_when or "",
        "last": arguments.keep_last,
        "most_bytes": min(limits, default=1e300),
        "repeat": arguments.repeat,
        "judged": _LESS_TELLING + 1,
    }


def _accompany(
    program: Program,
    wishes: DumpWishes,
    options: RunOptions,
    missing: Sequence[str],
    arguments: argparse.Namespace,
    start: float,
) -> int:
    """Everything from the start of the program to the report."""
    with program:
        from hlotool.interface.api.replay import record_of
        from hlotool.interface.report.command_records import ExecRecord, ProgramRecord, exec_exit_code
        from hlotool.interface.report.progress import Beside
        from hlotool.runs.capture.events import events_first
        from hlotool.runs.capture.launch import notes_on, read_processes
        from hlotool.runs.capture.session import Session
        from hlotool.runs.capture.watch import Watch

        limits = arguments.snapshots, arguments.max_size, _LESS_TELLING
        with Watch(wishes.folder, *limits, is_chosen=wishes.record is not None) as watch:
            counted = _uncounted if arguments.quiet else Beside(sys.stderr)
            session = Session(watch, options, missing, _announce, counted)
            session.replay_beside(program)
    ran = ProgramRecord(
        command=program.command,
        status=program.status,
        seconds=program.seconds,
        processes=read_processes(wishes.folder),
    )
    course = TerminalCourse(arguments)
    with ending(course) as end:
        end.interrupted = _replay_rest(session, program, course)
    events = session.events()
    rows = events_first(session.rows(), events)
    if wishes.record is not None and not session.executed:
        end.problem = end.problem or Unsupported(_NO_EXECUTIONS)
    session.notes += notes_on(ran.processes, rows, wishes, os.environ, ran.status, program.last_words)
    folders = session.folders()
    paths = [str(folders[0] if len(folders) == 1 else wishes.folder)]
    replays = record_of(paths, options, rows, end, session.notes, time.perf_counter() - start)
    search = _search(replays, arguments, course, end)
    ahead = _ahead(replays, wishes, arguments, course, end)
    code = end.exit_code(_worse(ExitCode(replays.exit_code), ahead))
    is_open = any(row.verdict in _LOOKED_INTO or row.nothing_but_nan for row in rows)
    is_open = is_open or bool(events)
    is_kept = arguments.keep is not None or (bool(rows) and code != ExitCode.AGREE) or is_open
    record = ExecRecord(
        versions=replays.versions,
        program=ran,
        dump=str(wishes.folder) if is_kept else "",
        events=events,
        run=replays,
        bisect=search,
        compiled=ahead,
        error=end.error,
        interrupted=end.interrupted,
        exit_code=exec_exit_code(code, ran.status),
        seconds=time.perf_counter() - start,
    )
    course.finish(record)
    if not is_kept:
        shutil.rmtree(wishes.folder, ignore_errors=True)
    return record.exit_code


def _replay_rest(session: Session, program: Program, course: TerminalCourse) -> bool:
    """Replay what is left when the program has ended; whether the user stopped it."""
    with course.waiting("reading what the program compiled"):
        tasks = session.tasks_left(program.last_words)
    with course.replaying(tasks, session.judged) as listener:
        return session.replay_rest(tasks, listener).interrupted


def _search(
    replays: RunRecord, arguments: argparse.Namespace, course: TerminalCourse, end: Ending
) -> BisectRecord | None:
    """What `bisect` finds in the modules that are wrong, if it is asked for, and something is."""
    from hlotool.interface.api.bisect import bisect
    from hlotool.judge.verdicts import DIFFERING

    wrong = dict.fromkeys(row.name for row in replays.modules if row.verdict in DIFFERING)
    if not arguments.bisect or not wrong or end.interrupted:
        return None
    names = "|".join(map(re.escape, wrong))
    shared = {name: getattr(arguments, name) for name in _SHARED}
    return bisect(replays.paths, only=f"^({names})$", **shared, course=course).record


def _ahead(
    replays: RunRecord, wishes: DumpWishes, arguments: argparse.Namespace, course: TerminalCourse, end: Ending
) -> CompileRecord | None:
    """What the compiler of another device makes of the same programs, if it is asked for."""
    if not arguments.target or not replays.modules or end.interrupted:
        return None
    kept = None if arguments.keep is None else wishes.folder / "compiled"
    shared = {name: getattr(arguments, name) for name in ("only", "seed", "timeout", "jobs", "memory_limit")}
    asked = {"target": arguments.target, "out": kept, "passes": arguments.passes}
    return compile(replays.paths, **asked, **shared, course=course).record


def _worse(code: ExitCode, ahead: CompileRecord | None) -> ExitCode:
    """A mismatch on either device decides; else what failed here, then there."""
    other = ExitCode.AGREE if ahead is None else ExitCode(ahead.exit_code)
    return other if other is ExitCode.MISMATCH or code is ExitCode.AGREE else code


def _uncounted(judged: int, wrong: int) -> None:
    """For who wants no progress."""


def _announce(text: str) -> None:
    """Say at once what happened: the program may run for hours."""
    tell(f"hlotool: {text}")
