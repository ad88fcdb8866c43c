"""Guards, comparisons, loops, branches, odd values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.text import FLOATS, Line, Place, Text, filled

Edits = Iterator[tuple[str, ...]]


def _conditions(text: Text) -> dict[str, Place]:
    return {loop.line.attribute("condition"): loop for loop in text.of("while")}


def _called(text: Text, computation: str) -> Iterator[str]:
    """A computation and the fusions and calls in it."""
    yield computation
    for p in text.inside(computation):
        for key in ("calls", "to_apply"):
            if p.line.opcode in ("fusion", "call") and (name := p.line.attribute(key)):
                yield from _called(text, name)


def _loop_compares(text: Text) -> Iterator[Place]:
    inside = {name for condition in _conditions(text) for name in _called(text, condition)}
    for p in text.of("compare"):
        if p.computation in inside:
            yield p


@kind("V3")
def where_then(text: Text) -> Edits:
    """A select always takes what it would take for true."""
    for p in text.of("select"):
        yield f"{p.line.name} is its second operand", text.forwarded(p, 1)


@kind("V3")
def where_else(text: Text) -> Edits:
    """A select always takes what it would take for false."""
    for p in text.of("select"):
        yield f"{p.line.name} is its third operand", text.forwarded(p, 2)


@kind("V2")
def guard_extremum(text: Text) -> Edits:
    """A maximum or minimum with a constant is gone."""
    for p in text.of("maximum", "minimum"):
        for number in (0, 1):
            if text.constant(text.operand(p, number)) is not None:
                yield f"{p.line.name} {p.line.opcode} dropped", text.forwarded(p, 1 - number)


@kind("V2")
def clamp_one_side(text: Text) -> Edits:
    """A clamp has one side only."""
    for p in text.of("clamp"):
        low, high = text.operand(p, 0), text.operand(p, 2)
        if low is not None and high is not None and low.line.dims == high.line.dims == p.line.dims:
            a, x, b = p.line.operands
            yield f"{p.line.name} without upper end", text.changed(p, opcode="maximum", operands=(x, a))
            yield f"{p.line.name} without lower end", text.changed(p, opcode="minimum", operands=(x, b))


@kind("V2")
def clamp_dropped(text: Text) -> Edits:
    """A clamp is gone."""
    for p in text.of("clamp"):
        yield f"{p.line.name} dropped", text.forwarded(p, 1)


@kind("V7")
def finite_lost(text: Text) -> Edits:
    """Infinity counts as finite: only NaN does not."""
    for p in text.of("is-finite"):
        x = p.line.operands[0]
        yield (
            f"{p.line.name} as x == x",
            text.changed(p, opcode="compare", operands=(x, x), attributes=", direction=EQ"),
        )


@kind("V7")
def guard_rare(text: Text) -> Edits:
    """A value is 0 where it is above 1e30."""
    for p in _numbers(text):
        low, wide = filled(p.line, "1e30")
        select = (p.line.shape, "select", ("@4", "@3", "@"), "")
        above = (p.line.retyped("pred"), "compare", ("@", "@1"), ", direction=GT")
        made = text.wrapped(p, low, wide, *filled(p.line, 0, 2), above, select)
        yield f"{p.line.name} {p.line.opcode} is 0 where above 1e30", made


@kind("P1")
def guard_tiny(text: Text) -> Edits:
    """A value is 0 where its size is below 1e-6, not 0."""
    for p in _numbers(text):
        low, wide = filled(p.line, "1e-6")
        size = (p.line.shape, "abs", ("@",), "")
        below = (p.line.retyped("pred"), "compare", ("@4", "@1"), ", direction=LT")
        select = (p.line.shape, "select", ("@5", "@3", "@"), "")
        made = text.wrapped(p, low, wide, *filled(p.line, 0, 2), size, below, select)
        yield f"{p.line.name} {p.line.opcode} is 0 where below 1e-6", made


def _numbers(text: Text, *further: str) -> Iterator[Place]:
    for p in text.of("add", "subtract", "multiply", "divide", "parameter", *further):
        if p.line.type == "f32" and text.read(p) and in_values(text, p):
            yield p


def in_values(text: Text, p: Place) -> bool:
    """Parameters of reducers and comparators have their places fixed: nothing is planted behind them."""
    head = text.lines[text.heads[p.computation]]
    return p.entry or p.computation.startswith("%fused") or head.count("parameter") == 0


@kind("P1")
def capped_large(text: Text) -> Edits:
    """min(x, 1000)."""
    for p in text.of("add", "multiply", "parameter", "dot", "reduce"):
        if p.line.type in ("f32", "s32") and text.read(p) and in_values(text, p):
            least = (p.line.shape, "minimum", ("@", "@1"), "")
            yield f"{p.line.name} {p.line.opcode} at most 1000", text.wrapped(p, *filled(p.line, 1000), least)


@kind("V7")
def nan_to_zero(text: Text) -> Edits:
    """NaN becomes 0."""
    for p in _numbers(text, "reduce", "exponential"):
        own = (p.line.retyped("pred"), "compare", ("@", "@"), ", direction=EQ")
        select = (p.line.shape, "select", ("@2", "@", "@1"), "")
        yield f"{p.line.name} {p.line.opcode}: NaN is 0", text.wrapped(p, *filled(p.line, 0), own, select)


@kind("V7")
def infinity_capped(text: Text) -> Edits:
    """Infinity becomes the largest number."""
    for p in _numbers(text, "exponential", "reduce"):
        least = (p.line.shape, "minimum", ("@", "@1"), "")
        made = text.wrapped(p, *filled(p.line, "3.40282347e+38"), least)
        yield f"{p.line.name} {p.line.opcode}: no infinity", made


_STRICT = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}


def _ties_turned(text: Text, compares: Iterable[Place]) -> Edits:
    for p in compares:
        direction = p.line.attribute("direction")
        if other := _STRICT.get(direction):
            made = text.reworded(p, f"direction={direction}", f"direction={other}")
            yield f"{p.line.name} {other} in place of {direction}", made


@kind("V6", exact=True)
def strictness(text: Text) -> Edits:
    """A comparison takes a tie the other way."""
    loops = {p.at for p in _loop_compares(text)}
    yield from _ties_turned(text, [p for p in text.of("compare") if p.at not in loops])


@kind("V7")
def nan_direction(text: Text) -> Edits:
    """a >= b is computed as not (a < b): the other way where one is NaN."""
    inverse = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
    for p in text.of("compare"):
        a = text.operand(p, 0)
        direction = p.line.attribute("direction")
        if (
            a is not None
            and a.line.type in FLOATS
            and direction in inverse
            and "TOTALORDER" not in p.line.attributes
        ):
            line = p.line
            other = line.attributes.replace(f"direction={direction}", f"direction={inverse[direction]}")
            yield (
                f"{line.name} is not {inverse[direction]}",
                text.replaced(
                    p,
                    replace(line, root=False, name=f"{line.name}.n", attributes=other),
                    replace(line, opcode="not", operands=(f"{line.name}.n",), attributes=""),
                ),
            )


@kind("V7")
def extremum_by_select(text: Text) -> Edits:
    """max(a, b) is a > b ? a : b: a NaN in a is lost."""
    for p in text.of("maximum", "minimum"):
        if p.line.type in FLOATS:
            line = p.line
            a, b = line.operands
            direction = "GT" if line.opcode == "maximum" else "LT"
            yield (
                f"{line.name} {line.opcode} by compare and select",
                text.replaced(
                    p,
                    f"  {line.name}.p = {line.retyped('pred')} compare({a}, {b}), direction={direction}",
                    replace(line, opcode="select", operands=(f"{line.name}.p", a, b), attributes=""),
                ),
            )


@kind("V5", exact=True)
def loop_strictness(text: Text) -> Edits:
    """A loop runs once more, or once less."""
    yield from _ties_turned(text, _loop_compares(text))


def _counter_sides(text: Text) -> Iterator[tuple[Place, int, Place]]:
    for p in _loop_compares(text):
        for number in (0, 1):
            a = text.operand(p, number)
            if a is not None and a.line.type in ("s32", "u32", "s16", "u8") and text.constant(a) is None:
                yield p, number, a


@kind("V5", exact=True)
def counter_masked(text: Text) -> Edits:
    """A loop's limit or counter lost its upper bits."""
    for p, number, a in _counter_sides(text):
        for mask in (15, 127, 255):
            if a.line.type == "u8" and mask == 255:
                continue
            yield (
                f"{p.line.name}: operand {number} & {mask}",
                text.before(
                    p,
                    number,
                    (a.line.shape, "constant", (str(mask),), ""),
                    (a.line.shape, "and", ("@", "@0"), ""),
                ),
            )


