"""What a log contains of the catalogue, as records; the text itself and installed libraries add to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from hlotool.checks.explain.entries import FIELD, Entry
from hlotool.checks.explain.raised import raised, user_line
from hlotool.checks.explain.recognition import Recognition, form_of, plain, recognize, reports
from hlotool.checks.explain.records import MatchRecord, PlaceRecord
from hlotool.checks.explain.shapes import difference
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


def explain_text(text: str, dump: Dump | None = None, *, installed: bool = False) -> list[MatchRecord]:
    """What `text` contains of the catalogue, else what its form says.

    Args:
        dump: the instructions of it that `text` names are looked for.
        installed: the libraries that are installed here are searched for the message, too.
    """
    found = recognize(text)
    said = {line for each in found if not each.entry.vague for line in each.lines}
    if all(each.entry.vague or each.entry.note for each in found):
        form = form_of(text, said)
        if form and not (found and (form.entry.vague or form.entry.note)):
            found = [form, *(each for each in found if not each.entry.vague)]
    found.sort(key=lambda recognition: recognition.entry.note)
    return [*(_match(each, text, dump, installed) for each in found), *_unfinished(dump)]


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
    if not lines or not all(map(reports, lines)):
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


def _match(found: Recognition, text: str, dump: Dump | None, installed: bool) -> MatchRecord:
    entry = found.entry
    message = "\n".join(plain(text).split("\n")[found.line - 1 :][:_LINES])
    is_python = not entry.note and re.search(r"\w(?:Error|Exception|Interrupt)\b", message)
    return msgspec.structs.replace(
        entry_record(entry),
        title=FIELD.sub(lambda field: found.fields.get(field[1] + field[2], field[0]), entry.title),
        line=found.line,
        lines=found.lines,
        message=found.excerpt,
        fields=found.fields,
        places=locate(dump, found.instructions) if dump else [],
        general=entry.generic or entry.is_form,
        difference=difference(message),
        called=user_line(text, found.line) if is_python else "",
        raised=raised(message, text) if is_python and installed else [],
    )


#: A message of Python goes on over so many lines at most.
_LINES = 8
