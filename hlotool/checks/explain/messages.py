"""Finds messages of the catalogue in a log, and the records of what was found."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from hlotool.checks.explain.entries import Entry, catalogue
from hlotool.checks.explain.records import MatchRecord, PlaceRecord
from hlotool.errors import HlotoolError
from hlotool.facts.dataflow import source_of
from hlotool.parser.reader import parse_module
from hlotool.sources.records import Dump, Stage
from hlotool.system.records import SourceRecord


def locate(dump: Dump, names: Sequence[str]) -> list[PlaceRecord]:
    """Where the instructions called `names` stand: of each module the first stage that has them."""
    return [place for name in names for place in _places(dump, name)]


def _places(dump: Dump, name: str) -> Iterator[PlaceRecord]:
    definition = re.compile(rf"^[ \t]*(?:ROOT )?%?{re.escape(name)} = ", re.MULTILINE)
    for module in dump.modules:
        for stage in module.stages:
            source = _find(stage, name, definition)
            if source is not None:
                path = str(stage.source)
                yield PlaceRecord(path=path, module=module.title, stage=stage.label, source=source)
                break


def _find(stage: Stage, name: str, definition: re.Pattern[str]) -> SourceRecord | None:
    """Read as text first: to parse every stage takes long. A stage that cannot be read has nothing."""
    if stage.text is None:
        return None
    try:
        text = stage.text.read_text()
        if not definition.search(text):
            return None
        module = parse_module(text, str(stage.text))
    except HlotoolError:
        return None
    named = (i for i in module.instructions() if i.name == name)
    return next((source_of(module, [instruction]) for instruction in named), None)


def explain_text(text: str, dump: Dump | None = None) -> list[MatchRecord]:
    """What `text` contains of the catalogue, with the instructions of `dump` that it names."""
    found = sorted(recognize(text), key=lambda recognition: recognition.entry.note)
    return [*(_match(recognition, dump) for recognition in found), *_unfinished(dump)]


def _unfinished(dump: Dump | None) -> Iterator[MatchRecord]:
    """What a dump itself says: which of its programs the compiler did not come to an end with, and where."""
    for module in dump.modules if dump is not None else ():
        if module.unfinished and module.before is not None:
            yield MatchRecord(
                id="unfinished-compilation",
                title=f"{module.title}: {module.unfinished}",
                cause="The compiler died of this program, refused it, or was stopped from outside.",
                remedy=[
                    f"`hlotool reduce {module.before.source} --backend xla` makes the program small while XLA"
                    " crashes on it",
                    "a process that was killed (memory, time limit) leaves the same traces: look for its end"
                    " in the log",
                ],
            )


def only_reports(text: str) -> list[MatchRecord]:
    """A record for lines of a log that all say how things are going, where none of them is known."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not all(_REPORT.match(_COLOUR.sub("", line)) for line in lines):
        return []
    return [
        MatchRecord(
            id="log-report",
            title="a line that only reports; the program continues",
            cause="Level I (INFO) says what is done, level W that something is slower or a default is taken."
            " What fails has a line of level E or F, or an exception.",
            remedy=[
                "nothing to do; `TF_CPP_MIN_LOG_LEVEL=1` hides level I, 2 also level W",
                "slow or wrong results: the file that the line names says which part speaks",
            ],
            line=1,
            message=" ".join(lines[0].split()),
        )
    ]


def entry_record(entry: Entry) -> MatchRecord:
    """An entry that was asked for by name."""
    return MatchRecord(
        id=entry.id, title=entry.title, cause=entry.cause, remedy=entry.remedy, reference=entry.reference
    )


def _match(found: Recognition, dump: Dump | None) -> MatchRecord:
    return msgspec.structs.replace(
        entry_record(found.entry),
        line=found.line,
        lines=found.lines,
        message=found.excerpt,
        fields=found.fields,
        places=locate(dump, found.instructions) if dump else [],
    )


# Finds the catalogue's messages in a log.

#: A line of level I or W as absl, TensorFlow and JAX write it.
_REPORT = re.compile(
    r"\W*(?:\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: [IW]|[IW]\d{4} [\d:.]+ +\d+) [\w/.\-]+\.(?:cc|py|cpp|h):\d+\] "
)
#: Colours of a terminal.
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")
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
    text = _COLOUR.sub("", text).translate(_QUOTES)
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
    is_explained = any(not (known.entry.note or known.entry.consequence) for known in found.values())
    return [known for known in found.values() if not (is_explained and known.entry.consequence)]


def _hits(text: str) -> Iterator[_Hit]:
    words = " ".join(set(text.split()))  # logs repeat themselves: this is much shorter
    for entry in catalogue():
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
