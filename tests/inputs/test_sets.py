"""Sets of inputs reach the outcomes that they are made for; what these are follows from the programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.inputs.adversarial.families import mixed_sets, odd_sets, quick_sets
from hlotool.inputs.adversarial.plan import directed_sets, searched_sets
from hlotool.inputs.adversarial.sets import OUT_OF_RANGE, InputSet
from hlotool.inputs.adversarial.solved import solved_sets
from hlotool.inputs.coverage.observer import Instrumented
from hlotool.inputs.generate import InputGenerator, generate_inputs
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

THRESHOLD = """HloModule threshold
square { a = f32[4] parameter(0) ROOT s = f32[4] multiply(a, a) }
ENTRY e {
  x = f32[4] parameter(0)
  s = f32[4] call(x), to_apply=square
  three = f32[] constant(3)
  w = f32[4] broadcast(three), dimensions={}
  t = f32[4] subtract(s, w)
  limit = f32[] constant(13)
  l = f32[4] broadcast(limit), dimensions={}
  p = pred[4] compare(t, l), direction=LT
  ROOT r = f32[4] select(p, t, l)
}"""

SLICE = """HloModule slice
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  two = s32[] constant(2)
  j = s32[] multiply(i, two)
  ROOT y = f32[3] dynamic-slice(x, j), dynamic_slice_sizes={3}
}"""

LOOP = """HloModule loop
body {
  s = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(s), index=0
  b = f32[] get-tuple-element(s), index=1
  h = f32[] constant(0.5)
  c = f32[] multiply(a, h)
  ROOT t = (f32[], f32[]) tuple(c, b)
}
cond {
  s = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(s), index=0
  b = f32[] get-tuple-element(s), index=1
  q = f32[] multiply(b, b)
  one = f32[] constant(1)
  l = f32[] add(q, one)
  ROOT p = pred[] compare(a, l), direction=GT
}
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = (f32[], f32[]) tuple(x, y)
  w = (f32[], f32[]) while(s), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=0
}"""


def program(text: str) -> tuple[Module, tuple[Any, ...]]:
    module = parse_module(text)
    return module, generate_inputs(module, 0).values


def named(sets: list[InputSet], aim: str) -> InputSet:
    return next(one for one in sets if any(aim in each for each in one.aims))


def test_a_tie_is_solved_through_a_call_and_a_square() -> None:
    """x² - 3 = 13 where x is 4 or -4."""
    module, plain = program(THRESHOLD)
    tie = named(list(solved_sets(module, plain, 0)), "equal at compare %p")
    np.testing.assert_array_equal(np.abs(tie.values[0]), 4)
    assert tie.odd == ()


def test_just_beside_a_tie() -> None:
    module, plain = program(THRESHOLD)
    sets = list(solved_sets(module, plain, 0))
    for aim, sign in (("just less at compare %p", -1), ("just more at compare %p", 1)):
        distance = named(sets, aim).values[0].astype(np.float64) ** 2 - 16
        assert np.all((sign * distance > 0) & (sign * distance < 0.02))


def test_a_start_index_reaches_both_ends_and_beyond() -> None:
    """The start is twice the argument, and 5 is the last place of 3 elements in 8."""
    module, plain = program(SLICE)
    sets = list(solved_sets(module, plain, 0))
    assert int(named(sets, "the first at dynamic-slice").values[1]) == 0
    beyond = named(sets, "above the end at dynamic-slice")
    assert 2 * int(beyond.values[1]) > 5
    assert beyond.odd == (OUT_OF_RANGE,)
    assert 2 * int(named(sets, "below the start at dynamic-slice").values[1]) <= 0


def test_a_loop_condition_is_solved_for_what_the_loop_starts_with() -> None:
    module, plain = program(LOOP)
    sets = list(solved_sets(module, plain, 0))
    beside = [one for one in sets if any("just" in aim and "compare %p" in aim for aim in one.aims)]
    distances = [float(x) - float(y) ** 2 - 1 for x, y in (one.values for one in beside)]
    assert min(abs(d) for d in distances) < 0.01
    assert {d > 0 for d in distances} == {True, False}


def test_ordinary_sets_keep_what_is_asked() -> None:
    """A divisor is never 0, an index never out of range."""
    module, plain = program(
        """HloModule m
