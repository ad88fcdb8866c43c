"""`hlotool prove`: are two programs the same function of real numbers?"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from hlotool.cli.numbers import repetitions, seed
from hlotool.cli.options import (
    add_only_option,
    add_output_options,
    add_unknown_options,
    add_worker_options,
    options_from,
    values_file,
)
from hlotool.cli.output import finish
from hlotool.errors import UsageError

if TYPE_CHECKING:
    from hlotool.diff.programs import Pairing
    from hlotool.replay.exact.records import ProvedRecord

USAGE = "prove [options] A [B]"
ABOUT = "are two programs the same function of real numbers?"
DESCRIPTION = """\
Evaluate two programs at random points of a finite field, where nothing is rounded, and compare what they
return. What is equal there is the same function of real numbers, whatever order sums are in and whatever
types they are rounded to; what is not has a witness. Overflow, NaN and signs of zero are not seen.
"""
EXAMPLES = """\
examples:
  hlotool prove BEFORE.hlo AFTER.hlo              two programs
  hlotool prove DIR                               every module of a dump: before and after optimizations
  hlotool prove DIR1 DIR2 --only train_step       modules of the same name
  hlotool prove DIR --explain                     which laws and constants the answer rests on
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("left", metavar="A", help="HLO file, dump directory or archive")
    parser.add_argument("right", metavar="B", nargs="?", help="the same kind of thing [A's own last stage]")
    group = parser.add_argument_group("what to compare")
    add_only_option(group)
    add_unknown_options(group, opaque=False)
    group.add_argument("--trials", metavar="N", type=repetitions, default=2, help="random points [2]")
    group.add_argument("--seed", type=seed, default=0, help="of the random points [0]")
    group.add_argument(
        "--inputs",
        metavar="FILE",
        type=values_file,
        help=".npz or SCRIPT.py:FUNCTION: integers and preds, as indices; floats are drawn all the same",
    )
    group.add_argument("--explain", action="store_true", help="laws, constants and unknown functions")
    add_worker_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    for path in filter(None, (arguments.left, arguments.right)):
        if path != "-" and "://" not in path and not os.path.exists(path):
            raise UsageError(f"{path}: no such file or directory")
    import msgspec

    from hlotool.report.prove_records import ProveRecord, prove_exit_code
    from hlotool.report.records import versions

    notes: list[str] = []
    pairing = _pairing(arguments, notes)
    record = ProveRecord(
        versions=versions(),
        left=arguments.left,
        right=arguments.right or "",
        explain=arguments.explain,
        pairs=_proved(pairing, arguments),
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=notes,
    )
    return finish(msgspec.structs.replace(record, exit_code=int(prove_exit_code(record))), arguments)


def _pairing(arguments: argparse.Namespace, notes: list[str]) -> Pairing:
    """What is compared with what; notes get what was passed over."""
    from hlotool.diff.programs import Pairing, StagePair, pair_dumps
    from hlotool.dump.directory import open_dump
    from hlotool.dump.records import modules_matching
    from hlotool.replay.task import as_asked

    left, *others = (open_dump(path) for path in filter(None, (arguments.left, arguments.right)))
    options = options_from(arguments)
    left, *others = (
        replace(dump, modules=tuple(as_asked(m, options) for _, m in modules_matching([dump], options.only)))
        for dump in (left, *others)
    )
    notes += [note for dump in (left, *others) for note in dump.notes]
    if others:
        return pair_dumps(left, others[0])
    pairs = [StagePair(m.title, *m.pair, (m, m)) for m in left.modules if m.pair is not None]
    if not pairs:
        raise UsageError(f"{left.path}: {left.modules[0].unpaired_reason}; give the other program, too")
    notes += [f"{m.title}: {m.unpaired_reason}" for m in left.modules if m.pair is None]
    return Pairing(tuple(pairs))


def _proved(pairing: Pairing, arguments: argparse.Namespace) -> list[ProvedRecord]:
    """Each pair in a worker process."""
    import msgspec

    from hlotool.errors import BackendFailed
    from hlotool.replay.exact.records import ProvedRecord
    from hlotool.replay.exact.task import ProveTask, failed_record
    from hlotool.workers.cores import worker_count
    from hlotool.workers.pool import Limits, Pool

    tasks = [
        ProveTask(
            pair.name,
            pair.owners,
            pair.left,
            pair.right,
            arguments.trials,
            arguments.seed,
            arguments.timeout,
            arguments.inputs,
        )
        for pair in pairing.pairs
    ]
    limits = Limits(worker_count(arguments.jobs), arguments.timeout)
    with Pool(limits, ("hlotool.replay.exact.task",), "field") as pool:
        ends = pool.call_all("hlotool.replay.exact.task:prove", tasks)
    decoder = msgspec.msgpack.Decoder(ProvedRecord)
    return [
        failed_record(task, end.value, end.seconds)
        if isinstance(end.value, BackendFailed)
        else decoder.decode(end.value)
        for task, end in zip(tasks, ends)
    ]
