"""A finding in one phrase, `constant 0.1 became 0.2`, and the line of the user's program that it is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rich.text import Text

from hlotool.errors import InputError
from hlotool.interface.report.console import file_address, path_text
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.system.paths import read_whole
from hlotool.system.records import SourceRecord

#: The style of what accuses a place.
PLACE_STYLE = "bold cyan"

#: An instruction as HLO: the element type of its result, its opcode, its operands, what follows them.
_INSTRUCTION = re.compile(
    r"%?\S+ = (?P<type>\(?\w+).*? (?P<opcode>[\w-]+)\((?P<operands>.*?)\)(?P<rest>, .*)?$"
)
_ATTRIBUTE = re.compile(r", ([\w]+)=")
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
#: Characters of a value that a phrase holds.
_LONGEST = 40
#: Attributes that say nothing of what an instruction computes, or name computations that are looked into.
_BESIDE = {"metadata", "backend_config", "frontend_attributes", "to_apply", "calls", "body", "condition"}


def what_became(found: DivergenceRecord, verdict: Verdict = Verdict.WRONG) -> str:
    """What the finding is, in one phrase without places: `multiply became add`.

    Args:
        found: where two programs part.
        verdict: on the result; of some it is known that programs mean other things, and no more.
    """
    expected, actual = _parsed(found.expected_text), _parsed(found.text)
    opcode = found.source.opcode
    if found.finding == "amplifies":
        return f"{opcode} turns rounding into a difference"
    if found.finding == "suspected":
        return f"{opcode} is the first value that differs"
    if found.finding == "varies":
        return f"{opcode} returns other bits from run to run"
    if expected is None or actual is None:
        return f"{opcode} returns other values"
    if actual["opcode"] == "constant":
        value = _short(actual["operands"])
        if expected["opcode"] == "constant":
            return f"constant {_short(expected['operands'])} became {value}"
        return f"{expected['opcode']} became the constant {value}"
    if verdict in (Verdict.DIFFERS, Verdict.UNEQUAL):
        return _changed(expected, actual, found) or f"{opcode} computes something mathematically different"
    if changed := _changed(expected, actual, found):
        return changed
    correct = found.local is not None and bool(found.local.mismatched)
    return f"{opcode} returns wrong values{' from correct operands' if correct else ''}"


def _changed(expected: re.Match[str], actual: re.Match[str], found: DivergenceRecord) -> str:
    """What differs between two operations, neither a constant, as texts; empty where nothing does."""
    name = expected["opcode"]
    if name != actual["opcode"]:
        target = _TARGET.search(found.text)
        return f"{name} became {actual['opcode']}" + (f" {target[1]}" if target else "")
    inside, inside_expected = _parsed(found.inside), _parsed(found.inside_expected)
    if inside is not None and inside_expected is not None:
        if inside["opcode"] != inside_expected["opcode"]:
            return f"{name}: {inside_expected['opcode']} became {inside['opcode']}"
        return f"{name} of another computation"
    if expected["type"] != actual["type"]:
        return f"{name} in {expected['type']} became {name} in {actual['type']}"
    before, after = _attributes(expected["rest"] or ""), _attributes(actual["rest"] or "")
    for key in before:
        if key in after and before[key] != after[key]:
            return f"{name}: {key}={_short(before[key])} became {_short(after[key])}"
    return ""


def _parsed(text: str) -> re.Match[str] | None:
    return _INSTRUCTION.match(text)


def _attributes(rest: str) -> dict[str, str]:
    """What follows the operands, by name, without what says nothing of values."""
    parts = _ATTRIBUTE.split(rest)[1:]
    return {key: value for key, value in zip(parts[::2], parts[1::2]) if key not in _BESIDE}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"


def quoted_source(source: SourceRecord) -> Iterator[Text]:
    """`--> train.py:12 in step`, and the line itself with carets where its file is on this machine."""
    if not source.file:
        name = source.op_name or f"{source.opcode} %{source.instruction}"
        yield Text.assemble(("--> ", "dim"), (name, PLACE_STYLE))
        return
    inside = f" in {source.function.replace('.<locals>', '')}" if source.function else ""
    place = path_text(source.file, source.user_line, PLACE_STYLE)
    yield Text.assemble(("--> ", "dim"), place, (inside, "dim"))
    if line := _line_of(source):
        number, shown = str(source.file_line), line.strip()
        margin = " " * len(number)
        start, length = _underlined(source, line)
        yield Text.assemble((f"{number} | ", "dim"), shown, no_wrap=True, overflow="ellipsis")
        yield Text.assemble(
            (f"{margin} | ", "dim"),
            " " * start,
            ("^" * length, "bold red"),
            no_wrap=True,
            overflow="ellipsis",
        )


def _line_of(source: SourceRecord) -> str:
    """The line of the user's program; empty where the file, or the line, is not on this machine."""
    lines = source_lines(source.file)
    return lines[source.file_line - 1].rstrip() if 0 < source.file_line <= len(lines) else ""


def source_lines(file: str) -> list[str]:
    """The lines of a file of the user's program; none where it is not on this machine, or is no text."""
    if not file_address(file):
        return []
    try:
        return _read_lines(file, os.stat(file).st_mtime_ns)
    except (InputError, OSError, UnicodeDecodeError):
        return []


@lru_cache(maxsize=8)
def _read_lines(file: str, changed: int) -> list[str]:
    """A page of ten thousand rows quotes the same few files; one that `changed` is read again."""
    return read_whole(Path(file)).decode("utf-8").splitlines()


def _underlined(source: SourceRecord, line: str) -> tuple[int, int]:
    """Where in the stripped line the expression begins, and its length; the whole line if that is unknown."""
    indented = len(line) - len(line.lstrip())
    first, last = source.columns
    content = line.encode("utf-8")
    start = len(content[:first].decode("utf-8", "ignore"))
    end = len(content[:last].decode("utf-8", "ignore")) if last else len(line)
    if not any(source.columns) or not indented <= start < end <= len(line):
        start, end = indented, len(line)
    return start - indented, end - start
