"""Outcomes for GitHub Actions: annotations beside the lines, and a summary of the step in Markdown."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from hlotool.checks.records import Severity
from hlotool.interface.report.outcomes import Outcome, State
from hlotool.interface.report.records import CauseRecord
from hlotool.interface.report.words import plural, seconds

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
