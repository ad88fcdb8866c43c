"""Finds messages of the catalogue in a log, and what a message is by its form where it is none of them."""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hlotool.checks.explain.entries import Entry, catalogue, forms

#: A line of level I or W as absl, TensorFlow and JAX write it; but TensorFlow tells errors at level W, too.
_REPORT = re.compile(
    r"(?!.*(?:OP_REQUIRES failed|\w[Ee]rror: ))"
    r"\W*(?:\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: [IW]|[IW]\d{4} [\d:.]+ +\d+) [\w/.\-]+\.(?:cc|py|cpp|h):\d+\] "
)
#: Colours of a terminal.
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")
#: What an error's line has in a long log; lines of a shorter text are all looked at.
_ERROR = re.compile(
    r"Error\b|Exception\b|\b[Ee]rror:|ERROR|FATAL|(?:^|: )[EF]\d{0,4} |Check failed|[Aa]bort|[Ff]ailed"
)
_SHORT = 12
#: A line of somebody's program that a traceback shows.
_PROGRAM = re.compile(r"^\s*(?:-+> ?)?\d+ |^\s*-+> ")
#: A warning as Python prints and logs it.
_WARNING = re.compile(r"\b\w+Warning: |\bW(?:ARN(?:ING)?|arning)\b")
#: Quotation marks as some compilers and web pages print them.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


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
    weight: int
    fields: dict[str, str]


def recognize(text: str) -> list[Recognition]:
    """What `text` contains of the catalogue, in the order of appearance, each entry once.

    Where messages overlap the one that says more counts, and a class of errors counts only where nothing more
    specific stands on the same line or the two behind it.
    """
    text = plain(text)
    starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
    found: dict[str, Recognition] = {}
    hits = sorted(_hits(text, catalogue()), key=lambda hit: (hit.start, -hit.end))
    for hit in _without_overlaps(hits, text):
        line = bisect.bisect_right(starts, hit.start)
        known = found.get(hit.entry.id)
        if known is None:
            excerpt = " ".join(text[hit.start : hit.end].split())
            found[hit.entry.id] = Recognition(hit.entry, line, excerpt, [line], hit.fields)
        elif known.lines[-1] != line:
            known.lines.append(line)
    is_explained = any(not (known.entry.note or known.entry.consequence) for known in found.values())
    return [known for known in found.values() if not (is_explained and known.entry.consequence)]


def plain(text: str) -> str:
    """Without a terminal's colours, and with straight quotation marks."""
    return _COLOUR.sub("", text).translate(_QUOTES)


def form_of(text: str, known: Collection[int] = ()) -> Recognition | None:
    """What kind of message `text` has, by the general form of what sounds like an error in it.

    Lines of a long log that do not are not looked at, nor are warnings unless nothing else is there. None
    where nothing has a form.

    Args:
        known: lines, from 1, that are explained already.
    """
    lines = ["" if number in known else line for number, line in enumerate(plain(text).split("\n"), 1)]
    kept = {
        n
        for n, line in enumerate(lines)
        if line.strip() and not (reports(line) or _WARNING.search(line) or _PROGRAM.search(line))
    }
    if len(lines) > _SHORT:
        kept = {n for first in kept if _ERROR.search(lines[first]) for n in range(first, first + 3)}
    telling = "\n".join(line if n in kept or not kept else "" for n, line in enumerate(lines))
    for entry in forms():
        if entry.note == bool(kept):
            continue
        if hits := [*_hits(telling, [entry])]:
            hit = min(hits, key=lambda hit: hit.start)
            number = telling.count("\n", 0, hit.start) + 1
            return Recognition(entry, number, " ".join(lines[number - 1].split()), [number], hit.fields)
    return None


def reports(line: str) -> bool:
    """It is of level I or W."""
    return bool(_REPORT.match(_COLOUR.sub("", line)))


def _hits(text: str, entries: Iterable[Entry]) -> Iterator[_Hit]:
    words = " ".join(set(text.split()))  # logs repeat themselves: this is much shorter
    for entry in entries:
        for template in entry.templates():
            if template.anchor not in words:
                continue
            for match in template.pattern.finditer(text):
                fields = {key: value for key, value in match.groupdict().items() if value}
                yield _Hit(entry, match.start(), match.end(), template.weight, fields)


def _without_overlaps(hits: Sequence[_Hit], text: str) -> list[_Hit]:
    specific: list[_Hit] = []
    for hit in hits:
        if hit.entry.generic:
            continue
        if specific and hit.start < specific[-1].end:
            if hit.weight > specific[-1].weight:
                specific[-1] = hit
            continue
        specific.append(hit)
    begins = [hit.start for hit in specific]
    generic: list[_Hit] = []
    for hit in hits:
        if not hit.entry.generic or _is_explained(hit, specific, begins, text):
            continue
        if generic and hit.start < generic[-1].end:
            generic.pop()  # a class within a class is the better name
        generic.append(hit)
    return sorted([*specific, *generic], key=lambda hit: hit.start)


def _is_explained(hit: _Hit, specific: Sequence[_Hit], begins: Sequence[int], text: str) -> bool:
    """Something specific stands on the line of `hit`, or on the two behind it, where long messages go on."""
    line_start = text.rfind("\n", 0, hit.start) + 1
    line_end = ends = text.find("\n", hit.end) % (len(text) + 1)
    for _ in range(2):
        ends = text.find("\n", ends + 1) % (len(text) + 1)
    near = specific[bisect.bisect_left(begins, line_start) : bisect.bisect_left(begins, ends)]
    return any(other.start < line_end or not other.entry.note for other in near)
