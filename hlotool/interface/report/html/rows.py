"""The rows of a page as its script reads them, and what each shows when it is unfolded.

Rows are short, with what many of them share said once. A row's details are sections: facts by name, HLO
side by side, a graph, tables, a histogram, a map, text. The script knows how to draw each kind, and nothing
of verdicts; what is said is what the terminal's report says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from rich.text import Text

from hlotool.blame.bisection.records import CulpritRecord
from hlotool.interface.report.causes import is_open, without_place
from hlotool.interface.report.command_records import (
    BisectRecord,
    DiffRecord,
    ExecRecord,
    ProveRecord,
)
from hlotool.interface.report.finding import quoted_source, what_became
from hlotool.interface.report.fp8 import product_rows, tensor_rows
from hlotool.interface.report.html.program import Programs
from hlotool.interface.report.leaf import leaf_facts, magnitudes, output_facts
from hlotool.interface.report.located import divergence_facts
from hlotool.interface.report.module import module_facts, same_programs
from hlotool.interface.report.next_command import command_after_row, command_line
from hlotool.interface.report.outcomes import Outcome, outcomes_of
from hlotool.interface.report.records import RunRecord
from hlotool.interface.report.triage_records import TriageRecord
from hlotool.interface.report.words import number, position, ulps
from hlotool.judge.records import DivergenceRecord, NeighbourRecord, output_name
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.fp8_records import Fp8Record
from hlotool.runs.records import LeafRecord, ModuleRecord
from hlotool.system.records import ErrorRecord, encoded

Section: TypeAlias = dict[str, Any]

#: Outputs of a row that are drawn; of the others the facts are in the record.
_OUTPUTS = 8


def row_details(row: ModuleRecord) -> list[Section]:
    """A comparison of `run`: its sides and inputs, the first wrong instruction, its outputs."""
    found: list[Section] = []
    if row.error is not None:
        found += _error(row.error)
    if row.divergence is not None:
        found += divergence_details(row.divergence, row.verdict)
    shown = [leaf for leaf in row.leaves if leaf.verdict not in AGREEING]
    for leaf in shown[:_OUTPUTS]:
        found += leaf_details(leaf)
    if hidden := shown[_OUTPUTS:]:
        names = ", ".join(output_name(leaf.index) for leaf in hidden)
        found.append(_text("more outputs with a finding", names))
    if agreeing := [leaf for leaf in row.leaves if leaf.verdict in AGREEING]:
        found.append(_agreement(agreeing))
    if row.fp8 is not None and row.fp8.tensors:
        found += _float8(row.fp8)
    for output in row.outputs[:_OUTPUTS]:
        found.append(_facts(f"{output_name(output.index)}  {output.shape}", output_facts(output)))
    # The head of the details names the file: what is left is equal for equal programs, and stored once.
    known = [(name, value) for name, value in module_facts(row, verbose=True) if name != "file"]
    found.append(_facts("what was compared", known))
    return found


def culprit_details(culprit: CulpritRecord) -> list[Section]:
    """A fault that a bisection found: why it is believed, the spot before and after, its values."""
    known = {
        "level": culprit.level,
        "pass": culprit.pass_name,
        "pipeline": culprit.pipeline,
        "right": culprit.stage_before,
        "wrong": culprit.stage,
        "failure": culprit.signature,
        "source": culprit.source.place if culprit.source is not None else "",
        "inside": ", in ".join(reversed(culprit.place)),
        "compiler": culprit.trigger.summary if culprit.trigger is not None else "",
        "bundle": culprit.repro,
        "also in": ", ".join(culprit.others),
    }
    found = [_facts("", ((name, value) for name, value in known.items() if value))]
    found.append(_text("why this is believed", "\n".join(culprit.evidence)))
    spot = culprit.spot
    if spot is not None:
        found.append(_sides("the spot", spot.before, spot.after))
        if spot.divergence is not None:
            found += divergence_details(spot.divergence)
    if culprit.minimal:
        found.append(
            _text("the smallest program that the compiler gets wrong", culprit.minimal, is_code=True)
        )
    if culprit.comparison is not None:
        for leaf in culprit.comparison.leaves[:_OUTPUTS]:
            if leaf.verdict not in AGREEING:
                found += leaf_details(leaf)
    return found


def outcome_details(outcome: Outcome) -> list[Section]:
    """What any command says of one thing."""
    source = outcome.source
    known = {
        "file": f"{outcome.file}:{outcome.line}" if outcome.line else outcome.file,
        "source": source.place if source is not None else "",
        "operation": source.op_name if source is not None else "",
        "instruction": f"{source.opcode} %{source.instruction}" if source is not None else "",
    }
    found = [_text("", outcome.message), _facts("", ((n, v) for n, v in known.items() if v))]
    if outcome.details:
        found.append(_text("details", "\n".join(outcome.details)))
    return found


def divergence_details(divergence: DivergenceRecord, verdict: Verdict = Verdict.WRONG) -> list[Section]:
    """The first wrong instruction: what is known of it, both sides beside each other, and what is around."""
    quoted = "\n".join(line.plain for line in quoted_source(divergence.source))
    found = [
        _text(what_became(divergence, verdict), quoted, is_code=True),
        _facts("", divergence_facts(divergence)),
    ]
    expected = _neighbour_lines(divergence.expected_neighbours) or divergence.expected_text
    actual = _neighbour_lines(divergence.neighbours) or divergence.text
    found.append(_sides("HLO around it", expected, actual))
    if divergence.neighbours:
        found.append(
            {
                "kind": "graph",
                "title": "neighbourhood in the tested program",
                "nodes": [
                    {
                        "name": node.instruction,
                        "opcode": node.opcode,
                        "text": node.text,
                        "reads": node.operands,
                        "distance": node.distance,
                        "state": node.state,
                    }
                    for node in divergence.neighbours
                ],
            }
        )
    return found


def leaf_details(leaf: LeafRecord, name: str = "") -> list[Section]:
    """An output: why it is what it is, its worst elements, its errors by magnitude and by place."""
    title = f"{name or output_name(leaf.index)}  {leaf.shape}  {leaf.verdict.value}"
    found = [_facts(title, leaf_facts(leaf))]
    if leaf.top:
        found.append(
            {
                "kind": "table",
                "title": "worst elements",
                "columns": ["at", "expected", "actual", "absolute", "relative", "ulps"],
                "rows": [
                    [
                        position(element.index),
                        element.expected,
                        element.actual,
                        number(element.absolute),
                        number(element.relative),
                        ulps(element.ulps) or "–",
                    ]
                    for element in leaf.top
                ],
            }
        )
    if leaf.histogram:
        found.append(
            {
                "kind": "histogram",
                "title": "mismatches by magnitude of the value",
                "bars": [[magnitudes(bucket), bucket.mismatched, bucket.total] for bucket in leaf.histogram],
            }
        )
    if leaf.heat is not None:
        found.append(
            {
                "kind": "heat",
                "title": "where it is off",
                "rows": leaf.heat.rows,
                "columns": leaf.heat.columns,
                "cells": leaf.heat.cells,
            }
        )
    return found


def _float8(record: Fp8Record) -> Iterator[Section]:
    for title, table in (
        ("tensors of float8", tensor_rows(record.tensors)),
        ("their products", product_rows(record.products)),
    ):
        columns, rows = table
        yield {
            "kind": "table",
            "title": title,
            "columns": list(columns),
            "rows": [[str(cell) for cell in row] for row in rows],
        }


def _agreement(leaves: Iterable[LeafRecord]) -> Section:
    return {
        "kind": "table",
        "title": "outputs that agree",
        "columns": ["output", "shape", "verdict", "distance"],
        "rows": [
            [output_name(leaf.index), leaf.shape, leaf.verdict.value, ulps(leaf.max_ulp) or "–"]
            for leaf in leaves
        ],
    }


def _error(error: ErrorRecord) -> Iterator[Section]:
    yield _text("", error.message)
    if error.log:
        yield _text("log", error.log, is_code=True)


def _neighbour_lines(neighbours: Iterable[NeighbourRecord]) -> str:
    """What is around an instruction as HLO, in the order in which it is computed, the instruction marked."""
    ordered = sorted(neighbours, key=lambda node: -node.distance)
    return "\n".join(f"{'→ ' if node.distance == 0 else '  '}{node.text}" for node in ordered)


def _sides(title: str, expected: str, actual: str) -> Section:
    return {"kind": "sides", "title": title, "expected": expected, "actual": actual}


def _text(title: str, text: str, is_code: bool = False) -> Section:
    return {"kind": "code" if is_code else "text", "title": title, "text": text}


def _facts(title: str, facts: Iterable[tuple[str, str | Text]]) -> Section:
    rows = [[name, value if isinstance(value, str) else value.plain] for name, value in facts]
    return {"kind": "facts", "title": title, "rows": rows}


#: What a browser could take for the end of the script that holds the data, or JavaScript for that of a line.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_data(record: Any) -> str:
    """The data of a page as JSON that is safe inside of a `script` element."""
    return encoded(_data(record), msgspec.json.encode).decode("utf-8").translate(_ESCAPES)


def _data(record: Any) -> dict[str, Any]:
    outcomes = outcomes_of(record)
    shared = _Shared()
    causes = getattr(getattr(record, "run", record), "causes", [])
    numbers = {cause.id: number for number, cause in enumerate(reversed(causes))}
    details = _details(record, outcomes)
    twins = _twins(record)
    rows = [
        [
            outcome.name,
            shared.index(outcome.rule),
            shared.index(outcome.state.value),
            shared.index(outcome.folder),
            shared.index(outcome.tested),
            shared.index(outcome.difference or ("" if outcome.is_passed else without_place(outcome.message))),
            numbers.get(outcome.cause, -1),
            round(outcome.seconds, 3),
            shared.index(os.path.basename(outcome.file)),
            shared.index(sections),
            shared.index(commands),
            shared.index(twins.get(number, [])),
        ]
        for number, (outcome, (sections, commands)) in enumerate(zip(outcomes, details, strict=True))
    ]
    return {"rows": rows, "shared": shared.values}


def _twins(record: Any) -> dict[int, list[int]]:
    """Of each row whose programs occur under other names, too: these rows and itself, in their order."""
    replays = getattr(record, "run", record)
    groups = same_programs(replays.modules) if isinstance(replays, RunRecord) else []
    return {number: same for same in groups if len(same) > 1 for number in same}


class _Shared:
    """Values that occur many times: rows hold their positions."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._positions: dict[bytes, int] = {}

    def index(self, value: Any) -> int:
        """The position of a value; equal ones share it."""
        key = encoded(value, msgspec.json.encode)
        if key not in self._positions:
            self._positions[key] = len(self.values)
            self.values.append(value)
        return self._positions[key]


