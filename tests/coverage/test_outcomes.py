"""Outcomes of every kind of decision, on values for which they follow from the definition of the opcode.

XLA: operation_semantics.md. The expected outcomes are stated by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.analysis.decisions import Kind
from hlotool.coverage.observer import observe
from hlotool.parse.reader import parse_module

NAN, INF = float("nan"), float("inf")


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def s32(*values: int) -> Any:
    return np.array(values, np.int32)


def pred(*values: bool) -> Any:
    return np.array(values, np.bool_)


def outcomes(text: str, arguments: Sequence[Any], kind: Kind) -> list[set[str]]:
    """What occurred, of the decisions of a kind."""
    module = parse_module(f"HloModule m\n{text}")
    coverage = observe(module, arguments)
    return [set(coverage.outcomes(d)) for d in coverage.program.decisions if d.kind is kind]


def of_entry(body: str, arguments: Sequence[Any], kind: Kind) -> list[set[str]]:
    return outcomes(f"ENTRY e {{\n{body}\n}}", arguments, kind)


TWO_F32 = "a = f32[{0}] parameter(0)\nb = f32[{0}] parameter(1)\n"
TWO_S32 = "a = s32[{0}] parameter(0)\nb = s32[{0}] parameter(1)\n"

COMPARISONS = [
    ("LT", f32(1, 2), f32(2, 2), {"less", "equal"}),
    ("GT", f32(1, NAN), f32(0, 2), {"greater", "unordered"}),
    ("EQ", f32(1, 2), f32(1, 3), {"equal", "unequal"}),
]


@pytest.mark.parametrize(("direction", "a", "b", "expected"), COMPARISONS)
def test_compare(direction: str, a: Any, b: Any, expected: set[str]) -> None:
    body = f"{TWO_F32.format(2)} ROOT c = pred[2] compare(a, b), direction={direction}"
    assert of_entry(body, [a, b], Kind.COMPARISON) == [expected]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(1.0, 2.0, {"less"}), (2.0, 2.0, {"equal"}), (NAN, 2.0, {"unordered"})],
)
def test_compare_scalars(a: float, b: float, expected: set[str]) -> None:
    body = f"{TWO_F32.format('')} ROOT c = pred[] compare(a, b), direction=LE"
    assert of_entry(body, [np.float32(a), np.float32(b)], Kind.COMPARISON) == [expected]


@pytest.mark.parametrize(
    ("p", "expected"),
    [([True, False], {"true", "false"}), ([False, False], {"false"}), ([True, True], {"true"})],
)
def test_select(p: list[bool], expected: set[str]) -> None:
    body = f"p = pred[2] parameter(2)\n{TWO_F32.format(2)} ROOT s = f32[2] select(p, a, b)"
    assert of_entry(body, [f32(1, 2), f32(3, 4), pred(*p)], Kind.SELECTION) == [expected]


@pytest.mark.parametrize(
    ("x", "expected"),
    [([-1, 0.5], {"below", "inside"}), ([2, 1], {"above", "inside"}), ([NAN, 2], {"NaN", "above"})],
)
def test_clamp(x: list[float], expected: set[str]) -> None:
    body = """x = f32[2] parameter(0) zero = f32[] constant(0) one = f32[] constant(1)
      ROOT c = f32[2] clamp(zero, x, one)"""
    assert of_entry(body, [f32(*x)], Kind.CLAMPING) == [expected]


@pytest.mark.parametrize(
    ("index", "expected"),
    [(0, {"first"}), (1, {"inner"}), (2, {"last"}), (3, {"above"}), (-1, {"below"})],
)
def test_dynamic_slice(index: int, expected: set[str]) -> None:
    # A window of 2 in 4 elements starts at 0, 1 or 2; the second dimension is taken whole.
    body = """x = f32[4,3] parameter(0) i = s32[] parameter(1) z = s32[] constant(0)
      ROOT d = f32[2,3] dynamic-slice(x, i, z), dynamic_slice_sizes={2,3}"""
    arguments = [np.zeros((4, 3), np.float32), np.int32(index)]
    assert of_entry(body, arguments, Kind.START_INDEX) == [expected]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [([0, 1], {"first", "inner"}), ([4, 2], {"last", "inner"}), ([5, -3], {"above", "below"})],
)
def test_gather(indices: list[int], expected: set[str]) -> None:
    body = """x = f32[5,2] parameter(0) i = s32[2,1] parameter(1)
      ROOT g = f32[2,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,2}"""
    arguments = [np.zeros((5, 2), np.float32), s32(*indices).reshape(2, 1)]
    assert of_entry(body, arguments, Kind.START_INDEX) == [expected]


@pytest.mark.parametrize(("indices", "expected"), [([0, 1, 0], {"repeated"}), ([2, 1, 0], {"distinct"})])
def test_scatter(indices: list[int], expected: set[str]) -> None:
    text = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[5] parameter(0) i = s32[3] parameter(1) u = f32[3] parameter(2)
      ROOT g = f32[5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"""
    arguments = [f32(0, 0, 0, 0, 0), s32(*indices), f32(1, 2, 3)]
    assert outcomes(text, arguments, Kind.OVERLAP) == [expected]


