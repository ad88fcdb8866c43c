"""Before and after on one page: which two programs of an issue, a document or a log are one compilation.

A page has no file names. What tells the stages apart is their structure (StableHLO is what the frontend
wrote; a schedule and fusions are what XLA made), and where that says nothing, the words above them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from hlotool.sources.file_names import Kind
from hlotool.sources.mlir import is_mlir
from hlotool.sources.sections import mended, module_name
from hlotool.sources.wrapped import Wrapped

_MLIR_NAME = re.compile(rb"^[ \t]*module[ \t]+@([\w.$-]+)", re.MULTILINE)
_OPTIMISED = re.compile(rb"^[ \t]*HloModule[^\n]*\bis_scheduled=true|= [^\n]* fusion\(", re.MULTILINE)
#: Words above a program, the more particular ones first.
_BEFORE = re.compile(r"\b(?:un-?optimi[sz]ed|before|original|input)\b", re.IGNORECASE)
_AFTER = re.compile(r"\b(?:optimi[sz]ed|after|compiled|output|result)\b", re.IGNORECASE)
#: How many lines above a program are its heading.
_HEADING = 5


def pairs_of(page: bytes, programs: Sequence[Wrapped]) -> dict[int, tuple[int, Kind, str]]:
    """By index of a program that has a partner: number of the pair, its stage, the name of the module.

    Args:
        page: all of it.
        programs: its programs, in order.
    """
    if len(programs) < 2:
        return {}
    lines = mended(page).split("\n")
    ends = [one.line + one.content.count(b"\n") for one in programs]
    headings = [
        "\n".join(lines[max(end, one.line - _HEADING, 0) : one.line])
        for one, end in zip(programs, [0, *ends])
    ]
    named: defaultdict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(programs):
        named[_name(one.content)].append(index)
    groups = [(name, group) for name, group in named.items() if name and len(group) == 2]
    if not groups and len(programs) == 2 and all(map(_by_words, headings)):
        groups = [(_name(programs[0].content) or _name(programs[1].content), [0, 1])]
    found: dict[int, tuple[int, Kind, str]] = {}
    for number, (name, group) in enumerate(groups):
        stages: list[Kind | None] = [_by_structure(programs[index].content) for index in group]
        if stages[0] is stages[1]:
            stages = [_by_words(headings[index]) for index in group]
        if set(stages) == {Kind.BEFORE_OPTIMIZATIONS, Kind.AFTER_OPTIMIZATIONS}:
            found |= {i: (number, stage, name) for i, stage in zip(group, stages) if stage is not None}
    return found


def _name(content: bytes) -> str:
    match = None if (name := module_name(content)) else _MLIR_NAME.search(content)
    return match[1].decode("utf-8", "backslashreplace") if match is not None else name


def _by_structure(content: bytes) -> Kind:
    is_optimised = not is_mlir(content) and _OPTIMISED.search(content) is not None
    return Kind.AFTER_OPTIMIZATIONS if is_optimised else Kind.BEFORE_OPTIMIZATIONS


def _by_words(heading: str) -> Kind | None:
    """What the words nearest to a program say of it; None where they say nothing, or both."""
    for line in reversed(heading.split("\n")):
        rest = _BEFORE.sub("", line)
        is_before, is_after = rest != line, _AFTER.search(rest) is not None
        if is_before != is_after:
            return Kind.BEFORE_OPTIMIZATIONS if is_before else Kind.AFTER_OPTIMIZATIONS
    return None
