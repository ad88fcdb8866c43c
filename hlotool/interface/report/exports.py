"""Outcomes for other tools: JUnit XML, SARIF 2.1.0, CSV, JSON Lines, annotations of GitHub Actions.

JUnit for build servers has a suite for each folder, a case for each module; SARIF is what code review tools
show beside the lines; CSV and JSON Lines are for spreadsheets and scripts.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from hlotool._version import __version__
from hlotool.checks.records import Finding, Severity
from hlotool.interface.report.console import printable
from hlotool.interface.report.outcome_rules import rules_for
from hlotool.interface.report.outcomes import Outcome, State, outcomes_of
from hlotool.interface.report.records import CauseRecord, CheckRecord
from hlotool.interface.report.words import plural, seconds
from hlotool.system.files import digest
from hlotool.system.records import json_of

#: What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Elements of cases that are no plain success.
_ELEMENTS = {State.FAILED: "failure", State.ERROR: "error", State.SKIPPED: "skipped"}


def junit(outcomes: Sequence[Outcome], seconds: float, made: datetime) -> str:
    """The document: it follows the schema of what Jenkins reads.

    Args:
        outcomes: of a command.
        seconds: that the command took.
        made: when.
    """
    suites: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        suites.setdefault(outcome.folder or ".", []).append(outcome)
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n', "<testsuites>\n"]
    for number, (folder, cases) in enumerate(suites.items()):
        counts = Counter(map(_state, cases))
        took = sum(case.seconds for case in cases) or (seconds if len(suites) == 1 else 0.0)
        parts.append(
            f"  <testsuite{_attributes(name=folder, package='hlotool', id=number)}"
            f"{_attributes(timestamp=made.strftime('%Y-%m-%dT%H:%M:%S'), hostname='localhost')}"
            f"{_attributes(tests=len(cases), failures=counts[State.FAILED], errors=counts[State.ERROR])}"
            f"{_attributes(skipped=counts[State.SKIPPED], time=f'{took:.3f}')}>\n"
            f"    <properties><property{_attributes(name='hlotool', value=__version__)}/></properties>\n"
        )
        parts += map(_case, cases)
        parts.append("    <system-out/>\n    <system-err/>\n  </testsuite>\n")
    parts.append("</testsuites>\n")
    return "".join(parts)


def _case(outcome: Outcome) -> str:
    name = f"{outcome.name} [{outcome.tested}]" if outcome.tested else outcome.name
    # Several findings on one module are several cases.
    name += f" {outcome.rule}" if outcome.command == "check" else ""
    attributes = _attributes(name=name, classname=f"hlotool.{outcome.command}", time=f"{outcome.seconds:.3f}")
    state = _state(outcome)
    if state is State.PASSED:
        return f"    <testcase{attributes}/>\n"
    element = _ELEMENTS[state]
    if state is State.SKIPPED:
        known = "known: " if outcome.is_known else ""
        inner = f"<skipped>{escape(_clean(f'{known}{outcome.rule}: {outcome.message}'))}</skipped>"
    else:
        attached = _attributes(message=outcome.message, type=outcome.rule)
        inner = f"<{element}{attached}>{escape(_clean(_text(outcome)))}</{element}>"
    return f"    <testcase{attributes}>\n      {inner}\n    </testcase>\n"


def _state(outcome: Outcome) -> State:
    """What a build server is to think of it: what is known fails nothing."""
    return State.SKIPPED if outcome.is_known else outcome.state


def _text(outcome: Outcome) -> str:
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterable[str]:
    yield f"{outcome.rule}: {outcome.message}"
    if outcome.source is not None and outcome.source.place:
        yield f"source: {outcome.source.place}"
    yield from outcome.details
    if outcome.file:
        yield f"file: {outcome.file}" + (f":{outcome.line}" if outcome.line else "")


def _attributes(**values: object) -> str:
    return "".join(f" {name}={quoteattr(_clean(str(value)))}" for name, value in values.items())


def _clean(text: str) -> str:
    """The text without what XML cannot hold: it stands there as an escape."""
    return _NOT_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


#: A cell that begins like this is a formula to a spreadsheet (CWE-1236).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")

#: Columns of the CSV, in order; `docs/reports.md` says what they hold.
COLUMNS: dict[str, Callable[[Outcome], str | int | float]] = {
    "command": lambda outcome: outcome.command,
    "name": lambda outcome: outcome.name,
    "state": lambda outcome: outcome.state.value,
    "kind": lambda outcome: outcome.rule,
    "severity": lambda outcome: "" if outcome.is_passed else outcome.severity.value,
    "tested": lambda outcome: outcome.tested,
    "difference": lambda outcome: outcome.difference,
    "message": lambda outcome: outcome.message,
    "cause": lambda outcome: outcome.cause,
    "opcode": lambda outcome: outcome.source.opcode if outcome.source else "",
    "source_file": lambda outcome: outcome.source.file if outcome.source else "",
    "source_line": lambda outcome: outcome.source.file_line or "" if outcome.source else "",
    "op_name": lambda outcome: outcome.source.op_name if outcome.source else "",
    "file": lambda outcome: outcome.file,
    "line": lambda outcome: outcome.line or "",
    "seconds": lambda outcome: round(outcome.seconds, 3),
}


def csv_text(outcomes: Sequence[Outcome]) -> str:
    """A line with the names of the columns, and a line for each outcome; no cell is a formula."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for outcome in outcomes:
        writer.writerow(_harmless(value(outcome)) for value in COLUMNS.values())
    return stream.getvalue()


