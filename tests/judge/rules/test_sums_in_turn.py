"""Sums of terms that are alike, added to one running sum: as far off as that is, no other order is."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.judging import executed, judged_leaf

from hlotool.ir.arrays import Array
from hlotool.judge.verdicts import Answer
from hlotool.parser.reader import parse_module

N = 20_000

ADD = "f { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] add(a, b) }\n"
DOT = f"""ENTRY e {{
  x = T[1,{N}] parameter(0)
  y = T[{N},2] parameter(1)
  ROOT r = T[1,2] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
#: The same with three batches and dimensions in another order.
BATCHES = f"""ENTRY e {{
  x = T[{N},3,4] parameter(0)
  y = T[3,2,{N}] parameter(1)
  ROOT r = T[3,4,2] dot(x, y), lhs_batch_dims={{1}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{0}}, rhs_contracting_dims={{2}}
}}"""
CONVOLUTION = f"""ENTRY e {{
  x = T[1,3,{N}] parameter(0)
  y = T[1,{N},2] parameter(1)
  ROOT r = T[1,3,2] convolution(x, y), window={{size=1}}, dim_labels=b0f_0io->b0f
}}"""
REDUCE = f"""{ADD}ENTRY e {{
  x = T[{N},3] parameter(0)
  z = T[] constant(0)
  ROOT r = T[3] reduce(x, z), dimensions={{0}}, to_apply=f
}}"""
WINDOWS = f"""{ADD}ENTRY e {{
  x = T[{N + 2}] parameter(0)
  z = T[] constant(0)
  ROOT r = T[3] reduce-window(x, z), window={{size={N}}}, to_apply=f
}}"""
RUNNING = f"""{ADD}ENTRY e {{
  x = T[{N}] parameter(0)
  z = T[] constant(0)
  ROOT r = T[{N}] reduce-window(x, z), window={{size={N} pad={N - 1}_0}}, to_apply=f
}}"""
NORMALISED = f"""ENTRY e {{
  x = T[{N},2] parameter(0)
  scale = T[2] parameter(1)
  offset = T[2] parameter(2)
  n = (T[{N},2], T[2], T[2]) batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=1
  ROOT r = T[2] get-tuple-element(n), index=2
}}"""


def in_turn(terms: Array, step: int = 8) -> Array:
    """The sum along the first dimension in the type of the terms, `step` of them at a time."""
    total = np.zeros(terms.shape[1:], terms.dtype)
    for start in range(0, len(terms), step):
        total = (total + terms[start : start + step].sum(0, dtype=terms.dtype)).astype(terms.dtype)
    return total


def alike(shape: tuple[int, ...], dtype: Any, values: int, seed: int) -> Array:
    """An array of so many different numbers."""
    rng = np.random.default_rng(seed)
    return rng.choice(rng.uniform(0.5, 2, values), shape).astype(dtype)


def operands(name: str, dtype: Any, values: int, seed: int) -> tuple[list[Array], Array]:
    """Arguments of a form, and its result as the sums of its terms in turn."""
    one = partial(alike, dtype=dtype, values=1, seed=seed + 1)
    few = partial(alike, dtype=dtype, values=values, seed=seed)
    match name:
        case "dot":
            x, y = one((1, N)), few((N, 2))
            return [x, y], in_turn(x[0, :, None] * y)[None]
        case "batches":
            x, y = one((N, 3, 4)), few((3, 2, N))
            return [x, y], in_turn(x[:, :, :, None] * y.transpose(2, 0, 1)[:, :, None, :])
        case "convolution":
            x, y = one((1, 3, N)), few((1, N, 2))
            return [x, y], in_turn(x[0].T[:, :, None] * y[0][:, None, :])[None]
        case "reduce":
            x = few((N, 3))
            return [x], in_turn(x)
        case "windows":
            x = few((N + 2,))
            return [x], np.stack([in_turn(x[i : i + N]) for i in range(3)])
        case "running":
            x = few((N,))
            return [x], np.add.accumulate(x)
    x, scale, offset = few((N, 2)), np.ones(2, dtype), np.zeros(2, dtype)
    mean = in_turn(x) / dtype(N)
    return [x, scale, offset], in_turn(x * x) / dtype(N) - mean * mean


FORMS = {
    "dot": DOT,
    "batches": BATCHES,
    "convolution": CONVOLUTION,
    "reduce": REDUCE,
    "windows": WINDOWS,
    "running": RUNNING,
    "normalised": NORMALISED,
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("values", [1, 2])
def test_terms_that_are_alike_may_be_added_in_turn(name: str, kind: str, values: int) -> None:
    program = FORMS[name].replace("T[", f"{kind}[")
    for seed in (1, 5):
        arguments, actual = operands(name, _dtype(kind), values, seed)
        leaf = judged_leaf(program, arguments, actual)
        assert leaf.verdict.answer is not Answer.BAD, leaf.reason


def _dtype(kind: str) -> Any:
    return np.dtype(kind.replace("f", "float")).type


@pytest.mark.parametrize("name", ["dot", "batches", "convolution", "reduce", "windows"])
def test_what_is_lost_of_terms_is_wrong_all_the_same(name: str) -> None:
    """One of 400 terms of numbers that differ, and one of ten of equal ones."""
    program = FORMS[name].replace("T[", "f32[")
    for values, lost in ((1000, 400), (1, 10)):
        arguments, actual = operands(name, np.float32, values, 3)
        assert judged_leaf(program, arguments, actual).verdict.answer is not Answer.BAD
        short = (actual * (1 - 1 / lost)).astype(np.float32)
        assert judged_leaf(program, arguments, short).verdict.answer is Answer.BAD


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("values", [1, 200])
def test_sums_of_a_narrow_type_may_be_rounded_at_every_step(kind: str, values: int) -> None:
    """1,000 numbers around 1: a sum of bf16 stands still at 256. XLA does so in windows only."""
    dtype = ml_dtypes.bfloat16 if kind == "bf16" else np.float16
    program = WINDOWS.replace("T[", f"{kind}[").replace(f"[{N + 2}", "[1002").replace(str(N), "1000")
    x = alike((1002,), dtype, values, 7)
    actual = np.stack([in_turn(x[i : i + 1000], 1) for i in range(3)])
    leaf = judged_leaf(program, [x], actual)
    assert leaf.verdict.answer is not Answer.BAD, leaf.reason
    if kind == "bf16":
        assert np.abs(actual.astype(np.float64) / x.astype(np.float64).sum() - 1).max() > 0.1


@pytest.mark.parametrize("backwards", [False, True])
def test_running_sums_of_f64_are_closer_than_in_turn(backwards: bool) -> None:
    """No wider type is at hand: the reference sums blocks."""
    text = RUNNING.replace("T[", "f64[")
    x = np.full(N, 0.1)
    if backwards:
        text = text.replace(f"pad={N - 1}_0", f"pad=0_{N - 1}")
    sums = np.asarray(executed(text, [x]))[:: -1 if backwards else 1]
    exact = np.arange(1, N + 1, dtype=np.longdouble) * np.longdouble(x[0])
    off = (np.abs(sums - exact) / exact).max()
    assert off < 2e-14
    assert (np.abs(np.cumsum(x) - exact) / exact).max() > 5 * off


@pytest.mark.xla
@pytest.mark.parametrize("name", list(FORMS)[:-1])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_xla_is_not_wrong_on_terms_that_are_alike(name: str, kind: str) -> None:
    from hlotool.backends.xla import create

    program = FORMS[name].replace("T[", f"{kind}[")
    compiled = create().compile(parse_module(program))
    for seed in range(4):
        arguments, _ = operands(name, _dtype(kind), 1 + seed % 2, seed)
        leaf = judged_leaf(program, arguments, np.asarray(compiled.run(arguments)))
        assert leaf.verdict.answer is not Answer.BAD, leaf.reason


#: The gradient of a bias behind a mean over 16 places: each of 16 terms occurs 16 times.
BIAS = """add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT s = bf16[] add(a, b) }
ENTRY e {
  x = bf16[16,64] parameter(0)
  zero = bf16[] constant(0)
  b = bf16[16,16,64] broadcast(x), dimensions={0,2}
  r = bf16[64] reduce(b, zero), dimensions={0,1}, to_apply=add
  c = f32[64] convert(r)
  ROOT s = f32[64] multiply(c, c)
}"""


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_narrow_sums_that_are_rounded_at_every_addition(seed: int) -> None:
    """As XLA:CPU makes them; with one of ten terms lost they are another sum."""
    numbers = 0.3 + np.random.default_rng(seed).normal(size=(16, 64))
    x = numbers.astype(ml_dtypes.bfloat16)

    def squares(terms: Iterable[Array]) -> Array:
        total = np.zeros(64, ml_dtypes.bfloat16)
        for term in terms:
            total = (total.astype(np.float32) + term.astype(np.float32)).astype(ml_dtypes.bfloat16)
        return np.square(total.astype(np.float32))

    terms = [row for row in x for _ in range(16)]
    assert judged_leaf(BIAS, [x], squares(terms)).verdict.answer is Answer.GOOD
    lost = [np.zeros_like(term) if n % 10 == 3 else term for n, term in enumerate(terms)]
    assert judged_leaf(BIAS, [x], squares(lost)).verdict.answer is Answer.BAD
