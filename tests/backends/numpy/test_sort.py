"""sort and topk: keys, comparators of any kind, stability, order of special values."""

from __future__ import annotations

from functools import cmp_to_key

import numpy as np
import pytest
from support.differential import Array, check, parse, run, slow

from hlotool.backends.numpy.comparators import sort_order
from hlotool.facts.scalar_form import scalar_form
from hlotool.lab.conformance.generators.cases import random_array

SPECIAL = [1.0, -0.0, np.nan, 0.0, -np.inf, 0.001, -np.nan, np.inf, -1.0, 0.0, -0.0, 1.0]


def sort_text(kinds: list[str], body: str, sizes: str, axis: int) -> str:
    """A stable sort of one operand per kind; body defines `r` from p0, p1 (first operand), p2, p3, …"""
    parameters = "\n  ".join(f"p{i} = {kinds[i // 2]}[] parameter({i})" for i in range(2 * len(kinds)))
    operands = "\n  ".join(f"x{i} = {kind}[{sizes}] parameter({i})" for i, kind in enumerate(kinds))
    types = [f"{kind}[{sizes}]" for kind in kinds]
    result = types[0] if len(types) == 1 else f"({', '.join(types)})"
    names = ", ".join(f"x{i}" for i in range(len(kinds)))
    return f"""HloModule sorting
less {{
  {parameters}
  {body}
}}
ENTRY e {{
  {operands}
  ROOT s = {result} sort({names}), dimensions={{{axis}}}, is_stable=true, to_apply=less
}}"""


def compare(direction: str, total: bool = False) -> str:
    suffix = ", type=TOTALORDER" if total else ""
    return f"ROOT r = pred[] compare(p0, p1), direction={direction}{suffix}"


CANONICAL = """minus = f32[] constant(nan)
  zero = f32[] constant(0)
  n0 = pred[] compare(p0, p0), direction=NE
  z0 = pred[] compare(p0, zero), direction=EQ
  c0 = f32[] select(z0, zero, p0)
  k0 = f32[] select(n0, minus, c0)
  n1 = pred[] compare(p1, p1), direction=NE
  z1 = pred[] compare(p1, zero), direction=EQ
  c1 = f32[] select(z1, zero, p1)
  k1 = f32[] select(n1, minus, c1)
"""

LEXICOGRAPHIC = (
    CANONICAL
    + """  lt = pred[] compare(k0, k1), direction=LT, type=TOTALORDER
  eq = pred[] compare(k0, k1), direction=EQ, type=TOTALORDER
  lt2 = pred[] compare(p2, p3), direction=LT
  both = pred[] and(eq, lt2)
  ROOT r = pred[] or(lt, both)"""
)

#: By the last three bits of the key, then odd payloads first: no pattern that is recognised.
STRANGE = """seven = s32[] constant(7)
  one = s32[] constant(1)
  a = s32[] and(p0, seven)
  b = s32[] and(p1, seven)
  less = pred[] compare(a, b), direction=LT
  same = pred[] compare(a, b), direction=EQ
  odd0 = s32[] and(p2, one)
  odd1 = s32[] and(p3, one)
  first = pred[] compare(odd0, odd1), direction=GT
  tie = pred[] and(same, first)
  never = pred[] compare(p0, p0), direction=NE
  more = pred[] or(tie, never)
  ROOT r = pred[] or(less, more)"""


@pytest.mark.xla
@pytest.mark.parametrize(
    "kind", ["pred", "s4", "u8", "s32", "f64", *slow("u4", "s8", "u32", "s64", "u64", "f16")]
)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_keys_of_every_type(kind: str, direction: str) -> None:
    check(
        sort_text([kind], compare(direction), "4,33", 1),
        [random_array(np.random.default_rng(1), kind, (4, 33))],
    )


@pytest.mark.xla
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_payload_follows_in_stable_order(axis: int, direction: str) -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 4, (5, 6, 7)).astype(np.float32)
    payload = np.arange(keys.size, dtype=np.int32).reshape(keys.shape)
    check(sort_text(["f32", "s32"], compare(direction), "5,6,7", axis), [keys, payload])


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_total_order(kind: str, direction: str) -> None:
    values = np.array(SPECIAL, np.float64).astype(random_array(np.random.default_rng(0), kind, ()).dtype)
    payload = np.arange(len(values), dtype=np.int32)
    (_, order) = check(sort_text([kind, "s32"], compare(direction, total=True), "12", 0), [values, payload])
    if direction == "LT":
        assert order.tolist() == [6, 4, 8, 1, 10, 3, 9, 5, 0, 11, 7, 2]


