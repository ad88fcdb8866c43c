"""`check`: what is wrong with programs, before anything runs; and what belongs to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hlotool.checks.gpus import GPUS
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.kept import known_before
from hlotool.interface.api.results import FindingsResult, Result
from hlotool.runs.options import declared
from hlotool.runs.options.declared import Arguments, As, Words, option, takes
from hlotool.runs.options.parsers import Program, paths_of
from hlotool.runs.options.shared import Baseline, Cluster, Compiler, LastFailed, Paths, Stages, Workers

if TYPE_CHECKING:
    from hlotool.checks.catalogue import Ignore
    from hlotool.checks.records import FailedFile, Finding
    from hlotool.checks.run import Report
    from hlotool.interface.api.last_failed import Place
    from hlotool.interface.report.records import CheckRecord, RuleRecord, RulesRecord
    from hlotool.ir.module import Module
    from hlotool.sources.records import DumpModule

#: The gravest first.
SEVERITIES = ("error", "warning", "note")
#: Ways of `mend`.
FIXES = ("output-layout", "move-to-device")


class CheckResult(FindingsResult["Finding"]):
    """What is wrong with programs: a row for each finding."""

    record: CheckRecord

    @property
    def rows(self) -> Sequence[Finding]:
        """In the order of the dump; those about several modules last."""
        return self.record.findings

    @property
    def findings(self) -> Sequence[Finding]:
        """The same as `rows`."""
        return self.record.findings

    @property
    def failures(self) -> Sequence[FailedFile]:
        """Files that could not be checked: nothing is known of them."""
        return self.record.failures

    def __repr__(self) -> str:
        return f"<CheckResult: {len(self.findings)} findings in {self.record.files} files>"


class Rules(Result["RuleRecord"]):
    """The rules that `check` knows."""

    record: RulesRecord

    @property
    def rows(self) -> Sequence[RuleRecord]:
        """One record per rule."""
        return self.record.rules


def _rules(text: str) -> tuple[str, ...]:
    """Ids of rules that there are."""
    from hlotool.checks.catalogue import choose_rules

    names = declared.words(text)
    try:
        choose_rules(names, ())
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return names


class _Rules(Arguments):
    only: Words = option("these rules only", default=(), parse=_rules, metavar="RULE,...")
    skip: Words = option("all rules but these", default=(), parse=_rules, metavar="RULE,...")


class _Checked(_Rules, LastFailed, Stages, Compiler, group="what to check"):
    list_rules: bool = option("list the rules and what they find", default=False, init=False, once=True)
    gpu: str | None = option("whose shared memory fusions must do with", default=None, choices=sorted(GPUS))
    explain_fusion: list[str] | None = option(
        "may A be fused into B, and why not: names of instructions",
        default=None,
        init=False,
        once=True,
        nargs=2,
        metavar=("A", "B"),
    )
    ignore: Sequence[Ignore | Mapping[str, str]] = option(
        doc="findings that are accepted: each a `rule` with a `reason`, and where that is, the regular"
        " expressions `module` and `instruction`",
        default=(),
        typed=False,
    )


class _Severities(Arguments):
    show: str = option("least severity shown [note]", default="note", choices=SEVERITIES)
    fail_on: str = option("exit 1 from here [warning]", default="warning", choices=SEVERITIES)


class _Result(_Severities, Baseline, group="result"): ...


class _Mended(Arguments, group="mending"):
    fix: str | None = option(
        "write the module with its offload-output errors (E1200) mended",
        default=None,
        init=False,
        once=True,
        choices=FIXES,
    )
    output: str | None = option(
        "where the mended module goes [stdout]",
        default=None,
        init=False,
        once=True,
        flags=("-o", "--output"),
        metavar="FILE",
    )


class CheckArguments(Paths, _Checked, _Result, _Mended, Workers, Cluster):
    """What `check` takes, and `hlotool check`."""

    paths: As[Program | Sequence[Program], list[str]] = option(kw_only=False, nargs="*")


@takes(CheckArguments)
def check(asked: CheckArguments) -> CheckResult:
    """Find what is wrong in programs without running them.

    The rules of HLO, the legality of fusions and of host offloading, and what is legal but probably not
    meant. A compiler that is asked, too, has the last word.

    Raises:
        DumpError: a path cannot be read.
        UsageError: no such rule, no such severity, an impossible argument.
    """
    from hlotool.checks.catalogue import accepted, choose_rules, ignored
    from hlotool.checks.records import unreadable
    from hlotool.checks.run import PRELOAD
    from hlotool.checks.run import check as check_modules
    from hlotool.interface.api.last_failed import TOGETHER, LastRun
    from hlotool.runs.fleet.known import executor_of
    from hlotool.sources.directory import open_usable
    from hlotool.system.executor import Limits
    from hlotool.system.resources import worker_count

    known = known_before(asked.baseline)
    if not asked.paths:
        raise UsageError("nothing to check: give a dump directory or an HLO file")
    accepting = ignored(asked.ignore)
    rules = choose_rules(asked.only, asked.skip)
    with executor_of(asked.cluster, Limits(worker_count(asked.jobs), asked.timeout), PRELOAD) as pool:
        pool.start()
        failures: list[FailedFile] = []
        dumps = open_usable(asked.paths, lambda *path: failures.append(unreadable(*path)))
        modules = [module for dump in dumps for module in dump.modules]
        last = LastRun("check", asked.paths)
        notes: list[str] = []
        if asked.last_failed:
            choice = last.choice(list(map(_place_of, modules)))
            modules, notes = [modules[position] for position in choice.positions], choice.notes
        report = check_modules(modules, pool, rules, asked.stages, asked.gpu, asked.compile)
        report.failures += failures
    report.findings, report.ignored = accepted(report.findings, accepting)

    def judged(show: str) -> CheckRecord:
        record = _record(asked.paths, report, notes, show, asked.fail_on)
        return known.judge(record) if known else record

    shown = judged(asked.show)
    least = SEVERITIES[-1]
    # What is not shown may fail, too.
    failed = _failed(shown if asked.show == least else judged(least))
    last.keep({TOGETHER, *map(_place_of, modules)}, failed)
    return CheckResult(shown)


def _place_of(module: DumpModule) -> Place:
    from hlotool.interface.api.last_failed import place_of

    stages = module.stages or module.others
    return place_of(str(stages[0].source) if stages else module.title, module.title)


def _failed(record: CheckRecord) -> Iterator[Place]:
    """What fails, and is in no baseline; findings that several programs have together are those of none."""
    from hlotool.checks.catalogue import all_rules
    from hlotool.checks.records import Severity
    from hlotool.interface.api.last_failed import TOGETHER, place_of

    known = set(record.baseline.known) if record.baseline is not None else ()
    limit = Severity(record.fail_on).rank
    for number, finding in enumerate(record.findings):
        if number not in known and finding.severity.rank <= limit:
            is_of_dump = all_rules()[finding.rule].check_dump is not None
            yield TOGETHER if is_of_dump else place_of(finding.file, finding.module)
    for number, failure in enumerate(record.failures, len(record.findings)):
        if number not in known:
            yield place_of(failure.file, failure.module)


def _record(paths: list[str], report: Report, notes: list[str], show: str, fail_on: str) -> CheckRecord:
    from hlotool.checks.records import Severity
    from hlotool.interface.report.causes import causes_of_check
    from hlotool.interface.report.next_command import command_after_finding
    from hlotool.interface.report.records import CheckRecord, versions

    limit, shown = Severity(fail_on).rank, Severity(show).rank
    is_grave = any(finding.severity.rank <= limit for finding in report.findings)
    code = ExitCode.MISMATCH if is_grave else ExitCode.AGREE
    if report.failures and code is ExitCode.AGREE:
        code = ExitCode.USAGE
    findings = [finding for finding in report.findings if finding.severity.rank <= shown]
    return CheckRecord(
        versions=versions(),
        paths=paths,
        findings=findings,
        causes=causes_of_check(findings, lambda finding: command_after_finding(paths, finding)),
        failures=report.failures,
        modules=report.modules,
        files=report.stages,
        ignored=report.ignored,
        notes=notes,
        fail_on=fail_on,
        exit_code=code,
    )


def list_rules() -> Rules:
    """The rules that `check` knows, as `hlotool check --list-rules` prints them."""
    import msgspec

    from hlotool.checks.catalogue import all_rules
    from hlotool.interface.report.records import RulesRecord

    known = list(all_rules().values())
    return Rules(msgspec.convert({"rules": known}, RulesRecord, from_attributes=True))


def mend(path: Program | Sequence[Program], how: str) -> tuple[Module, int]:
    """A program whose offload-output errors (E1200) are mended, as `hlotool check --fix` writes it.

    Args:
        path: one file of HLO, or a module.
        how: `output-layout` or `move-to-device`.

    Returns:
        a new module, and how many of its outputs were mended.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or no such way.
        InputError: it is no HLO.
    """
    from hlotool.checks.offload.rules import fixed

    if how not in FIXES:
        raise UsageError(f"how={how!r}: it is one of {', '.join(FIXES)}")
    return fixed(_only_module(path, "--fix"), how)


def explain_fusion(path: Program | Sequence[Program], producer: str, consumer: str) -> dict[str, str]:
    """Whether an instruction may be fused into another one, as `hlotool check --explain-fusion` says it.

    Args:
        path: one file of HLO, or a module.
        producer: name of the one.
        consumer: name of the other.

    Returns:
        for each kind of fusion why not; empty where it may.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or no such instructions.
        InputError: it is no HLO.
    """
    from hlotool.checks.fusions import explain_fusion as explained

    return dict(explained(_only_module(path, "--explain-fusion"), producer, consumer))


def _only_module(path: Program | Sequence[Program], option: str) -> Module:
    """The module of the one file that `option` works on."""
    from hlotool.sources.directory import open_dumps
    from hlotool.sources.loading import load_stage

    owners = [module for dump in open_dumps(paths_of(path)) for module in dump.modules]
    stages = [(owner, stage) for owner in owners for stage in owner.stages or owner.others]
    if len(stages) != 1:
        raise UsageError(f"{option} takes one HLO file, and there are {len(stages)}")
    return load_stage(*stages[0], may_be_elided=True)
