"""`hlotool run`: replay every module under the paths and compare its stages."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hlotool.api.given import FINDING_KINDS, budget, finding_kinds, regex, words
from hlotool.api.numbers import modules, shard
from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import (
    add_backend_options,
    add_baseline_option,
    add_cache_option,
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_only_option,
    add_output_options,
    add_paths,
    add_scale_option,
    add_tolerance_options,
    add_unknown_options,
)
from hlotool.cli.output import emit_error
from hlotool.cli.reports import add_report_options, is_for_others

if TYPE_CHECKING:
    from hlotool.findings.records import ErrorRecord
    from hlotool.report.records import RunRecord

USAGE = "run [options] PATH ..."
ABOUT = "replay every module of a dump and compare its stages"
DESCRIPTION = """\
Replay every module of a dump: run the program as the frontend gave it (before optimizations) and
the program that was compiled (after optimizations) on the same inputs, and compare their results.
"""
EXAMPLES = """\
examples:
  hlotool run DIR                                 every module of a dump directory
  hlotool run DIR --only train_step --verbose     one module, every detail
  hlotool run dump.tar.gz --jobs 8 --json         an archive, eight processes, JSON for scripts
  hlotool run FILE.hlo --inputs in.npz --outputs out.npz
                                                  does the program give what the hardware gave?
  hlotool run FILE.hlo --backend xla              does real XLA give what the numpy reference gives?
  hlotool run FILE.hlo --reference xla --backend xla:disable=algsimp
                                                  does XLA give the same without one of its passes?
  hlotool run DIR --compare numpy,cuda,xla:gpu    the first is the reference of all others
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    _add_choice_options(parser)
    add_input_options(parser)
    add_baseline_option(add_comparison_options(parser))
    group = add_execution_options(parser, on_clusters=True)
    add_cache_option(group)
    group.add_argument(
        "--journal",
        metavar="DIR",
        help="keep what is finished there, or at a URL, to go on elsewhere [cache]",
    )
    add_report_options(parser)
    add_output_options(parser)


def _add_choice_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to compare")
    add_only_option(group)
    group.add_argument(
        "--stages",
        metavar="REF,TESTED",
        type=words,
        default=(),
        help="shell patterns of stage names, the reference first; '*': all stages by the first",
    )
    add_backend_options(group)
    add_unknown_options(group)
    add_scale_option(group)
    group.add_argument("--shard", metavar="I/N", type=shard, help="one of N parts; `merge` makes them one")
    group.add_argument(
        "--sample", metavar="N", type=modules, default=0, help="N modules, spread over functions and sizes"
    )
    group.add_argument(
        "--max-failures", metavar="N", type=modules, default=0, help="begin no more after N that fail"
    )


def add_comparison_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Tolerances, and what is looked for; returns the group of the latter."""
    add_tolerance_options(parser, by_output=True)
    group = parser.add_argument_group("what is found")
    add_exact_option(group)
    group.add_argument("--save-outputs", metavar="DIR", help="write expected and actual arrays as .npy")
    group.add_argument("--save-values", metavar="DIR", help="write what instructions compute as .npy")
    group.add_argument(
        "--values", metavar="REGEX", type=regex, default="", help="of those whose name matches [all]"
    )
    group.add_argument(
        "--first-divergence",
        action=argparse.BooleanOptionalAction,
        help="name the instruction at which a differing program goes wrong [where that takes seconds]",
    )
    group.add_argument(
        "--fail-on",
        metavar=",".join(FINDING_KINDS),
        type=finding_kinds,
        default=(),
        help="exit 1 for these, too: NaN or infinity in a result, even if both sides agree; a module or an"
        " output of which nothing can be said",
    )
    group.add_argument(
        "--coverage",
        action=argparse.BooleanOptionalAction,
        help="list by source line which branches, ties, signs, … the inputs made occur [counts, where cheap]",
    )
    group.add_argument(
        "--thorough",
        action="store_true",
        help="explain every wrong output, not only the worst three; run all further sets of inputs",
    )
    group.add_argument(
        "--budget",
        metavar="SECONDS|FACTORx",
        type=budget,
        help="what judging one comparison, and what further sets of inputs may take: seconds by the clock, or"
        " how many times the work of the runs [0.4 of --timeout; half of the work without them]",
    )
    group.add_argument(
        "--further-sets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="after the plain generated inputs, others that reach more of the program [yes]",
    )
    return group


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        from hlotool.cli.scale import show

        return show(arguments, arguments.paths, in_place=True)
    from hlotool.api.replay import replay

    course = TerminalCourse(arguments)
    result = replay(arguments.paths, **keywords(replay, arguments), course=course)
    if not is_for_others(arguments) and (problem := _lonely_problem(result.record)):
        emit_error(problem)
        return result.exit_code
    return course.finish(result.record)


def _lonely_problem(record: RunRecord) -> ErrorRecord | None:
    """The error of a single module that could not even be read: one clear line says it all."""
    from hlotool.findings.verdict import Verdict

    if len(record.modules) == 1 and record.modules[0].verdict is Verdict.BAD_INPUT:
        return record.modules[0].error
    return None
