"""reduce: recognised and general reducers, every element type, corners of the semantics."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.differential import check, run, slow

import hlotool
from hlotool.backends.numpy.kernels import reduce
from hlotool.lab.conformance.generators.cases import random_array
from hlotool.parser.reader import parse_module

INTEGERS = ("s4", "u8", "s32", "u64", *slow("u4", "s8", "s16", "u16", "u32", "s64"))
FLOATS = ("f16", "bf16", "f32", "f64")


def reduce_text(kind: str, body: str, sizes: str, dims: str, result: str) -> str:
    """A reduction of one array by a computation of a and b."""
    return f"""HloModule reduce
f {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  {body}
}}
ENTRY e {{
  x = {kind}[{sizes}] parameter(0)
  init = {kind}[] parameter(1)
  ROOT r = {kind}[{result}] reduce(x, init), dimensions={{{dims}}}, to_apply=f
}}"""


def simple(kind: str, opcode: str, sizes: str = "5,7", dims: str = "1", result: str = "5") -> str:
    return reduce_text(kind, f"ROOT r = {kind}[] {opcode}(b, a)", sizes, dims, result)


ARGMAX = """HloModule argmax
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  ne = pred[] compare(a, a), direction=NE
  first = pred[] or(gt, ne)
  eq = pred[] compare(a, b), direction=EQ
  lower = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lower)
  take = pred[] or(first, tie)
  value = f32[] select(first, a, b)
  index = s32[] select(take, i, j)
  ROOT t = (f32[], s32[]) tuple(value, index)
}
ENTRY e {
  x = f32[3,50] parameter(0)
  n = s32[3,50] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(x, n, low, zero), dimensions={1}, to_apply=f
}"""


@pytest.mark.xla
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
def test_integers_wrap_as_in_xla(kind: str, opcode: str) -> None:
    rng = np.random.default_rng(1)
    check(simple(kind, opcode), [random_array(rng, kind, (5, 7)), random_array(rng, kind, ())])


@pytest.mark.xla
@pytest.mark.parametrize("opcode", ["and", "or", "xor", "maximum", "minimum", "add", "multiply"])
def test_pred(opcode: str) -> None:
    rng = np.random.default_rng(2)
    check(simple("pred", opcode), [random_array(rng, "pred", (5, 7)), np.bool_(opcode in ("and", "minimum"))])


@pytest.mark.xla
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
def test_floats(kind: str, opcode: str) -> None:
    rng = np.random.default_rng(3)
    arguments = [random_array(rng, kind, (5, 7)), random_array(rng, kind, ())]
    # 8 roundings of partial results; those of a sum stay below the sum of magnitudes, 3 times the result.
    check(simple(kind, opcode), arguments, steps=0 if opcode.startswith("m") and opcode != "multiply" else 24)


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["c64", "c128"])
@pytest.mark.parametrize("opcode", ["add", "multiply"])
def test_complex(kind: str, opcode: str) -> None:
    rng = np.random.default_rng(4)
    check(
        simple(kind, opcode),
        [random_array(rng, kind, (5, 7)), random_array(rng, kind, ())],
        steps=50,
        scale=20,
    )


@pytest.mark.xla
@pytest.mark.parametrize(
    ("dims", "result"), [("", "2,3,4"), ("0", "3,4"), ("0,2", "3"), ("2,0", "3"), ("0,1,2", "")]
)
def test_dimensions(dims: str, result: str) -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    # Over no dimensions XLA's simplifier drops the initial value, which it takes for neutral.
    check(simple("s32", "add", "2,3,4", dims, result), [x, np.int32(100 if dims else 0)])


@pytest.mark.xla
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [np.nan, 1.0], [-np.inf, -0.0]])
def test_extrema_of_zeros_and_nan(opcode: str, values: list[float]) -> None:
    x = np.resize(np.array(values, np.float32), (5, 7))
    check(simple("f32", opcode), [x, np.float32(np.inf if opcode == "minimum" else -np.inf)])


@pytest.mark.xla
def test_no_elements_give_the_initial_value() -> None:
    check(simple("f32", "maximum", "5,0"), [np.zeros((5, 0), np.float32), np.float32(-7)])


@pytest.mark.xla
def test_initial_value_takes_part_once() -> None:
    check(simple("s32", "add"), [np.ones((5, 7), np.int32), np.int32(1000)])


@pytest.mark.xla
def test_argmax_with_ties_and_nan() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 9, (3, 50)).astype(np.float32)
    x[1, 17:30:4] = np.nan
    check(ARGMAX, [x])


def test_order_is_row_major_from_the_initial_value() -> None:
    # XLA: hlo_evaluator.cc, GenerateReduceOutputElement: f(accumulator, element), init first.
    text = reduce_text("s32", "t = s32[] add(a, a)\n  ROOT r = s32[] subtract(t, b)", "2,3", "0,1", "")
    expected = 5
    for element in range(6):
        expected = 2 * expected - element
    (result,) = run(text, [np.arange(6, dtype=np.int32).reshape(2, 3), np.int32(5)])
    assert result == expected


def test_general_computation_with_a_loop_inside() -> None:
    # XLA's CPU backend dies on loops in reducers; f adds the sum of 1..b.
    text = """HloModule loop
