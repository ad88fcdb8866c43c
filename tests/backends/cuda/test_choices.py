"""Reductions that choose give the reference's results to the bit, with NaN, zeros of both signs and ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from support.gpu_kernels import kernels_of
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy

from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.toolchain import find_nvcc
from hlotool.ir.arrays import DTYPES, Array
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

#: As JAX writes it (jax/_src/lax/lax.py, _compute_argminmax): NaN wins, then the lower index.
_JAX = """
  more = pred[] compare(v, w), direction={more}
  odd = pred[] compare(v, v), direction=NE
  first = pred[] or(more, odd)
  same = pred[] compare(v, w), direction=EQ
  lower = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, lower)
  left = pred[] or(first, tie)
  a = {t}[] select(first, v, w)
  b = s32[] select(left, i, j)"""
#: As XLA's client library writes it, for TensorFlow and PyTorch/XLA (xla/hlo/builder/lib/arithmetic.cc,
#: CreateMinMaxComputation): what NaN gives depends on how the elements are bracketed.
_XLA = """
  before = pred[] compare(v, w), direction={not_less}
  same = pred[] compare(v, w), direction=EQ
  a = {t}[] select(before, v, w)
  c = s32[] select(before, i, j)
  lower = s32[] minimum(i, j)
  b = s32[] select(same, lower, c)"""
#: Not commutative: the first of the largest, whatever its index.
_FIRST = """
  before = pred[] compare(v, w), direction={not_less}
  a = {t}[] select(before, v, w)
  b = s32[] select(before, i, j)"""
_FORMS = {"jax": _JAX, "xla": _XLA, "first": _FIRST}

_Shape: TypeAlias = tuple[tuple[int, ...], int]

#: Dimensions and the one that is reduced: at the borders of threads, warps, tiles, blocks and chunks.
_ROWS = [
    ((3, 7), 1), ((2, 31), 1), ((5, 33), 1), ((9, 100), 1), ((1, 129), 1), ((4, 1024), 1), ((70, 1000), 1),
    ((3, 4100), 1), ((17, 4096), 1), ((3, 1), 1), ((4, 0), 1), ((0, 40), 1),
]  # fmt: skip
_COLUMNS = [
    ((40, 5), 0), ((100, 33), 0), ((129, 130), 0), ((700, 128), 0), ((7, 50, 40), 1), ((2, 130, 256), 1),
    ((40, 0), 0),
]  # fmt: skip
#: Several passes.
_LONG = [((2, 70001), 1), ((131072,), 0), ((1, 300000), 1), ((17000, 3), 0)]


def _text(form: str, kind: str, shapes: Sequence[_Shape], is_least: bool = False) -> str:
    """One reduction of each shape, of values and their indices."""
    directions = {"more": "LT", "not_less": "LE"} if is_least else {"more": "GT", "not_less": "GE"}
    limits = {"s8": "127" if is_least else "-128"}
    entry, results = [], []
    for n, (dims, axis) in enumerate(shapes):
        shape = ",".join(map(str, dims))
        kept = ",".join(str(size) for d, size in enumerate(dims) if d != axis)
        results.append(f"({kind}[{kept}], s32[{kept}])")
        entry += [
            f"  x{n} = {kind}[{shape}] parameter({n})",
            f"  i{n} = s32[{shape}] iota(), iota_dimension={axis}",
            f"  r{n} = {results[-1]} reduce(x{n}, i{n}, low, zero), dimensions={{{axis}}}, to_apply=choose",
        ]
    lines = "\n".join(entry)
    return f"""HloModule m
