"""The page of a record: a template, its style and script, and the data of its rows, in one file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from hlotool._version import __version__
from hlotool.interface.report.basis import basis_lines
from hlotool.interface.report.command_records import DiffRecord
from hlotool.interface.report.html.rows import page_data
from hlotool.interface.report.lab_records import STATUSES, CellRecord, ConformanceRecord
from hlotool.interface.report.lab_reports import LOOKS
from hlotool.interface.report.layers import plot_of
from hlotool.interface.report.outcomes import Outcome, State, outcomes_of, state_of_kind
from hlotool.interface.report.records import RunRecord
from hlotool.interface.report.trend import TrendRecord
from hlotool.interface.report.words import plural, seconds
from hlotool.ir.types import ElementType

#: In the order in which the browser reads them: helpers first, what starts everything last.
_SCRIPTS = ("elements.js", "pictures.js", "details.js", "rows.js", "list.js", "main.js")
#: Causes above the list of results; there may be thousands, and the others unfold.
_SHOWN_CAUSES = 20
_STYLES = ("page.css", "pictures.css", "print.css")


def page(record: Any) -> str:
    """One self-contained page of HTML: nothing in it is fetched from anywhere.

    Args:
        record: of `run`, `exec`, `bisect`, `check`, `prove`, `diff`, `triage`, `conformance` or `trend`.
    """
    environment = _environment()
    from markupsafe import Markup

    if isinstance(record, TrendRecord):
        return _trend_page(record)
    data = page_data(record)
    scripts = [*map(_text, _SCRIPTS[:-1]), *(_graph_scripts() if _DRAWN in data else ()), _text(_SCRIPTS[-1])]
    style, script = "".join(map(_text, _STYLES)), "".join(scripts)
    replays = getattr(record, "run", record)
    outcomes = outcomes_of(record)
    causes = list(reversed(getattr(replays, "causes", [])))
    command = record.schema.partition("/")[0].removeprefix("hlotool.")
    headline = getattr(record, "headline", "") or _headline(
        command, outcomes, getattr(record, "seconds", 0.0)
    )
    error = getattr(record, "error", None)
    known: str = environment.from_string(_text("page.html.j2")).render(
        title=f"hlotool {command}: {headline}",
        command=command,
        headline=headline,
        paths=_paths(replays),
        totals=list(_totals(outcomes)),
        causes=causes,
        shown_causes=_SHOWN_CAUSES,
        states={cause.kind: state_of_kind(cause.kind).value for cause in causes},
        has_twins=any(outcome.is_twin for outcome in outcomes),
        rows=plural(len(outcomes), "result"),
        basis=_basis(replays),
        matrix=matrix_of(record) if isinstance(record, ConformanceRecord) else None,
        plot=plot_of(record.layers) if isinstance(record, DiffRecord) and record.layers is not None else None,
        error=error.message if error is not None else "",
        versions={"hlotool": __version__} | getattr(record, "versions", {}),
        # These are ours, or escaped as JSON: HTML knows no entities in them.
        style=Markup(style),
        script=Markup(script),
        data=Markup(data),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    return known


#: In the data of a page with whole programs, and nowhere else: names in it have no bare quotes.
_DRAWN = '"kind":"program"'


def _graph_scripts() -> Iterator[str]:
    """What lays out graphs (dagre 3.1.3, with its licence), and what draws them."""
    yield f"\n/*!\n{_text('dagre.LICENSE')}*/\n"
    yield _text("dagre.min.js").partition("//# sourceMappingURL")[0]
    yield _text("program.js")


def _trend_page(record: TrendRecord) -> str:
    """The page of many days, which needs no script."""
    from markupsafe import Markup

    from hlotool.interface.report.html.trend import charts_of

    style = "".join(map(_text, _STYLES))
    is_open = sum(one.is_open for one in record.findings)
    findings = plural(len(record.findings), "finding")
    known: str = (
        _environment()
        .from_string(_text("trend.html.j2"))
        .render(
            headline=f"{plural(len(record.days), 'day')}: {findings}, {is_open} of them still there",
            charts=charts_of(record),
            findings=record.findings,
            days=record.days,
            notes=record.notes,
            version=__version__,
            style=Markup(style),
            style_hash=_hash(style),
        )
    )
    return known


def _paths(record: Any) -> list[str]:
    """What was looked at, as given."""
    if isinstance(record, ConformanceRecord):
        return [record.backend, record.backend_version]
    return record.paths if hasattr(record, "paths") else [p for p in (record.left, record.right) if p]


def _basis(record: Any) -> list[str]:
    """What there is to say about what an agreement means."""
    if isinstance(record, RunRecord):
        return list(basis_lines(record))
    allowed = [f"{name}: {text}" for name, text in getattr(record, "freedoms", {}).items()]
    return [*allowed, *getattr(record, "notes", [])]


def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _totals(outcomes: list[Outcome]) -> Iterator[tuple[str, int, str]]:
    """How many outcomes of each kind, those that need a look first."""
    counts = Counter((outcome.rule, outcome.state) for outcome in outcomes)
    order = [State.FAILED, State.ERROR, State.SKIPPED, State.PASSED]
    for (rule, state), count in sorted(counts.items(), key=lambda item: (order.index(item[0][1]), -item[1])):
        yield rule, count, state.value


def _headline(command: str, outcomes: list[Outcome], took: float) -> str:
    """What there is to know before anything else: `7 wrong, 119 passed of 126 results in 12.3 s`."""
    counts = Counter(outcome.state for outcome in outcomes)
    words = {
        State.FAILED: "wrong" if command in ("run", "exec") else "with a finding",
        State.ERROR: "could not be run",
        State.SKIPPED: "open",
        State.PASSED: "passed",
    }
    parts = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
    text = f"{', '.join(parts)} of {plural(len(outcomes), 'result')}" if parts else "no results"
    return f"{text} in {seconds(took)}" if took else text


# The table of a page that is about opcodes and element types.


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