cond {
  s = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT c = pred[] compare(n, zero), direction=GT
}
body {
  s = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] subtract(n, one)
  w = s32[] add(v, n)
  ROOT t = (s32[], s32[]) tuple(m, w)
}
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  s = (s32[], s32[]) tuple(b, a)
  w = (s32[], s32[]) while(s), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=1
}
ENTRY e {
  x = s32[3,4] parameter(0)
  init = s32[] parameter(1)
  ROOT r = s32[3] reduce(x, init), dimensions={1}, to_apply=f
}"""
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    (result,) = run(text, [x, np.int32(1)])
    np.testing.assert_array_equal(result, 1 + (x * (x + 1) // 2).sum(axis=1))


@pytest.mark.xla
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_conditional_inside(index: int) -> None:
    text = f"""HloModule branches
double {{
  p = s32[] parameter(0)
  ROOT r = s32[] add(p, p)
}}
negate {{
  p = s32[] parameter(0)
  ROOT r = s32[] negate(p)
}}
keep {{
  ROOT p = s32[] parameter(0)
}}
f {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  i = s32[] constant({index})
  c = s32[] conditional(i, b, b, b), branch_computations={{double, negate, keep}}
  positive = pred[] compare(b, i), direction=GT
  d = s32[] conditional(positive, c, b), true_computation=negate, false_computation=double
  ROOT r = s32[] add(a, d)
}}
ENTRY e {{
  x = s32[4] parameter(0)
  init = s32[] parameter(1)
  ROOT r = s32[] reduce(x, init), dimensions={{0}}, to_apply=f
}}"""
    check(text, [np.array([3, -4, 5, 0], np.int32), np.int32(1)])


@pytest.mark.xla
def test_sums_written_through_converts_and_calls() -> None:
    body = """wa = f32[] convert(a)
  wb = f32[] convert(b)
  s = f32[] add(wa, wb)
  ROOT r = bf16[] convert(s)"""
    rng = np.random.default_rng(6)
    arguments = [random_array(rng, "bf16", (5, 7)), random_array(rng, "bf16", ())]
    check(reduce_text("bf16", body, "5,7", "1", "5"), arguments, steps=24)


@pytest.mark.xla
def test_several_independent_sums_at_once() -> None:
    text = """HloModule moments