def _harmless(value: str | float) -> str | int | float:
    """Text that nothing obeys: with an apostrophe for a spreadsheet, and with escapes for a terminal."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if value.startswith(_FORMULA) else text


def json_lines(record: Any) -> Iterator[bytes]:
    """The entries of a record, one line of JSON each, as they stand in what `--json` prints."""
    for row in _entries(record):
        yield json_of(row) + b"\n"


#: What a command lists, by the name in the schema of its record.
_LISTS = {
    "run": ("modules",),
    "bisect": ("culprits", "modules"),
    "check": ("findings", "failures"),
    "prove": ("pairs",),
    "diff": ("programs", "results"),
    "conformance": ("cells",),
    "triage": ("programs",),
}


def _entries(record: Any) -> Iterator[Any]:
    """All that a command lists."""
    name = record.schema.partition("/")[0].removeprefix("hlotool.")
    if name == "exec":
        yield from _entries(record.run)
        return
    for part in _LISTS[name]:
        yield from getattr(record, part)


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: What relative addresses are relative to: the folder in which the command was called.
_BASE = "SRCROOT"
#: Name and version of what `partialFingerprints` is computed of: `Outcome.identity`.
_FINGERPRINT = "hlotoolIdentity/v1"


def sarif(
    outcomes: Sequence[Outcome], findings: Sequence[Finding] = (), has_baseline: bool = False
) -> dict[str, Any]:
    """The document: one run with the rules that have results; what agrees is no result.

    Args:
        outcomes: of a command.
        findings: of `check`, in the order of the outcomes that they became: their paths become code flows.
        has_baseline: results are compared with what was known.
    """
    shown = [(number, outcome) for number, outcome in enumerate(outcomes) if not outcome.is_passed]
    rules = rules_for(outcome.rule for _, outcome in shown)
    places = {rule.id: index for index, rule in enumerate(rules)}
    results = []
    seen: Counter[str] = Counter()
    for number, outcome in shown:
        result = _result(outcome, places[outcome.rule], seen, has_baseline)
        if number < len(findings) and findings[number].path:
            result["codeFlows"] = [_flow(findings[number])]
        results.append(result)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hlotool",
                        "version": __version__,
                        "rules": [
                            {
                                "id": rule.id,
                                "shortDescription": {"text": rule.title},
                                "help": {"text": rule.remedy},
                                "defaultConfiguration": {"level": rule.severity.value},
                            }
                            for rule in rules
                        ],
                    }
                },
                "originalUriBaseIds": {
                    _BASE: {"description": {"text": "the folder in which hlotool was called"}}
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def sarif_of(record: Any) -> dict[str, Any]:
    """The document for the record of a command with findings."""
    findings = record.findings if isinstance(record, CheckRecord) else ()
    return sarif(outcomes_of(record), findings, getattr(record, "baseline", None) is not None)


def _result(outcome: Outcome, rule: int, seen: Counter[str], has_baseline: bool) -> dict[str, Any]:
    """The user's own line comes first where it is known; the HLO is a related location."""
    hlo = _location(outcome.file, outcome.line) if outcome.file else None
    source = outcome.source
    own = _location(source.file, source.file_line) if source is not None and source.file else None
    text = "\n".join([outcome.message or outcome.rule, *outcome.details])
    key = digest(outcome.command, *(outcome.identity or (outcome.name, outcome.rule)))
    result: dict[str, Any] = {
        "ruleId": outcome.rule,
        "ruleIndex": rule,
        "message": {"text": text},
        # Findings that nothing but their place tells apart are told apart by their number.
        "partialFingerprints": {_FINGERPRINT: f"{key}:{seen[key]}"},
    }
    seen[key] += 1
    if has_baseline:
        result["baselineState"] = "unchanged" if outcome.is_known else "new"
    if outcome.state is State.SKIPPED:
        # Nothing is known, which is no finding.
        result |= {"kind": "open", "level": "none"}
    else:
        result["level"] = outcome.severity.value
    if places := [place for place in (own, hlo) if place is not None]:
        result["locations"] = places[:1]
        if places[1:]:
            result["relatedLocations"] = places[1:]
    return result


def _flow(finding: Finding) -> dict[str, Any]:
    steps = [
        {"location": {**_location(finding.file, step.line), "message": {"text": step.instruction}}}
        for step in finding.path
    ]
    return {"threadFlows": [{"locations": steps}]}


