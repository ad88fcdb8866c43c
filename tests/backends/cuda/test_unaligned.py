"""Vectors that begin anywhere: slices, pads and concatenations at odd places, also as CUDA runs them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.differential import leaves
from support.fibers import FiberBuilder
from support.gpu_kernels import kernels_of
from support.kernels import differing, needs_compiler, on_kernels, on_numpy

from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.codegen import schedules
from hlotool.backends.cuda.codegen import schedules as loops
from hlotool.backends.cuda.toolchain import find_nvcc
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.ir.arrays import DTYPES
from hlotool.ir.module import Module
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

_ROWS, _COLUMNS = 6, 64


def _module(kind: str, low: int, high: int, rows: int = _ROWS, columns: int = _COLUMNS) -> Module:
    """Rows of one operand begin `low` elements late, then come those of another; some are shifted by data."""
    shape, wide = f"{kind}[{rows},{columns}]", f"{kind}[{rows},{columns + low + high}]"
    joined = f"{kind}[{rows},{2 * columns + low + high}]"
    rest, flat = columns - 8, rows * columns
    return parse_module(f"""HloModule m
ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  at = s32[] parameter(2)
  zero = {kind}[] constant(0)
  none = s32[] constant(0)
  p = {wide} pad(x, zero), padding=0_0x{low}_{high}
  c = {joined} concatenate(p, y), dimensions={{1}}
  a = {kind}[{rows},{rest}] slice(x), slice={{[0:{rows}], [{low}:{low + rest}]}}
  b = {kind}[{rows},{rest}] dynamic-slice(y, none, at), dynamic_slice_sizes={{{rows},{rest}}}
  d = {kind}[{rows},{rest}] maximum(a, b)
  f = {kind}[{flat}] reshape(x)
  g = {kind}[{flat - 8}] slice(f), slice={{[{high}:{flat - 8 + high}]}}
  h = {kind}[{flat - 8}] negate(g)
  ROOT r = ({joined}, {kind}[{rows},{rest}], {kind}[{flat - 8}]) tuple(c, d, h)
}}
""")


@needs_compiler
@pytest.mark.parametrize("kind", ["s8", "bf16", "f32", pytest.param("f64", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("low", "high"),
    [(3, 5), (4, 2), *(pytest.param(*place, marks=pytest.mark.slow) for place in ((1, 7), (5, 8)))],
)
def test_at_every_place(
    kind: str, low: int, high: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "_SMALL", 0)
    module, rng = _module(kind, low, high), np.random.default_rng(low)
    x, y = (rng.integers(-100, 100, (_ROWS, _COLUMNS)).astype(DTYPES[ELEMENT_TYPES[kind]]) for _ in range(2))
    fibers = EmulatorBackend(builder=FiberBuilder(tmp_path)).compile(module)
    for at in (np.int32(low), np.int32(6)):
        expected = on_numpy(module, [x, y, at])
        for found in (on_kernels(module, [x, y, at]), on_kernels(module, [x, y, at], backward=True)):
            assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0, 0, 0]
        as_on_cuda = leaves(fibers.run([x, y, at]))
        assert [differing(a, b) for a, b in zip(as_on_cuda, expected, strict=True)] == [0, 0, 0]


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize(("kind", "width"), [("bf16", 8), ("f32", 4)])
def test_long_rows_are_read_and_written_by_vectors(kind: str, width: int, tmp_path: Path) -> None:
    module = _module(kind, 3, 5, 1 << 8, 1 << 10)
    kernels = kernels_of(module)
    text = "\n".join(kernel.source for kernel in kernels)
    assert f"Shifted<{'float' if kind == 'f32' else kind}, {width}>" in text
    loops = [(int(n), int(v)) for n, v in re.findall(r"each_run<Index, 256, (\d+), (\d+), 1>", text)]
    assert all(v == width for n, v in loops if n > 8)
    compiled = compile_kernels(kernels, "sm_90", folder=tmp_path)
    assert all(not c.resources.spill_stores and not c.resources.stack for c in compiled.values())


@needs_compiler
@pytest.mark.parametrize("rows", [1, 37])
def test_several_runs_at_once(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left for the last round of a loop that takes several runs; as CUDA runs it."""
    monkeypatch.setattr(loops, "MAX_GRID", 2)
    monkeypatch.setattr(schedules, "_SMALL", 0)
    columns = 4 * 2 * 256 * 4 * 2 // rows // 4 * 4 + 4
    module = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[{rows},{columns}] parameter(0)
  b = f32[{columns}] parameter(1)
  w = f32[{rows},{columns}] broadcast(b), dimensions={{1}}
  ROOT r = f32[{rows},{columns}] add(x, w)
}}
""")
    rng = np.random.default_rng(rows)
    arguments = [rng.standard_normal(dims).astype(np.float32) for dims in ((rows, columns), (columns,))]
    (expected,) = on_numpy(module, arguments)
    executable = EmulatorBackend(builder=FiberBuilder(tmp_path)).compile(module)
    assert re.findall(r"each_run<Index, \d+, \d+, 4, (\d)>", executable.kernels[0].source) == ["2"]
    assert differing(leaves(executable.run(arguments))[0], expected) == 0
    for backward in (False, True):
        assert differing(on_kernels(module, arguments, backward)[0], expected) == 0
