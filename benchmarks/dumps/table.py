"""The table of `dump_versions.py`: what was said of each kind of program in the dumps of each version."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

#: Short forms of what a cell says.
_SHORT = {
    "identical": "=",
    "agree": "≈",
    "rounding": "~",
    "range": "range",
    "unsupported": "no",
    "no program": "-",
    "default precision": "bf16",
}
_LEGEND = """Dumps of one program of each kind, made by each version on its own, and what `hlotool run` says
of them: the program before optimizations against the last stage. Made by `python -m benchmarks.dumps`.

`=` identical, `≈` agree, `~` rounding; `no`: not replayed, for a reason that is given below; `-`: the version
has no such program; `bf16`: wrong, because the TPU's compiler multiplies in 16 bits unless it is asked for
more, and healthy when compiled at precision highest.
"""
#: Said of a program that was not read as it should be.
_UNREAD = ("unread", "bad input", "crashed", "not compared", "structural", "timeout", "out of memory")


class Column(msgspec.Struct, frozen=True, tag="version"):
    """A compiler.

    Attributes:
        unit: as it was named.
        jax: its version.
        jaxlib: its version.
        python: its version.
        libtpu: its version; empty on the CPU.
        change: what the names of its files say of the libtpu that wrote them.
    """

    unit: str
    jax: str
    jaxlib: str
    python: str
    libtpu: str = ""
    change: str = ""


class Cell(msgspec.Struct, frozen=True, tag="cell"):
    """A program.

    Attributes:
        unit: the compiler.
        kind: of program.
        verdict: of `run`, or `no program`, `unread`, `default precision`.
        reason: of the verdict, or why there is no program.
        rows: how many `run` has of its dump; there must be one.
    """

    unit: str
    kind: str
    verdict: str
    reason: str
    rows: int

    @property
    def is_read(self) -> bool:
        """Whether the program was replayed, or `run` says why not."""
        return self.verdict not in _UNREAD and (self.rows == 1 or self.verdict == "no program")


def _title(column: Column) -> str:
    return f"tpu {column.libtpu}" if column.libtpu else column.jaxlib


def _place(column: Column) -> tuple[bool, list[int]]:
    """Before or after others: CPU first, by version."""
    version = column.libtpu or column.jaxlib
    return bool(column.libtpu), [int(part) for part in re.findall(r"\d+", version)]


def table(columns: Sequence[Column], cells: Iterable[Cell]) -> str:
    """In Markdown: columns, cells, what they count, and the reasons."""
    cells, columns = list(cells), sorted(columns, key=_place)
    by_place = {(cell.kind, cell.unit): cell for cell in cells}
    kinds = list(dict.fromkeys(cell.kind for cell in cells))
    lines = [_LEGEND, _line(["kind", *map(_title, columns)]), _line(["---"] * (len(columns) + 1))]
    lines += [_line([k, *(_short(by_place.get((k, column.unit))) for column in columns)]) for k in kinds]
    lines += ["", *_counts(columns, cells), "", *_compilers(columns), "", *_reasons(columns, cells)]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(cell: Cell | None) -> str:
    if cell is None:
        return ""
    shown = _SHORT.get(cell.verdict, cell.verdict)
    return shown if cell.rows <= 1 else f"{shown} ({cell.rows} rows)"


def _counts(columns: Sequence[Column], cells: Sequence[Cell]) -> list[str]:
    heads = ("version", "programs", "replayed", "says why not", "unread", "not in this version")
    lines = [_line(heads), _line(["---"] * len(heads))]
    for column in columns:
        own = [cell for cell in cells if cell.unit == column.unit]
        made = [cell for cell in own if cell.verdict != "no program"]
        unread = sum(not cell.is_read for cell in made)
        refused = sum(cell.is_read and cell.verdict == "unsupported" for cell in made)
        counts = (len(made), len(made) - unread - refused, refused, unread, len(own) - len(made))
        lines.append(_line([_title(column), *map(str, counts)]))
    return lines


def _compilers(columns: Sequence[Column]) -> list[str]:
    return [
        f"- {_title(c)}: jax {c.jax}, jaxlib {c.jaxlib}, Python {c.python}"
        + (f", files of cl_{c.change}" if c.change else "")
        for c in columns
    ]


def _reasons(columns: Sequence[Column], cells: Iterable[Cell]) -> list[str]:
    """Every cell that is not just healthy, those of one kind and reason together."""
    titles = {column.unit: _title(column) for column in columns}
    found: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell in cells:
        if cell.verdict not in ("identical", "agree", "rounding"):
            found[cell.kind, cell.verdict, _plain(cell.reason)].append(titles[cell.unit])
    counts = Counter(verdict for _, verdict, _ in found)
    order = sorted(found, key=lambda key: (counts[key[1]], key[1], key[0]))
    return [
        f"- {verdict}: {kind} ({', '.join(found[kind, verdict, why])}): {why}" for kind, verdict, why in order
    ]


def _plain(reason: str) -> str:
    """A reason without what differs from one version to the next: paths, lines, numbers of instructions."""
    reason = re.sub(r"\S*/(?=module_)", "", reason)
    reason = re.sub(r"module_\d+\S*?: ?", "", reason)
    reason = re.sub(r"^\d+: ", "", reason)
    reason = re.sub(r"/\S*/", "…/", reason)
    reason = re.sub(r" ?\(lines? [^)]*\)", "", reason)
    reason = re.sub(r"(?<=[A-Za-z])\.\d+\b", "", reason)
    return reason[:220]