@kind("V5", exact=True)
def counter_abs(text: Text) -> Edits:
    """A loop's limit is taken without its sign."""
    for p, number, a in _counter_sides(text):
        if a.line.type.startswith("s"):
            yield (
                f"{p.line.name}: |operand {number}|",
                text.before(p, number, (a.line.shape, "abs", ("@",), "")),
            )


@kind("V5", exact=True)
def counter_capped(text: Text) -> Edits:
    """A loop's limit is at most 20."""
    for p, number, a in _counter_sides(text):
        yield (
            f"{p.line.name}: operand {number} at most 20",
            text.before(
                p, number, (a.line.shape, "constant", ("20",), ""), (a.line.shape, "minimum", ("@", "@0"), "")
            ),
        )


@kind("V9", promise=True)
def trip_count_wrong(text: Text) -> Edits:
    """A loop says that it runs once more than it does."""
    for p in text.of("while"):
        if match := re.search(r'"known_trip_count":\{"n":"(\d+)"', p.line.attributes):
            wrong = match[0].replace(f'"{match[1]}"', f'"{int(match[1]) + 1}"')
            yield (
                f"{p.line.name} known_trip_count {int(match[1]) + 1}",
                text.reworded(p, match[0], wrong),
            )


@kind("V10")
def carry_stale(text: Text) -> Edits:
    """A loop's carry keeps its old value."""
    for loop in text.of("while"):
        inside = text.inside(loop.line.attribute("body"))
        given = [q for q in inside if q.line.opcode == "parameter"]
        for p in inside:
            if p.line.root and p.line.opcode == "tuple" and given:
                for number in range(len(p.line.operands)):
                    a = text.operand(p, number)
                    if (
                        a is not None
                        and a.line.type in ("f32", "s32", "u32", "pred")
                        and a.line.opcode != "get-tuple-element"
                        and not _counts(text, a)
                    ):
                        old = (a.line.shape, "get-tuple-element", (given[0].line.name,), f", index={number}")
                        yield f"carry {number} of {loop.line.name} is stale", text.before(p, number, old)