choose {{
  v = {kind}[] parameter(0)
  i = s32[] parameter(1)
  w = {kind}[] parameter(2)
  j = s32[] parameter(3){_FORMS[form].format(t=kind, **directions)}
  ROOT t = ({kind}[], s32[]) tuple(a, b)
}}
ENTRY e {{
  low = {kind}[] constant({limits.get(kind, "inf" if is_least else "-inf")})
  zero = s32[] constant(0)
{lines}
  ROOT all = ({", ".join(results)}) tuple({", ".join(f"r{n}" for n in range(len(shapes)))})
}}
"""


def _values(kind: str, dims: tuple[int, ...], seed: int) -> Array:
    """Ties of few values, with both zeros, infinities and NaN where there are any."""
    rng, element = np.random.default_rng(seed), ELEMENT_TYPES[kind]
    if element.is_integer:
        return rng.integers(0, 4, dims).astype(DTYPES[element])
    chosen = [0.0, -0.0, 1, 2, -1, np.inf, -np.inf, np.nan]
    few = 0.004 if seed % 2 else 0.03
    rest = (1 - 3 * few) / 5
    return rng.choice(np.array(chosen), dims, p=[rest] * 5 + [few] * 3).astype(DTYPES[element])


def _cases() -> Iterator[object]:
    quick = {("jax", "f32"), ("xla", "bf16"), ("first", "s8")}
    for form, kind in product(_FORMS, ("f32", "bf16", "s8", "f64")):
        yield pytest.param(form, kind, marks=() if (form, kind) in quick else pytest.mark.slow)


def _check(form: str, kind: str, shapes: Sequence[_Shape], is_least: bool = False) -> set[str]:
    """Compare with the reference, in both orders of threads; the schedules that were used."""
    module = parse_module(_text(form, kind, shapes, is_least))
    arguments = [_values(kind, dims, seed) for seed, (dims, _) in enumerate(shapes)]
    expected = on_numpy(module, arguments)
    for backward in (False, True):
        found = on_kernels(module, arguments, backward)
        wrong = [
            n for n, (a, b) in enumerate(zip(found, expected, strict=True)) if a.size and differing(a, b)
        ]
        assert wrong == []
    return {kernel.schedule for kernel in emulator().compile(module).kernels}


@needs_compiler
@pytest.mark.parametrize(("form", "kind"), list(_cases()))
def test_as_the_reference(form: str, kind: str) -> None:
    used = _check(form, kind, [*_ROWS, *_COLUMNS], is_least=kind == "bf16")
    assert used == {"loop", "choices of rows", "choices of columns", "choices of columns, further pass"}


@needs_compiler
def test_several_passes() -> None:
    used = _check("xla", "f32", _LONG)
    assert used >= {"choices of rows, further pass", "choices of columns, further pass"}


@needs_compiler
def test_the_bracketing_matters() -> None:
    """Else the tests above would pass for kernels of another order: NaN is not one value among others."""
    x = np.array([[1.0, np.nan, 0.0, 3.0] * 16], np.float32)
    module = parse_module(_text("xla", "f32", [(x.shape, 1)]))
    value, index = on_kernels(module, [x])
    assert (value[0], index[0]) == (3, 3)
    x[0, 63] = 0  # behind the last NaN there is nothing larger, yet the 3 of other pairs is found
    value, index = on_kernels(module, [x])
    assert (value[0], index[0]) == (3, 3)


_WITH_OTHERS = """HloModule m
choose {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  before = pred[] compare(v, w), direction=GE
  a = f32[] select(before, v, w)
  b = s32[] select(before, i, j)
  ROOT t = (f32[], s32[]) tuple(a, b)
}
largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[20,300] parameter(0)
  y = f32[20,300] negate(x)
  i = s32[20,300] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  best = (f32[20], s32[20]) reduce(y, i, low, zero), dimensions={1}, to_apply=choose
  at = s32[20] get-tuple-element(best), index=1
  top = f32[20] reduce(x, low), dimensions={1}, to_apply=largest
  place = f32[20] convert(at)
  sum = f32[20] add(place, top)
  tops = f32[20,300] broadcast(top), dimensions={0}
  rest = f32[20,300] subtract(x, tops)
  ROOT r = (f32[20], f32[20,300], s32[20]) tuple(sum, rest, at)
}
"""


@needs_compiler
def test_beside_other_reductions() -> None:
    """Other reductions of the same rows keep their own kernels."""
    module, arguments = parse_module(_WITH_OTHERS), [_values("f32", (20, 300), 1)]
    expected = on_numpy(module, arguments)
    for backward in (False, True):
        found = on_kernels(module, arguments, backward)
        assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0, 0, 0]
    used = [kernel.schedule for kernel in emulator().compile(module).kernels]
    assert used.count("choices of rows") == 1


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_for_a_gpu(kind: str, tmp_path: Path) -> None:
    """nvcc takes the kernels of rows, columns and further passes, and keeps all values in registers."""
    shapes = [
        ((1 << 14, 1 << 13), 1),
        ((1 << 14, 1 << 13), 0),
        ((1 << 26,), 0),
        ((64, 21, 512), 1),
        ((512, 1001), 1),
    ]
    compiled = compile_kernels(kernels_of(parse_module(_text("jax", kind, shapes))), "sm_90", folder=tmp_path)
    resources = [c.resources for c in compiled.values()]
    assert [(r.spill_stores, r.stack) for r in resources] == [(0, 0)] * len(resources)