@pytest.mark.xla
def test_canonical_keys_of_jax() -> None:
    body = CANONICAL + "  ROOT r = pred[] compare(k0, k1), direction=LT, type=TOTALORDER"
    check(
        sort_text(["f32", "s32"], body, "12", 0),
        [np.array(SPECIAL, np.float32), np.arange(12, dtype=np.int32)],
    )


@pytest.mark.xla
def test_two_keys() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.choice(np.array(SPECIAL, np.float32), 200), rng.integers(0, 5, 200).astype(np.int32)
    check(
        sort_text(["f32", "s32", "s32"], LEXICOGRAPHIC, "200", 0),
        [first, second, np.arange(200, dtype=np.int32)],
    )


#: Orders by keys, written in ways that no frontend promises: operand types, body of the comparator.
WRITTEN_OTHERWISE = {
    "negated": (
        ["s32", "s32"],
        """ge = pred[] compare(p0, p1), direction=GE
  ROOT r = pred[] not(ge)""",
    ),
    "differing first": (
        ["s32", "s32", "s32"],
        """n0 = pred[] compare(p0, p1), direction=NE
  n1 = pred[] compare(p2, p3), direction=NE
  l0 = pred[] compare(p0, p1), direction=LT
  g1 = pred[] compare(p3, p2), direction=LT
  l2 = pred[] compare(p4, p5), direction=LT
  rest = pred[] select(n1, g1, l2)
  ROOT r = pred[] select(n0, l0, rest)""",
    ),
    "both bounds": (
        ["s32", "s32"],
        """le = pred[] compare(p0, p1), direction=LE
  ge = pred[] compare(p0, p1), direction=GE
  l1 = pred[] compare(p2, p3), direction=LT
  not_ge = pred[] not(ge)
  tie = pred[] and(le, l1)
  ROOT r = pred[] or(tie, not_ge)""",
    ),
    "properties": (
        ["s32", "s32"],
        """zero = s32[] constant(0)
  a = pred[] compare(p0, zero), direction=LT
  b = pred[] compare(p1, zero), direction=LT
  same = pred[] compare(a, b), direction=EQ
  l1 = pred[] compare(p2, p3), direction=LT
  not_b = pred[] not(b)
  first = pred[] and(a, not_b)
  tie = pred[] and(same, l1)
  ROOT r = pred[] or(first, tie)""",
    ),
    "NaN by itself": (
        ["f32", "s32"],
        """na = pred[] compare(p0, p0), direction=NE
  nb = pred[] compare(p1, p1), direction=NE
  lt = pred[] compare(p0, p1), direction=LT
  no = pred[] constant(false)
  any = pred[] or(nb, lt)
  ROOT r = pred[] select(na, no, any)""",
    ),
    "two orders of floats": (
        ["f32", "s32"],
        """le = pred[] compare(p0, p1), direction=LT
  eq = pred[] compare(p0, p1), direction=EQ
  total = pred[] compare(p0, p1), direction=LT, type=TOTALORDER
  tie = pred[] and(eq, total)
  ROOT r = pred[] or(le, tie)""",
    ),
    "tie in total order, else not": (
        ["bf16", "s32"],
        """eq = pred[] compare(p0, p1), direction=EQ, type=TOTALORDER
  l1 = pred[] compare(p2, p3), direction=LT
  gt = pred[] compare(p0, p1), direction=GT
  ROOT r = pred[] select(eq, l1, gt)""",
    ),
    "absolute values, converted": (
        ["bf16", "s32"],
        """a = bf16[] abs(p0)
  b = bf16[] abs(p1)
  x = f32[] convert(a)
  y = f32[] convert(b)
  ROOT r = pred[] compare(x, y), direction=GT""",
    ),
    "a difference": (
        ["s32", "s32"],
        """zero = s32[] constant(0)
  d = s32[] subtract(p0, p1)
  ROOT r = pred[] compare(d, zero), direction=LT""",
    ),
}


@pytest.mark.xla
@pytest.mark.parametrize("name", WRITTEN_OTHERWISE)
def test_comparators_written_otherwise(name: str) -> None:
    kinds, body = WRITTEN_OTHERWISE[name]
    rng = np.random.default_rng(8)
    operands = [rng.integers(-3, 4, 90).astype(random_array(rng, kind, ()).dtype) for kind in kinds]
    if name == "NaN by itself":
        operands[0][rng.random(90) < 0.3] = np.nan
    if name == "two orders of floats":
        operands[0][rng.random(90) < 0.3] = -0.0
    check(sort_text([*kinds, "s32"], body, "90", 0), [*operands, np.arange(90, dtype=np.int32)])


@pytest.mark.parametrize("name", WRITTEN_OTHERWISE)
def test_their_keys_are_found(name: str) -> None:
    kinds, body = WRITTEN_OTHERWISE[name]
    form = scalar_form(parse(sort_text(kinds, body, "5", 0)).computations[0])
    assert form is not None
    found = sort_order(form)
    if name == "a difference":
        assert found is None  # it wraps, and is no order then
        return
    assert found is not None
    assert found.certain == (name not in ("NaN by itself", "tie in total order, else not"))


