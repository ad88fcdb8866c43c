"""`hlotool check`: what is wrong with programs, before anything runs."""

from __future__ import annotations

import argparse
import sys

from hlotool.api.check import FIXES, SEVERITIES
from hlotool.api.given import words
from hlotool.check.gpus import GPUS
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import (
    add_baseline_option,
    add_cluster_option,
    add_output_options,
    add_paths,
    add_stages_option,
    add_worker_options,
)
from hlotool.cli.output import emit
from hlotool.cli.reports import add_report_options
from hlotool.errors import ExitCode, UsageError

USAGE = "check [options] PATH ..."
ABOUT = "find what is wrong in programs without running them"
DESCRIPTION = """\
Check programs without running them: the rules of HLO, the legality of fusions and of host offloading, and
what is legal but probably not meant: recompilation, unrolled loops, stateful random numbers, and more.
"""
EXAMPLES = """\
examples:
  hlotool check DIR                               every module: the first and the last stage
  hlotool check DIR --stages '*'                  every stage that was dumped
  hlotool check FILE.hlo --only invalid-hlo
  hlotool check DIR --sarif findings.sarif        for code review tools
  hlotool check FILE.hlo --explain-fusion multiply.3 reduce.1
  hlotool check FILE.hlo --fix output-layout -o MENDED.hlo
"""

_EXPLAIN = "may A be fused into B, and why not: names of instructions"
_FIX = "write the module with its offload-output errors (E1200) mended"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser, "*")
    group = parser.add_argument_group("what to check")
    group.add_argument("--only", metavar="RULE,...", type=_rules, default=(), help="these rules only")
    group.add_argument("--skip", metavar="RULE,...", type=_rules, default=(), help="all rules but these")
    add_stages_option(group)
    group.add_argument("--list-rules", action="store_true", help="list the rules and what they find")
    group.add_argument("--gpu", choices=sorted(GPUS), help="whose shared memory fusions must do with")
    group.add_argument("--explain-fusion", nargs=2, metavar=("A", "B"), help=_EXPLAIN)
    group = parser.add_argument_group("result")
    group.add_argument("--show", choices=SEVERITIES, default="note", help="least severity shown [note]")
    group.add_argument("--fail-on", choices=SEVERITIES, default="warning", help="exit 1 from here [warning]")
    add_baseline_option(group)
    group = parser.add_argument_group("mending")
    group.add_argument("--fix", choices=FIXES, help=_FIX)
    group.add_argument("-o", "--output", metavar="FILE", help="where the mended module goes [stdout]")
    add_cluster_option(add_worker_options(parser))
    add_report_options(parser)
    add_output_options(parser)


def _rules(text: str) -> tuple[str, ...]:
    """Ids of rules that there are."""
    from hlotool.check.config import choose_rules

    names = words(text)
    try:
        choose_rules(names, ())
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return names


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.list_rules:
        from hlotool.api.check import list_rules

        return finish(list_rules().record, arguments)
    if not arguments.paths:
        raise UsageError("nothing to check: give a dump directory or an HLO file")
    if arguments.fix:
        return _fix(arguments)
    if arguments.explain_fusion:
        return _explain_fusion(arguments)
    from hlotool.api.check import check

    found = check(arguments.paths, **keywords(check, arguments))
    return finish(found.record, arguments)


def _fix(arguments: argparse.Namespace) -> int:
    """Write the mended module; what was done goes to stderr."""
    from hlotool.api.check import mend
    from hlotool.findings.files import write_file

    mended, count = mend(arguments.paths, arguments.fix)
    text = mended.to_text()
    if arguments.output:
        write_file(arguments.output, [text.encode("utf-8")])
    else:
        emit(text)
    print(f"hlotool: {count} output{'' if count == 1 else 's'} mended ({arguments.fix})", file=sys.stderr)
    return ExitCode.AGREE


def _explain_fusion(arguments: argparse.Namespace) -> int:
    """Print whether A may be fused into B; exit 0 when it may."""
    from hlotool.api.check import explain_fusion

    answers = explain_fusion(arguments.paths, *arguments.explain_fusion)
    emit("".join(f"{kind}: {reason or 'yes'}\n" for kind, reason in answers.items()))
    return ExitCode.MISMATCH if all(answers.values()) else ExitCode.AGREE