def _location(file: str, line: int) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line > 0 else {}
    return {"physicalLocation": {"artifactLocation": _artifact(file), **region}}


def _artifact(file: str) -> dict[str, str]:
    """The address of a file: relative where it is below the current folder, so that it holds elsewhere."""
    if "://" in file:
        return {"uri": quote(file, safe="/:%?&=@+,;~#")}
    if os.path.isabs(file):
        inside = os.path.relpath(file)
        if inside.startswith(os.pardir):
            return {"uri": f"file://{_quoted(file)}"}
        file = inside
    return {"uri": _quoted(os.path.normpath(file)), "uriBaseId": _BASE}


def _quoted(file: str) -> str:
    # A name that is no UTF-8 keeps its bytes.
    return quote(os.fsencode(file.replace(os.sep, "/")))


#: GitHub shows ten annotations of each level and step, and drops the rest.
_SHOWN = 10
#: Rows of a table: a summary may have a MiB, and few readers scroll.
_ROWS = 50
#: Characters of a cell or of an annotation's message.
_LONG = 300

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def annotation_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Workflow commands, a line each, the gravest first: of each level as many as GitHub shows.

    A finding of one cause is annotated once; without a cause each is one.
    """
    order = list(Severity)
    known: set[tuple[str, str]] = set()
    counts: Counter[Severity] = Counter()
    for outcome in sorted(outcomes, key=lambda outcome: order.index(outcome.severity)):
        if (
            outcome.is_known
            or outcome.state not in (State.FAILED, State.ERROR)
            or counts[outcome.severity] == _SHOWN
        ):
            continue
        key = (outcome.cause, "" if outcome.cause else f"{outcome.file}:{outcome.line} {outcome.message}")
        if key not in known:
            known.add(key)
            counts[outcome.severity] += 1
            yield _annotation(outcome)


def _annotation(outcome: Outcome) -> str:
    source = outcome.source
    file, line = outcome.file, outcome.line
    if source is not None and source.file:
        file, line = source.file, source.file_line
    if os.path.isabs(file) and not os.path.relpath(file).startswith(os.pardir):
        # Only what is relative to the checkout is found there.
        file = os.path.relpath(file)
    title = f"hlotool: {outcome.rule} in {outcome.name}"
    given = {"file": file, "line": str(line) if line > 0 else "", "title": title}
    properties = ",".join(f"{name}={_property(value)}" for name, value in given.items() if value)
    return f"::{_COMMANDS[outcome.severity]} {properties}::{_data(_cut(outcome.message or outcome.rule))}"


def _data(text: str) -> str:
    """A message as the runner reads it back: what would end the line, or begin a command, is escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def step_summary(
    outcomes: Sequence[Outcome], causes: Sequence[CauseRecord], took: float, next_command: str = ""
) -> str:
    """What `$GITHUB_STEP_SUMMARY` gets: totals, causes, and what failed, in Markdown."""
    return "\n".join(_summary(outcomes, causes, took, next_command)) + "\n"


def _summary(
    outcomes: Sequence[Outcome], causes: Sequence[CauseRecord], took: float, next_command: str
) -> Iterator[str]:
    counts = Counter(outcome.state for outcome in outcomes)
    totals = " · ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    yield f"## hlotool: {totals or 'nothing'}"
    yield ""
    yield f"{plural(len(outcomes), 'result')} in {seconds(took)}"
    if causes:
        yield from ("", f"### {plural(len(causes), 'cause')}", "")
        yield from _table(
            ("", "cause", "count", "source", "example"),
            [
                (cause.kind, cause.what, str(cause.count), _code(_place(cause)), _code(cause.example))
                for cause in reversed(causes)
            ],
        )
    failed = [o for o in outcomes if o.state in (State.FAILED, State.ERROR) and not (causes and o.cause)]
    if failed:
        yield from ("", f"### {plural(len(failed), 'finding')}", "")
        yield from _table(
            ("", "what", "where", "message"),
            [
                (o.rule, _code(o.name), _code(o.source.place if o.source else o.file), o.message)
                for o in failed
            ],
        )
    if next_command:
        yield from ("", "next:", "", *_fence(next_command))


def _place(cause: CauseRecord) -> str:
    return cause.source.place if cause.source is not None else ""


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows[:_ROWS]:
        yield f"| {' | '.join(cell if cell.startswith('<code>') else _cell(cell) for cell in row)} |"
    if len(rows) > _ROWS:
        yield ""
        yield f"{len(rows) - _ROWS} more are not listed."


def _cell(text: str) -> str:
    """A text in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&@:$^=-])", lambda found: f"&#{ord(found[1])};", _line(text))


def _code(text: str) -> str:
    """A name in the font of code; empty for an empty one."""
    return f"<code>{_cell(text)}</code>" if text else ""


def _fence(command: str) -> Iterator[str]:
    """A block of code that no text can end: its fence is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", command)), default=0))
    yield from (f"{fence}sh", _line(command), fence)


def _line(text: str) -> str:
    return " ".join(_cut(text).split())


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
