"""What a page shows of one row when it is unfolded, as plain data for its script.

A row's details are sections: facts by name, HLO side by side, a graph, tables, a histogram, a map, text. The
script knows how to draw each kind, and nothing of verdicts; what is said is what the terminal's report says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from rich.text import Text

from hlotool.findings.outputs import output_name
from hlotool.findings.records import ErrorRecord
from hlotool.findings.verdict import AGREEING, Verdict
from hlotool.locate.records import DivergenceRecord, NeighbourRecord
from hlotool.replay.records import LeafRecord, ModuleRecord
from hlotool.report.divergence import divergence_facts, finding_text
from hlotool.report.leaf import leaf_facts, magnitudes, output_facts
from hlotool.report.module import module_facts
from hlotool.report.outcomes import Outcome
from hlotool.report.words import number, position, ulps
from hlotool.search.bisection.records import CulpritRecord

Section: TypeAlias = dict[str, Any]

#: Outputs of a row that are drawn; of the others the facts are in the record.
_OUTPUTS = 8


def row_details(row: ModuleRecord) -> list[Section]:
    """A comparison of `run`: its sides and inputs, the first wrong instruction, its outputs."""
    # The head of the details names the file: what is left is equal for equal programs, and stored once.
    known = [(name, value) for name, value in module_facts(row, verbose=True) if name != "file"]
    found = [_facts("", known)]
    if row.error is not None:
        found += _error(row.error)
    if row.divergence is not None:
        found += divergence_details(row.divergence, row.verdict is not Verdict.DIFFERS)
    shown = [leaf for leaf in row.leaves if leaf.verdict not in AGREEING]
    for leaf in shown[:_OUTPUTS]:
        found += leaf_details(leaf)
    if hidden := shown[_OUTPUTS:]:
        names = ", ".join(output_name(leaf.index) for leaf in hidden)
        found.append(_text("more outputs with a finding", names))
    if agreeing := [leaf for leaf in row.leaves if leaf.verdict in AGREEING]:
        found.append(_agreement(agreeing))
    for output in row.outputs[:_OUTPUTS]:
        found.append(_facts(f"{output_name(output.index)}  {output.shape}", output_facts(output)))
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


def divergence_details(divergence: DivergenceRecord, is_accused: bool = True) -> list[Section]:
    """The first wrong instruction: what is known of it, both sides beside each other, and what is around."""
    source = divergence.source
    place = source.place or f"{source.opcode} %{source.instruction}"
    found = [_facts(f"{finding_text(divergence, is_accused)}: {place}", divergence_facts(divergence))]
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
