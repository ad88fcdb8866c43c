"""The table of a page that is about opcodes and element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.ir.types import ElementType
from hlotool.report.conformance import LOOKS
from hlotool.report.conformance_records import STATUSES, CellRecord, ConformanceRecord
from hlotool.report.outcomes import outcomes_of


@dataclass(frozen=True, slots=True)
class Cell:
    """An opcode on an element type: its sign, the class of its colour, and what a pointer on it shows."""

    sign: str
    state: str
    about: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table.

    Attributes:
        legend: what each sign says.
        kinds: headings of the columns.
        rows: opcodes with their cells, None where nothing was tried.
    """

    legend: Sequence[tuple[str, str]]
    kinds: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]


def matrix_of(record: ConformanceRecord) -> Matrix:
    """The table of a record: its opcodes, and the element types that occur in it."""
    states = [outcome.state.value for outcome in outcomes_of(record)]
    known = {(cell.opcode, cell.element_type): _cell(cell, s) for cell, s in zip(record.cells, states)}
    tried = {cell.element_type for cell in record.cells}
    kinds = [kind.value for kind in ElementType if kind.value in tried] + ([""] if "" in tried else [])
    opcodes = dict.fromkeys(cell.opcode for cell in record.cells)
    return Matrix(
        legend=[(LOOKS[status][0], status) for status in STATUSES],
        kinds=[kind or "token" for kind in kinds],
        rows=[(opcode, [known.get((opcode, kind)) for kind in kinds]) for opcode in opcodes],
    )


def _cell(cell: CellRecord, state: str) -> Cell:
    taken = [f"{name} ×{count}" for name, count in cell.freedoms.items()]
    parts = [f"{getattr(cell, status)} {status}" for status in STATUSES if getattr(cell, status)]
    ulps = [f"{cell.ulps} ulps"] if cell.ulps else []
    about = f"{cell.opcode} {cell.element_type}: {', '.join([*parts, *taken, *ulps])}"
    return Cell(LOOKS[cell.status][0], state, about)