ENTRY e {
  x = f32[6] parameter(0)
  d = f32[6] parameter(1)
  i = s32[2,1] parameter(2)
  q = f32[6] divide(x, d)
  ROOT g = f32[2] gather(q, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1}
}"""
    )
    sets = [one for one in directed_sets(module, plain, 0) if not one.odd]
    assert len(sets) > 5
    for one in sets:
        assert np.all(one.values[1] != 0), one.name
        assert np.all((one.values[2] >= 0) & (one.values[2] <= 5)), one.name


def test_odd_sets_say_what_is_odd() -> None:
    module, plain = program(SLICE)
    assert all(one.odd for one in odd_sets(module, plain, 0))
    for one in quick_sets(module, plain, 0):
        has_nan = bool(np.isnan(one.values[0]).any())
        assert has_nan == ("NaN" in one.odd), one.name


def test_promises_are_kept() -> None:
    """Indices that a program declares sorted and unique stay so."""
    module, plain = program(
        """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[9] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4] parameter(2)
  ROOT s = f32[9] scatter(x, i, u), to_apply=add, update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, indices_are_sorted=true
}"""
    )
    for one in directed_sets(module, plain, 0):
        assert np.all(np.diff(one.values[1].reshape(-1)) > 0), one.name


def test_the_search_finds_what_no_family_has() -> None:
    module, plain = program(
        """HloModule m
ENTRY e {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  five = s32[] constant(5)
  r = s32[] remainder(x, five)
  q = s32[] multiply(y, y)
  p = pred[] compare(r, q), direction=EQ
  z = s32[] constant(0)
  n = pred[] compare(q, z), direction=NE
  b = pred[] and(p, n)
  ROOT s = s32[] select(b, x, y)
}"""
    )
    found = list(searched_sets(module, plain, [], 0))
    assert found
    instrumented = Instrumented(module)
    seen = instrumented.run(plain)
    for one in found:
        assert one.aims
        before = seen
        seen = seen.merge(instrumented.run(one.values))
        assert list(seen.never()) != list(before.never())


@pytest.mark.parametrize(
    "name", ["dynamic-slice.clamped", "gather.rows", "while.array_state", "sort.two_keys"]
)
def test_equal_seeds_give_equal_sets(name: str) -> None:
    module = parse_module((CORPUS / "modules" / f"{name}.hlo").read_text(encoding="utf-8"))
    plain = generate_inputs(module, 0).values
    one, other = (list(directed_sets(module, plain, 3)) for _ in range(2))
    assert [s.name for s in one] == [s.name for s in other]
    assert len({s.name for s in one}) == len(one)
    for left, right in zip(one, other):
        for a, b in zip(left.values, right.values):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_mixtures_keep_what_is_asked_and_say_what_is_odd() -> None:
    """An index stays in range in ordinary sets, and leaves it in some of those that say so."""
    module = parse_module(SLICE)
    generator = InputGenerator(module)
    ordinary = list(mixed_sets(module, generator, 0, odd=False))
    odd = list(mixed_sets(module, generator, 0, odd=True))
    assert len(ordinary) > 20
    assert all(not one.odd and 0 <= int(one.values[1]) <= 2 for one in ordinary)  # type: ignore[call-overload]
    assert all(one.odd for one in odd)
    beyond = [one for one in odd if not 0 <= int(one.values[1]) <= 2]  # type: ignore[call-overload]
    assert beyond
    assert all(OUT_OF_RANGE in one.odd for one in beyond)
    names = {name for one in odd for name in one.odd}
    assert {"NaN", "infinity", OUT_OF_RANGE} <= names


TOTAL = """HloModule total
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  limit = f32[] parameter(2)
  zero = f32[] constant(0)
  z = f32[6] multiply(x, y)
  t = f32[] reduce(z, zero), dimensions={0}, to_apply=sum
  ROOT p = pred[] compare(t, limit), direction=GT
}"""


def test_sums_of_products_meet_a_limit_exactly() -> None:
    """Where each array draws numbers of its own they hardly ever do: all three have to hold the same few."""
    module = parse_module(TOTAL)
    ties = 0
    for seed in range(8):
        for one in mixed_sets(module, InputGenerator(module), seed, odd=False):
            x, y, limit = (np.asarray(v, np.float64) for v in one.values)
            ties += bool((x * y).sum() == limit and x.any() and y.any())
    assert ties >= 5


def test_floats_that_positions_are_made_of_leave_the_range_in_odd_sets() -> None:
    """The start is x rounded to zero, and the last place of 3 elements in 5 is 2."""
    module = parse_module(
        "HloModule m\nENTRY e { v = f32[5] parameter(0) x = f32[] parameter(1) i = s32[] convert(x) "
        "ROOT r = f32[3] dynamic-slice(v, i), dynamic_slice_sizes={3} }"
    )
    generator = InputGenerator(module)
    reached = {
        odd: {int(float(one.values[1])) for one in mixed_sets(module, generator, 0, odd)}  # type: ignore[arg-type]
        for odd in (False, True)
    }
    assert reached[False] <= {0, 1, 2}
    assert reached[True] - {0, 1, 2}


def test_inverse_arithmetic_on_whole_numbers_meets_a_tie_to_the_bit() -> None:
    """The sum is compared with the limit as XLA computes it, in f32; whole numbers are exact in it."""
    module, plain = program(TOTAL)
    sets = [one for one in directed_sets(module, plain, 0) if one.name.startswith("solved tie")]
    distances = []
    for one in sets:
        assert all("equal" in aim for aim in one.aims)
        x, y, limit = (np.asarray(v, np.float64) for v in one.values)
        distances.append(float((x * y).sum() - limit))
    assert 0 in distances


def test_mixtures_leave_out_what_nobody_defines() -> None:
    """What a factorization makes of NaN is the library's affair."""
    module = parse_module(
        "HloModule m\nENTRY e { x = f32[3,3] parameter(0) ROOT r = f32[3,3] cholesky(x), lower=true }"
    )
    odd = mixed_sets(module, InputGenerator(module), 0, odd=True)
    assert not {name for one in odd for name in one.odd} & {"NaN", "infinity", "extreme numbers"}


