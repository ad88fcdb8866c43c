"""Outcomes that no arguments make occur, and next to each a program in which some do."""

from __future__ import annotations

import pytest

from hlotool.facts.decisions import Kind, decisions
from hlotool.facts.flow import CallGraph
from hlotool.facts.machine_ranges import unreachable_outcomes
from hlotool.parser.reader import parse_module

CONSTANTS = """
  zero = s32[] constant(0) one = s32[] constant(1) three = s32[] constant(3) ten = s32[] constant(10)
  minus = s32[] constant(-1) low = f32[] constant(-inf) none = f32[] constant(0)
"""

CASES = [
    # A remainder by a positive constant is smaller than it.
    (
        Kind.COMPARISON,
        "r = s32[] remainder(i, ten) ROOT c = pred[] compare(r, ten), direction=LT",
        {"equal", "greater"},
    ),
    (Kind.COMPARISON, "r = s32[] remainder(i, j) ROOT c = pred[] compare(r, ten), direction=LT", set()),
    # Sums wrap: i + 1 may be below 0 even where i is not.
    (Kind.COMPARISON, "a = s32[] abs(i) ROOT c = pred[] compare(a, zero), direction=LT", set()),
    (
        Kind.COMPARISON,
        "a = s32[] clamp(zero, i, ten) b = s32[] add(a, one) ROOT c = pred[] compare(b, zero), direction=LT",
        {"less", "equal"},
    ),
    (
        Kind.COMPARISON,
        "a = s32[] maximum(i, zero) b = s32[] add(a, one) ROOT c = pred[] compare(b, zero), direction=LT",
        set(),
    ),
    # Nothing is below -inf; exp underflows to 0, and is never negative.
    (Kind.EXTREMUM, "ROOT m = f32[] maximum(low, x)", {"first larger"}),
    (Kind.COMPARISON, "e = f32[] exponential(x) ROOT c = pred[] compare(e, none), direction=GT", {"less"}),
    (Kind.COMPARISON, "e = f32[] multiply(x, x) ROOT c = pred[] compare(e, none), direction=GT", {"less"}),
    (Kind.COMPARISON, "e = f32[] multiply(x, y) ROOT c = pred[] compare(e, none), direction=GT", set()),
    # u32 has no negative numbers; s32 becomes large where it is converted.
    (
        Kind.COMPARISON,
        "u = u32[] convert(i) t = u32[] constant(7) ROOT c = pred[] compare(u, t), direction=LT",
        set(),
    ),
    (Kind.DIVISION, "ROOT d = s32[] divide(i, three)", {"by zero", "overflow", "+/-", "-/-"}),
    (Kind.DIVISION, "ROOT d = s32[] divide(i, minus)", {"by zero", "+/+", "-/+", "+/-", "-/-"}),
    (Kind.SHIFT, "ROOT s = s32[] shift-left(i, three)", {"zero", "too large"}),
    (Kind.SHIFT, "ROOT s = s32[] shift-left(i, j)", set()),
    (
        Kind.START_INDEX,
        "k = s32[] clamp(one, i, three) ROOT s = f32[2] dynamic-slice(v, k), dynamic_slice_sizes={2}",
        {"below", "first", "above"},
    ),
    (Kind.START_INDEX, "ROOT s = f32[2] dynamic-slice(v, i), dynamic_slice_sizes={2}", set()),
    (Kind.OVERFLOW, "a = s32[] clamp(zero, i, ten) ROOT b = s32[] multiply(a, ten)", {"wraps"}),
    (Kind.OVERFLOW, "ROOT b = s32[] multiply(i, ten)", set()),
    (
        Kind.CONVERSION,
        "f = f32[] floor(x) ROOT c = s32[] convert(f)",
        {"positive fraction", "negative fraction"},
    ),
    (Kind.CONVERSION, "t = f32[] tanh(x) ROOT c = s32[] convert(t)", {"too small", "too large"}),
    (
        Kind.SELECTION,
        "r = s32[] remainder(i, ten) p = pred[] compare(r, ten), direction=LT ROOT s = s32[] select(p, i, j)",
        {"false"},
    ),
    # NaN is less than nothing: that the comparison holds is not sure.
    (Kind.SELECTION, "t = f32[] tanh(x) b = f32[] constant(2) p = pred[] compare(t, b), direction=LT\n"
     "ROOT s = s32[] select(p, i, j)", set()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "expected"), CASES)
def test_unreachable(kind: Kind, body: str, expected: set[str]) -> None:
    parameters = "i = s32[] parameter(0) j = s32[] parameter(1) x = f32[] parameter(2) y = f32[] parameter(3)"
    text = f"HloModule m\nENTRY e {{ {parameters} v = f32[5] parameter(4)\n{CONSTANTS}\n{body}\n}}"
    calls = CallGraph(parse_module(text))
    found = unreachable_outcomes(calls, list(decisions(calls)))
    assert [outcomes for d, outcomes in found.items() if d.kind is kind] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("two", {"none", "one"}), ("first", {"one", "several"}), ("count", set())],
)
def test_trip_counts(limit: str, expected: set[str]) -> None:
    module = parse_module(f"""HloModule m
      body {{ s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] get-tuple-element(s), index=1 one = s32[] constant(1) k = s32[] add(i, one)
        ROOT r = (s32[], s32[]) tuple(k, n) }}
      cond {{ s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] get-tuple-element(s), index=1 ROOT c = pred[] compare(i, n), direction=LT }}
      ENTRY e {{ count = s32[] parameter(0) first = s32[] constant(0) two = s32[] constant(2)
        init = (s32[], s32[]) tuple(first, {limit})
        ROOT w = (s32[], s32[]) while(init), condition=cond, body=body }}""")
    calls = CallGraph(module)
    found = unreachable_outcomes(calls, list(decisions(calls)))
    assert [o for d, o in found.items() if d.kind is Kind.TRIP_COUNT] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("start", "step", "direction", "expected"),
    [
        # Counted up to a number that is not known: never below where it starts.
        ("0", "1", "LT", {"less"}),
        ("0", "1", "NE", set()),
        # In steps of 2 it may jump over the largest number, and wrap.
        ("0", "2", "LT", set()),
    ],
)
def test_counters(start: str, step: str, direction: str, expected: set[str]) -> None:
    module = parse_module(f"""HloModule m
      body {{ s = (s32[], s32[], pred[]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] get-tuple-element(s), index=1 one = s32[] constant({step}) k = s32[] add(i, one)
        zero = s32[] constant(0) p = pred[] compare(i, zero), direction=LT
        ROOT r = (s32[], s32[], pred[]) tuple(k, n, p) }}
      cond {{ s = (s32[], s32[], pred[]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] get-tuple-element(s), index=1 ROOT c = pred[] compare(i, n), direction={direction} }}
      ENTRY e {{ count = s32[] parameter(0) first = s32[] constant({start}) f = pred[] constant(false)
        init = (s32[], s32[], pred[]) tuple(first, count, f)
        ROOT w = (s32[], s32[], pred[]) while(init), condition=cond, body=body }}""")
    calls = CallGraph(module)
    found = unreachable_outcomes(calls, list(decisions(calls)))
    assert [o for d, o in found.items() if d.instruction.name == "p"] == ([expected] if expected else [])
