"""Finds the instructions that a message names in the modules of a dump."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotool.dump.records import Dump, Stage
from hlotool.errors import HlotoolError
from hlotool.findings.provenance import source_of
from hlotool.findings.records import Record, SourceRecord
from hlotool.parse.reader import parse_module


class PlaceRecord(Record, frozen=True, kw_only=True):
    """Where an instruction that a message names stands in the dump.

    Attributes:
        path: of the file.
        module: of the dump.
        stage: of the compilation, the first that has the instruction.
        source: the instruction, and the line of the user's program.
    """

    path: str
    module: str
    stage: str
    source: SourceRecord


def locate(dump: Dump, names: Sequence[str]) -> list[PlaceRecord]:
    """Where the instructions called `names` stand: of each module the first stage that has them."""
    return [place for name in names for place in _places(dump, name)]


def _places(dump: Dump, name: str) -> Iterator[PlaceRecord]:
    definition = re.compile(rf"^\s*(?:ROOT )?%?{re.escape(name)} = ", re.MULTILINE)
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
