"""A module without dumps of passes, and the compiler at hand: let it write them, and run what it made.

What comes out is a dump like any other, with the arguments and the result beside it, so everything else is
the same as offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from hlotool._version import __version__
from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.cache.fingerprint import digest
from hlotool.dump.directory import open_dump
from hlotool.errors import BackendFailed, HlotoolError, UsageError
from hlotool.findings.records import Record
from hlotool.replay.keys import context_key
from hlotool.replay.task import Task
from hlotool.search.bisection.stage_oracle import StageOracle
from hlotool.search.bisection.stage_worker import stage_program, stage_trials
from hlotool.search.optimised import DumpingBackend
from hlotool.values.npz import arrays_in, as_values, npz_bytes

FUNCTION = "hlotool.search.bisection.compile_here:compile_live"

INPUTS, OUTPUTS = "inputs.npz", "outputs.npz"


@dataclass(frozen=True, slots=True)
class LiveQuestion:
    """Compile a module with dumps and run it.

    Attributes:
        task: the module.
        backend: that compiles it.
        folder: gets the dump.
        repeats: runs of the compiled program.
    """

    task: Task
    backend: str
    folder: str
    repeats: int


class LiveRecord(Record, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        folder: of the dump; empty when there is none.
        results: different results of the runs, which had the same arguments.
        runs: number of runs.
        error: why there is no dump or no result.
    """

    folder: str = ""
    results: int = 0
    runs: int = 0
    error: str = ""


def compile_live(question: LiveQuestion) -> LiveRecord:
    """Compile the first stage of a module, with dumps, and run it on its arguments."""
    folder = Path(question.folder)
    try:
        backend = get_backend(question.backend)
        if not isinstance(backend, DumpingBackend):
            raise UsageError(f"backend {question.backend} cannot write what its passes do")
        program = stage_program(question.task, 0)
        arguments = stage_trials(question.task)[0].arguments
        runner = program.compiled_by(backend.dumping(folder))
        (folder / INPUTS).write_bytes(npz_bytes(arguments, runner.copies))
        results = [runner.run(arguments).value for _ in range(question.repeats)]
        (folder / OUTPUTS).write_bytes(npz_bytes(as_values(results[0], runner.copies), runner.copies))
    except BackendFailed as error:
        return LiveRecord(folder=str(folder) if folder.is_dir() else "", error=str(error))
    except HlotoolError as error:
        return LiveRecord(error=str(error))
    return LiveRecord(folder=str(folder), results=_distinct(results), runs=len(results))


def _distinct(results: Sequence[Value]) -> int:
    """How many results differ in at least one bit."""
    return len({tuple(array.tobytes() for array in arrays_in((result,))) for result in results})


@dataclass(frozen=True, slots=True)
class Live:
    """A module that was compiled here.

    Attributes:
        origin: the module that was asked for.
        task: its dump, as a module; None when there is none.
        record: what compiling and running it came to.
    """

    origin: Task
    task: Task | None
    record: LiveRecord


def go_live(task: Task, backend: str, root: Path, oracle: StageOracle, repeats: int) -> Live:
    """Have a module compiled, with dumps, and make a task of them.

    Args:
        task: the module; its first stage is compiled.
        backend: that compiles it.
        root: gets a folder for the dump.
        oracle: whose workers do it.
        repeats: runs of the compiled program.
    """
    key = digest(__version__, "live", context_key(task.module, task.options), backend, str(repeats))
    folder = root / key[:16]
    known = key if folder.is_dir() else f"{key} again"
    question = LiveQuestion(task, backend, str(folder), repeats)
    value: Any = oracle.call(known, f"{task.module.title} on {backend}", FUNCTION, question)
    record = msgspec.convert(value, LiveRecord) if value else LiveRecord(error="the process died")
    return Live(task, _task(task, record) if record.folder else None, record)


def _task(origin: Task, record: LiveRecord) -> Task | None:
    """The dump as a module with arguments and result."""
    folder = Path(record.folder)
    modules = [m for m in open_dump(folder).modules if len(m.stages) > 1]
    if not modules:
        return None
    biggest = max(modules, key=lambda module: len(module.stages))
    has_parameters = (folder / INPUTS).is_file()
    options = msgspec.structs.replace(
        origin.options,
        inputs=str(folder / INPUTS) if has_parameters else None,
        outputs=str(folder / OUTPUTS) if (folder / OUTPUTS).is_file() else None,
    )
    # The folder in its title tells it from other dumps made here.
    return Task(replace(biggest, artefacts=(), directory=folder.name), options)
