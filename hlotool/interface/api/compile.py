"""`compile`: programs for a device that need not be here, by its own compiler."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Course, Ending, ending, options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, Folder, option, takes
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import Called, Only, Paths

if TYPE_CHECKING:
    from hlotool.interface.report.records import CompileRecord, RunRecord
    from hlotool.runs.ahead import AheadTask
    from hlotool.runs.ahead_records import CompiledRecord
    from hlotool.system.pool import Pool


class CompileResult(Result["CompiledRecord"]):
    """What a compiler makes of programs: a row for each."""

    record: CompileRecord

    @property
    def rows(self) -> Sequence[CompiledRecord]:
        """One record per program, in the order of the dump."""
        return self.record.programs

    @property
    def run(self) -> RunRecord | None:
        """How the programs compare with what was made of them; None where they were not run."""
        return self.record.run


class _Compiled(Only, Called, group="what to compile"):
    target: str = option(
        "v5e, v6e,topology=2x4, h100,triton=off, … or another backend that compiles",
        "a device, with options as the backend `aot` takes them (`v6e,topology=2x4`); or another backend that"
        " compiles, such as `xla`",
        flags=("--for",),
        metavar="TARGET",
    )


class _Dumped(Arguments, group="what is made"):
    out: Folder = option(
        "a new folder for the dump, which stays",
        "a new folder for the dump, which stays; None keeps it only where something is wrong",
        default=None,
    )
    passes: bool = option("the program after every pass, too", default=False)
    run: bool = option(
        "do not run what was compiled beside what was given",
        "whether what was compiled is run on the reference beside what was given",
        default=True,
    )
    seed: int = option("of the inputs [0]", default=0, parse=parsers.seed)


class CompileArguments(Paths, _Compiled, _Dumped, Execution, Accompanied):
    """What `compile` takes, and `hlotool compile`."""


@takes(CompileArguments)
def compile(asked: CompileArguments) -> CompileResult:
    """Compile programs for a device that need not be here, and run what comes of it beside them.

    Returns:
        for each program whether it compiles, the memory that it needs beside what there is, kernels,
        collectives, the compiler's warnings, and the verdict on what it made.

    Raises:
        DumpError: a path cannot be read.
        UsageError: no such target, no module matches, the folder is not new.
    """
    start = time.perf_counter()
    from hlotool.runs.ahead import target_spec
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    spec = target_spec(asked.target, asked.timeout)
    folder = new_folder("--out", asked.out)
    notes: list[str] = []
    programs: list[CompiledRecord] = []
    found: RunRecord | None = None
    limits = Limits(worker_count(asked.jobs), asked.timeout, asked.memory_limit)
    with ending(asked.course) as end, Pool(limits, PRELOAD) as pool:
        if asked.run:
            pool.start()
        _compiled(_tasks(asked, spec, folder, notes), asked.course, programs)
        if asked.run and any(program.folder for program in programs):
            found = _replayed(asked, folder, programs, pool, notes)
            programs = _judged(programs, found)
    record = _record(asked, programs, found, notes, end, time.perf_counter() - start)
    is_kept = asked.out is not None or (record.exit_code != ExitCode.AGREE and any(folder.iterdir()))
    if not is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    import msgspec

    return CompileResult(msgspec.structs.replace(record, dump=str(folder) if is_kept else ""))


def new_folder(name: str, path: str | None) -> Path:
    """A new folder, with its real path.

    Args:
        name: of the option that gives it.
        path: None for one among those that are left.

    Raises:
        UsageError: it cannot be made, or there is something in it.
    """
    from hlotool.system.store_access import refuse_url

    if path is None:
        return Path(tempfile.mkdtemp(prefix="hlotool-")).resolve()
    folder = Path(refuse_url(name, path)).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{name} {path}: {error.strerror}") from error
    if not is_empty:
        raise UsageError(f"{name} {path}: there is something in it; give a new folder")
    return folder


def _tasks(asked: CompileArguments, spec: str, folder: Path, notes: list[str]) -> list[AheadTask]:
    """One for each program; of several each has a folder of its own."""
    from hlotool.runs.ahead import AheadTask
    from hlotool.runs.scripts import scripts_among
    from hlotool.sources.directory import open_dumps
    from hlotool.sources.records import modules_matching

    scripts = scripts_among(asked.paths, asked.args)
    paths = [path for path in asked.paths if path not in scripts]
    if scripts and not spec.startswith("aot:"):
        raise UsageError(f"--for {asked.target}: functions of a script are compiled for TPUs and GPUs alone")
    dumps = open_dumps(paths) if paths else []
    notes += [note for dump in dumps for note in dump.notes]
    modules = [module for _, module in modules_matching(dumps, asked.only)] if dumps else []
    shapes = None if asked.args is None else parsers.split_shapes(asked.args)
    count = len(scripts) + len(modules)
    places = [str(folder / f"program_{number:04d}" if count > 1 else folder) for number in range(count)]
    return [
        AheadTask(module, script, shapes, spec, place, asked.passes)
        for (module, script), place in zip(
            [*((None, s) for s in scripts), *((m, "") for m in modules)], places
        )
    ]


def _compiled(tasks: Sequence[AheadTask], course: Course, programs: list[CompiledRecord]) -> None:
    """One after the other: compilers use all processors, and have a process of their own."""
    from hlotool.runs.ahead import compile_ahead
    from hlotool.runs.ahead_records import COMPILES

    with course.counting(len(tasks), "programs") as done:
        for task in tasks:
            programs.append(compile_ahead(task))
            outcome = programs[-1].outcome
            done(task.name, "" if outcome == COMPILES else f"{task.name}: {outcome}")


def _replayed(
    asked: CompileArguments, folder: Path, programs: Sequence[CompiledRecord], pool: Pool, notes: list[str]
) -> RunRecord:
    """What was compiled beside what was given; a dump of what does not compile has nothing to compare."""
    from hlotool.interface.api.replay import Replayed, record_of, replay_on

    start = time.perf_counter()
    made = [Path(program.folder).name for program in programs if program.folder]
    only = None if len(made) == len(programs) else f"^({'|'.join(made)})/"
    options, found = options_of(asked, only=only), Replayed()
    with ending(asked.course) as end:
        replay_on(pool, [str(folder)], options, found, asked.course, resume=False)
        end.interrupted = found.interrupted
    notes += found.notes
    return record_of([str(folder)], options, found.rows, end, [], time.perf_counter() - start)


def _judged(programs: Sequence[CompiledRecord], found: RunRecord) -> list[CompiledRecord]:
    """Each with the worst verdict of its dump, in which a compiler's helpers have nothing beside them."""
    import msgspec

    from hlotool.judge.verdicts import Verdict, worst

    judged = []
    for program in programs:
        rows = [row for row in found.modules if program.folder and row.path.startswith(f"{program.folder}/")]
        rows = [row for row in rows if row.verdict is not Verdict.NOT_COMPARED] or rows
        if rows:
            verdict = worst(row.verdict for row in rows)
            reason = next(row.reason for row in rows if row.verdict is verdict)
            program = msgspec.structs.replace(program, verdict=verdict.value, reason=reason)
        judged.append(program)
    return judged


def _record(
    asked: CompileArguments,
    programs: Sequence[CompiledRecord],
    found: RunRecord | None,
    notes: Sequence[str],
    end: Ending,
    elapsed: float,
) -> CompileRecord:
    from hlotool.interface.report.records import CompileRecord, versions

    end.interrupted |= found is not None and found.interrupted
    return CompileRecord(
        versions=versions(),
        paths=asked.paths,
        target=asked.target,
        programs=list(programs),
        run=found,
        notes=list(notes),
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(_exit_code(programs, found)),
        seconds=elapsed,
    )


def _exit_code(programs: Sequence[CompiledRecord], found: RunRecord | None) -> ExitCode:
    """A program that is refused, or made wrong, is a finding; then what failed, then what the run says."""
    from hlotool.judge.verdicts import Verdict, exit_code_of
    from hlotool.runs.ahead_records import COMPILES, REFUSED

    code = ExitCode.AGREE if found is None else ExitCode(found.exit_code)
    outcomes = {program.outcome for program in programs} - {COMPILES}
    if REFUSED in outcomes or code is ExitCode.MISMATCH:
        return ExitCode.MISMATCH
    return exit_code_of(map(Verdict, outcomes)) if outcomes else code
