"""The compiler at hand: what it is called, the dumps that it writes, passes that it can leave out.

A module without dumps of passes is compiled here. What comes out is a dump like any other, with the
arguments and the result beside it, so everything else is the same as offline.

Of passes whose absence repairs a result every smallest set is found. That a pass repairs by its absence
does not prove it guilty (it may only have opened the way for the fault); it confirms what the stages say,
and tells people how to avoid the fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hlotool._version import __version__
from hlotool.backends.base import DumpingBackend, Value
from hlotool.backends.registry import PLACES, get_backend, parse_spec
from hlotool.blame.bisection.stages import StageOracle, stage_program, stage_trials
from hlotool.blame.searches import minimize
from hlotool.errors import BackendFailed, HlotoolError, UsageError
from hlotool.inputs.given import arrays_in, as_values, npz_bytes
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import Answer
from hlotool.runs.fleet.contents import context_key
from hlotool.runs.program import Program, compile_program
from hlotool.runs.records import ModuleRecord
from hlotool.runs.rows import Actual, compare_row
from hlotool.runs.task import Task, failed_row
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.records import DumpModule
from hlotool.system.files import digest
from hlotool.system.pool import Pool
from hlotool.system.records import Record

#: What a worker calls.
VERSION_FUNCTION = "hlotool.blame.bisection.compiler:compiler_here"

#: Options of a backend that say where it is found and how long it may take, not what it does.
_NOT_WHAT = PLACES | {"timeout"}


class CompilerRecord(Record, frozen=True, kw_only=True):
    """The compiler at hand.

    Attributes:
        name: with version and options, such as `jaxlib 0.10.2`.
        error: why there is none.
    """

    name: str = ""
    error: str = ""


def compiler_here(backend: str) -> CompilerRecord:
    """What a backend compiles with; called in a worker, for it may take the process down."""
    try:
        version = get_backend(backend).version
    except HlotoolError as error:
        return CompilerRecord(error=str(error))
    return CompilerRecord(name=compiler_name(version, backend))


def compiler_name(version: str, backend: str) -> str:
    """A compiler as its bug tracker knows it: `jaxlib 0.10.2`, `libtpu 0.0.42 (v5e)`, with options.

    Args:
        version: as the backend says it.
        backend: its spec.
    """
    name = re.split(r" \(| for ", version)[0]
    given = parse_spec(backend).options.items()
    options = [f"{key}={value}" if value else key for key, value in given if key not in _NOT_WHAT]
    return f"{name} ({', '.join(options)})" if options else name


def asked_compiler(pool: Pool, backend: str) -> CompilerRecord:
    """The compiler at hand, as a worker knows it.

    Raises:
        BackendFailed: it died when it was asked.
    """
    [end] = pool.call_all(VERSION_FUNCTION, [backend])
    if isinstance(end.value, BackendFailed):
        raise end.value
    return msgspec.msgpack.decode(end.value, type=CompilerRecord)


COMPILE_FUNCTION = "hlotool.blame.bisection.compiler:compile_live"

INPUTS, OUTPUTS = "inputs.npz", "outputs.npz"

#: What a search for what makes runs differ may take.
_SEARCH = Budget(seconds=60.0)


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
        origin: the instruction that makes them differ, where it was found.
        error: why there is no dump or no result.
    """

    folder: str = ""
    results: int = 0
    runs: int = 0
    origin: DivergenceRecord | None = None
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
    seen = Counter(tuple(array.tobytes() for array in arrays_in((result,))) for result in results)
    found = _origin(question, program, arguments, seen) if len(seen) > 1 and runner.copies == 1 else None
    return LiveRecord(folder=str(folder), results=len(seen), runs=len(results), origin=found)


def _origin(
    question: LiveQuestion, program: Program, arguments: Sequence[Value], seen: Counter[tuple[bytes, ...]]
) -> DivergenceRecord | None:
    """The instruction that makes runs differ; `seen`: how many gave each result."""
    from hlotool.judge.locate.varying import Spread, origin_of_spread

    spread = Spread(seen.total() - max(seen.values()), seen.total(), is_wrong=False)
    try:
        return origin_of_spread(question.backend, program.module, arguments, spread, _SEARCH)
    except HlotoolError:
        return None


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
    value: Any = oracle.call(known, f"{task.module.title} on {backend}", COMPILE_FUNCTION, question)
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


DISABLING_FUNCTION = "hlotool.blame.bisection.compiler:judge_without"

#: XLA cannot compile most programs without these (jaxlib 0.10.2), so they are left on unless accused.
NEEDED = frozenset(
    {
        "batched_gather_scatter_normalizer",
        "convolution-group-converter",
        "copy-insertion",
        "dot_decomposer",
        "flatten-call-graph",
        "fusion-wrapper",
        "gather_simplifier",
        "layout-assignment",
        "scatter_simplifier",
        "select_and_scatter_expander",
        "sub-byte-size-setter",
        "topk-decomposer",
    }
)

#: Sets that are looked for.
_LIMIT = 8


@dataclass(frozen=True, slots=True)
class WithoutQuestion:
    """Is the result right when a backend goes without some passes?

    Attributes:
        task: the module; its first stage is compiled.
        backend: spec of the backend, with the passes switched off.
        attempt: counts confirmations.
    """

    task: Task
    backend: str
    attempt: int = 0