def _details(record: Any, outcomes: list[Outcome]) -> Iterator[tuple[list[Section], list[str]]]:
    """Of each outcome the sections that it unfolds to, and the commands that show it again."""
    if isinstance(record, RunRecord):
        yield from _run_details(record)
        return
    if isinstance(record, ExecRecord):
        yield from _run_details(record.run)
        if record.bisect is not None:
            yield from _bisect_details(record.bisect, outcomes[len(record.run.modules) :])
        return
    if isinstance(record, TriageRecord):
        yield from _run_details(record.run)
        return
    if isinstance(record, BisectRecord):
        yield from _bisect_details(record, outcomes)
        return
    special: list[list[Section]] = []
    if isinstance(record, ProveRecord):
        special = [divergence_details(p.divergence) if p.divergence else [] for p in record.pairs]
    elif isinstance(record, DiffRecord):
        special = [[] for _ in record.programs]
        special += [leaf_details(result.comparison, result.name) for result in record.results]
        layers = record.layers.layers if record.layers is not None else []
        special += [leaf_details(row.comparison, row.name) if row.comparison else [] for row in layers]
    commands = {row: cause.next for cause in getattr(record, "causes", []) for row in cause.rows}
    for row, outcome in enumerate(outcomes):
        own = special[row] if row < len(special) else []
        yield [*outcome_details(outcome), *own], [commands[row]] if row in commands else []


def _run_details(record: RunRecord) -> Iterator[tuple[list[Section], list[str]]]:
    programs = Programs()
    for row in record.modules:
        commands = [f"{command_line(record, row)} --verbose"]
        if is_open(row):
            commands.append(command_after_row(record, row))
        sections = row_details(row)
        # Of the same program under several names the first one has it.
        sections += [] if row.twin_of else programs.sections(row.path, row.divergence)
        yield sections, list(dict.fromkeys(filter(None, commands)))


def _bisect_details(
    record: BisectRecord, outcomes: list[Outcome]
) -> Iterator[tuple[list[Section], list[str]]]:
    next_commands = {row: cause.next for cause in record.causes for row in cause.rows}
    programs = Programs()
    for row, outcome in enumerate(outcomes):
        if row < len(record.culprits):
            command, culprit = next_commands[row], record.culprits[row]
            sections = culprit_details(culprit)
            if culprit.comparison is not None and culprit.spot is not None:
                sections += programs.sections(culprit.comparison.path, culprit.spot.divergence)
            yield sections, [command] if command else []
        else:
            yield outcome_details(outcome), []
