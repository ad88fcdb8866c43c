"""Outcomes as JUnit XML, which every build server shows: a suite for each folder, a case for each module."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

from hlotool._version import __version__
from hlotool.report.outcomes import Outcome, State

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
