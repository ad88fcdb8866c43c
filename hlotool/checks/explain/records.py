"""What is known of a message, for programs and people."""

from __future__ import annotations

from hlotool.system.records import Record, SourceRecord

#: Of `TopicRecord.kind`, in the order in which topics are listed; answers have the name of their command.
VERDICT, RULE = "verdict", "rule"


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


class RaisedRecord(Record, frozen=True, kw_only=True):
    """A place in an installed library that says a message.

    Attributes:
        package: with its version, as installed here; it need not be the one that the message is from.
        path: of the file, from the package on.
        line: where the text begins.
        function: around it.
        condition: what was tested last before it, as the source has it; empty where nothing was.
    """

    package: str
    path: str
    line: int
    function: str = ""
    condition: str = ""


class MatchRecord(Record, frozen=True, kw_only=True):
    """A known message.

    Attributes:
        id: of the catalogue's entry; XLA's error code where it has one.
        title: what is wrong.
        cause: why it happens.
        remedy: what to do, the most likely first.
        reference: page of the official documentation; empty when there is none.
        line: of the text where it stands first; 0 when the entry was asked for by name.
        lines: all lines where it begins.
        message: as printed there.
        fields: what the message names: instructions, shapes, sizes.
        places: where its instructions stand in the dump.
        general: only the class or the form of the message is known, not this message.
        difference: in what two shapes that it names differ, where that is one thing.
        called: the last line of the user's own files in the traceback before it.
        raised: where the libraries that are installed here say it.
    """

    id: str
    title: str
    cause: str
    remedy: list[str]
    reference: str = ""
    line: int = 0
    lines: list[int] = []
    message: str = ""
    fields: dict[str, str] = {}
    places: list[PlaceRecord] = []
    general: bool = False
    difference: str = ""
    called: str = ""
    raised: list[RaisedRecord] = []


class TopicRecord(Record, frozen=True, kw_only=True):
    """A word of a report.

    Attributes:
        name: as reports print it.
        kind: `verdict`, `rule`, or the command that says it.
        means: what is said with it.
        established: how that was found out; the first paragraph is enough to go on.
        next: what to do then.
        page: of the documentation.
    """

    name: str
    kind: str
    means: str
    established: str
    next: str
    page: str
