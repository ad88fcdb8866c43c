"""Finds the catalogue's messages in a log."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hlotool.explain.entries import Entry, catalogue


@dataclass(slots=True)
class Recognition:
    """An entry of the catalogue that a log contains.

    Attributes:
        entry: what it is.
        line: where it stands first, from 1.
        excerpt: the message as printed there, on one line.
        lines: every line on which it begins.
        fields: what the message names: instruction, shapes, sizes.
    """

    entry: Entry
    line: int
    excerpt: str
    lines: list[int] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def instructions(self) -> list[str]:
        """Names of HLO instructions that the message names, without `%`, each once."""
        names = (value.lstrip("%") for key, value in self.fields.items() if key.startswith("instruction"))
        return list(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _Hit:
    entry: Entry
    start: int
    end: int
    fields: dict[str, str]


def recognize(text: str) -> list[Recognition]:
    """What `text` contains of the catalogue, in the order of appearance, each entry once.

    Where messages overlap the longer one counts, and a class of errors counts only where nothing more
    specific stands on the same line.
    """
    starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
    found: dict[str, Recognition] = {}
    for hit in _without_overlaps(sorted(_hits(text), key=lambda hit: (hit.start, -hit.end)), text):
        line = bisect.bisect_right(starts, hit.start)
        known = found.get(hit.entry.id)
        if known is None:
            excerpt = " ".join(text[hit.start : hit.end].split())
            found[hit.entry.id] = Recognition(hit.entry, line, excerpt, [line], hit.fields)
        elif known.lines[-1] != line:
            known.lines.append(line)
    return list(found.values())


def _hits(text: str) -> Iterator[_Hit]:
    for entry in catalogue():
        for pattern in entry.patterns():
            for match in pattern.finditer(text):
                fields = {key: value for key, value in match.groupdict().items() if value}
                yield _Hit(entry, match.start(), match.end(), fields)


def _without_overlaps(hits: Sequence[_Hit], text: str) -> list[_Hit]:
    specific: list[_Hit] = []
    for hit in hits:
        if hit.entry.generic:
            continue
        if specific and hit.start < specific[-1].end:
            if hit.end - hit.start > specific[-1].end - specific[-1].start:
                specific[-1] = hit
            continue
        specific.append(hit)
    begins = [hit.start for hit in specific]
    generic: list[_Hit] = []
    for hit in hits:
        if not hit.entry.generic or _is_explained(hit, begins, text):
            continue
        if generic and hit.start < generic[-1].end:
            generic.pop()  # a class within a class is the better name
        generic.append(hit)
    return sorted([*specific, *generic], key=lambda hit: hit.start)


def _is_explained(hit: _Hit, begins: Sequence[int], text: str) -> bool:
    """Something specific stands on the line of `hit`, before or after it."""
    line_start = text.rfind("\n", 0, hit.start) + 1
    line_end = text.find("\n", hit.end)
    first = bisect.bisect_left(begins, line_start)
    return first < len(begins) and (line_end < 0 or begins[first] < line_end)
