"""Pairs of float programs that differ only beyond a limit, at a tie or for some flags, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from benchmarks.ranges.text import Lines, Pair, array

#: From lines, a shape and the value of that shape in question to the result.
Core: TypeAlias = Callable[[Lines, str, str], str]
#: A pair as cores, and values of the argument at which they differ, or are most suspect.
Cores: TypeAlias = tuple[Core, Core, Sequence[float]]

_NEXT = 1 + 2.0**-22


def in_context(draw: random.Random, family: str, cores: Cores, differs: bool, **more: Any) -> Pair:
    """Both cores behind the same computation, and before the same one."""
    left, right, targets = cores
    size = draw.choice([1, 2, 3, 5, 8])
    shape = f"f32[{size}]"
    before = draw.choice(["plain", "plain", "sum", "scaled", "weighted", "negative", "matrix"])
    after = draw.choice(["plain", "plain", "weighted", "sum", "negative"])
    values = [np.resize(np.roll(targets, -n), size) for n in range(0, len(targets), size)]
    first = [array(shape, {"scaled": v / 4, "negative": -v}.get(before, v)) for v in values]
    extra: list[Any] = []
    texts = []
    for core in (left, right):
        lines = Lines()
        x = lines.parameter(shape)
        extra.clear()
        if before in ("sum", "weighted"):
            other = lines.parameter(shape)
            x = lines.let(shape, f"{'add' if before == 'sum' else 'multiply'}({x}, {other})")
            extra.append(array(shape, 0 if before == "sum" else 1))
        elif before == "scaled":
            x = lines.let(shape, f"multiply({x}, {lines.constant(shape, 4)})")
        elif before == "negative":
            x = lines.let(shape, f"negate({x})")
        elif before == "matrix":
            other = lines.parameter(f"f32[{size},{size}]")
            x = lines.let(shape, f"dot({other}, {x}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
            extra.append(array(f"f32[{size},{size}]", np.eye(size)))
        y = core(lines, shape, x)
        if after == "weighted":
            y = lines.let(shape, f"multiply({y}, {lines.parameter(shape)})")
            extra.append(array(shape, np.arange(1, size + 1)))
        elif after == "sum":
            y = lines.let(shape, f"add({y}, {lines.parameter(shape)})")
            extra.append(array(shape, 0))
        elif after == "negative":
            y = lines.let(shape, f"negate({y})")
        texts.append(lines.module(y))
    return Pair(family, texts[0], texts[1], differs, tuple((x, *extra) for x in first), **more)


def _limit(draw: random.Random, low: float = -3, high: float = 30) -> float:
    return float(np.float32(10 ** draw.uniform(low, high)))


def _select(condition: Callable[[Lines, str, str], str], other: str = "zero") -> Core:
    """`other` where the condition holds, else the value itself."""

    def core(lines: Lines, shape: str, x: str) -> str:
        pred = condition(lines, shape, x)
        taken = lines.constant(shape, 0) if other == "zero" else lines.let(shape, f"{other}({x})")
        return lines.let(shape, f"select({pred}, {taken}, {x})")

    return core


def _compare(direction: str, limit: float, of: str = "") -> Callable[[Lines, str, str], str]:
    def condition(lines: Lines, shape: str, x: str) -> str:
        value = lines.let(shape, f"{of}({x})") if of else x
        bound = lines.constant(shape, limit)
        return lines.let(_preds(shape), f"compare({value}, {bound}), direction={direction}")

    return condition


def _both(opcode: str, *conditions: Callable[[Lines, str, str], str]) -> Callable[[Lines, str, str], str]:
    def condition(lines: Lines, shape: str, x: str) -> str:
        found = [one(lines, shape, x) for one in conditions]
        return lines.let(_preds(shape), f"{opcode}({', '.join(found)})")

    return condition


def _preds(shape: str) -> str:
    return "pred" + shape[shape.index("[") :]


def _of(text: str, *constants: float) -> Core:
    """One line about `{x}` and constants `{0}`, `{1}`, …"""

    def core(lines: Lines, shape: str, x: str) -> str:
        names = [lines.constant(shape, value) for value in constants]
        return lines.let(shape, text.format(*names, x=x))

    return core


def _chain(*cores: Core) -> Core:
    def core(lines: Lines, shape: str, x: str) -> str:
        for one in cores:
            x = one(lines, shape, x)
        return x

    return core


_IDENTITY = _of("copy({x})")


def clip(draw: random.Random, differs: bool) -> Cores:
    """A limit that one program has not, or has elsewhere; or written another way."""
    c = _limit(draw)
    kind = draw.choice(["upper", "lower", "both"])
    text = {"upper": "minimum({x}, {0})", "lower": "maximum({x}, {1})", "both": "clamp({1}, {x}, {0})"}[kind]
    core = _of(text, c, -c)
    at = {"upper": [3 * c], "lower": [-3 * c], "both": [3 * c, -3 * c]}[kind]
    if differs:
        other = draw.choice([_IDENTITY, _of(text, 2 * c, -2 * c), _of(text, 1.01 * c, -1.01 * c)])
        return core, other, at
    other = {
        "upper": _chain(_of("negate({x})"), _of("maximum({x}, {0})", -c), _of("negate({x})")),
        "lower": _chain(_of("negate({x})"), _of("minimum({x}, {0})", c), _of("negate({x})")),
        "both": _chain(_of("minimum({x}, {0})", c), _of("maximum({x}, {0})", -c)),
    }[kind]
    return core, other, [*at, c, -c, 0]


def guard(draw: random.Random, differs: bool) -> Cores:
    """A guard on a large or small number."""
    c, sign = _limit(draw), draw.choice([1, -1])
    direction = "GT" if sign > 0 else "LT"
    core = _select(_compare(direction, sign * c))
    if differs:
        other = draw.choice([_IDENTITY, _select(_compare(direction, sign * c * 1.5))])
        return core, other, [sign * 1.25 * c]
    opposite = "LE" if sign > 0 else "GE"

    def written(lines: Lines, shape: str, x: str) -> str:
        pred = _compare(opposite, sign * c)(lines, shape, x)
        return lines.let(shape, f"select({pred}, {x}, {lines.constant(shape, 0)})")

    return core, written, [sign * c, sign * 2 * c, 0]


def threshold(draw: random.Random, differs: bool) -> Cores:
    """Two thresholds next to each other."""
    c = float(np.float32(draw.choice([1, -1]) * round(10 ** draw.uniform(0, 4))))
    core = _select(_compare("GT", c), "negate")
    if differs:
        near = draw.choice([c + 1, c + 0.5, float(np.float32(c * _NEXT)), float(np.float32(c * 1.001))])
        return core, _select(_compare("GT", near), "negate"), [(c + near) / 2, max(c, near)]
    return (
        core,
        _select(lambda lines, s, x: lines.let(_preds(s), f"not({_compare('LE', c)(lines, s, x)})"), "negate"),
        [c, c + 1],
    )


def strict(draw: random.Random, differs: bool) -> Cores:
    """A strict comparison against one that is not."""
    c = draw.choice([0.0, 0.0, 1.0, 0.5, -2.0, 1000.0, _limit(draw, -2, 6)])
    one, other = draw.choice([("GT", "GE"), ("LT", "LE"), ("GE", "GT"), ("LE", "LT")])
    if differs:

        def shifted(direction: str) -> Core:
            def core(lines: Lines, shape: str, x: str) -> str:
                pred = _compare(direction, c)(lines, shape, x)
                ones, twos = lines.constant(shape, 1), lines.constant(shape, 3)
                return lines.let(shape, f"select({pred}, {ones}, {twos})")

            return core

        return shifted(one), shifted(other), [c]

    # |x - c| where either side gives 0 at the tie.
    def distance(direction: str) -> Core:
        def core(lines: Lines, shape: str, x: str) -> str:
            pred = _compare(direction, c)(lines, shape, x)
            off = lines.let(shape, f"subtract({x}, {lines.constant(shape, c)})")
            return lines.let(shape, f"select({pred}, {off}, {lines.let(shape, f'negate({off})')})")

        return core

    return distance(one), distance(other), [c, c + 1, c - 1]


def floor(draw: random.Random, differs: bool) -> Cores:
    """An epsilon below a divisor."""
    c = _limit(draw, -37, -4)
    guarded = _chain(_of("abs({x})"), _of("maximum({x}, {0})", c), _of("divide({0}, {x})", 1.0))
    if differs:
        other = draw.choice([1, 8.0])
        if other == 1:
            return guarded, _chain(_of("abs({x})"), _of("divide({0}, {x})", 1.0)), [c / 4]
        return (
            guarded,
            _chain(_of("abs({x})"), _of("maximum({x}, {0})", c * other), _of("divide({0}, {x})", 1.0)),
            [c],
        )
    return (
        guarded,
        _chain(_of("abs({x})"), _of("maximum({0}, {x})", c), _of("divide({0}, {x})", 1.0)),
        [c, c / 2, 1],
    )


def near_zero(draw: random.Random, differs: bool) -> Cores:
    """What is smaller than an epsilon is 0."""
    c = _limit(draw, -37, -3)
    core = _select(_compare("LT", c, of="abs"))
    if differs:
        return core, draw.choice([_IDENTITY, _select(_compare("LT", c * 3, of="abs"))]), [c * 2, c / 2]
    inside = _both("and", _compare("LT", c), _compare("GT", -c))
    return core, _select(inside), [c, -c, c / 2]


def combined(draw: random.Random, differs: bool) -> Cores:
    """A select on two comparisons together."""
    a, b = sorted([_limit(draw, -2, 8), _limit(draw, -2, 8)])
    one, two = draw.choice([(("GT", a), ("LT", b)), (("GT", -a), ("LT", b)), (("LT", -b), ("GT", b))])
    opcode = draw.choice(["and", "or", "xor"])
    core = _select(_both(opcode, _compare(*one), _compare(*two)), "negate")
    if differs:
        lost = draw.choice([one, two])
        kept = two if lost is one else one
        other = _select(_compare(*kept), "negate")
        at = [-2 * b, -2 * a, 2 * b, -a / 2, a / 2, (a + b) / 2]
        return core, other, at

    def written(lines: Lines, shape: str, x: str) -> str:
        p, q = (_compare(*c)(lines, shape, x) for c in (one, two))
        preds = _preds(shape)
        np_, nq = (lines.let(preds, f"not({c})") for c in (p, q))
        if opcode == "and":
            found = lines.let(preds, f"not({lines.let(preds, f'or({np_}, {nq})')})")
        elif opcode == "or":
            found = lines.let(preds, f"not({lines.let(preds, f'and({np_}, {nq})')})")
        else:
            found = lines.let(preds, f"compare({p}, {q}), direction=NE")
        return lines.let(shape, f"select({found}, {lines.let(shape, f'negate({x})')}, {x})")

    return core, written, [a, b, -a, -b, (a + b) / 2, 2 * b, -2 * b]


def any_all(draw: random.Random, differs: bool) -> Cores:
    """Whether all or any elements are beyond a limit decides for all."""
    c = _limit(draw, 1, 20)

    def core(opcode: str, direction: str = "LT", negated: bool = False) -> Core:
        def build(lines: Lines, shape: str, x: str) -> str:
            preds = _preds(shape)
            pred = _compare(direction, c)(lines, shape, x)
            name = f"r_{opcode}"
            if not any(text.startswith(name) for text in lines.computations):
                lines.computations.append(
                    f"{name} {{\n  a = pred[] parameter(0)\n  b = pred[] parameter(1)\n"
                    f"  ROOT c = pred[] {opcode}(a, b)\n}}"
                )
            first = lines.let("pred[]", f"constant({'true' if opcode == 'and' else 'false'})")
            found = lines.let("pred[]", f"reduce({pred}, {first}), dimensions={{0}}, to_apply={name}")
            found = lines.let("pred[]", f"not({found})") if negated else found
            wide = lines.let(preds, f"broadcast({found}), dimensions={{}}")
            return lines.let(shape, f"select({wide}, {x}, {lines.constant(shape, 0)})")

        return build

    if differs:
        return core("and"), _IDENTITY, [2 * c, 1, 1]
    return core("and"), core("or", "GE", negated=True), [2 * c, c, 1]


def rounding(draw: random.Random, differs: bool) -> Cores:
    """Two ways to round that part at halves only, or not at all."""
    even, away = _of("round-nearest-even({x})"), _of("round-nearest-afz({x})")
    if differs:
        return (
            even,
            draw.choice([away, _chain(_of("add({x}, {0})", 0.5), _of("floor({x})"))]),
            [0.5, 2.5, -1.5, -0.5],
        )
    return (
        _of("floor({x})"),
        _chain(_of("negate({x})"), _of("ceil({x})"), _of("negate({x})")),
        [0.5, -0.5, 1, 1e6],
    )


def saturation(draw: random.Random, differs: bool) -> Cores:
    """A conversion to a narrow integer, which saturates, against one by way of a wider one, which wraps."""
    kind = draw.choice(["s8", "u8", "s16", "u16"])
    low, high = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767), "u16": (0, 65535)}[kind]

    def core(wide: bool, clamped: bool) -> Core:
        def build(lines: Lines, shape: str, x: str) -> str:
            dims = shape[shape.index("[") :]
            if clamped:
                x = lines.let(
                    shape, f"clamp({lines.constant(shape, low)}, {x}, {lines.constant(shape, high)})"
                )
            x = lines.let(f"s32{dims}", f"convert({x})") if wide else x
            return lines.let(shape, f"convert({lines.let(f'{kind}{dims}', f'convert({x})')})")

        return build

    if differs:
        return core(False, False), core(True, False), [high + 40, low - 30]
    return core(False, False), core(draw.random() < 0.5, True), [high + 40, low - 30, 1.5]


def sign_at_zero(draw: random.Random, differs: bool) -> Cores:
    """The sign, against comparisons with 0."""

    def choice(direction: str) -> Core:
        def build(lines: Lines, shape: str, x: str) -> str:
            pred = _compare(direction, 0.0)(lines, shape, x)
            return lines.let(
                shape, f"select({pred}, {lines.constant(shape, 1)}, {lines.constant(shape, -1)})"
            )

        return build

    if differs:
        return _of("sign({x})"), choice(draw.choice(["GT", "GE"])), [0]

    def with_sign(lines: Lines, shape: str, x: str) -> str:
        return lines.let(shape, f"multiply({x}, {choice('GE')(lines, shape, x)})")

    one, other = _of("abs({x})"), with_sign
    return one, other, [0, -1, 1]


def crossing(draw: random.Random, differs: bool) -> Cores:
    """Two limits in either order: they part where the limits cross."""
    a = _limit(draw, -1, 6)
    b = a / 2 if differs else a * 3
    one = _chain(_of("maximum({x}, {0})", a), _of("minimum({x}, {0})", b))
    other = _chain(_of("minimum({x}, {0})", b), _of("maximum({x}, {0})", a))
    return one, other, [0, a, b, 10 * a]


def moved(draw: random.Random, differs: bool) -> Cores:
    """A comparison of differences, as people write it either way; `unequal` would be false."""
    c = float(draw.randint(1, 50))

    def core(direction: str, is_difference: bool, limit: float) -> Core:
        def build(lines: Lines, shape: str, x: str) -> str:
            bound, nothing = lines.constant(shape, limit), lines.constant(shape, 0)
            a, b = (lines.let(shape, f"subtract({x}, {bound})"), nothing) if is_difference else (x, bound)
            pred = lines.let(_preds(shape), f"compare({a}, {b}), direction={direction}")
            return lines.let(shape, f"select({pred}, {x}, {lines.let(shape, f'negate({x})')})")

        return build

    if differs:
        return core("GT", False, c), core("GT", True, c + 0.25), [c + 0.125]
    return core("GT", False, c), core("GT", True, c), [c, c + 1, c - 1]


def finite(draw: random.Random, differs: bool) -> Cores:
    """What is not finite, or NaN, is 0: a guard that no real number needs."""

    def is_not_finite(lines: Lines, shape: str, x: str) -> str:
        return lines.let(_preds(shape), f"not({lines.let(_preds(shape), f'is-finite({x})')})")

    def is_nan(lines: Lines, shape: str, x: str) -> str:
        return lines.let(_preds(shape), f"compare({x}, {x}), direction=NE")

    if differs:
        return _select(draw.choice([is_not_finite, is_nan])), _IDENTITY, [float("nan")]
    large = _compare("EQ", float("inf"), of="abs")
    return _select(is_not_finite), _select(_both("or", is_nan, large)), [float("nan"), float("inf"), 1]


#: What takes part in both halves.
FLOATS: dict[str, Callable[[random.Random, bool], Cores]] = {
    f.__name__: f
    for f in (
        any_all, clip, combined, crossing, finite, floor, guard, moved, near_zero, rounding, saturation,
        sign_at_zero, strict, threshold,
    )
}  # fmt: skip
