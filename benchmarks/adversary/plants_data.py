"""Indices, axes, sorts, scatters, bits, elements, devices, copies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.plants_guards import _in_values
from benchmarks.adversary.text import FLOATS, Place, Text

Edits = Iterator[tuple[str, ...]]


def _starts(text: Text) -> Iterator[tuple[Place, int, Place]]:
    for p in text.of("dynamic-slice", "dynamic-update-slice"):
        for number in range(1 if p.line.opcode == "dynamic-slice" else 2, len(p.line.operands)):
            a = text.operand(p, number)
            if a is not None and text.constant(a) is None and a.line.type in ("s32", "u8", "s16", "u32"):
                yield p, number, a


def _indices(text: Text) -> Iterator[tuple[Place, int, Place]]:
    yield from _starts(text)
    for p in text.of("gather", "scatter"):
        a = text.operand(p, 1)
        if a is not None and a.line.type == "s32":
            yield p, 1, a


def _number(a: Place, value: int, *, at: int = 0) -> tuple[tuple[str, str, tuple[str, ...], str], ...]:
    scalar = (f"{a.line.type}[]", "constant", (str(value),), "")
    if not a.line.dims:
        return (scalar, (a.line.shape, "copy", (f"@{at}",), ""))
    return (scalar, (a.line.shape, "broadcast", (f"@{at}",), ", dimensions={}"))


@kind("V6", exact=True)
def index_abs(text: Text) -> Edits:
    """A position loses its sign before it is clamped."""
    for p, number, a in _indices(text):
        if a.line.type.startswith("s"):
            yield f"{p.line.name} {p.line.opcode}: |operand {number}|", text.before(p, number, (a.line.shape, "abs", ("@",), ""))


@kind("V6", exact=True)
def index_capped(text: Text) -> Edits:
    """A position is at most 2."""
    for p, number, a in _indices(text):
        yield f"{p.line.name} {p.line.opcode}: operand {number} at most 2", text.before(p, number, *_number(a, 2), (a.line.shape, "minimum", ("@", "@1"), ""))


@kind("V6", exact=True)
def index_wrapped(text: Text) -> Edits:
    """A position beyond the end wraps in place of being clamped or dropped."""
    for p, number, a in _indices(text):
        source = text.operand(p, 0)
        if source is not None and source.line.dims:
            size = source.line.dims[number - (1 if p.line.opcode == "dynamic-slice" else 2)] if p.line.opcode.startswith("dynamic") else source.line.dims[0]
            yield f"{p.line.name} {p.line.opcode}: operand {number} modulo {size}", text.before(p, number, *_number(a, size), (a.line.shape, "remainder", ("@", "@1"), ""))


@kind("V6", exact=True)
def index_floor_zero(text: Text) -> Edits:
    """Negative positions are clamped where they count as out of range."""
    for p, number, a in _indices(text):
        if p.line.opcode in ("gather", "scatter"):
            yield f"{p.line.name}: operand {number} at least 0", text.before(p, number, *_number(a, 0), (a.line.shape, "maximum", ("@", "@1"), ""))


@kind("V6", exact=True)
def index_next(text: Text) -> Edits:
    """A position above 2 is one too high."""
    for p, number, a in _indices(text):
        pred = a.line.retyped("pred")
        yield (
            f"{p.line.name} {p.line.opcode}: operand {number} one more above 2",
            text.before(p, number, *_number(a, 2), (pred, "compare", ("@", "@1"), ", direction=GT"), (a.line.shape, "convert", ("@2",), ""), (a.line.shape, "add", ("@", "@3"), "")),
        )


def _flagged(p: Place, text: Text, flag: str) -> str:
    return text.changed(p, attributes=f", {flag}=true" + re.sub(rf", {flag}=false", "", p.line.attributes))


@kind("V9", promise=True, exact=True)
def unique_promised(text: Text) -> Edits:
    """A scatter says that its positions are distinct: one of several updates may win."""
    for p in text.of("scatter"):
        if "unique_indices=true" not in p.line.attributes:
            for said, obeyed in _overwriting(text, p):
                yield f"{p.line.name} unique_indices=true ({said})", _flagged(p, text, "unique_indices"), obeyed


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
        less = [
            f"%adv_less (p: {a.line.type}[], q: {a.line.type}[]) -> pred[] {{", f"  %p = {a.line.type}[] parameter(0)",
            f"  %q = {a.line.type}[] parameter(1)", "  ROOT %l = pred[] compare(%p, %q), direction=LT", "}", "",
        ]  # fmt: skip
        yield f"{line.name} {line.opcode} indices_are_sorted=true", _flagged(p, text, "indices_are_sorted"), "\n".join(lines[:head] + less + lines[head:]) + "\n"


@kind("V9", promise=True)
def stable_dropped(text: Text) -> Edits:
    """A sort need not be stable any more."""
    for p in text.of("sort"):
        if "is_stable=true" in p.line.attributes and len(p.line.operands) > 1:
            yield f"{p.line.name} not stable", text.changed(p, attributes=p.line.attributes.replace(", is_stable=true", ""))


def _comparators(text: Text) -> set[str]:
    return {p.line.attribute("to_apply") for p in text.of("sort")}


@kind(exact=True)
def sort_total_order(text: Text) -> Edits:
    """A comparator does not know where NaN goes."""
    inside = _comparators(text)
    for p in text.of("compare"):
        if p.computation in inside and "type=TOTALORDER" in p.line.attributes:
            yield f"{p.line.name} without total order", text.changed(p, attributes=p.line.attributes.replace(", type=TOTALORDER", ""))


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
                        yield f"{p.line.name} {p.line.opcode} along {other}", text.changed(p, attributes=p.line.attributes.replace(f"{key}={old}", f"{key}={old.replace(str(axes[0]), str(other))}"))


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
                yield f"{p.line.name} reduces {other}", text.changed(p, attributes=p.line.attributes.replace(f"dimensions={{{axes[0]}}}", f"dimensions={{{other}}}"))
    for p in text.of("broadcast"):
        a = text.operand(p, 0)
        axes = p.line.numbers("dimensions")
        if a is not None and len(axes) == 1:
            for other, size in enumerate(p.line.dims):
                if other != axes[0] and size == p.line.dims[axes[0]]:
                    yield f"{p.line.name} along {other}", text.changed(p, attributes=p.line.attributes.replace(f"dimensions={{{axes[0]}}}", f"dimensions={{{other}}}"))


@kind(exact=True)
def operand_transposed(text: Text) -> Edits:
    """A product takes a square operand transposed; a transpose does nothing."""
    for p in text.of("dot"):
        for number, side in ((0, "lhs"), (1, "rhs")):
            a = text.operand(p, number)
            key = f"{side}_contracting_dims"
            axes = p.line.numbers(key)
            if a is not None and len(a.line.dims) == 2 and a.line.dims[0] == a.line.dims[1] and len(axes) == 1:
                yield f"{p.line.name}: {side} transposed", text.changed(p, attributes=p.line.attributes.replace(f"{key}={{{axes[0]}}}", f"{key}={{{1 - axes[0]}}}"))
    for p in text.of("transpose"):
        a = text.operand(p, 0)
        axes = p.line.numbers("dimensions")
        if a is not None and a.line.dims == p.line.dims and axes != sorted(axes):
            yield f"{p.line.name} does nothing", text.changed(p, attributes=p.line.attributes.replace(f"dimensions={p.line.attribute('dimensions')}", "dimensions={" + ",".join(map(str, sorted(axes))) + "}"))


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
                text.replaced(p, f"  {p.line.name}.s = {start.line.shape} constant({value})", replace(p.line, operands=(p.line.operands[0], f"{p.line.name}.s"))),
            )


@kind("V2", exact=True)
def padding_value(text: Text) -> Edits:
    """Padding is 1 in place of 0, or 0 in place of anything else."""
    for p in text.of("pad"):
        value = text.operand(p, 1)
        number = text.constant(value)
        if value is not None and number is not None and value.line.type != "pred":
            other = "1" if number == 0 else "0"
            yield f"{p.line.name} pads with {other}", text.replaced(p, f"  {p.line.name}.s = {value.line.shape} constant({other})", replace(p.line, operands=(p.line.operands[0], f"{p.line.name}.s")))


@kind(exact=True)
def slice_next(text: Text) -> Edits:
    """A slice of the same size starts one earlier or later."""
    for p in text.of("slice"):
        a = text.operand(p, 0)
        spans = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", p.line.attributes)
        if a is None or len(spans) != len(a.line.dims):
            continue
        for axis, (low, high, step) in enumerate(spans):
            shift = -1 if int(low) > 0 else 1 if int(high) < a.line.dims[axis] else 0
            if shift:
                made = [f"[{int(x) + (shift if k == axis else 0)}:{int(y) + (shift if k == axis else 0)}{':' + z if z else ''}]" for k, (x, y, z) in enumerate(spans)]
                yield f"{p.line.name} shifted by {shift} along {axis}", text.changed(p, attributes=re.sub(r"slice=\{[^}]*\}", "slice={" + ", ".join(made) + "}", p.line.attributes))


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
            yield f"{p.line.name} {p.line.opcode}: amount & {bits - 1}", text.before(p, 1, *_number(a, bits - 1), (a.line.shape, "and", ("@", "@1"), ""))


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
        if a is None or not re.fullmatch(r"[su](8|16|32|64)", a.line.type) or p.computation in _comparators(text):
            continue
        other = a.line.retyped(("u" if a.line.type[0] == "s" else "s") + a.line.type[1:])
        line, shape = p.line, p.line.shape
        out: list = [f"  {line.name}.x{k} = {other} bitcast-convert({o})" for k, o in enumerate(line.operands)]
        names = tuple(f"{line.name}.x{k}" for k in range(len(line.operands)))
        if line.opcode in ("compare", "convert"):
            if line.opcode == "convert" and line.type not in FLOATS:
                continue
            attributes = re.sub(r", type=\w+", "", line.attributes)
            out.append(replace(line, operands=names, attributes=attributes))
        else:
            out += [f"  {line.name}.r = {other} {line.opcode}({', '.join(names)})", replace(line, opcode="bitcast-convert", operands=(f"{line.name}.r",), attributes="")]
        yield f"{line.name} {line.opcode} as {other.split('[')[0]}, not {shape.split('[')[0]}", text.replaced(p, *out)


@kind(exact=True)
def remainder_sign(text: Text) -> Edits:
    """A remainder is never negative."""
    for p in text.of("remainder"):
        if p.line.type.startswith("s"):
            yield f"{p.line.name} without sign", text.wrapped(p, (p.line.shape, "abs", ("@",), ""))


def _masked(text: Text, p: Place, said: str, axis: int, limit: int, direction: str, wrong: str) -> tuple[str, str]:
    """Elements whose position along `axis` compares so with `limit` are `wrong` (an opcode of the value, or 0)."""
    line = p.line
    bad = f"  {line.name}.w = {line.shape} negate({line.name}.v)" if wrong == "negate" else None
    out: list = [replace(line, root=False, name=f"{line.name}.v")]
    if bad is None:
        out += [f"  {line.name}.z = {line.type}[] constant(0)", f"  {line.name}.w = {line.shape} broadcast({line.name}.z), dimensions={{}}"]
    else:
        out.append(bad)
    out += [
        f"  {line.name}.i = {line.retyped('s32')} iota(), iota_dimension={axis}",
        f"  {line.name}.k = s32[] constant({limit})",
        f"  {line.name}.l = {line.retyped('s32')} broadcast({line.name}.k), dimensions={{}}",
        f"  {line.name}.p = {line.retyped('pred')} compare({line.name}.i, {line.name}.l), direction={direction}",
        f"  {'ROOT ' if line.root else ''}{line.name} = {line.shape} select({line.name}.p, {line.name}.w, {line.name}.v)",
    ]
    return f"{line.name} {line.opcode}: {said}", text.replaced(p, *out)


def _values(text: Text) -> Iterator[Place]:
    for p in text.of("add", "multiply", "subtract", "divide", "dot", "reduce", "select", "parameter", "fusion", "gather", "exponential", "broadcast"):
        if p.line.type in ("f32", "s32") and p.line.dims and text.read(p) and _in_values(text, p):
            yield p


@kind(exact=True)
def last_element(text: Text) -> Edits:
    """The last row of a value is 0."""
    for p in _values(text):
        axis = max(range(len(p.line.dims)), key=lambda k: p.line.dims[k])
        yield _masked(text, p, "the last row is 0", axis, p.line.dims[axis] - 1, "EQ", "0")


@kind(exact=True)
def tail_only(text: Text) -> Edits:
    """What is beyond three quarters of the rows has the other sign."""
    for p in _values(text):
        axis = max(range(len(p.line.dims)), key=lambda k: p.line.dims[k])
        yield _masked(text, p, "the last quarter is negated", axis, (3 * p.line.dims[axis]) // 4, "GE", "negate")


@kind(exact=True)
def stale_operand(text: Text) -> Edits:
    """An operation reads another value of the same shape."""
    for p in text.of("add", "multiply", "subtract", "dot", "select", "divide", "fusion"):
        for number in range(len(p.line.operands)):
            a = text.operand(p, number)
            if a is None or a.line.type == "tuple":
                continue
            for other in text.inside(p.computation):
                if other.at < p.at and other.line.shape == a.line.shape and other.line.name not in p.line.operands and text.read(other) and a.line.opcode not in ("constant", "broadcast"):
                    operands = list(p.line.operands)
                    operands[number] = other.line.name
                    yield f"{p.line.name} {p.line.opcode} reads {other.line.name} for {a.line.name}", text.changed(p, operands=tuple(operands))


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


@kind(exact=True)
def tie_choice(text: Text) -> Edits:
    """The reducer of an argmax takes the larger of two positions."""
    reducers = {p.line.attribute("to_apply") for p in text.of("reduce") if p.line.type == "tuple"}
    for p in text.of("compare"):
        a = text.operand(p, 0)
        if p.computation in reducers and a is not None and a.line.type == "s32":
            flip = {"LT": "GT", "GT": "LT"}.get(p.line.attribute("direction"))
            if flip:
                yield f"{p.line.name} {flip}", text.changed(p, attributes=re.sub(r"direction=\w+", f"direction={flip}", p.line.attributes))


@kind(exact=True)
def logic_other(text: Text) -> Edits:
    """An `and` of conditions is its first one alone; an `or` too."""
    for p in text.of("and", "or"):
        if p.line.type == "pred":
            for number in (0, 1):
                yield f"{p.line.name} {p.line.opcode} is operand {number}", text.forwarded(p, number)


@kind("V10", promise=True)
def copy_dropped(text: Text) -> Edits:
    """A copy that scheduled text needs is gone: its operand is overwritten in place, and read afterwards."""
    if "is_scheduled=true" not in text.lines[0]:
        return
    for p in text.of("copy"):
        source = text.operand(p, 0)
        if source is None or source.line.shape != p.line.shape:
            continue
        users = text.uses.get((p.computation, p.line.name), [])
        others = [u for u in text.uses.get((p.computation, source.line.name), []) if u.at != p.at and u.at > p.at]
        written = [u for u in users if u.line.opcode in ("dynamic-update-slice", "scatter", "while") and u.line.operands[0] == p.line.name]
        written += [u for u in users if u.line.opcode == "fusion" and u.line.shape == p.line.shape and "output_to_operand" in u.line.attributes]
        if written and (any(o.at > written[0].at for o in others) or source.line.opcode == "parameter" or source.line.root):
            made = []
            for at, raw in enumerate(text.lines):
                if at == p.at:
                    continue
                made.append(re.sub(rf"{re.escape(p.line.name)}(?![\w.\-])", source.line.name, raw) if any(u.at == at for u in users) else raw)
            yield f"{p.line.name} (copy of {source.line.name} before {written[0].line.opcode}) dropped", "\n".join(made) + "\n"


@kind(exact=True)
def devices_groups(text: Text) -> Edits:
    """A collective runs in smaller groups, or sends to another device."""
    for p in text.of("all-reduce", "collective-permute", "all-gather", "reduce-scatter", "all-to-all"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes and p.line.opcode == "all-reduce":
            yield f"{p.line.name} in two groups", text.changed(p, attributes=p.line.attributes.replace("{{0,1,2,3}}", "{{0,1},{2,3}}"))
        for old, new in (("{{0,1},{2,3}}", "{{0,2},{1,3}}"), ("{{0,2},{1,3}}", "{{0,1},{2,3}}"), ("[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)"), ("[2,2]<=[2,2]T(1,0)", "[2,2]<=[4]")):
            if f"replica_groups={old}" in p.line.attributes:
                yield f"{p.line.name} in groups {new}", text.changed(p, attributes=p.line.attributes.replace(f"replica_groups={old}", f"replica_groups={new}"))
        if match := re.search(r"source_target_pairs=\{\{(\d),(\d)\},\{(\d),(\d)\}", p.line.attributes):
            new = f"source_target_pairs={{{{{match[1]},{match[4]}}},{{{match[3]},{match[2]}}}"
            yield f"{p.line.name}: two targets swapped", text.changed(p, attributes=p.line.attributes.replace(match[0], new))


@kind(exact=True)
def devices_order(text: Text) -> Edits:
    """A collective knows its devices in another order."""
    for p in text.of("all-gather", "all-to-all", "reduce-scatter"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes:
            yield f"{p.line.name}: devices 1, 0, 2, 3", text.changed(p, attributes=p.line.attributes.replace("{{0,1,2,3}}", "{{1,0,2,3}}"))


@kind(exact=True)
def devices_one(text: Text) -> Edits:
    """One device alone has another result: where its number is 2."""
    if not any("num_partitions=4" in line for line in text.lines[:1]):
        return
    for p in text.of("fusion", "multiply", "add"):
        if p.entry and p.line.type == "f32" and p.line.dims:
            line = p.line
            yield (
                f"{line.name} {line.opcode} is negated on device 2",
                text.replaced(
                    p,
                    replace(line, root=False, name=f"{line.name}.v"),
                    f"  {line.name}.n = {line.shape} negate({line.name}.v)",
                    f"  {line.name}.d = u32[] partition-id()",
                    f"  {line.name}.k = u32[] constant(2)",
                    f"  {line.name}.p = pred[] compare({line.name}.d, {line.name}.k), direction=EQ",
                    f"  {line.name}.q = {line.retyped('pred')} broadcast({line.name}.p), dimensions={{}}",
                    f"  {'ROOT ' if line.root else ''}{line.name} = {line.shape} select({line.name}.q, {line.name}.n, {line.name}.v)",
                ),
            )
