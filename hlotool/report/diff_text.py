"""Differing instructions as the lines of a code review: `-`, `+`, what changed within a line standing out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from rich.console import RenderResult, group
from rich.text import Text

from hlotool.diff.records import ChangeRecord, ComputationRecord, LineRecord

_LEFT, _RIGHT, _MOVED = "red", "green", "cyan"
#: What stands out in a changed line.
_LEFT_WORD, _RIGHT_WORD = "bold red reverse", "bold green reverse"

#: Names, numbers, blanks, single signs.
_TOKEN = re.compile(r"%?[\w.-]+|\s+|.")

#: Changes that the two lines do not show.
_INVISIBLE = frozenset({"backend_config", "sharding", "frontend_attributes", "control-predecessors"})


@group()
def computation_diff(computation: ComputationRecord) -> RenderResult:
    """The hunks of one computation."""
    for hunk in computation.hunks:
        yield Text(f"@@ {_title(computation)}{_places(hunk)} @@", "magenta")
        for line in hunk:
            yield from _lines(line)


def _title(computation: ComputationRecord) -> str:
    entry = "ENTRY " if computation.is_entry else ""
    if computation.left == computation.right:
        return f"{entry}%{computation.right}"
    if not computation.left:
        return f"{entry}%{computation.right} (only right)"
    if not computation.right:
        return f"{entry}%{computation.left} (only left)"
    return f"{entry}%{computation.left} → %{computation.right}"


def _places(hunk: list[LineRecord]) -> str:
    left = next((line.left_line for line in hunk if line.left_line), 0)
    right = next((line.right_line for line in hunk if line.right_line), 0)
    return f", lines {left or '–'} and {right or '–'}" if left or right else ""


def _lines(line: LineRecord) -> Iterator[Text]:
    if line.status == "only left":
        yield _with_remark(Text(f"- {line.left}", _LEFT), _origin(line))
    elif line.status == "only right":
        yield _with_remark(Text(f"+ {line.right}", _RIGHT), _origin(line))
    elif line.status == "changed":
        yield from _changed(line)
    elif line.status == "moved":
        yield _with_remark(Text(f"> {line.right}", _MOVED), f"moved from %{line.left_computation}")
    else:
        remark = "executed at another time" if line.reordered else ""
        yield _with_remark(Text(f"  {line.right}", "" if line.reordered else "dim"), remark)


def _changed(line: LineRecord) -> Iterator[Text]:
    """Both lines, the words that differ standing out, and what differs that the lines do not show."""
    left, right = Text("- ", _LEFT), Text("+ ", _RIGHT)
    ones, others = _TOKEN.findall(line.left), _TOKEN.findall(line.right)
    for tag, a, b, c, d in SequenceMatcher(None, ones, others, autojunk=False).get_opcodes():
        left.append("".join(ones[a:b]), _LEFT if tag == "equal" else _LEFT_WORD)
        right.append("".join(others[c:d]), _RIGHT if tag == "equal" else _RIGHT_WORD)
    yield left
    yield _with_remark(right, _origin(line))
    for change in line.changes:
        if change.what in _INVISIBLE:
            yield Text(f"  {change_text(change)}", "yellow")


def _origin(line: LineRecord) -> str:
    """The user's own line, or the frontend's name."""
    return line.source.place if line.source else ""


def _with_remark(text: Text, remark: str) -> Text:
    if remark:
        text.append(f"  # {remark}", "dim")
    return text


def change_text(change: ChangeRecord) -> str:
    """`dimensions: {0} → {1}`."""
    return f"{change.what}: {change.left or 'none'} → {change.right or 'none'}"