LOOP = """
body { s = s32[] parameter(0) one = s32[] constant(1) ROOT n = s32[] subtract(s, one) }
cond { s = s32[] parameter(0) zero = s32[] constant(0) ROOT c = pred[] compare(s, zero), direction=GT }
ENTRY e { n = s32[] parameter(0) ROOT w = s32[] while(n), condition=cond, body=body }
"""


@pytest.mark.parametrize(
    ("count", "expected"), [(0, {"none"}), (1, {"one"}), (2, {"several"}), (9, {"several"})]
)
def test_while(count: int, expected: set[str]) -> None:
    assert outcomes(LOOP, [np.int32(count)], Kind.TRIP_COUNT) == [expected]


BRANCHES = """
one { a = f32[] parameter(0) ROOT n = f32[] negate(a) }
two { a = f32[] parameter(0) ROOT n = f32[] abs(a) }
ENTRY e { i = s32[] parameter(0) x = f32[] parameter(1)
  ROOT c = f32[] conditional(i, x, x), branch_computations={one, two} }
"""


@pytest.mark.parametrize(
    ("index", "expected"),
    [(0, {"branch 0"}), (1, {"branch 1"}), (2, {"out of range"}), (-1, {"out of range"})],
)
def test_conditional(index: int, expected: set[str]) -> None:
    assert outcomes(BRANCHES, [np.int32(index), np.float32(1)], Kind.BRANCH) == [expected]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([7, -7], [2, 2], {"+/+", "-/+"}),
        ([7, -7], [-2, -2], {"+/-", "-/-"}),
        ([6, 5], [-3, 0], {"exact", "by zero"}),
        ([-(2**31), 1], [-1, 2], {"exact", "overflow", "+/+"}),
    ],
)
def test_integer_division(a: list[int], b: list[int], expected: set[str]) -> None:
    body = f"{TWO_S32.format(2)} ROOT r = s32[2] remainder(a, b)"
    assert of_entry(body, [s32(*a), s32(*b)], Kind.DIVISION) == [expected]


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("add", [2**31 - 1, 0], [0, 1], {"fits"}),
        ("add", [2**31 - 1, 0], [1, 1], {"fits", "wraps"}),
        ("subtract", [-(2**31), 0], [1, 1], {"fits", "wraps"}),
        ("multiply", [2**16, 1], [2**15, 1], {"fits", "wraps"}),
    ],
)
def test_integer_overflow(opcode: str, a: list[int], b: list[int], expected: set[str]) -> None:
    body = f"{TWO_S32.format(2)} ROOT r = s32[2] {opcode}(a, b)"
    assert of_entry(body, [s32(*a), s32(*b)], Kind.OVERFLOW) == [expected]


@pytest.mark.parametrize(("keys", "expected"), [([3, 1, 2], {"distinct"}), ([3, 1, 3], {"distinct", "ties"})])
def test_sort(keys: list[float], expected: set[str]) -> None:
    text = """
    less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
    ENTRY e { x = f32[3] parameter(0) ROOT s = f32[3] sort(x), dimensions={0}, to_apply=less }"""
    assert outcomes(text, [f32(*keys)], Kind.ORDER) == [expected]


def test_four_bits() -> None:
    """Numbers in dtypes that NumPy does not calculate with."""
    body = "a = s4[2] parameter(0)\nb = s4[2] parameter(1)\n ROOT c = s4[2] add(a, b)"
    four = [np.array(v, ml_dtypes.int4) for v in ([7, -8], [1, 1])]
    assert of_entry(body, four, Kind.OVERFLOW) == [{"fits", "wraps"}]
