"""`hlotool mutate`: would these inputs notice a fault?"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from hlotool.cli.numbers import repetitions, seed
from hlotool.cli.options import (
    add_execution_options,
    add_output_options,
    add_unknown_options,
    budget,
    options_from,
    values_file,
)
from hlotool.cli.output import Ending, ending, finish
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.replay.options import RunOptions
    from hlotool.report.mutate_records import MutateRecord
    from hlotool.search.mutation.records import MutatedRecord
    from hlotool.search.mutation.task import MutationTask

USAGE = "mutate [options] FILE"
ABOUT = "would your inputs notice a fault? The share of single faults that they show"
DESCRIPTION = """\
Plant single faults of the kinds that compilers make at random places of a program, and see which of them the
inputs of a replay show. Of a dump with the program before and after optimisation, the latter gets the faults
and the former judges. What is not noticed is listed with the line of your program, unless it is proved that
nothing can show it.
"""
EXAMPLES = """\
examples:
  hlotool mutate DIR                              the inputs that `hlotool run DIR` takes
  hlotool mutate FILE.hlo --inputs in.npz         inputs of your own
  hlotool mutate DIR --thorough --cases 1000      all further sets, more faults
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    group = parser.add_argument_group("what is planted")
    group.add_argument("--cases", metavar="N", type=repetitions, default=200, help="faults at most [200]")
    group.add_argument("--seed", type=seed, default=0, help="of faults and of generated inputs [0]")
    add_unknown_options(group)
    group = parser.add_argument_group("inputs in question", "those that `hlotool run` takes, unless")
    group.add_argument("--inputs", metavar="FILE", type=values_file, help=".npz or SCRIPT.py:FUNCTION")
    group.add_argument(
        "--further-sets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="after the plain generated set, others that reach more of the program [yes]",
    )
    group.add_argument("--thorough", action="store_true", help="all further sets, however long it takes")
    group.add_argument(
        "--budget", metavar="SECONDS|FACTORx", type=budget, help="what further sets may take [1x of the rest]"
    )
    add_execution_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    options = options_from(arguments)
    program: MutatedRecord | None = None
    notes: list[str] = []
    with ending(arguments) as end:
        program = _mutated(arguments, options, notes)
    return finish(_record(arguments, options, program, end, notes, time.perf_counter() - start), arguments)


def _mutated(arguments: argparse.Namespace, options: RunOptions, notes: list[str]) -> MutatedRecord:
    """The mutants of all worker processes together."""
    import msgspec

    from hlotool.errors import BackendFailed
    from hlotool.replay.options import PRELOAD
    from hlotool.search.mutation.records import MutatedRecord
    from hlotool.workers.pool import Limits, Pool

    tasks = _tasks(arguments, options, notes)
    limits = Limits(options.workers, options.timeout * 10, options.memory_limit)
    with Pool(limits, PRELOAD, "numpy") as pool:
        ends = pool.call_all("hlotool.search.mutation.task:examine", tasks)
    parts = []
    for end in ends:
        if isinstance(end.value, BackendFailed):
            raise end.value
        parts.append(msgspec.msgpack.decode(end.value, type=MutatedRecord))
    mutants = [mutant for part in parts for mutant in part.mutants]
    return msgspec.structs.replace(parts[0], mutants=mutants)


def _tasks(arguments: argparse.Namespace, options: RunOptions, notes: list[str]) -> list[MutationTask]:
    from hlotool.dump.directory import open_dump
    from hlotool.replay.task import as_asked
    from hlotool.search.mutation.task import MutationTask

    dump = open_dump(arguments.path)
    notes += dump.notes
    found = [module for module in dump.modules if module.stages or module.others]
    if len(found) != 1:
        raise UsageError(f"{arguments.path}: one program is needed, here are {len(found)}; name its file")
    module = as_asked(found[0], options)
    stages = module.pair or ([*module.stages, *module.others][0],) * 2
    parts = min(options.workers, arguments.cases)
    return [
        MutationTask(module, *stages, options, arguments.cases, arguments.seed, part, parts)
        for part in range(parts)
    ]


def _record(
    arguments: argparse.Namespace,
    options: RunOptions,
    program: MutatedRecord | None,
    end: Ending,
    notes: list[str],
    seconds: float,
) -> MutateRecord:
    from collections import Counter

    from hlotool.report.mutate_records import MutateRecord
    from hlotool.report.records import versions

    counts = Counter(mutant.fate for mutant in program.mutants) if program is not None else Counter()
    shown, open_ = counts["killed"], counts["survived"]
    return MutateRecord(
        versions=versions(),
        path=arguments.path,
        options=options,
        program=program,
        score=shown / (shown + open_) if shown + open_ else 1.0,
        counts=dict(counts),
        error=end.error,
        notes=notes,
        exit_code=end.exit_code(ExitCode.AGREE),
        seconds=seconds,
    )