def test_a_sum_carries_into_the_upper_half() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { i = s32[] parameter(0) c = s32[] constant(3) k = s32[] multiply(i, c) "
        "one = s32[] constant(1) ROOT r = s32[] add(k, one) }"
    )
    plain = generate_inputs(module, 0).values
    carried = [s for s in directed_sets(module, plain, 0) if any("a carry" in aim for aim in s.aims)]
    assert any(3 * int(one.values[0]) + 1 == 1 << 16 for one in carried)  # type: ignore[call-overload]


SQUARES = """HloModule squares
add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }
ENTRY e {
  x = f32[5] parameter(0)
  limit = f32[] parameter(1)
  y = f32[5] divide(x, x)
  zero = f32[] constant(0)
  q = f32[5] multiply(x, x)
  s = f32[] reduce(q, zero), dimensions={0}, to_apply=add
  m = f32[] multiply(limit, limit)
  one = f32[] constant(1)
  t = f32[] add(m, one)
  p = pred[] compare(s, t), direction=GT
  ROOT r = (pred[], f32[5]) tuple(p, y)
}"""


def test_a_sum_of_squares_meets_a_tie_without_rounding() -> None:
    """Sums of five squares, none of them 0, by which x is divided: each is exact in f32 in every order."""
    module, plain = program(SQUARES)
    sets = [one for one in directed_sets(module, plain, 0) if one.name.startswith("solved tie")]
    exact = []
    for one in sets:
        x, limit = (np.asarray(v, np.float64) for v in one.values)
        assert x.all()
        exact.append((x**2).sum() == limit**2 + 1 and not np.any(x * 64 % 1))
    assert any(exact)


def test_arrays_that_are_smaller_than_they_may_be_are_not_solved_for() -> None:
    """The elements of one whose size is known at run time are counted in other dimensions than it has."""
    module, arguments = program(
        """HloModule m
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
ENTRY e {
  x = s32[9] parameter(0)
  n = s32[] constant(0)
  y = s32[<=9] set-dimension-size(x, n), dimensions={0}
  z = s32[] constant(0)
  s = s32[] reduce(y, z), dimensions={0}, to_apply=add
  five = s32[] constant(5)
  p = pred[] compare(s, five), direction=GT
  ROOT r = s32[] select(p, s, five)
}"""
    )
    assert [one.aims for one in solved_sets(module, arguments, 0)] == []


def test_ties_that_start_from_plain_numbers_change_nothing_else() -> None:
    module, plain = program(TOTAL)
    sets = [one for one in directed_sets(module, plain, 0) if one.name.startswith("plain tie")]
    assert sets
    for one in sets:
        assert len(one.aims) == 1
        assert any(np.array_equal(new, old) for new, old in zip(one.values, plain))


