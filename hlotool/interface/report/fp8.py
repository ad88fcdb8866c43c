"""What programs lose to float8: tables of tensors and of products, by line of the user's program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.console import RenderableType
from rich.text import Text

from hlotool.interface.report.console import plain_table
from hlotool.interface.report.words import number
from hlotool.runs.fp8_records import Fp8ProductRecord, Fp8TensorRecord
from hlotool.runs.records import ModuleRecord

#: Shares from which a tensor stands out: more is lost than a scale that fits would lose.
_MUCH = 0.01
_ERRORS = "errors: root mean square, relative to the result's own, of what rounding the factors changes"


def float8_lost(modules: Sequence[ModuleRecord]) -> Iterator[RenderableType]:
    """Two tables for each program; rows of several tested programs share a reference and are one."""
    shown: set[tuple[str, str]] = set()
    for module in modules:
        key = module.name, module.path
        if key in shown:
            continue
        shown.add(key)
        title = f"float8 in {module.name}, {module.stage_reference or 'the program'}"
        if module.fp8 is None or not module.fp8.tensors:
            yield Text(f"{title}: {module.fp8_missing or 'no tensor of such a type'}\n", "dim")
            continue
        yield Text(title, "bold")
        yield _table(tensor_rows(module.fp8.tensors))
        yield Text("")
        if module.fp8.products:
            yield _table(product_rows(module.fp8.products))
            yield Text(f"{_ERRORS}\n", "dim")


#: Columns and rows of a table.
Cells: TypeAlias = "tuple[Sequence[str], list[list[str | Text]]]"


def tensor_rows(tensors: Sequence[Fp8TensorRecord]) -> Cells:
    """What became of each tensor."""
    counts = "underflow", "subnormal", "saturated", "overflow"
    columns = ("tensor", "from", "scale", "amax", "scaled", "of", *counts, "error", "where")
    rows: list[list[str | Text]] = [
        [
            one.shape.partition("{")[0],
            one.made_by,
            _scale(one),
            *map(number, (one.amax, one.scaled_amax, one.limit)),
            *(_share(n, one.total) for n in (one.underflow, one.subnormal, one.saturated, one.overflow)),
            number(one.error, 2),
            one.source.place or f"%{one.tensor}",
        ]
        for one in tensors
    ]
    return columns, rows


def product_rows(products: Sequence[Fp8ProductRecord]) -> Cells:
    """How far each product is off, with factors of each type."""
    rows: list[list[str | Text]] = [
        [
            f"{one.opcode} {one.shape.partition('{')[0]}",
            *(number(error, 2) for error in (one.error, one.error_bf16, one.error_f16, one.error_f32)),
            one.missing or one.source.place or f"%{one.product}",
        ]
        for one in products
    ]
    return ("product", "float8", "bf16", "f16", "f32", "where"), rows


#: Columns that hold words.
_WORDS = frozenset({"tensor", "from", "scale", "product"})


def _table(cells: Cells) -> RenderableType:
    columns, rows = cells
    table = plain_table()
    for name in columns:
        if name == "where":
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _scale(one: Fp8TensorRecord) -> str:
    if one.least_scale is None:
        return one.scaling
    same = one.least_scale == one.largest_scale
    values = number(one.least_scale) if same else f"{number(one.least_scale)} … {number(one.largest_scale)}"
    return f"{one.scaling} {'÷' if one.divides else '×'} {values}{', clamped' if one.clamped else ''}"


def _share(count: int, total: int) -> Text:
    if not count:
        return Text("·", "dim")
    share = count / total
    return Text(f"{share:.2%}" if share >= 0.0001 else str(count), "yellow" if share > _MUCH else "")
