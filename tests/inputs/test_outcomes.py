"""Outcomes of every kind of decision, on values for which they follow from the definition of the opcode.

XLA: operation_semantics.md. The expected outcomes are stated by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.facts.decisions import Kind
from hlotool.inputs.coverage.observer import observe
from hlotool.parser.reader import parse_module

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


@pytest.mark.parametrize(
    ("indices", "expected"),
    [([0, 1, 0], {"repeated", "distinct"}), ([2, 2, 2], {"repeated"}), ([2, 1, 7], {"distinct"})],
)
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


ELEMENTWISE = [
    ("ROOT m = f32[2] maximum(a, b)", f32(1, 2), f32(2, 2), Kind.EXTREMUM, {"second larger"}),
    ("ROOT m = f32[2] minimum(a, b)", f32(3, NAN), f32(2, 2), Kind.EXTREMUM, {"first larger", "NaN"}),
    ("ROOT s = f32[2] abs(a)", f32(-1, -0.0), f32(0, 0), Kind.SIGN, {"negative", "not negative"}),
    ("ROOT s = pred[2] is-finite(a)", f32(INF, 1), f32(0, 0), Kind.FINITENESS, {"infinite", "finite"}),
    # s8 holds -128 … 127; what lies less than 1 outside is cut to that.
    ("ROOT c = s8[2] convert(a)", f32(127.5, -3), f32(0, 0), Kind.CONVERSION, {"positive fraction", "exact"}),
    (
        "ROOT c = s8[2] convert(a)",
        f32(128, -1.5),
        f32(0, 0),
        Kind.CONVERSION,
        {"too large", "negative fraction"},
    ),
    ("ROOT c = u8[2] convert(a)", f32(-1, 255.5), f32(0, 0), Kind.CONVERSION, {"too small", "fraction"}),
    ("ROOT c = f16[2] convert(a)", f32(1e6, 1), f32(0, 0), Kind.CONVERSION, {"overflow", "fits"}),
    ("ROOT c = pred[2] convert(a)", f32(0, 3), f32(0, 0), Kind.CONVERSION, {"zero", "not zero"}),
]


@pytest.mark.parametrize(("root", "a", "b", "kind", "expected"), ELEMENTWISE)
def test_elementwise(root: str, a: Any, b: Any, kind: Kind, expected: set[str]) -> None:
    assert of_entry(f"{TWO_F32.format(2)} {root}", [a, b], kind) == [expected]


INTEGERS = [
    ("negate(a)", s32(-(2**31), 1), s32(0, 0), Kind.OVERFLOW, {"fits", "wraps"}),
    ("abs(a)", s32(-5, 1), s32(0, 0), Kind.OVERFLOW, {"fits"}),
    ("shift-left(a, b)", s32(1, 1), s32(0, 31), Kind.SHIFT, {"zero", "in range"}),
    ("shift-right-logical(a, b)", s32(1, 1), s32(32, -1), Kind.SHIFT, {"too large"}),
    ("shift-right-arithmetic(a, b)", s32(-1, 1), s32(1, 1), Kind.SIGN, {"negative", "not negative"}),
    ("subtract(a, b)", s32(5, 6), s32(7, -8), Kind.OVERFLOW, {"fits"}),
]


@pytest.mark.parametrize(("root", "a", "b", "kind", "expected"), INTEGERS)
def test_integers(root: str, a: Any, b: Any, kind: Kind, expected: set[str]) -> None:
    assert of_entry(f"{TWO_S32.format(2)} ROOT r = s32[2] {root}", [a, b], kind) == [expected]


@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        ("s8", [127, -128], {"fits"}),
        ("s8", [128, 0], {"fits", "wraps"}),
        ("s64", [-1, 1], {"negative", "not negative"}),
    ],
)
def test_convert_integers(target: str, values: list[int], expected: set[str]) -> None:
    body = f"a = s32[2] parameter(0) ROOT c = {target}[2] convert(a)"
    assert of_entry(body, [s32(*values)], Kind.CONVERSION) == [expected]


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("and", [True, True], [True, False], {"both", "only the first"}),
        ("and", [False, False], [True, False], {"only the second"}),
        ("or", [False, True], [False, False], {"neither", "only the first"}),
        ("or", [True, False], [True, True], {"only the second"}),
    ],
)
def test_logic(opcode: str, a: list[bool], b: list[bool], expected: set[str]) -> None:
    body = f"a = pred[2] parameter(0) b = pred[2] parameter(1) ROOT r = pred[2] {opcode}(a, b)"
    assert of_entry(body, [pred(*a), pred(*b)], Kind.LOGIC) == [expected]


@pytest.mark.parametrize(
    ("opcode", "rows", "expected"),
    [
        ("and", [[True, True], [True, False]], {"all", "mixed"}),
        ("or", [[False, False], [True, True]], {"none"}),
    ],
)
def test_all_or_any(opcode: str, rows: list[list[bool]], expected: set[str]) -> None:
    text = f"""f {{ a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] {opcode}(a, b) }}
      ENTRY e {{ x = pred[2,2] parameter(0) i = pred[] constant({"true" if opcode == "and" else "false"})
        ROOT r = pred[2] reduce(x, i), dimensions={{1}}, to_apply=f }}"""
    assert outcomes(text, [np.array(rows)], Kind.ALL_OR_ANY) == [expected]


@pytest.mark.parametrize(
    ("values", "expected"),
    # The sum of the last two is NaN, they are not.
    [([1, 2], {"numbers"}), ([1, NAN], {"NaN"}), ([INF, -INF], {"numbers"})],
)
def test_reduce_over_nan(values: list[float], expected: set[str]) -> None:
    text = """f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
      ENTRY e { x = f32[2] parameter(0) i = f32[] constant(0)
        ROOT r = f32[] reduce(x, i), dimensions={0}, to_apply=f }"""
    assert outcomes(text, [f32(*values)], Kind.NAN) == [expected]


@pytest.mark.parametrize(("values", "expected"), [([1, 3, 2], {"distinct"}), ([3, 1, 3], {"ties"})])
def test_argmax(values: list[float], expected: set[str]) -> None:
    text = """f { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
        p = pred[] compare(a, b), direction=GE v = f32[] select(p, a, b) k = s32[] select(p, i, j)
        ROOT r = (f32[], s32[]) tuple(v, k) }
      ENTRY e { x = f32[3] parameter(0) n = s32[3] iota(), iota_dimension=0
        low = f32[] constant(-inf) z = s32[] constant(0)
        ROOT r = (f32[], s32[]) reduce(x, n, low, z), dimensions={0}, to_apply=f }"""
    assert outcomes(text, [f32(*values)], Kind.TIES) == [expected]


@pytest.mark.parametrize(("sizes", "expected"), [([2, 2], {"not empty"}), ([0, 4], {"empty", "not empty"})])
def test_ragged_groups(sizes: list[int], expected: set[str]) -> None:
    body = """a = f32[4,3] parameter(0) b = f32[2,3,5] parameter(1) g = s32[2] parameter(2)
      ROOT r = f32[4,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1},
        lhs_ragged_dims={0}, rhs_group_dims={0}"""
    arguments = [np.zeros((4, 3), np.float32), np.zeros((2, 3, 5), np.float32), s32(*sizes)]
    assert of_entry(body, arguments, Kind.GROUPS) == [expected]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([100, 27], {"fits"}),
        ([100, 28], {"fits", "wraps"}),
        # Parts of the sum are far out of range, the sum is 0.
        ([1] * 10_000 + [-1] * 10_000, {"fits"}),
    ],
)
def test_sums_of_integers(values: list[int], expected: set[str]) -> None:
    text = f"""f {{ a = s8[] parameter(0) b = s8[] parameter(1) ROOT r = s8[] add(a, b) }}
      ENTRY e {{ x = s8[{len(values)}] parameter(0) i = s8[] constant(0)
        ROOT r = s8[] reduce(x, i), dimensions={{0}}, to_apply=f }}"""
    assert outcomes(text, [np.array(values, np.int8)], Kind.OVERFLOW) == [expected]


@pytest.mark.parametrize(("values", "expected"), [([3, 1, 3], {"ties"}), ([1, 1, 2], {"distinct"})])
def test_topk(values: list[float], expected: set[str]) -> None:
    body = "x = f32[3] parameter(0) ROOT t = (f32[2], s32[2]) topk(x), k=2, largest=true"
    assert of_entry(body, [f32(*values)], Kind.ORDER) == [expected]


def test_windows_over_nan() -> None:
    text = """f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
      ENTRY e { x = f32[4] parameter(0) i = f32[] constant(-inf)
        ROOT r = f32[2] reduce-window(x, i), window={size=2 stride=2}, to_apply=f }"""
    assert outcomes(text, [f32(1, 2, NAN, 3)], Kind.NAN) == [{"NaN"}]


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e4m3fn", "u64", "s8", "s4"])
def test_scalars_of_every_width(dtype: str) -> None:
    body = f"a = {dtype}[] parameter(0) ROOT p = pred[] compare(a, a), direction=LT"
    scalar = {"bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "s4": ml_dtypes.int4}
    numpy_types = {"f16": np.float16, "u64": np.uint64, "s8": np.int8}
    value = (scalar | numpy_types)[dtype](3)
    assert of_entry(body, [value], Kind.COMPARISON) == [{"equal"}]
    assert of_entry(body, [np.array(value)], Kind.COMPARISON) == [{"equal"}]