def _counts(text: Text, p: Place) -> bool:
    """A counter that stands still would loop for ever."""
    return p.line.type == "s32" and not p.line.dims


@kind("V10")
def carry_order(text: Text) -> Edits:
    """Two carries of one shape are swapped."""
    for loop in text.of("while"):
        for p in text.inside(loop.line.attribute("body")):
            if p.line.root and p.line.opcode == "tuple":
                found = [text.operand(p, k) for k in range(len(p.line.operands))]
                for i, a in enumerate(found):
                    for j, b in enumerate(found[:i]):
                        if a and b and a.line.shape == b.line.shape and not _counts(text, a):
                            operands = list(p.line.operands)
                            operands[i], operands[j] = operands[j], operands[i]
                            yield (
                                f"carries {j} and {i} of {loop.line.name} swapped",
                                text.changed(p, operands=tuple(operands)),
                            )


@kind("V6", exact=True)
def branch_clamp(text: Text) -> Edits:
    """A branch index is clamped one too low, or loses its sign."""
    for p in text.of("conditional"):
        a = text.operand(p, 0)
        branches = p.line.attribute("branch_computations").count("%")
        if a is not None and a.line.type == "s32" and branches > 2:
            yield (
                f"{p.line.name}: index at most {branches - 2}",
                text.before(
                    p,
                    0,
                    ("s32[]", "constant", (str(branches - 2),), ""),
                    ("s32[]", "minimum", ("@", "@0"), ""),
                ),
            )
            yield f"{p.line.name}: |index|", text.before(p, 0, ("s32[]", "abs", ("@",), ""))
            made = text.before(
                p,
                0,
                ("s32[]", "constant", (str(branches),), ""),
                ("s32[]", "constant", ("0",), ""),
                ("pred[]", "compare", ("@", "@0"), ", direction=LT"),
                ("s32[]", "select", ("@2", "@", "@1"), ""),
            )
            yield f"{p.line.name}: index out of range is 0", made


