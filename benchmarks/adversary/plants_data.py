"""Sorts, axes, bits, elements: what moves data or looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.plants_guards import in_values
from benchmarks.adversary.text import FLOATS, Place, Step, Text, filled

Edits = Iterator[tuple[str, ...]]


def _comparators(text: Text) -> set[str]:
    return {p.line.attribute("to_apply") for p in text.of("sort")}


@kind(exact=True)
def sort_total_order(text: Text) -> Edits:
    """A comparator does not know where NaN goes."""
    inside = _comparators(text)
    for p in text.of("compare"):
        if p.computation in inside and "type=TOTALORDER" in p.line.attributes:
            yield (
                f"{p.line.name} without total order",
                text.reworded(p, ", type=TOTALORDER", ""),
            )


@kind(exact=True)
def sort_axis(text: Text) -> Edits:
    """A sort goes along another axis of the same extent, or a reverse, a concatenate, an iota does."""
    for p in text.of("sort", "reverse", "iota", "reduce-window", "pad"):
        dims = p.line.dims
        for key in ("dimensions", "iota_dimension"):
            axes = p.line.numbers(key)
            if len(axes) == 1 and len(dims) > 1:
                for other in range(len(dims)):
                    if other != axes[0] and dims[other] == dims[axes[0]]:
                        old = p.line.attribute(key)
                        yield (
                            f"{p.line.name} {p.line.opcode} along {other}",
                            text.reworded(
                                p, f"{key}={old}", f"{key}={old.replace(str(axes[0]), str(other))}"
                            ),
                        )


@kind(exact=True)
def axis_equal(text: Text) -> Edits:
    """A reduction, product or broadcast takes another axis of the same extent."""
    for p in text.of("reduce"):
        a = text.operand(p, 0)
        axes = p.line.numbers("dimensions")
        if a is None or len(axes) != 1:
            continue
        for other in range(len(a.line.dims)):
            kept = [d for k, d in enumerate(a.line.dims) if k != other]
            if other != axes[0] and kept == [d for k, d in enumerate(a.line.dims) if k != axes[0]]:
                yield (
                    f"{p.line.name} reduces {other}",
                    text.reworded(p, f"dimensions={{{axes[0]}}}", f"dimensions={{{other}}}"),
                )
    for p in text.of("broadcast"):
        a = text.operand(p, 0)
        axes = p.line.numbers("dimensions")
        if a is not None and len(axes) == 1:
            for other, size in enumerate(p.line.dims):
                if other != axes[0] and size == p.line.dims[axes[0]]:
                    yield (
                        f"{p.line.name} along {other}",
                        text.reworded(p, f"dimensions={{{axes[0]}}}", f"dimensions={{{other}}}"),
                    )


@kind(exact=True)
def operand_transposed(text: Text) -> Edits:
    """A product takes a square operand transposed; a transpose does nothing."""
    for p in text.of("dot"):
        for number, side in ((0, "lhs"), (1, "rhs")):
            a = text.operand(p, number)
            key = f"{side}_contracting_dims"
            axes = p.line.numbers(key)
            if (
                a is not None
                and len(a.line.dims) == 2
                and a.line.dims[0] == a.line.dims[1]
                and len(axes) == 1
            ):
                yield (
                    f"{p.line.name}: {side} transposed",
                    text.reworded(p, f"{key}={{{axes[0]}}}", f"{key}={{{1 - axes[0]}}}"),
                )
    for p in text.of("transpose"):
        a = text.operand(p, 0)
        axes = p.line.numbers("dimensions")
        if a is not None and a.line.dims == p.line.dims and axes != sorted(axes):
            yield (
                f"{p.line.name} does nothing",
                text.reworded(
                    p,
                    f"dimensions={p.line.attribute('dimensions')}",
                    "dimensions={" + ",".join(map(str, sorted(axes))) + "}",
                ),
            )


@kind("V2", exact=True)
def initial_value(text: Text) -> Edits:
    """A maximum starts at 0, a minimum too, a sum at 1, a product at 0.5."""
    for p in text.of("reduce", "reduce-window"):
        start = text.operand(p, 1)
        if start is None or len(p.line.operands) != 2 or start.line.opcode != "constant":
            continue
        body = [q.line.opcode for q in text.inside(p.line.attribute("to_apply"))]
        value = "0" if {"maximum", "minimum"} & set(body) else "1" if "add" in body else None
        if value is not None and start.line.type != "pred" and text.constant(start) != float(value):
            yield (
                f"{p.line.name} starts at {value}",
                text.replaced(
                    p,
                    f"  {p.line.name}.s = {start.line.shape} constant({value})",
                    replace(p.line, operands=(p.line.operands[0], f"{p.line.name}.s")),
                ),
            )


@kind("V2", exact=True)
def padding_value(text: Text) -> Edits:
    """Padding is 1 in place of 0, or 0 in place of anything else."""
    for p in text.of("pad"):
        value = text.operand(p, 1)
        number = text.constant(value)
        if value is not None and number is not None and value.line.type != "pred":
            other = "1" if number == 0 else "0"
            yield (
                f"{p.line.name} pads with {other}",
                text.replaced(
                    p,
                    f"  {p.line.name}.s = {value.line.shape} constant({other})",
                    replace(p.line, operands=(p.line.operands[0], f"{p.line.name}.s")),
                ),
            )


@kind(exact=True)
def slice_next(text: Text) -> Edits:
    """A slice of the same size starts one earlier or later."""
    for p in text.of("slice"):
        a = text.operand(p, 0)
        spans = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", p.line.attributes)
        if a is None or len(spans) != len(a.line.dims):
            continue
        for axis, (low, high, _step) in enumerate(spans):
            shift = -1 if int(low) > 0 else 1 if int(high) < a.line.dims[axis] else 0
            if shift:
                made = [
                    _span(int(x), int(y), z, shift if k == axis else 0) for k, (x, y, z) in enumerate(spans)
                ]
                yield (
                    f"{p.line.name} shifted by {shift} along {axis}",
                    text.changed(
                        p,
                        attributes=re.sub(
                            r"slice=\{[^}]*\}", "slice={" + ", ".join(made) + "}", p.line.attributes
                        ),
                    ),
                )


def _span(low: int, high: int, step: str, shift: int) -> str:
    return f"[{low + shift}:{high + shift}{':' + step if step else ''}]"


@kind(exact=True)
def reverse_lost(text: Text) -> Edits:
    """A reverse does nothing."""
    for p in text.of("reverse"):
        yield f"{p.line.name} dropped", text.forwarded(p, 0)


@kind(exact=True)
def shift_masked(text: Text) -> Edits:
    """A shift by more than the width wraps, as machines do it."""
    for p in text.of("shift-left", "shift-right-logical", "shift-right-arithmetic"):
        a = text.operand(p, 1)
        if a is not None and text.constant(a) is None:
            bits = int(re.sub(r"\D", "", a.line.type))
            yield (
                f"{p.line.name} {p.line.opcode}: amount & {bits - 1}",
                text.before(p, 1, *filled(a.line, bits - 1), (a.line.shape, "and", ("@", "@1"), "")),
            )


@kind(exact=True)
def shift_kind(text: Text) -> Edits:
    """A logical shift is arithmetic, and the other way round."""
    for p in text.of("shift-right-logical", "shift-right-arithmetic"):
        other = "shift-right-arithmetic" if p.line.opcode.endswith("logical") else "shift-right-logical"
        yield f"{p.line.name} {other}", text.changed(p, opcode=other)


@kind(exact=True)
def signedness(text: Text) -> Edits:
    """Integers are compared, divided or converted as if they had the other sign."""
    for p in text.of("compare", "divide", "remainder", "maximum", "minimum", "convert"):
        a = text.operand(p, 0)
        if (
            a is None
            or not re.fullmatch(r"[su](8|16|32|64)", a.line.type)
            or p.computation in _comparators(text)
        ):
            continue
        other = a.line.retyped(("u" if a.line.type[0] == "s" else "s") + a.line.type[1:])
        line, shape = p.line, p.line.shape
        out: list = [
            f"  {line.name}.x{k} = {other} bitcast-convert({o})" for k, o in enumerate(line.operands)
        ]
        names = tuple(f"{line.name}.x{k}" for k in range(len(line.operands)))
        if line.opcode in ("compare", "convert"):
            if line.opcode == "convert" and line.type not in FLOATS:
                continue
            attributes = re.sub(r", type=\w+", "", line.attributes)
            out.append(replace(line, operands=names, attributes=attributes))
        else:
            out += [
                f"  {line.name}.r = {other} {line.opcode}({', '.join(names)})",
                replace(line, opcode="bitcast-convert", operands=(f"{line.name}.r",), attributes=""),
            ]
        yield (
            f"{line.name} {line.opcode} as {other.split('[')[0]}, not {shape.split('[')[0]}",
            text.replaced(p, *out),
        )


@kind(exact=True)
def remainder_sign(text: Text) -> Edits:
    """A remainder is never negative."""
    for p in text.of("remainder"):
        if p.line.type.startswith("s"):
            yield f"{p.line.name} without sign", text.wrapped(p, (p.line.shape, "abs", ("@",), ""))


def _masked(text: Text, p: Place, first: int, direction: str, wrong: Step) -> str:
    """Rows of the longest axis whose number compares so with `first` are what the step makes of the value."""
    line = p.line
    axis = max(range(len(line.dims)), key=lambda k: line.dims[k])
    rows = replace(line, shape=line.retyped("s32"))
    return text.wrapped(
        p,
        (f"{line.type}[]", "constant", ("0",), ""),
        wrong,
        (rows.shape, "iota", (), f", iota_dimension={axis}"),
        *filled(rows, first, 3),
        (line.retyped("pred"), "compare", ("@2", "@4"), f", direction={direction}"),
        (line.shape, "select", ("@5", "@1", "@"), ""),
    )


def _values(text: Text) -> Iterator[Place]:
    for p in text.of(
        "add",
        "multiply",
        "subtract",
        "divide",
        "dot",
        "reduce",
        "select",
        "parameter",
        "fusion",
        "gather",
        "exponential",
        "broadcast",
    ):
        if p.line.type in ("f32", "s32") and p.line.dims and text.read(p) and in_values(text, p):
            yield p


@kind(exact=True)
def last_element(text: Text) -> Edits:
    """The last row of a value is 0."""
    for p in _values(text):
        zero = (p.line.shape, "broadcast", ("@0",), ", dimensions={}")
        made = _masked(text, p, max(p.line.dims) - 1, "EQ", zero)
        yield f"{p.line.name} {p.line.opcode}: the last row is 0", made


@kind(exact=True)
def tail_only(text: Text) -> Edits:
    """What is beyond three quarters of the rows has the other sign."""
    for p in _values(text):
        made = _masked(text, p, 3 * max(p.line.dims) // 4, "GE", (p.line.shape, "negate", ("@",), ""))
        yield f"{p.line.name} {p.line.opcode}: the last quarter is negated", made


@kind(exact=True)
def stale_operand(text: Text) -> Edits:
    """An operation reads another value of the same shape."""
    for p in text.of("add", "multiply", "subtract", "dot", "select", "divide", "fusion"):
        for number in range(len(p.line.operands)):
            a = text.operand(p, number)
            if a is None or a.line.type == "tuple":
                continue
            for other in text.inside(p.computation):
                if (
                    other.at < p.at
                    and other.line.shape == a.line.shape
                    and other.line.name not in p.line.operands
                    and text.read(other)
                    and a.line.opcode not in ("constant", "broadcast")
                ):
                    operands = list(p.line.operands)
                    operands[number] = other.line.name
                    yield (
                        f"{p.line.name} {p.line.opcode} reads {other.line.name} for {a.line.name}",
                        text.changed(p, operands=tuple(operands)),
                    )


@kind(exact=True)
def tie_choice(text: Text) -> Edits:
    """The reducer of an argmax takes the larger of two positions."""
    reducers = {p.line.attribute("to_apply") for p in text.of("reduce") if p.line.type == "tuple"}
    for p in text.of("compare"):
        a = text.operand(p, 0)
        if p.computation in reducers and a is not None and a.line.type == "s32":
            flip = {"LT": "GT", "GT": "LT"}.get(p.line.attribute("direction"))
            if flip:
                yield (
                    f"{p.line.name} {flip}",
                    text.changed(
                        p, attributes=re.sub(r"direction=\w+", f"direction={flip}", p.line.attributes)
                    ),
                )


@kind(exact=True)
def logic_other(text: Text) -> Edits:
    """An `and` of conditions is its first one alone; an `or` too."""
    for p in text.of("and", "or"):
        if p.line.type == "pred":
            for number in (0, 1):
                yield f"{p.line.name} {p.line.opcode} is operand {number}", text.forwarded(p, number)