def test_an_order_that_the_values_refute() -> None:
    # Where -0 and +0 meet, ties in total order are no ties of the comparison: no strict weak order.
    kinds, body = WRITTEN_OTHERWISE["tie in total order, else not"]
    rng = np.random.default_rng(9)
    values = rng.choice(np.array([0.0, -0.0, 1.0, np.nan]), 200).astype(random_array(rng, "bf16", ()).dtype)
    payload = rng.permutation(200).astype(np.int32)
    result, order = run(sort_text(kinds, body, "200", 0), [values, payload])
    assert sorted(order.tolist()) == list(range(200))
    assert result.view(np.uint16).tolist() == values[np.argsort(payload)][order].view(np.uint16).tolist()


@pytest.mark.xla
@pytest.mark.parametrize("length", [0, 2, 17, 100, *slow(1, 3, 64)])
def test_any_comparator(length: int) -> None:
    rng = np.random.default_rng(4)
    keys, payload = (rng.integers(0, 99, (3, length)).astype(np.int32) for _ in range(2))
    check(sort_text(["s32", "s32"], STRANGE, f"3,{length}", 1), [keys, payload])


def test_any_comparator_against_python() -> None:
    rng = np.random.default_rng(5)
    keys, payload = (rng.integers(0, 99, 3000).astype(np.int32) for _ in range(2))

    def before(a: tuple[int, int], b: tuple[int, int]) -> int:
        left, right = ((k & 7, -(p & 1)) for k, p in (a, b))
        return (left > right) - (left < right)

    expected = sorted(zip(keys.tolist(), payload.tolist()), key=cmp_to_key(before))
    sorted_keys, sorted_payload = run(sort_text(["s32", "s32"], STRANGE, "3000", 0), [keys, payload])
    assert list(zip(sorted_keys.tolist(), sorted_payload.tolist())) == expected


@pytest.mark.parametrize("direction", ["LT", "GT", "LE", "NE"])
def test_senseless_comparators_still_permute(direction: str) -> None:
    # No strict weak orders: XLA promises no order, but nothing may be lost.
    rng = np.random.default_rng(6)
    values = np.where(rng.random(100) < 0.3, np.nan, rng.integers(0, 9, 100)).astype(np.float32)
    payload = np.arange(100, dtype=np.int32)
    result, order = run(sort_text(["f32", "s32"], compare(direction), "100", 0), [values, payload])
    assert sorted(order.tolist()) == list(range(100))
    np.testing.assert_array_equal(values[order], result)
    if direction in ("LT", "GT"):
        numbers = result[~np.isnan(result)]
        np.testing.assert_array_equal(numbers, np.sort(numbers)[:: 1 if direction == "LT" else -1])


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_plain_comparison_takes_both_zeros_for_equal(direction: str) -> None:
    values = np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0], np.float32)
    _, order = run(
        sort_text(["f32", "s32"], compare(direction), "6", 0), [values, np.arange(6, dtype=np.int32)]
    )
    assert [i for i in order.tolist() if i < 4] == [0, 1, 2, 3]


def test_comparator_that_reads_a_constant_only() -> None:
    text = sort_text(["s32"], "ROOT r = pred[] constant(false)", "4", 0)
    (result,) = run(text, [np.array([3, 1, 2, 0], np.int32)])
    assert result.tolist() == [3, 1, 2, 0]


def topk_text(kind: str, k: int, largest: bool) -> str:
    return f"""HloModule top
ENTRY e {{
  x = {kind}[3,20] parameter(0)
  ROOT t = ({kind}[3,{k}], s32[3,{k}]) topk(x), k={k}, largest={str(largest).lower()}
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["f32", "bf16", "s32", *slow("u8", "f64")])
@pytest.mark.parametrize("k", [5, *slow(1, 20)])
def test_topk(kind: str, k: int) -> None:
    rng = np.random.default_rng(7)
    dtype = random_array(rng, kind, ()).dtype
    check(topk_text(kind, k, True), [rng.integers(0, 9, (3, 20)).astype(dtype)])


@pytest.mark.xla
def test_topk_of_special_values() -> None:
    x = np.resize(np.array(SPECIAL, np.float32), (3, 20))
    check(topk_text("f32", 20, True), [x])


def test_smallest() -> None:
    x: Array = np.resize(np.array([3, 1, 2, 1], np.int32), (3, 20))
    values, indices = run(topk_text("s32", 6, False), [x])
    assert values[0].tolist() == [1] * 6
    assert indices[0].tolist() == [1, 3, 5, 7, 9, 11]
