"""Pairs of programs that choose or sort, and part where numbers are equal, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from benchmarks.ranges.integers import pair_of
from benchmarks.ranges.text import Lines, Pair, array


def _chooser(direction: str, by_place: str) -> str:
    """A reducer that takes the larger number and its place; of equal ones the place that `by_place` says."""
    return f"""choose {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction={direction}
  q = pred[] compare(a, b), direction=EQ
  r = pred[] compare(i, j), direction={by_place}
  s = pred[] and(q, r)
  t = pred[] or(p, s)
  c = f32[] select(p, a, b)
  k = s32[] select(t, i, j)
  ROOT o = (f32[], s32[]) tuple(c, k)
}}"""


def argmax(draw: random.Random, differs: bool) -> Pair:
    """The place of the largest or the least: the first or the last of equal ones."""
    n, largest = draw.choice([3, 6, 20]), draw.random() < 0.5
    scaled = draw.random() < 0.4

    def side(by_place: str, negated: bool = False) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x = lines.parameter(f"f32[{n}]")
            x = lines.let(f"f32[{n}]", f"add({x}, {x})") if scaled else x
            x = lines.let(f"f32[{n}]", f"negate({x})") if negated else x
            up = largest is not negated
            lines.computations.append(_chooser("GT" if up else "LT", by_place))
            i = lines.let(f"s32[{n}]", "iota(), iota_dimension=0")
            first = lines.let("f32[]", f"constant({'-inf' if up else 'inf'})")
            zero = lines.constant("s32[]", 0)
            r = lines.let(
                "(f32[], s32[])", f"reduce({x}, {i}, {first}, {zero}), dimensions={{0}}, to_apply=choose"
            )
            return lines.let("s32[]", f"get-tuple-element({r}), index=1")

        return build

    sides = [side("LT"), side("GT")] if differs else [side("LT"), side("LT", negated=True)]
    return pair_of("argmax", sides, differs, [array(f"f32[{n}]", 1)])


def order(draw: random.Random, differs: bool) -> Pair:
    """Sorts that carry places along, and equal keys."""
    n = draw.choice([4, 9, 30])
    keys = draw.choice(["f32", "s32"])
    kind = draw.choice(["place", "stable", "reversed"] if differs else ["negated", "places"])

    def side(number: int) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x = lines.parameter(f"{keys}[{n}]")
            i = lines.let(f"s32[{n}]", "iota(), iota_dimension=0")
            second = number == 1
            up, tie, stable = True, "", True
            if kind == "place" and second:
                tie = "GT"
            if kind == "places" and second:
                tie, stable = "LT", False
            if kind == "stable" and second:
                stable = False
            if kind in ("reversed", "negated") and second:
                up = False
            if kind == "negated" and second:
                x = (
                    lines.let(f"{keys}[{n}]", f"negate({x})")
                    if keys == "f32"
                    else lines.let(f"{keys}[{n}]", f"not({x})")
                )
            direction = "LT" if up else "GT"
            more = ""
            root = f"ROOT p = pred[] compare(a, b), direction={direction}"
            if tie:
                root = f"p = pred[] compare(a, b), direction={direction}"
                more = f"""
  q = pred[] compare(a, b), direction=EQ
  r = pred[] compare(c, d), direction={tie}
  s = pred[] and(q, r)
  ROOT t = pred[] or(p, s)"""
            lines.computations.append(f"""before {{
  a = {keys}[] parameter(0)
  b = {keys}[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  {root}{more}
}}""")
            flag = ", is_stable=true" if stable else ""
            r = lines.let(
                f"({keys}[{n}], s32[{n}])", f"sort({x}, {i}), dimensions={{0}}{flag}, to_apply=before"
            )
            places = lines.let(f"s32[{n}]", f"get-tuple-element({r}), index=1")
            if kind == "reversed" and second:
                places = lines.let(f"s32[{n}]", f"reverse({places}), dimensions={{0}}")
            return places

        return build

    return pair_of(
        f"order by {kind}", [side(0), side(1)], differs, [array(f"{keys}[{n}]", 1)], is_free=kind == "stable"
    )


def window(draw: random.Random, differs: bool) -> Pair:
    """Where a pooled gradient goes: to the first or the last of equal elements."""
    n = draw.choice([6, 8])

    def side(direction: str, swapped: bool = False) -> Callable[[Lines], str]:
        def build(lines: Lines) -> str:
            x, g = lines.parameter(f"f32[{n}]"), lines.parameter(f"f32[{n // 2}]")
            lines.computations.append(f"""choose {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT p = pred[] compare({"b, a" if swapped else "a, b"}), direction={direction}
}}
plus {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}""")
            zero = lines.constant("f32[]", 0)
            attributes = "window={size=2 stride=2}, select=choose, scatter=plus"
            return lines.let(f"f32[{n}]", f"select-and-scatter({x}, {g}, {zero}), {attributes}")

        return build

    sides = [side("GE"), side("GT")] if differs else [side("GE"), side("LE", swapped=True)]
    return pair_of(
        "window", sides, differs, [array(f"f32[{n}]", 1), array(f"f32[{n // 2}]", np.arange(1, n // 2 + 1))]
    )


ORDERS: dict[str, Callable[[random.Random, bool], Pair]] = {f.__name__: f for f in (argmax, order, window)}