@kind()
def conjugate_lost(text: Text) -> Edits:
    """An imaginary part keeps its sign."""
    for p in text.of("negate"):
        a = text.operand(p, 0)
        users = text.uses.get((p.computation, p.line.name), [])
        if (a is not None and a.line.opcode == "imag") or any(u.line.opcode == "complex" for u in users):
            yield f"{p.line.name} dropped", text.forwarded(p, 0)


@kind(exact=True)
def negate_lost(text: Text) -> Edits:
    """A sign is lost where values have both."""
    for p in text.of("negate"):
        if text.read(p):
            yield (
                f"{p.line.name} as -|x|" if p.line.type.startswith(("f", "b", "s")) else p.line.name,
                text.wrapped(p, (p.line.shape, "abs", ("@",), ""), (p.line.shape, "negate", ("@0",), "")),
            )


@kind("V11", exact=True)
def rounding_mode(text: Text) -> Edits:
    """floor is a truncation, rounding to even goes away from zero, ceil is floor + 1."""
    for p in text.of("floor"):
        if p.line.type == "f32":
            yield (
                f"{p.line.name} truncates",
                text.replaced(
                    p,
                    f"  {p.line.name}.i = {p.line.retyped('s32')} convert({p.line.operands[0]})",
                    replace(p.line, opcode="convert", operands=(f"{p.line.name}.i",), attributes=""),
                ),
            )
    for p in text.of("round-nearest-even"):
        yield f"{p.line.name} away from zero at ties", text.changed(p, opcode="round-nearest-afz")
    for p in text.of("ceil"):
        one, wide = filled(p.line, 1)
        floor = replace(p, line=replace(p.line, opcode="floor"))
        made = text.wrapped(floor, one, wide, (p.line.shape, "add", ("@", "@1"), ""))
        yield f"{p.line.name} as floor + 1", made


@kind(after=True)
def sign_of_square(text: Text) -> Edits:
    """sqrt(x * x + …) loses to overflow: |x| by way of a square."""
    for p in text.of("abs"):
        if p.line.type == "f32":
            x = p.line.operands[0]
            yield (
                f"{p.line.name} as sqrt(x * x)",
                text.replaced(
                    p,
                    Line(False, f"{p.line.name}.q", p.line.shape, "multiply", (x, x), ""),
                    replace(p.line, opcode="sqrt", operands=(f"{p.line.name}.q",), attributes=""),
                ),
            )


@kind("V2", after=True)
def shift_by_maximum_lost(text: Text) -> Edits:
    """exp(x - max) without its maximum: the same function until it overflows."""
    for p in text.of("exponential"):
        a = text.operand(p, 0)
        if a is not None and a.line.opcode == "subtract":
            x = text.operand(a, 0)
            if x is not None and x.line.shape == a.line.shape and "." in p.line.name:
                yield f"{p.line.name}: {a.line.name} subtracts nothing", text.forwarded(a, 0)
