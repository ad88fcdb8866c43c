"""Causes, not rows: the findings of a record, those that come from the same thing together.

Rows of `run` are alike by what is known of their cause, the best first: the instruction that went wrong with
its line in the user's program; the instruction that makes the wrong output; the words of what died or could
not be run, without names and numbers.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from hlotool.blame.bisection.records import CulpritRecord
from hlotool.checks.records import Finding
from hlotool.interface.report.finding import what_became
from hlotool.interface.report.records import CauseRecord, FolderRecord
from hlotool.interface.report.words import wrong_elements
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import AGREEING, Answer, Verdict
from hlotool.runs.records import LeafRecord, ModuleRecord
from hlotool.system.files import digest
from hlotool.system.records import SourceRecord, encoded

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)

#: Hexadecimal digits of an id: two causes of a million share one with a probability below one in 10^8.
_DIGITS = 16
#: What the message of an error in a file begins with.
_PLACE = re.compile(r"^\S+?:\d+(?::\d+)?: ")
#: What is data in a message: positions, names, numbers.
_DATA = re.compile(r"\S*:\d+(?::\d+)?:|%[\w.-]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def causes_of_run(
    modules: Sequence[ModuleRecord], next_command: Callable[[ModuleRecord], str], fail_on: Sequence[str] = ()
) -> list[CauseRecord]:
    """The causes of the rows that do not agree, the gravest verdict last, and there the most frequent.

    Args:
        modules: the rows of a run.
        next_command: what to type to look closer at one of them.
        fail_on: what else is a finding, also where both sides agree (see `ModuleRecord.fails_on`).
    """
    failing = [n for n, row in enumerate(modules) if is_open(row) or row.fails_on(fail_on)]
    found = []
    alike = _grouped(failing, lambda n: signature_of_row(modules[n]))
    for signature, rows in alike.items():
        members = [modules[n] for n in rows]
        example = max(members, key=_badness)
        cause = _cause(signature, example.verdict.value, rows, [row.path for row in members])
        found.append(
            msgspec.structs.replace(
                cause,
                what=_what(example),
                source=located_source(example),
                programs=len({row.twin_of or row.path for row in members}),
                example=example.name,
                file=example.path,
                next=next_command(example),
            )
        )
    return sorted(found, key=lambda cause: (Verdict(cause.kind).rank, cause.count))


def causes_of_check(findings: Sequence[Finding], next_command: Callable[[Finding], str]) -> list[CauseRecord]:
    """The causes of the findings of `check`: rule, message and line; the gravest last."""
    found = []
    for signature, rows in _grouped(
        range(len(findings)), lambda n: _signature_of_finding(findings[n])
    ).items():
        example = findings[rows[0]]
        cause = _cause(signature, example.rule, rows, [findings[n].file for n in rows])
        found.append(
            msgspec.structs.replace(
                cause,
                what=example.message,
                source=example.source,
                example=example.module,
                file=example.file,
                next=next_command(example),
            )
        )
    return sorted(found, key=lambda cause: (-findings[cause.rows[0]].severity.rank, cause.count))


def causes_of_bisection(
    culprits: Sequence[CulpritRecord], next_command: Callable[[CulpritRecord], str]
) -> list[CauseRecord]:
    """One cause for each fault; modules that fail in the same way count, too."""
    found = []
    for signature, rows in _grouped(
        range(len(culprits)), lambda n: _signature_of_culprit(culprits[n])
    ).items():
        members = [culprits[n] for n in rows]
        example = next((culprit for culprit in members if culprit.confirmed), members[0])
        paths = [culprit.comparison.path for culprit in members if culprit.comparison]
        cause = _cause(signature, example.level, rows, paths)
        found.append(
            msgspec.structs.replace(
                cause,
                what=f"{blamed(example)}: {', '.join(example.opcodes) or example.signature}",
                pass_name=example.pass_name,
                source=example.source,
                count=sum(1 + len(culprit.others) for culprit in members),
                example=example.module,
                file=paths[0] if paths else "",
                next=next_command(example),
            )
        )
    return sorted(found, key=lambda cause: cause.count)


def is_open(row: ModuleRecord) -> bool:
    """Whether a row is anything but an agreement."""
    return row.verdict not in AGREEING


def signature_of_row(row: ModuleRecord) -> Signature:
    """What rows must share to have the same cause."""
    kind = row.verdict.value
    if row.error is not None:
        return Signature(kind=kind, words=f"{row.error.kind} {_likeness(row)}")
    source = located_source(row)
    leaf = worst_leaf(row)
    rule = leaf.evidence.rule if leaf is not None and leaf.evidence is not None else ""
    if source is None and not rule:
        return Signature(kind=kind, words=_likeness(row))
    return Signature(
        kind=kind,
        elements=(_fault(leaf),) if leaf is not None else (),
        opcodes=(source.opcode,) if source is not None else (),
        sources=(source.place,) if source is not None and source.place else (),
        words=rule,
    )


def located_source(row: ModuleRecord) -> SourceRecord | None:
    """The instruction that a row's failure comes from, as far as it was located."""
    if row.divergence is not None:
        return row.divergence.source
    for leaf in _worst_leaves(row):
        amplifier = leaf.evidence.instruction if leaf.evidence is not None else None
        if (found := amplifier or leaf.source) is not None:
            return found
    return row.origins[0].source if row.origins else None


