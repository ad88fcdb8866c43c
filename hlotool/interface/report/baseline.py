"""Baselines: what is known fails no more, and nothing else is let through.

A finding is known by its identity (`Outcome.identity`): program, sides, verdict, cause and every output that
does not agree, with what is wrong about it. Each of them counts as often as it was found: one more is new,
unless its programs are the same under other names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from hlotool.checks.records import Severity
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.report.command_records import (
    BisectRecord,
    DiffRecord,
    ExecRecord,
    ProveRecord,
    bisect_exit_code,
)
from hlotool.interface.report.outcome_rules import program_name
from hlotool.interface.report.outcomes import Outcome, State, outcomes_of
from hlotool.interface.report.records import (
    BaselineRecord,
    CheckRecord,
    ComparedRecord,
    KnownRecord,
    RunRecord,
    exit_code_of,
)
from hlotool.system.paths import read_file
from hlotool.system.records import CommandRecord

_R = TypeVar("_R", RunRecord, CheckRecord, BisectRecord)
#: Names in a line.
_NAMED = 6
#: The command and the identity of a finding.
_Key = tuple[str, tuple[str, ...]]

#: Records that can be a baseline, by the name in their schema.
_RECORDS: dict[str, type[CommandRecord]] = {
    "hlotool.run/1": RunRecord,
    "hlotool.exec/1": ExecRecord,
    "hlotool.check/1": CheckRecord,
    "hlotool.bisect/1": BisectRecord,
    "hlotool.prove/1": ProveRecord,
    "hlotool.diff/1": DiffRecord,
    "hlotool.baseline/1": BaselineRecord,
}


def read_baseline(path: str) -> BaselineRecord:
    """The baseline in a file: one that was written as such, or the record that a command printed (`--json`).

    Raises:
        UsageError: it cannot be read, or is neither.
    """
    record = read_record(path)
    return record if isinstance(record, BaselineRecord) else baseline_of(record)


def read_record(path: str) -> CommandRecord:
    """The record in a file, of a command with findings.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    content = read_file(path, UsageError)
    try:
        name = json.loads(content)["schema"]
        return msgspec.json.decode(content, type=_RECORDS[name])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise UsageError(f"{path}: no baseline, and no record of --json: {reason}") from problem


def baseline_of(record: CommandRecord) -> BaselineRecord:
    """All findings of a record as known ones."""
    found: dict[_Key, KnownRecord] = {}
    for outcome in outcomes_of(record):
        if outcome.is_passed:
            continue
        before = found.get(_key(outcome))
        if before and outcome.is_twin:
            continue
        found[_key(outcome)] = KnownRecord(
            command=outcome.command,
            identity=list(outcome.identity),
            name=outcome.name,
            kind=outcome.rule,
            message=outcome.message,
            count=before.count + 1 if before else 1,
        )
    return BaselineRecord(known=list(found.values()))


def updated(old: BaselineRecord | None, records: Sequence[CommandRecord], file: str) -> BaselineRecord:
    """A baseline of what `records` found, and of what `old` knows of modules that they did not look at."""
    looked_at = _looked_at([outcome for record in records for outcome in outcomes_of(record)])
    former = old.known if old is not None else []
    known = [one for one in former if (one.command, program_name(one.name)) not in looked_at]
    known += [one for record in records for one in baseline_of(record).known]
    before = {(one.command, *one.identity): one for one in former}
    after = {(one.command, *one.identity): one for one in known}
    return BaselineRecord(
        file=file,
        known=known,
        added=[f"{one.name}: {one.kind}" for key, one in after.items() if key not in before],
        removed=[f"{one.name}: {one.kind}" for key, one in before.items() if key not in after],
    )


def compared_with(record: _R, baseline: BaselineRecord, file: str) -> _R:
    """The record with what is new about it, and the exit code that this deserves.

    One that was interrupted, or came to nothing, keeps its exit code.
    """
    outcomes = outcomes_of(record)
    left = Counter({(one.command, tuple(one.identity)): one.count for one in baseline.known})
    known: list[int] = []
    found: set[_Key] = set()
    for position, outcome in enumerate(outcomes):
        key = _key(outcome)
        is_repeated = outcome.is_twin and key in found
        if outcome.is_passed or not (is_repeated or left[key]):
            continue
        if not is_repeated:
            left[key] -= 1
        found.add(key)
        known.append(position)
    is_known = set(known)
    new = [o for n, o in enumerate(outcomes) if not o.is_passed and n not in is_known]
    commands, looked_at = {outcome.command for outcome in outcomes}, _looked_at(outcomes)
    own = [one for one in baseline.known if one.command in commands]
    gone = [one for one in own if left[one.command, tuple(one.identity)]]
    compared = ComparedRecord(
        file=file,
        known=known,
        new=[f"{outcome.name}: {outcome.rule}" for outcome in new],
        fixed=[f"{o.name}: {o.kind}" for o in gone if (o.command, program_name(o.name)) in looked_at],
        absent=[f"{o.name}: {o.kind}" for o in gone if (o.command, program_name(o.name)) not in looked_at],
    )
    code = ExitCode(record.exit_code)
    ended_early = getattr(record, "error", None) is not None or getattr(record, "interrupted", False)
    if outcomes and not ended_early and code is not ExitCode.AGREE:
        code = _exit_code(record, is_known, new)
    return msgspec.structs.replace(record, baseline=compared, exit_code=int(code))


def _exit_code(
    record: RunRecord | CheckRecord | BisectRecord, known: set[int], new: list[Outcome]
) -> ExitCode:
    """What the entries that are not known deserve."""
    if not new:
        return ExitCode.AGREE
    if isinstance(record, RunRecord):
        rows = [row for n, row in enumerate(record.modules) if n not in known]
        return exit_code_of(rows, fail_on=record.options.fail_on, exact=record.options.exact)
    if isinstance(record, BisectRecord):
        culprits = [culprit for n, culprit in enumerate(record.culprits) if n not in known]
        names = {outcome.name for outcome in new}
        modules = [module for module in record.modules if module.name in names]
        return bisect_exit_code(culprits, modules, record.healthy)
    # Of findings only the user's --fail-on says which count: where none of its grade is new, none does.
    limit = Severity(record.fail_on).rank
    fails = [outcome for outcome in new if outcome.severity.rank <= limit]
    if any(outcome.state is State.FAILED for outcome in fails):
        return ExitCode.MISMATCH
    return ExitCode.USAGE if any(outcome.state is State.ERROR for outcome in new) else ExitCode.AGREE


def _looked_at(outcomes: Sequence[Outcome]) -> set[tuple[str, str]]:
    return {(outcome.command, program_name(outcome.name)) for outcome in outcomes}


def _key(outcome: Outcome) -> _Key:
    return outcome.command, outcome.identity


def baseline_lines(compared: ComparedRecord) -> Iterator[str]:
    """What a report says of the comparison; what is gone is named, for somebody may have hidden it."""
    parts = [f"{len(compared.known)} known", f"{len(compared.new)} new"]
    yield f"baseline {compared.file}: {', '.join(parts)}"
    for title, names in (
        ("new", compared.new),
        ("fixed", compared.fixed),
        ("not looked at", compared.absent),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"{title}: {', '.join(names[:_NAMED])}{more}"
