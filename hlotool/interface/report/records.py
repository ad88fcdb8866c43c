"""The JSON that `--json` prints: one versioned record per command; causes and baselines in them.

What a module's replay found is defined in `hlotool.runs.records`; here it gets its envelope. A schema is
committed beside this file (`schema/`), and a released schema only grows. Causes, what many findings have in
common, are the part of a record that a fleet is summed up by.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from hlotool._version import __version__
from hlotool.checks.explain.records import MatchRecord, TopicRecord
from hlotool.checks.records import FailedFile, Finding, Severity
from hlotool.errors import ExitCode
from hlotool.judge import verdicts
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Verdict
from hlotool.runs.ahead_records import CompiledRecord
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.system.packages import system_name, version_of
from hlotool.system.records import CommandRecord, ErrorRecord, Record, SourceRecord


class FolderRecord(Record, frozen=True, kw_only=True):
    """A place in which a cause shows.

    Attributes:
        folder: a dump directory, such as that of a host; empty for the current one.
        count: how many findings of the cause are in it.
    """

    folder: str
    count: int


class CauseRecord(Record, frozen=True, kw_only=True):
    """Findings that come from the same thing, as far as it was located.

    Attributes:
        id: the same for the same cause in another run, wherever its dump is.
        kind: a verdict; of `check` a rule, of `bisect` the level at which the fault came in.
        what: the cause in one line.
        signature: what the findings share, and other ones do not.
        pass_name: the accused pass; empty where none is known.
        source: the first wrong instruction of the example; null where nothing was located.
        count: number of findings.
        programs: of how many different programs, whatever these are called; 0 where that was not determined.
        rows: their positions among the entries that the command lists (`modules`, `findings`, `culprits`).
        example: the module that shows it worst.
        file: of the example.
        folders: where it shows, the place with the most findings first.
        next: the command that looks closer at the example; empty where there is none.
    """

    id: str
    kind: str
    what: str
    signature: Signature
    pass_name: str = ""
    source: SourceRecord | None = None
    count: int
    programs: int = 0
    rows: list[int]
    example: str
    file: str = ""
    folders: list[FolderRecord] = []
    next: str = ""


class KnownRecord(Record, frozen=True, kw_only=True):
    """A finding that is known.

    Attributes:
        command: that found it.
        identity: what is equal for the same finding in another run, wherever its files are.
        name: of the module when it was found.
        kind: its verdict or rule.
        message: in one line.
        count: how often it was found; what is found more often is new.
    """

    command: str
    identity: list[str]
    name: str
    kind: str
    message: str = ""
    count: int = 1


class BaselineRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool baseline update` writes, and `--baseline` reads.

    Attributes:
        file: that was written.
        known: findings.
        added: names of what was not known before.
        removed: names of what was known before, and is no longer found.
    """

    schema: Literal["hlotool.baseline/1"] = "hlotool.baseline/1"
    file: str = ""
    known: list[KnownRecord] = []
    added: list[str] = []
    removed: list[str] = []
    exit_code: int = 0


class ComparedRecord(Record, frozen=True, kw_only=True):
    """How the findings of a record compare with a baseline.

    Attributes:
        file: the baseline.
        known: positions of outcomes that are known, among those that the command lists.
        new: names of those that are not.
        fixed: names of known findings whose module was looked at, and which are no longer found.
        absent: names of known findings whose module was not looked at.
    """

    file: str
    known: list[int] = []
    new: list[str] = []
    fixed: list[str] = []
    absent: list[str] = []


#: RFC 3339, in UTC: such texts are in order as the times are.
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class RememberedRecord(Record, frozen=True, kw_only=True):
    """What a run did not find itself: entries that an earlier command has found of the same programs.

    Attributes:
        results: how many entries of `modules`.
        oldest: when the first of them was found, in UTC, such as `2026-11-20T09:30:00Z`.
        newest: when the last of them was found.
    """

    results: int
    oldest: str
    newest: str


class RunRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool run --json` prints.

    Attributes:
        paths: as given.
        options: that decide about the results.
        modules: one entry per comparison, in the order of the dump.
        summary: how many entries have each verdict.
        causes: what the entries that do not agree come from, the gravest last.
        baseline: how they compare with what was known before; null without a baseline.
        notes: what was passed over, and warnings.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; `modules` holds what was finished.
        found: how many comparisons there were to make: of a shard, a sample, or a run that ended after some
            failures, more than were made here.
        remembered: which entries are from the cache of verdicts; null where none is, as with `--no-cache`.
        positions: of a shard: the place of each entry of `modules` among those of the whole run.
    """

    schema: Literal["hlotool.run/1"] = "hlotool.run/1"
    versions: dict[str, str]
    paths: list[str]
    options: RunOptions
    modules: list[ModuleRecord] = []
    summary: dict[str, int] = {}
    causes: list[CauseRecord] = []
    baseline: ComparedRecord | None = None
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    found: int = 0
    remembered: RememberedRecord | None = None
    positions: list[int] = []
    exit_code: int
    seconds: float = 0.0


class BackendRecord(Record, frozen=True, kw_only=True):
    """One backend.

    Attributes:
        name: as on the command line.
        available: it can be used here.
        version: as reports cite it; empty when it is not available.
        device: what it computes on; empty when it is not available.
        options: what may follow its name, as in `NAME:WORD,KEY=VALUE`, by form with the meaning.
        reason: why it is not available.
    """

    name: str
    available: bool
    version: str = ""
    device: str = ""
    options: dict[str, str] = {}
    reason: str = ""


class BackendsRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool backends --json` prints.

    Attributes:
        backends: by name.
    """

    schema: Literal["hlotool.backends/1"] = "hlotool.backends/1"
    backends: list[BackendRecord]
    exit_code: int = 0


class CompileRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool compile --json` prints.

    Attributes:
        paths: as given.
        target: likewise.
        dump: folder of the dump; empty where it was removed, as nothing in it is worth a second look.
        programs: what became of each.
        run: what was found when they were run as they were given and as they were compiled; null where they
            were not.
        notes: what was passed over, and warnings.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; what is here was finished before.
    """

    schema: Literal["hlotool.compile/1"] = "hlotool.compile/1"
    versions: dict[str, str]
    paths: list[str]
    target: str
    dump: str = ""
    programs: list[CompiledRecord] = []
    run: RunRecord | None = None
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


class ExplainRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool explain --json` prints.

    Attributes:
        matches: what was recognised, in the order of the text.
        topics: words of reports that the text is: verdicts, answers of commands, rules.
    """

    schema: Literal["hlotool.explain/1"] = "hlotool.explain/1"
    matches: list[MatchRecord]
    topics: list[TopicRecord] = []
    exit_code: int


class CheckRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool check --json` prints.

    Attributes:
        paths: as given.
        findings: in the order of the dump; those about several modules last.
        causes: findings of one rule that say the same of the same line, the gravest last.
        baseline: how they compare with what was known before; null without a baseline.
        fail_on: least severity for which the exit code is 1.
        failures: files that could not be checked.
        modules: how many were looked at.
        files: how many files were looked at.
        ignored: findings that the configuration accepts.
        notes: what was not looked at.
    """

    schema: Literal["hlotool.check/1"] = "hlotool.check/1"
    versions: dict[str, str]
    paths: list[str]
    findings: list[Finding]
    causes: list[CauseRecord] = []
    baseline: ComparedRecord | None = None
    fail_on: str = "warning"
    failures: list[FailedFile] = []
    modules: int = 0
    files: int = 0
    ignored: int = 0
    notes: list[str] = []
    exit_code: int


class RuleRecord(Record, frozen=True, kw_only=True):
    """One rule of `hlotool check`.

    Attributes:
        id: for `--only`, `--skip` and the configuration.
        severity: of its findings, unless they say otherwise.
        title: what it finds.
        remedy: what to do about its findings.
    """

    id: str
    severity: Severity
    title: str
    remedy: str = ""


class RulesRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool check --list-rules --json` prints.

    Attributes:
        rules: all of them.
    """

    schema: Literal["hlotool.rules/1"] = "hlotool.rules/1"
    rules: list[RuleRecord]
    exit_code: int = 0


def remembered_of(made: Sequence[int]) -> RememberedRecord | None:
    """What is said of entries that earlier commands have found; None without any.

    Args:
        made: seconds since the epoch when each of them was found.
    """
    if not made:
        return None
    oldest, newest = (datetime.fromtimestamp(found, UTC).strftime(_TIME) for found in (min(made), max(made)))
    return RememberedRecord(results=len(made), oldest=oldest, newest=newest)


def remembered_by_all(records: Iterable[RememberedRecord | None]) -> RememberedRecord | None:
    """What is said of entries of several runs."""
    found = [record for record in records if record is not None]
    if not found:
        return None
    return RememberedRecord(
        results=sum(record.results for record in found),
        oldest=min(record.oldest for record in found),
        newest=max(record.newest for record in found),
    )


def summary_of(modules: Iterable[ModuleRecord]) -> dict[str, int]:
    """How many records have each verdict, the best verdict first."""
    counts = Counter(module.verdict for module in modules)
    return {known.value: counts[known] for known in Verdict if counts[known]}


def exit_code_of(
    modules: Sequence[ModuleRecord],
    interrupted: bool = False,
    fail_on: Sequence[str] = (),
    exact: bool = False,
) -> ExitCode:
    """The exit status that the records deserve: the gravest finding wins, and trivial programs hide nothing.

    Args:
        modules: the records.
        interrupted: the user stopped it.
        fail_on: what else is a finding (see `ModuleRecord.fails_on`).
        exact: the user wants programs that are the same function, and close values do not show that.
    """
    if interrupted:
        return ExitCode.INTERRUPTED
    if any(module.fails_on(fail_on) for module in modules):
        return ExitCode.MISMATCH
    code = verdicts.exit_code_of(module.verdict for module in modules)
    if code is ExitCode.AGREE and (others := [module for module in modules if not module.is_trivial]):
        # Sixty helpers that agree say nothing of the one program that matters.
        code = verdicts.exit_code_of(module.verdict for module in others)
    if exact and code is ExitCode.AGREE and any(map(is_unproved, modules)):
        return ExitCode.INCONCLUSIVE
    return code


def is_unproved(module: ModuleRecord) -> bool:
    """Whether two programs agree that are not known to be the same function in every output."""
    is_program = module.stage_tested != REALITY
    is_open = module.exact_refusal != "" or module.exact_gap != ""
    return is_program and module.verdict in verdicts.AGREEING and is_open


def versions() -> dict[str, str]:
    """Versions that a report must cite to be reproducible."""
    found = {"hlotool": __version__, "python": platform.python_version(), "platform": system_name()}
    packages = {package: version_of(package) for package in ("numpy", "ml_dtypes")}
    return found | {package: version for package, version in packages.items() if version}