def worst_leaf(row: ModuleRecord) -> LeafRecord | None:
    """The output that a row's verdict comes from: of several, that with most of its elements wrong."""
    return next(iter(_worst_leaves(row)), None)


def _worst_leaves(row: ModuleRecord) -> list[LeafRecord]:
    leaves = [leaf for leaf in row.leaves if leaf.verdict is row.verdict]
    return sorted(leaves, key=_wrong_share, reverse=True)


def without_place(message: str) -> str:
    """An error's message without the `FILE:LINE:COLUMN: ` that it begins with."""
    return _PLACE.sub("", message, count=1)


def blamed(culprit: CulpritRecord) -> str:
    """Who did it: `pass algsimp`, `codegen`."""
    return f"{culprit.level} {culprit.pass_name}".rstrip()


def _signature_of_finding(finding: Finding) -> Signature:
    source = finding.source
    words = _DATA.sub("·", _without(finding.message, finding.module, finding.file, finding.instruction))
    place = source.place if source is not None else ""
    return Signature(kind=finding.rule, sources=(place,) if place else (), words=words)


def _signature_of_culprit(culprit: CulpritRecord) -> Signature:
    place = culprit.source.place if culprit.source is not None else ""
    return Signature(
        kind=blamed(culprit),
        elements=(culprit.signature,),
        opcodes=tuple(culprit.opcodes),
        sources=(place,) if place else (),
    )


def _cause(signature: Signature, kind: str, rows: list[int], paths: Iterable[str]) -> CauseRecord:
    """A cause of which only what its findings share is known yet."""
    folders = Counter(os.path.dirname(path) for path in paths)
    return CauseRecord(
        id=cause_id(signature),
        kind=kind,
        what="",
        signature=signature,
        count=len(rows),
        rows=rows,
        example="",
        folders=[FolderRecord(folder=f, count=count) for f, count in folders.most_common()],
    )


def cause_id(signature: Signature) -> str:
    """Names a cause in any run: folders of source files, which differ from host to host, do not count."""
    lines = (re.sub(r"^.*[/\\](?=[^/\\]+:\d+$)", "", line) for line in signature.sources)
    moved = msgspec.structs.replace(signature, sources=tuple(lines))
    return digest(encoded(moved, msgspec.json.encode))[:_DIGITS]


def _grouped(items: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    found: dict[_K, list[_T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _what(row: ModuleRecord) -> str:
    """The cause of a row in one line."""
    if row.error is not None:
        return without_place(row.error.message)
    if row.divergence is not None:
        return what_became(row.divergence, row.verdict)
    source = located_source(row)
    if source is None or row.verdict.answer is not Answer.BAD:
        return row.reason
    leaf = worst_leaf(row)
    # That values are wrong goes without saying.
    fault = f": {_fault(leaf)}" if leaf is not None and _fault(leaf) != "value" else ""
    return f"{source.opcode} returns wrong values{fault}"


def _fault(leaf: LeafRecord | None) -> str:
    """What is wrong about a leaf: the pattern of its errors, where one was recognised."""
    if leaf is None:
        return ""
    pattern = leaf.evidence.pattern if leaf.evidence is not None else ""
    return pattern or leaf.fault


def _badness(row: ModuleRecord) -> tuple[float, int]:
    """The worst example is that with most of its elements wrong; of these the one with the fewest elements.

    Times do not decide: the record of a run is the same on any machine.
    """
    leaf = worst_leaf(row)
    return (_wrong_share(leaf), -leaf.total) if leaf is not None else (0.0, 0)


def _wrong_share(leaf: LeafRecord) -> float:
    return wrong_elements(leaf) / leaf.total if leaf.total else 1.0


def _likeness(row: ModuleRecord) -> str:
    """The reason of a failure apart from positions, names and numbers."""
    error = row.error
    text = error.message if error else row.reason
    return _DATA.sub("·", _without(text, row.path, row.name, error.instruction if error else None))


def _without(text: str, *names: str | None) -> str:
    """The text with a dot for each of the names, where they stand as words."""
    for name in filter(None, names):
        text = re.sub(rf"(?<![\w.%-]){re.escape(name)}(?![\w-])", "·", text)
    return text