f {
  a = f32[] parameter(0)
  c = s32[] parameter(1)
  b = f32[] parameter(2)
  d = s32[] parameter(3)
  s = f32[] maximum(a, b)
  n = s32[] add(d, c)
  ROOT t = (f32[], s32[]) tuple(s, n)
}
ENTRY e {
  x = f32[4,6] parameter(0)
  n = s32[4,6] parameter(1)
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[6], s32[6]) reduce(x, n, low, zero), dimensions={0}, to_apply=f
}"""
    rng = np.random.default_rng(7)
    check(text, [random_array(rng, "f32", (4, 6)), random_array(rng, "s32", (4, 6))])


def test_f32_sums_round_once() -> None:
    x = np.full((1, 100_000), 0.1, np.float32)
    (result,) = run(simple("f32", "add", "1,100000", "1", "1"), [x, np.float32(0)])
    assert result[0] == np.float32(x.astype(np.float64).sum())


def test_dynamic_sizes_are_actual_sizes() -> None:
    text = simple("f32", "add", "5,<=7", "1", "5")
    (result,) = run(text, [np.ones((5, 3), np.float32), np.float32(0)])
    np.testing.assert_array_equal(result, np.full(5, 3, np.float32))


@pytest.mark.xla
def test_argmin_as_tensorflow_writes_it() -> None:
    # XLA: hlo/builder/lib/arithmetic.cc (CreateScalarMinMaxComputation of values and indices).
    text = """HloModule argmin
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  le = pred[] compare(a, b), direction=LE
  eq = pred[] compare(a, b), direction=EQ
  value = f32[] select(le, a, b)
  lowest = s32[] minimum(i, j)
  chosen = s32[] select(le, i, j)
  index = s32[] select(eq, lowest, chosen)
  ROOT t = (f32[], s32[]) tuple(value, index)
}
ENTRY e {
  x = f32[3,4,50] parameter(0)
  n = s32[3,4,50] parameter(1)
  high = f32[] constant(inf)
  zero = s32[] constant(0)
  ROOT r = (f32[4], s32[4]) reduce(x, n, high, zero), dimensions={0,2}, to_apply=f
}"""
    rng = np.random.default_rng(8)
    x = rng.integers(0, 5, (3, 4, 50)).astype(np.float32)
    check(text, [x, random_array(rng, "s32", (3, 4, 50))])


def test_running_moments_are_folded_in_order() -> None:
    # Neither monoid nor choice: count, mean and squared deviation of one element after the other.
    text = """HloModule welford
f {
  n = f64[] parameter(0)
  mean = f64[] parameter(1)
  m2 = f64[] parameter(2)
  one = f64[] parameter(3)
  x = f64[] parameter(4)
  unused = f64[] parameter(5)
  count = f64[] add(n, one)
  delta = f64[] subtract(x, mean)
  step = f64[] divide(delta, count)
  next = f64[] add(mean, step)
  rest = f64[] subtract(x, next)
  square = f64[] multiply(delta, rest)
  sum = f64[] add(m2, square)
  ROOT t = (f64[], f64[], f64[]) tuple(count, next, sum)
}
ENTRY e {
  ones = f64[100,3] parameter(0)
  x = f64[100,3] parameter(1)
  z = f64[] constant(0)
  ROOT r = (f64[3], f64[3], f64[3]) reduce(ones, x, x, z, z, z), dimensions={0}, to_apply=f
}"""
    x = np.random.default_rng(9).standard_normal((100, 3))
    count, mean, squares = run(text, [np.ones_like(x), x])
    np.testing.assert_array_equal(count, [100, 100, 100])
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, 100 * x.var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "s32", "u8", "pred"])
@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("columns", [1, 2, 3, 7])
def test_short_last_dimensions(kind: str, opcode: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Column by column gives the bits of NumPy's own reduction."""
    text = simple(kind, opcode, f"40,30,{columns}", "2", "40,30")
    rng = np.random.default_rng(0)
    arguments = [random_array(rng, kind, (40, 30, columns)), random_array(rng, kind, ())]
    monkeypatch.setattr(reduce, "_LARGE", 1)
    (by_columns,) = run(text, arguments)
    monkeypatch.setattr(reduce, "_LARGE", 1 << 60)
    (at_once,) = run(text, arguments)
    assert by_columns.tobytes() == at_once.tobytes()


@pytest.mark.parametrize(
    ("operand", "start", "result"),
    [("f32", "f32", "bf16"), ("bf16", "bf16", "f32"), ("bf16", "f32", "f32"), ("f32", "f32", "f16")],
)
@pytest.mark.parametrize("opcode", ["reduce", "reduce-window"])
def test_arrays_of_other_types_than_the_function(operand: str, start: str, result: str, opcode: str) -> None:
    """As libtpu 0.0.42 writes it: the addition is in f32, what it returns is rounded once."""
    where = "dimensions={0}" if opcode == "reduce" else "window={size=4x1}"
    dims = "3" if opcode == "reduce" else "1,3"
    module = parse_module(
        f"""HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{ x = {operand}[4,3] parameter(0) z = {start}[] constant(0.5)
  ROOT r = {result}[{dims}] {opcode}(x, z), {where}, to_apply=add }}"""
    )
    kinds = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
    x = (np.arange(12).reshape(4, 3) + 0.1).astype(kinds[operand])
    [found] = hlotool.run(module, [x])
    assert found.dtype == kinds[result]
    expected = (x.astype(np.float32).sum(0) + np.float32(0.5)).astype(kinds[result])
    np.testing.assert_array_equal(found.reshape(3), expected)
