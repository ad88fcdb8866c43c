"""Generated source for people: one statement a line, indented by its braces, comments in a column."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What the generator writes behind a statement: the instructions whose value it computes or copies.
_COMMENTS = re.compile(r"(?:  /\* %[^*]* \*/)+$")
_COMMENT = re.compile(r"/\* (%[^*]*) \*/")
_BRACE = re.compile(r"[{}]")
#: Column of comments, where the statement leaves room.
_COLUMN = 56


def indented(source: str) -> str:
    """`source` with two blanks for each open brace and its parameters on lines of their own."""
    lines: list[str] = []
    depth = 0
    for line in _split_head(source.splitlines()):
        opened, closed = _balance(line)
        lines.append(_with_comment("  " * (depth - closed) + line))
        depth += opened - closed
    return "\n".join(lines) + "\n"


def _split_head(lines: Iterable[str]) -> Iterable[str]:
    """`KERNEL(name, type p0, …) {` over several lines; other lines as they are."""
    for line in lines:
        if not line.startswith("KERNEL("):
            yield line
            continue
        head, *parameters = line.split(", ")
        yield head + ("," if parameters else "")
        yield from (f"    {parameter}," for parameter in parameters[:-1])
        yield from (f"    {parameter}" for parameter in parameters[-1:])


def _balance(line: str) -> tuple[int, int]:
    """How many braces `line` leaves open, and how many of lines before it closes."""
    opened = closed = 0
    for brace in _BRACE.findall(line):
        if brace == "{":
            opened += 1
        elif opened:
            opened -= 1
        else:
            closed += 1
    return opened, closed


def _with_comment(line: str) -> str:
    found = _COMMENTS.search(line)
    if found is None:
        return line
    return f"{line[: found.start()]:<{_COLUMN}}  // {', '.join(_COMMENT.findall(found[0]))}"