COUNTED = """HloModule counted
body {
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  a = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  b = f32[] add(a, a)
  ROOT t = (s32[], s32[], f32[]) tuple(j, n, b)
}
cond {
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction=DIRECTION
}
ENTRY e {
  x = f32[] parameter(0)
  n = s32[] parameter(1)
  z = s32[] constant(0)
  s = (s32[], s32[], f32[]) tuple(z, n, x)
  w = (s32[], s32[], f32[]) while(s), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=2
}"""


@pytest.mark.parametrize(("direction", "may_be_skipped"), [("LT", True), ("NE", False)])
def test_a_loop_may_run_no_iteration(direction: str, may_be_skipped: bool) -> None:
    """Where a number is compared with NE, one that is never met would mean that the loop never ends."""
    module, plain = program(COUNTED.replace("DIRECTION", direction))
    short = [one for one in directed_sets(module, plain, 0) if not one.name.startswith("long loop")]
    counts = {int(np.asarray(one.values[1])) for one in short}
    assert (0 in counts) is may_be_skipped
    assert (min(counts) < 0) is may_be_skipped
    assert max(counts) == 256


BRANCHES = """HloModule branches
twice { x = f32[3] parameter(0) ROOT r = f32[3] add(x, x) }
square { x = f32[3] parameter(0) ROOT r = f32[3] multiply(x, x) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(i, x, x), branch_computations={twice, square}
}"""


def test_every_branch_meets_nan() -> None:
    module, plain = program(BRANCHES)
    sets = [one for one in directed_sets(module, plain, 0) if one.name.endswith("and NaN")]
    assert {int(np.asarray(one.values[0])) for one in sets} >= {0, 1}
    for one in sets:
        assert one.odd == ("NaN",)
        assert np.isnan(one.values[1]).any()
    within = directed_sets(module, plain, 0, (-1.0, 1.0))
    assert not [one for one in within if one.name.endswith("and NaN")]


def test_complex_scalars_have_extreme_parts() -> None:
    """A scalar cannot be looked at as two numbers; the sets change its parts all the same."""
    module = parse_module("HloModule m\nENTRY e {\n  x = c64[] parameter(0)\n  ROOT y = c64[] negate(x)\n}")
    (plain,) = generate_inputs(module).values
    changed = [one.values[0] for one in directed_sets(module, (plain,), 0) if "NaN" in one.odd]
    assert changed
    assert all(np.shape(value) == () and np.isnan(value) for value in changed)


MAXIMUM = """HloModule maximum
max { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] maximum(p, q) }
ENTRY e {
  x = f32[4] parameter(0)
  limit = f32[] parameter(1)
  low = f32[] constant(INIT)
  m = f32[] reduce(x, low), dimensions={0}, to_apply=max
  ROOT p = pred[] compare(m, limit), direction=GT
}"""


def test_a_maximum_of_negative_numbers_meets_a_limit_below_zero() -> None:
    """Else it does not show that it starts at 0."""
    right, wrong = (parse_module(MAXIMUM.replace("INIT", init)) for init in ("-inf", "0"))
    plain: tuple[Any, ...] = tuple(generate_inputs(right, 0).values)
    runs = [NumpyBackend().compile(module) for module in (right, wrong)]
    shown = [
        one.name
        for one in directed_sets(right, plain, 0)
        if not np.array_equal(*(np.asarray(run.run(one.values)) for run in runs))
    ]
    assert any(name.startswith("all negative") for name in shown)


def test_a_scalar_may_be_nan() -> None:
    module = parse_module("HloModule m ENTRY e { x = f32[] parameter(0) ROOT r = f32[] negate(x) }")
    plain: tuple[Any, ...] = tuple(generate_inputs(module, 0).values)
    marked = [one for one in directed_sets(module, plain, 0) if one.name == "NaN in %x"]
    assert [bool(np.isnan(one.values[0])) for one in marked] == [True]  # type: ignore[arg-type, call-overload]


def test_limits_that_no_integer_of_numpys_holds() -> None:
    """The end of a clamp is solved for through a conversion to whole numbers: 5e36 is one."""
    text = """f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e {
      x = f32[3] parameter(0)
      n = s32[3] convert(x)
      y = f32[3] convert(n)
      lo = f32[] constant(-5.31691167e+36)
      hi = f32[] constant(5.31691167e+36)
      c = f32[3] clamp(lo, y, hi)
      z = f32[] constant(0)
      ROOT r = f32[] reduce(c, z), dimensions={0}, to_apply=f
    }"""
    module, plain = program(text)
    for one in solved_sets(module, plain, 0):
        assert np.isfinite(one.values[0]).all()
