"""Positions: clamped, wrapped, promised to be what they are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.text import Place, Text, filled

Edits = Iterator[tuple[str, ...]]


def _starts(text: Text) -> Iterator[tuple[Place, int, Place]]:
    for p in text.of("dynamic-slice", "dynamic-update-slice"):
        for number in range(1 if p.line.opcode == "dynamic-slice" else 2, len(p.line.operands)):
            a = text.operand(p, number)
            if a is not None and text.constant(a) is None and a.line.type in ("s32", "u8", "s16", "u32"):
                yield p, number, a


def indices(text: Text) -> Iterator[tuple[Place, int, Place]]:
    yield from _starts(text)
    for p in text.of("gather", "scatter"):
        a = text.operand(p, 1)
        if a is not None and a.line.type == "s32":
            yield p, 1, a


@kind("V6", exact=True)
def index_abs(text: Text) -> Edits:
    """A position loses its sign before it is clamped."""
    for p, number, a in indices(text):
        if a.line.type.startswith("s"):
            yield (
                f"{p.line.name} {p.line.opcode}: |operand {number}|",
                text.before(p, number, (a.line.shape, "abs", ("@",), "")),
            )


@kind("V6", exact=True)
def index_capped(text: Text) -> Edits:
    """A position is at most 2."""
    for p, number, a in indices(text):
        yield (
            f"{p.line.name} {p.line.opcode}: operand {number} at most 2",
            text.before(p, number, *filled(a.line, 2), (a.line.shape, "minimum", ("@", "@1"), "")),
        )


@kind("V6", exact=True)
def index_wrapped(text: Text) -> Edits:
    """A position beyond the end wraps in place of being clamped or dropped."""
    for p, number, a in indices(text):
        source = text.operand(p, 0)
        if source is not None and source.line.dims:
            size = (
                source.line.dims[number - (1 if p.line.opcode == "dynamic-slice" else 2)]
                if p.line.opcode.startswith("dynamic")
                else source.line.dims[0]
            )
            yield (
                f"{p.line.name} {p.line.opcode}: operand {number} modulo {size}",
                text.before(p, number, *filled(a.line, size), (a.line.shape, "remainder", ("@", "@1"), "")),
            )


@kind("V6", exact=True)
def index_floor_zero(text: Text) -> Edits:
    """Negative positions are clamped where they count as out of range."""
    for p, number, a in indices(text):
        if p.line.opcode in ("gather", "scatter"):
            yield (
                f"{p.line.name}: operand {number} at least 0",
                text.before(p, number, *filled(a.line, 0), (a.line.shape, "maximum", ("@", "@1"), "")),
            )


@kind("V6", exact=True)
def index_next(text: Text) -> Edits:
    """A position above 2 is one too high."""
    for p, number, a in indices(text):
        pred = a.line.retyped("pred")
        yield (
            f"{p.line.name} {p.line.opcode}: operand {number} one more above 2",
            text.before(
                p,
                number,
                *filled(a.line, 2),
                (pred, "compare", ("@", "@1"), ", direction=GT"),
                (a.line.shape, "convert", ("@2",), ""),
                (a.line.shape, "add", ("@", "@3"), ""),
            ),
        )


def _flagged(p: Place, text: Text, flag: str) -> str:
    return text.changed(p, attributes=f", {flag}=true" + re.sub(rf", {flag}=false", "", p.line.attributes))


@kind("V9", promise=True, exact=True)
def unique_promised(text: Text) -> Edits:
    """A scatter says that its positions are distinct: one of several updates may win."""
    for p in text.of("scatter"):
        if "unique_indices=true" not in p.line.attributes:
            for said, obeyed in _overwriting(text, p):
                yield (
                    f"{p.line.name} unique_indices=true ({said})",
                    _flagged(p, text, "unique_indices"),
                    obeyed,
                )


@kind("V9", promise=True, exact=True)
def sorted_promised(text: Text) -> Edits:
    """A gather or scatter says that its positions are sorted: they may as well be read in that order."""
    for p in text.of("gather", "scatter"):
        a = text.operand(p, 1)
        if "indices_are_sorted=true" in p.line.attributes or a is None or not a.line.dims:
            continue
        line, at = p.line, f"{p.line.name}.t"
        lines = text.replaced(
            p,
            f"  {at} = {a.line.shape} sort({a.line.name}), dimensions={{0}}, to_apply=%adv_less",
            replace(line, operands=(line.operands[0], at, *line.operands[2:])),
        ).splitlines()
        head = min(text.heads.values())
        scalar = f"{a.line.type}[]"
        less = [
            f"%adv_less (p: {scalar}, q: {scalar}) -> pred[] {{",
            f"  %p = {scalar} parameter(0)",
            f"  %q = {scalar} parameter(1)",
            "  ROOT %l = pred[] compare(%p, %q), direction=LT",
            "}",
            "",
        ]
        yield (
            f"{line.name} {line.opcode} indices_are_sorted=true",
            _flagged(p, text, "indices_are_sorted"),
            "\n".join(lines[:head] + less + lines[head:]) + "\n",
        )


@kind("V9", promise=True)
def stable_dropped(text: Text) -> Edits:
    """A sort need not be stable any more."""
    for p in text.of("sort"):
        if "is_stable=true" in p.line.attributes and len(p.line.operands) > 1:
            yield (
                f"{p.line.name} not stable",
                text.reworded(p, ", is_stable=true", ""),
            )


@kind(exact=True)
def scatter_last_wins(text: Text) -> Edits:
    """A scatter that adds overwrites: seen where a position comes twice."""
    for p in text.of("scatter"):
        yield from _overwriting(text, p)


def _overwriting(text: Text, p: Place) -> Iterator[tuple[str, str]]:
    for q in text.inside(p.line.attribute("to_apply")):
        if q.line.root and q.line.opcode in ("add", "maximum", "multiply"):
            lines = list(text.lines)
            lines[q.at] = str(replace(q.line, opcode="copy", operands=(q.line.operands[1],), attributes=""))
            yield f"{p.line.name} overwrites", "\n".join(lines) + "\n"
