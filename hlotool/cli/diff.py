"""`hlotool diff`: what differs between two programs, two dumps or two sets of results."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from hlotool.cli.numbers import distance, tolerance
from hlotool.cli.options import add_output_options, add_stages_option
from hlotool.cli.output import finish
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.report.diff_records import DiffRecord

USAGE = "diff [options] A B"
ABOUT = "what differs between two programs, dumps or sets of results"
DESCRIPTION = """\
Compare two programs instruction by instruction, or two sets of arrays element by element.

Instructions are matched by what they compute, by what is computed from them, by the frontend's names and
lines, and by their own names, through calls and fusions: what was renamed or moved is recognised.
"""
EXAMPLES = """\
examples:
  hlotool diff BEFORE.hlo AFTER.hlo               what a pass has changed
  hlotool diff DIR1 DIR2                          the modules of two dumps, first and last stage
  hlotool diff DIR1 DIR2 --stages '*after_fusion*'
  hlotool diff expected.npz actual.npz            two sets of results
  hlotool diff out/one out/other --rtol 1e-5      folders of .npy, such as --save-outputs writes
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("left", metavar="A", help="HLO file, dump, archive; or .npz, .npy, folder of them")
    parser.add_argument("right", metavar="B", help="the same kind of thing")
    group = parser.add_argument_group("programs")
    add_stages_option(group)
    group.add_argument(
        "-U", "--context", metavar="N", type=distance, default=3, help="equal lines around differences [3]"
    )
    group = parser.add_argument_group("results", "tolerance derived from the element type, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    for path in (arguments.left, arguments.right):
        if path != "-" and "://" not in path and not os.path.exists(path):
            raise UsageError(f"{path}: no such file or directory")
    from hlotool.diff.results import are_results

    kinds = {are_results(arguments.left), are_results(arguments.right)}
    if len(kinds) > 1:
        raise UsageError("one side holds arrays, the other one programs: they cannot be compared")
    record = _results(arguments) if kinds == {True} else _programs(arguments)
    return finish(record, arguments)


def _programs(arguments: argparse.Namespace) -> DiffRecord:
    from hlotool.diff.programs import diff_stages, pair_dumps
    from hlotool.dump.directory import open_dump
    from hlotool.report.diff_records import DiffRecord
    from hlotool.report.records import versions

    left, right = open_dump(arguments.left), open_dump(arguments.right)
    pairing = pair_dumps(left, right, arguments.stages)
    record = DiffRecord(
        versions=versions(),
        left=arguments.left,
        right=arguments.right,
        kind="programs",
        programs=[diff_stages(pair, arguments.context) for pair in pairing.pairs],
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=[*left.notes, *right.notes],
    )
    return _with_exit_code(record)


def _results(arguments: argparse.Namespace) -> DiffRecord:
    from hlotool.diff.results import common_names, diff_results, read_results
    from hlotool.report.diff_records import DiffRecord
    from hlotool.report.records import versions

    left, right = read_results(arguments.left), read_results(arguments.right)
    common = common_names(left, right)
    ones, others = {one for one, _ in common}, {other for _, other in common}
    if not common:
        raise UsageError(f"{left.path} and {right.path} have no array name in common")
    record = DiffRecord(
        versions=versions(),
        left=arguments.left,
        right=arguments.right,
        kind="results",
        results=list(diff_results(left, right, arguments.rtol, arguments.atol)),
        only_left=[name for name in left.arrays if name not in ones],
        only_right=[name for name in right.arrays if name not in others],
    )
    return _with_exit_code(record)


def _with_exit_code(record: DiffRecord) -> DiffRecord:
    import msgspec

    from hlotool.report.diff_records import differs

    code = ExitCode.AGREE
    if differs(record):
        code = ExitCode.MISMATCH
    elif any(program.error for program in record.programs):
        code = ExitCode.USAGE
    return msgspec.structs.replace(record, exit_code=int(code))
