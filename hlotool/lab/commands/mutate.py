"""`mutate`: would these inputs notice a fault?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.parsers import Values
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import (
    FurtherSets,
    GivenInputs,
    OneProgram,
    Scale,
    Thorough,
    Unknown,
)

if TYPE_CHECKING:
    from hlotool.interface.report.lab_records import MutantRecord, MutatedRecord, MutateRecord
    from hlotool.lab.mutation.task import MutationTask
    from hlotool.runs.options.kept import RunOptions

#: What else to type where the time was over.
_MORE: Final = "--timeout gives more, --scale makes the program smaller"
#: The time after which a worker is killed that should have ended by itself, of the limit and besides.
_LATER: Final = 1.2
_LATER_SECONDS: Final = 10.0


class MutateResult(Result["MutantRecord"]):
    """What became of planted faults: a row for each."""

    record: MutateRecord

    @property
    def rows(self) -> Sequence[MutantRecord]:
        """One record per mutant, in the order in which they were drawn."""
        return self.record.program.mutants if self.record.program is not None else []

    @property
    def score(self) -> float:
        """Share of the mutants that were noticed, of those that are not equivalent; 1 where there is none."""
        return self.record.score

    @property
    def survivors(self) -> list[MutantRecord]:
        """Faults that nothing noticed."""
        return [mutant for mutant in self.rows if mutant.fate == "survived"]

    def __repr__(self) -> str:
        return f"<MutateResult: {len(self.rows)} mutants, score {self.score:.3f}>"


class _Faults(Arguments):
    cases: int = option("faults at most [200]", default=200, parse=parsers.repetitions)
    seed: int = option("of faults and of generated inputs [0]", default=0, parse=parsers.seed)


class _Planted(_Faults, Unknown, Scale, group="what is planted"): ...


class _Questioned(
    GivenInputs,
    FurtherSets,
    Thorough,
    group="inputs in question",
    about="those that `hlotool run` takes, unless",
):
    inputs: As[Values | None, str | None] = option(
        ".npz or SCRIPT.py:FUNCTION",
        "arguments: a file, `SCRIPT.py:FUNCTION`, or arrays; those that `replay` takes when None",
        default=None,
    )
    further_sets: bool = option(
        "after the plain generated set, others that reach more of the program [yes]", default=True
    )
    thorough: bool = option("all extra input sets, however long it takes", default=False)
    budget: str | None = option(
        "what extra input sets may take [0.5x]",
        "what extra input sets may take, in seconds (`30`) or times the work of the runs (`5x`)",
        default=None,
    )


class MutateArguments(OneProgram, _Planted, _Questioned, Execution, Accompanied):
    """What `mutate` takes, and `hlotool mutate`."""

    timeout: float = option(
        doc="seconds for all faults; those that are examined by then are reported", default=300.0
    )


@takes(MutateArguments)
def mutate(asked: MutateArguments) -> MutateResult:
    """Plant single faults in a program and see which of them the inputs of a replay show.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, an impossible argument.
        BackendTimeout: no fault was examined in the time.
        BackendFailed: all processes died.
    """
    start = time.perf_counter()
    options = options_of(asked)
    program: MutatedRecord | None = None
    notes: list[str] = []
    with ending(asked.course) as end:
        program = _mutated(asked.path, asked.cases, options, notes)
    return MutateResult(_record(asked.path, options, program, end, notes, time.perf_counter() - start))


def _mutated(path: str, cases: int, options: RunOptions, notes: list[str]) -> MutatedRecord:
    """The mutants of all worker processes together."""
    import msgspec

    from hlotool.errors import BackendFailed, BackendTimeout
    from hlotool.interface.report.lab_records import MutatedRecord
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool

    tasks = _tasks(path, cases, options, notes)
    # They look at the clock themselves; one that cannot, as in a library, is killed a little later.
    limits = Limits(options.workers, options.timeout * _LATER + _LATER_SECONDS, options.memory_limit)
    with Pool(limits, PRELOAD, "numpy") as pool:
        ends = [end.value for end in pool.call_all("hlotool.lab.mutation.task:examine", tasks)]
    failures = [end for end in ends if isinstance(end, BackendFailed)]
    parts = [
        msgspec.msgpack.decode(end, type=MutatedRecord) for end in ends if not isinstance(end, BackendFailed)
    ]
    if not parts:
        raise failures[0]
    mutants = [mutant for part in parts for mutant in part.mutants]
    is_late = any(part.is_late for part in parts)
    sizes = list(dict.fromkeys(note for part in parts for note in part.notes))
    if is_late and not mutants:
        late = f"no fault was examined within {options.timeout:g} s, so nothing is decided ({_MORE})"
        raise BackendTimeout("numpy", "; ".join([late, *sizes]))
    notes += sizes
    notes += dict.fromkeys(f"a process died, and what it knew with it: {failure}" for failure in failures)
    if is_late:
        notes.append(
            f"{len(mutants)} of at most {cases} faults were examined: {options.timeout:g} s were over "
            f"({_MORE}, --cases and --no-further-sets ask for less)"
        )
    fullest = max(parts, key=lambda part: len(part.sets))
    return msgspec.structs.replace(fullest, mutants=mutants, is_late=is_late, notes=[])


def _tasks(path: str, cases: int, options: RunOptions, notes: list[str]) -> list[MutationTask]:
    from hlotool.lab.mutation.task import MutationTask
    from hlotool.runs.task import as_asked
    from hlotool.sources.directory import open_dump

    dump = open_dump(path)
    notes += dump.notes
    found = [module for module in dump.modules if module.stages or module.others]
    if len(found) != 1:
        raise UsageError(f"{path}: one program is needed, here are {len(found)}; name its file")
    module = as_asked(found[0], options)
    stages = module.pair or ([*module.stages, *module.others][0],) * 2
    parts = min(options.workers, cases)
    return [MutationTask(module, *stages, options, cases, options.seed, part, parts) for part in range(parts)]


def _record(
    path: str,
    options: RunOptions,
    program: MutatedRecord | None,
    end: Ending,
    notes: list[str],
    seconds: float,
) -> MutateRecord:
    from collections import Counter

    from hlotool.interface.report.lab_records import MutateRecord
    from hlotool.interface.report.records import versions

    counts = Counter(mutant.fate for mutant in program.mutants) if program is not None else Counter()
    shown, open_ = counts["killed"], counts["survived"]
    return MutateRecord(
        versions=versions(),
        path=path,
        options=options,
        program=program,
        score=shown / (shown + open_) if shown + open_ else 1.0,
        counts=dict(counts),
        error=end.error,
        notes=notes,
        exit_code=end.exit_code(ExitCode.AGREE),
        seconds=seconds,
    )