def judge_without(question: WithoutQuestion) -> ModuleRecord:
    """Compile the first stage without the passes and compare its result with the reference's."""
    task = question.task
    try:
        reference = stage_program(task, 0)
        trial = stage_trials(task)[0]
        expected = reference.runner.run(trial.arguments).value
        tested = compile_program(question.backend, reference.path, reference.module, question.backend)
        outcome = tested.runner.run(trial.arguments, expected)
        return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))
    except HlotoolError as error:
        return failed_row(task, error, 0.0)


def without(backend: str, passes: Sequence[str]) -> str:
    """The spec of a backend that does not run `passes`: `xla:disable=algsimp+cse`."""
    separator = "," if ":" in backend else ":"
    return f"{backend}{separator}disable={'+'.join(passes)}" if passes else backend


def passes_that_changed(module: DumpModule) -> list[str]:
    """Names of the passes that left a dump, in order of first appearance."""
    stages = (s for s in module.stages if s.kind is Kind.PASS)
    found = dict.fromkeys(s.after_pass for s in stages if s.before_pass or not s.pipeline)
    return [name for name in found if name and name != "pipeline-start" and " " not in name]


@dataclass(frozen=True, slots=True)
class Repairs:
    """What switching passes off does.

    Attributes:
        sets: every smallest set of passes (up to a limit) without which the result is right.
        accused_alone: switching off the accused pass alone repairs the result.
        tried: there are passes that can be switched off.
    """

    sets: tuple[tuple[str, ...], ...]
    accused_alone: bool
    tried: bool

    def evidence(self, accused: str) -> Iterator[str]:
        """Sentences for the report: without which passes the result is right."""
        if self.accused_alone:
            yield f"without {accused} (xla_disable_hlo_passes) the result is right: asked twice"
        for names in self.sets:
            if names != (accused,):
                together = " and ".join(names)
                yield f"without {together} the result is right as well; every smaller set leaves it wrong"
        if not self.sets and self.tried:
            yield "no set of the passes that changed the program repairs the result by its absence"


def find_repairs(origin: Task, dump: DumpModule, backend: str, accused: str, oracle: StageOracle) -> Repairs:
    """Switch off passes until the result is right.

    Args:
        origin: the module as given.
        dump: of its compilation, which shows the passes that did something.
        backend: that gives the wrong result.
        accused: the pass that the stages accuse; empty when they accuse none.
        oracle: whose workers judge.
    """
    names = [name for name in passes_that_changed(dump) if name not in NEEDED and name != accused]
    if accused:
        names.append(accused)
    order = {name: number for number, name in enumerate(names)}

    def repaired(chosen: frozenset[str], attempt: int = 0) -> bool:
        spec = without(backend, sorted(chosen, key=order.__getitem__))
        key = digest(__version__, "without", context_key(origin.module, origin.options), spec, str(attempt))
        question = WithoutQuestion(origin, spec, attempt)
        value = oracle.call(key, f"without {', '.join(chosen) or 'nothing'}", DISABLING_FUNCTION, question)
        return value is not None and msgspec.convert(value, ModuleRecord).verdict.answer is Answer.GOOD

    attempts = count(1)
    sets = minimal_sets(names, repaired, lambda chosen: repaired(chosen, next(attempts)), _LIMIT)
    ordered = tuple(tuple(sorted(s, key=order.__getitem__)) for s in sets)
    return Repairs(ordered, (accused,) in ordered, bool(names))


# All minimal sets with a property, such as: the passes that must be off for the failure to vanish.
#
# One minimal set hides the others. Every other minimal set lacks at least one of its members, so the search
# is repeated without each of them in turn (Reiter, A Theory of Diagnosis from First Principles, 1987).

T = TypeVar("T")

#: Times that a set is asked about again before it is believed.
CONFIRMATIONS = 2


def minimal_sets(
    items: Sequence[T],
    holds: Callable[[frozenset[T]], bool],
    confirm: Callable[[frozenset[T]], bool],
    limit: int = 16,
) -> list[frozenset[T]]:
    """The minimal subsets of `items` that have a property.

    Args:
        items: the whole set.
        holds: does the set have the property? Sets that contain one with the property should have it too.
        confirm: asks again, without any memory of earlier answers.
        limit: of the number of sets.

    Returns:
        the sets, in the order found, each confirmed `CONFIRMATIONS` times; empty when `items` has not got
        the property.
    """
    found: list[frozenset[T]] = []
    seen: set[frozenset[T]] = set()
    waiting: list[frozenset[T]] = [frozenset()]
    while waiting and len(found) < limit:
        excluded = waiting.pop(0)
        if excluded in seen:
            continue
        seen.add(excluded)
        known = next((s for s in found if not s & excluded), None)
        minimal = known or _one([item for item in items if item not in excluded], holds)
        if minimal is None:
            continue
        if minimal not in found and all(confirm(minimal) for _ in range(CONFIRMATIONS)):
            found.append(minimal)
        waiting += [excluded | {item} for item in items if item in minimal]
    return found


def _one(items: Sequence[T], holds: Callable[[frozenset[T]], bool]) -> frozenset[T] | None:
    """One minimal subset with the property."""
    if not holds(frozenset(items)):
        return None

    def first_holding(candidates: Sequence[tuple[T, ...]]) -> int | None:
        return next((i for i, c in enumerate(candidates) if holds(frozenset(c))), None)

    return frozenset(minimize(items, first_holding))
