"""`hlotool check`: what is wrong with programs, before anything runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.check.gpus import GPUS
from hlotool.cli.options import (
    add_output_options,
    add_paths,
    add_stages_option,
    add_worker_options,
    words,
)
from hlotool.cli.output import emit, emit_json, finish
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.check.run import Report
    from hlotool.ir.module import Module
    from hlotool.report.records import CheckRecord

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
  hlotool check DIR --sarif > findings.sarif      for code review tools
  hlotool check FILE.hlo --explain-fusion multiply.3 reduce.1
  hlotool check FILE.hlo --fix output-layout -o MENDED.hlo
"""

_EXPLAIN = "may A be fused into B, and why not: names of instructions"
_FIX = "write the module with its offload-output errors (E1200) mended"

_SEVERITIES = ("error", "warning", "note")


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
    group.add_argument("--show", choices=_SEVERITIES, default="note", help="least severity shown [note]")
    group.add_argument("--fail-on", choices=_SEVERITIES, default="warning", help="exit 1 from here [warning]")
    group.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0 on stdout")
    group = parser.add_argument_group("mending")
    group.add_argument("--fix", choices=("output-layout", "move-to-device"), help=_FIX)
    group.add_argument("-o", "--output", metavar="FILE", help="where the mended module goes [stdout]")
    add_worker_options(parser)
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
        return _list_rules(arguments)
    if not arguments.paths:
        raise UsageError("nothing to check: give a dump directory or an HLO file")
    if arguments.fix:
        return _fix(arguments)
    if arguments.explain_fusion:
        return _explain_fusion(arguments)
    record = _record(arguments, _check(arguments))
    if arguments.sarif:
        from hlotool.report.sarif import sarif

        emit_json(sarif(record))
        return record.exit_code
    return finish(record, arguments)


def _check(arguments: argparse.Namespace) -> Report:
    from hlotool.check.config import accepted, choose_rules
    from hlotool.check.run import PRELOAD, check
    from hlotool.dump.directory import open_dumps
    from hlotool.workers.cores import worker_count
    from hlotool.workers.pool import Limits, Pool

    rules = choose_rules(arguments.only, arguments.skip)
    # Only a configuration can say which findings are accepted.
    ignores = getattr(arguments, "ignore", [])
    with Pool(Limits(worker_count(arguments.jobs), arguments.timeout), PRELOAD) as pool:
        pool.start()
        dumps = open_dumps(arguments.paths)
        report = check(dumps, pool, rules, arguments.stages, arguments.gpu)
    report.findings, report.ignored = accepted(report.findings, ignores)
    return report


def _record(arguments: argparse.Namespace, report: Report) -> CheckRecord:
    from hlotool.check.findings import Severity
    from hlotool.report.records import CheckRecord, versions

    limit = Severity(arguments.fail_on).rank
    shown = Severity(arguments.show).rank
    is_grave = any(finding.severity.rank <= limit for finding in report.findings)
    code = ExitCode.MISMATCH if is_grave else ExitCode.AGREE
    if report.failures and code is ExitCode.AGREE:
        code = ExitCode.USAGE
    return CheckRecord(
        versions=versions(),
        paths=arguments.paths,
        findings=[finding for finding in report.findings if finding.severity.rank <= shown],
        failures=report.failures,
        modules=report.modules,
        files=report.stages,
        ignored=report.ignored,
        exit_code=code,
    )


def _fix(arguments: argparse.Namespace) -> int:
    """Write the mended module; what was done goes to stderr."""
    from hlotool.check.offload.fix import fixed
    from hlotool.findings.files import writing

    mended, count = fixed(_only_module(arguments.paths, "--fix"), arguments.fix)
    text = mended.to_text()
    if arguments.output:
        with writing(arguments.output):
            Path(arguments.output).write_text(text, encoding="utf-8")
    else:
        emit(text)
    print(f"hlotool: {count} output{'' if count == 1 else 's'} mended ({arguments.fix})", file=sys.stderr)
    return ExitCode.AGREE


def _only_module(paths: list[str], option: str) -> Module:
    """The module of the one file that `option` works on."""
    from hlotool.dump.directory import open_dumps
    from hlotool.dump.loading import load_stage

    owners = [module for dump in open_dumps(paths) for module in dump.modules]
    stages = [(owner, stage) for owner in owners for stage in owner.stages or owner.others]
    if len(stages) != 1:
        raise UsageError(f"{option} takes one HLO file, and there are {len(stages)}")
    return load_stage(*stages[0], may_be_elided=True)


def _explain_fusion(arguments: argparse.Namespace) -> int:
    """Print whether A may be fused into B; exit 0 when it may."""
    from hlotool.check.fusions import explain_fusion

    module = _only_module(arguments.paths, "--explain-fusion")
    answers = explain_fusion(module, *arguments.explain_fusion)
    emit("".join(f"{kind}: {reason or 'yes'}\n" for kind, reason in answers.items()))
    return ExitCode.MISMATCH if all(answers.values()) else ExitCode.AGREE


def _list_rules(arguments: argparse.Namespace) -> int:
    import msgspec

    from hlotool.check.catalogue import all_rules
    from hlotool.report.records import RulesRecord

    rules = list(all_rules().values())
    return finish(msgspec.convert({"rules": rules}, RulesRecord, from_attributes=True), arguments)
