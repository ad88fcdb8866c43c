"""Pairs of programs on integers and orders that part only for some of them, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from benchmarks.ranges.text import Lines, Pair, array

#: From the lines and an integer to another one.
Place: TypeAlias = Callable[[Lines, str], str]


def pair_of(
    family: str, sides: Sequence[Callable[[Lines], str]], differs: bool, witness: Sequence[Any], **more: Any
) -> Pair:
    texts = []
    for build in sides:
        lines = Lines()
        texts.append(lines.module(build(lines)))
    return Pair(family, texts[0], texts[1], differs, (tuple(witness),), **more)


def _with(opcode: str, *numbers: int, first: bool = False) -> Place:
    """`opcode` of an integer and constants, which stand behind it or, where `first`, on both sides."""

    def place(lines: Lines, i: str) -> str:
        names = [lines.constant("s32[]", number) for number in numbers]
        operands = [names[0], i, *names[1:]] if first else [i, *names]
        return lines.let("s32[]", f"{opcode}({', '.join(operands)})")

    return place


def _by_way_of(kind: str) -> Place:
    """Converted to a narrower type, and back."""

    def place(lines: Lines, i: str) -> str:
        narrow = lines.let(f"{kind}[]", f"convert({i})")
        return lines.let("s32[]", f"convert({narrow})")

    return place


_LOOP = """less {{
  s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction={direction}
}}
step {{
  s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  d = s32[] constant({step})
  j = s32[] add(i, d)
  c = f32[] constant(0.5)
  k = f32[2] broadcast(c), dimensions={{}}
  y = f32[2] add(x, k)
  ROOT t = (s32[], s32[], f32[2]) tuple(j, n, y)
}}"""


def counter(draw: random.Random, differs: bool) -> Pair:
    """How often a loop goes round: an argument, and an argument that is cut off."""
    limit = draw.randint(20, 700)
    bits = draw.choice([5, 6, 7, 8, 9])
    kinds: dict[str, tuple[Place, int]] = {
        "minimum": (_with("minimum", limit), limit + 3),
        "mask": (_with("and", (1 << bits) - 1), (1 << bits) + 2),
        "u8": (_by_way_of("u8"), 258),
        "s8": (_by_way_of("s8"), 200),
        "absolute": (_with("abs"), -3),
        "remainder": (_with("remainder", limit), limit + 2),
    }

    def side(bound: Callable[[Lines, str], str], down: bool = False) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x, n = lines.parameter("f32[2]"), lines.parameter("s32[]")
            m, zero = bound(lines, n), lines.constant("s32[]", 0)
            lines.computations.append(_LOOP.format(direction="GT" if down else "LT", step=-1 if down else 1))
            i, end = (m, zero) if down else (zero, m)
            s = lines.let("(s32[], s32[], f32[2])", f"tuple({i}, {end}, {x})")
            w = lines.let("(s32[], s32[], f32[2])", f"while({s}), condition=less, body=step")
            return lines.let("f32[2]", f"get-tuple-element({w}), index=2")

        return build

    name = draw.choice(list(kinds))
    cut, witness = kinds[name]
    plain = side(lambda _, n: n)
    if differs:
        sides = [plain, side(cut)]
        draw.shuffle(sides)
    else:
        sides = (
            [side(cut), side(cut, down=True)]
            if draw.random() < 0.6
            else [plain, side(lambda _, n: n, down=True)]
        )
    return pair_of("counter", sides, differs, [array("f32[2]", [1, 2]), array("s32[]", witness)])


def integers(draw: random.Random, differs: bool) -> Pair:
    """Arithmetic that parts for negative, large or extreme integers."""
    size = draw.choice(["s32[]", "s32[4]", "s32[9]"])
    k = draw.randint(1, 5)

    def lines_of(*texts: str) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            names = {"x": lines.parameter(size)}
            for number, text in enumerate(texts):
                kind, _, rest = text.partition(" ")
                shape = kind + size[3:] if kind else size
                for constant in [
                    w[1:]
                    for w in rest.replace("(", " ").replace(")", " ").replace(",", " ").split()
                    if w[0] == "#"
                ]:
                    rest = rest.replace(f"#{constant}", lines.constant(size, int(constant)), 1)
                names[f"t{number}"] = lines.let(shape, rest.format(**names))
            return names[f"t{len(texts) - 1}"]

        return build

    power, mask, big = 1 << k, (1 << k) - 1, draw.randint(300, 40000)
    if differs:
        one, other, at = draw.choice(
            [
                (
                    lines_of(f" divide({{x}}, #{power})"),
                    lines_of(f" shift-right-arithmetic({{x}}, #{k})"),
                    -power + 1 if k else -1,
                ),
                (lines_of(f" remainder({{x}}, #{power})"), lines_of(f" and({{x}}, #{mask})"), -1),
                (lines_of(" copy({x})"), lines_of(f" minimum({{x}}, #{big})"), big + 1),
                (lines_of(" copy({x})"), lines_of("s16 convert({x})", "s32 convert({t0})"), 40000),
                (lines_of(" copy({x})"), lines_of(f" and({{x}}, #{(1 << (k + 11)) - 1})"), 1 << (k + 11)),
                (
                    lines_of(f" multiply({{x}}, #{power})", f" divide({{t0}}, #{power})"),
                    lines_of(" copy({x})"),
                    2**31 - 1,
                ),
                (lines_of(" add({x}, #1)", " maximum({t0}, {x})"), lines_of(" add({x}, #1)"), 2**31 - 1),
                (lines_of(" abs({x})", " maximum({t0}, #0)"), lines_of(" abs({x})"), -(2**31)),
                (lines_of(" shift-left(#1, {x})"), lines_of(" and({x}, #31)", " shift-left(#1, {t0})"), 33),
                (
                    lines_of("pred compare({x}, #9), direction=GT", " select({t0}, #1, #0)"),
                    lines_of("pred compare({x}, #9), direction=GE", " select({t0}, #1, #0)"),
                    9,
                ),
                (lines_of("u32 convert({x})", "f32 convert({t0})"), lines_of("f32 convert({x})"), -1),
            ]
        )
    else:
        one, other, at = draw.choice(
            [
                (lines_of(f" multiply({{x}}, #{power})"), lines_of(f" shift-left({{x}}, #{k})"), 2**31 - 1),
                (
                    lines_of("u32 convert({x})", "u32 and({t0}, {t0})", "s32 convert({t1})"),
                    lines_of(" copy({x})"),
                    -1,
                ),
                (
                    lines_of(f" and({{x}}, #{mask})"),
                    lines_of(
                        f" remainder({{x}}, #{power})",
                        f" add({{t0}}, #{power})",
                        f" remainder({{t1}}, #{power})",
                    ),
                    -3,
                ),
                (
                    lines_of(" not({x})", f" maximum({{t0}}, #{-1 - big})", " not({t1})"),
                    lines_of(f" minimum({{x}}, #{big})"),
                    big + 1,
                ),
                (lines_of(" add({x}, #7)", " subtract({t0}, #7)"), lines_of(" copy({x})"), 2**31 - 1),
                (
                    lines_of("pred compare({x}, #9), direction=GT", " select({t0}, #1, #0)"),
                    lines_of("pred compare({x}, #10), direction=GE", " select({t0}, #1, #0)"),
                    9,
                ),
            ]
        )
    return pair_of("integers", [one, other], differs, [array(size, at)])


def index(draw: random.Random, differs: bool) -> Pair:
    """Starts of slices and updates, in range and out of it."""
    n, k = draw.randint(5, 12), draw.randint(1, 3)
    last = n - k
    updates = draw.random() < 0.4

    def side(found: Callable[[Lines, str], str]) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x, i = lines.parameter(f"f32[{n}]"), lines.parameter("s32[]")
            i = found(lines, i)
            if not updates:
                return lines.let(f"f32[{k}]", f"dynamic-slice({x}, {i}), dynamic_slice_sizes={{{k}}}")
            u = lines.parameter(f"f32[{k}]")
            return lines.let(f"f32[{n}]", f"dynamic-update-slice({x}, {u}, {i})")

        return build

    wraps = _with("remainder", last + 1)

    def from_end(lines: Lines, i: str) -> str:
        p = lines.let("pred[]", f"compare({i}, {lines.constant('s32[]', 0)}), direction=LT")
        later = lines.let("s32[]", f"add({i}, {lines.constant('s32[]', n)})")
        return lines.let("s32[]", f"select({p}, {later}, {i})")

    narrow = _by_way_of("u8")
    clamped = _with("clamp", 0, last, first=True)
    raised = _with("maximum", 0)
    short = _with("minimum", last - 1)
    if differs:
        found, at = draw.choice([(wraps, last + 1), (from_end, -1), (narrow, 256), (short, last)])
    else:
        found, at = draw.choice([(clamped, last + 3), (clamped, -2), (raised, -5)])
    witness = [array(f"f32[{n}]", np.arange(1, n + 1)), array("s32[]", at)]
    witness += [array(f"f32[{k}]", -np.arange(1, k + 1))] if updates else []
    return pair_of("index", [side(lambda _, i: i), side(found)], differs, witness)


def branch(draw: random.Random, differs: bool) -> Pair:
    """The index of a case, clamped as XLA does, or otherwise."""
    count = draw.randint(3, 4)

    def side(found: Callable[[Lines, str], str]) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x, i = lines.parameter("f32[3]"), lines.parameter("s32[]")
            for number in range(count):
                lines.computations.append(
                    f"b{number} {{\n  x = f32[3] parameter(0)\n  c = f32[] constant({number + 2})\n"
                    "  k = f32[3] broadcast(c), dimensions={}\n  ROOT y = f32[3] multiply(x, k)\n}"
                )
            names = ", ".join(f"b{number}" for number in range(count))
            i = found(lines, i)
            return lines.let(
                "f32[3]", f"conditional({i}, {', '.join([x] * count)}), branch_computations={{{names}}}"
            )

        return build

    last = count - 1

    def outside(lines: Lines, i: str) -> str:
        end = lines.constant("s32[]", last)
        p = lines.let("pred[]", f"compare({i}, {lines.constant('s32[]', 0)}), direction=LT")
        return lines.let("s32[]", f"select({p}, {end}, {lines.let('s32[]', f'minimum({i}, {end})')})")

    clamped = _with("clamp", 0, last, first=True)
    short = _with("minimum", last - 1)
    found, at = (draw.choice([(clamped, -1), (short, last)])) if differs else (outside, -1)
    return pair_of(
        "branch",
        [side(lambda _, i: i), side(found)],
        differs,
        [array("f32[3]", [1, 2, 3]), array("s32[]", at)],
    )


def length(draw: random.Random, differs: bool) -> Pair:
    """A mask by a length, which may be 0, all or more."""
    n = draw.randint(4, 12)

    def side(direction: str, off: int, limit: int | None) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x, m = lines.parameter(f"f32[{n}]"), lines.parameter("s32[]")
            m = (
                lines.let("s32[]", f"minimum({m}, {lines.constant('s32[]', limit)})")
                if limit is not None
                else m
            )
            m = lines.let("s32[]", f"add({m}, {lines.constant('s32[]', off)})") if off else m
            i = lines.let(f"s32[{n}]", "iota(), iota_dimension=0")
            wide = lines.let(f"s32[{n}]", f"broadcast({m}), dimensions={{}}")
            p = lines.let(f"pred[{n}]", f"compare({i}, {wide}), direction={direction}")
            return lines.let(f"f32[{n}]", f"select({p}, {x}, {lines.constant(f'f32[{n}]', 0)})")

        return build

    plain = side("LT", 0, None)
    if differs:
        other, at = draw.choice(
            [(side("LE", 0, None), 1), (side("LT", 0, n - 1), n), (side("LT", 1, None), 2)]
        )
    else:
        other, at = draw.choice([(side("LT", 0, n), n + 2), (side("LT", 0, n + 3), n)])
    return pair_of(
        "length", [plain, other], differs, [array(f"f32[{n}]", np.arange(1, n + 1)), array("s32[]", at)]
    )


INTEGERS: dict[str, Callable[[random.Random, bool], Pair]] = {
    f.__name__: f for f in (counter, integers, index, branch, length)
}
