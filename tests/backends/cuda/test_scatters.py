"""Scatters of many updates: sorted by rows, applied in their order, to the bit as the reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from support.differential import leaves
from support.fibers import FiberBuilder
from support.gpu_kernels import kernels_of
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy

from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.codegen import scatters
from hlotool.backends.cuda.toolchain import find_nvcc
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.ir.arrays import DTYPES
from hlotool.ir.module import Module
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

#: Rows, columns (0: rows are single elements), updates.
_Shape: TypeAlias = tuple[int, int, int]

#: What updates do; the last one wins, and what depends on their order in other ways.
_COMPUTATIONS = {
    "add": "  ROOT r = {t}[] add(a, b)",
    "maximum": "  ROOT r = {t}[] maximum(a, b)",
    "last": "  ROOT r = {t}[] copy(b)",
    "weighted": "  two = {t}[] constant(0.5)\n  h = {t}[] multiply(a, two)\n  ROOT r = {t}[] add(h, b)",
}


def _module(kind: str, shapes: Sequence[_Shape], what: str = "add") -> Module:
    """One scatter for each shape; the second starts from what is computed, not from an argument."""
    entry, results = [], []
    for n, (rows, columns, updates) in enumerate(shapes):
        width, window = (f",{columns}", "{1}") if columns else ("", "{}")
        array = f"{kind}[{rows}{width}]"
        results.append(array)
        entry += [
            f"  x{n} = {array} parameter({3 * n})",
            f"  i{n} = s32[{updates},1] parameter({3 * n + 1})",
            f"  w{n} = {kind}[{updates}{width}] parameter({3 * n + 2})",
            *([f"  n{n} = {array} negate(x{n})"] if n == 1 else []),
            f"  r{n} = {array} scatter({'n' if n == 1 else 'x'}{n}, i{n}, w{n}), to_apply=change,",
            f"    update_window_dims={window}, inserted_window_dims={{0}}, index_vector_dim=1,",
            "    scatter_dims_to_operand_dims={0}",
        ]
    lines = "\n".join(entry)
    return parse_module(f"""HloModule m
change {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
{_COMPUTATIONS[what].format(t=kind)}
}}
ENTRY e {{
{lines}
  ROOT all = ({", ".join(results)}) tuple({", ".join(f"r{n}" for n in range(len(shapes)))})
}}
""")


def _arguments(kind: str, shapes: Sequence[_Shape]) -> list[Any]:
    """Indices of all rows and some beyond, or half of them of one row; NaN, infinities, both zeros."""
    found: list[Any] = []
    for seed, (rows, columns, updates) in enumerate(shapes):
        rng, element = np.random.default_rng(seed), DTYPES[ELEMENT_TYPES[kind]]
        shape = (columns,) if columns else ()
        values = [rng.standard_normal((n, *shape)).astype(element) for n in (rows, updates)]
        for value in values:
            places = rng.integers(0, value.size, value.size // 50)
            value.flat[places] = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]), len(places))
        indices = rng.integers(-2, rows + 2, (updates, 1))
        if seed % 2:
            indices[rng.random(updates) < 0.5] = rows // 2
        found += [values[0], indices.astype(np.int32), values[1]]
    return found


_SHAPES = [(5, 3, 40), (100, 4, 9), (3, 300, 100), (64, 0, 513), (1, 0, 300), (300, 7, 1000)]


@needs_compiler
@pytest.mark.parametrize("what", ["add", "last", "weighted", pytest.param("maximum", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["f32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_as_the_reference(what: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks, full lists, rows that several chunks change; by plain loops and as CUDA runs them."""
    for name, value in (("_CHUNK", 128), ("_LISTED", 32), ("_BATCH", 4), ("_PER_BLOCK", 64)):
        monkeypatch.setattr(scatters, name, value)
    module, arguments = _module(kind, _SHAPES, what), _arguments(kind, _SHAPES)
    expected = on_numpy(module, arguments)
    for backward in (False, True):
        found = on_kernels(module, arguments, backward)
        assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0] * len(_SHAPES)
    if what in ("add", "last"):
        builder = FiberBuilder(tmp_path)
        executable = EmulatorBackend(builder=builder).compile(module)
        for builder.backward in (False, True):
            found = leaves(executable.run(arguments))
            assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0] * len(_SHAPES)
    schedules = [kernel.schedule for kernel in emulator().compile(module).kernels]
    assert schedules.count("order of updates") == schedules.count("rows of a scatter") == len(_SHAPES)


@needs_compiler
def test_lists_as_long_as_they_are() -> None:
    shapes = [(70, 1, 9), (700, 2, 20_000)]
    module, arguments = _module("f32", shapes), _arguments("f32", shapes)
    expected = on_numpy(module, arguments)
    for backward in (False, True):
        found = on_kernels(module, arguments, backward)
        assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0, 0]


@needs_compiler
def test_more_chunks_than_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that find nothing in the first 256 chunks go on with the others; as CUDA runs them."""
    for name, value in (("_CHUNK", 16), ("_PER_BLOCK", 64)):
        monkeypatch.setattr(scatters, name, value)
    shapes = [(8, 1, 9000)]
    module, arguments = _module("f32", shapes), _arguments("f32", shapes)
    arguments[1][: 16 * 256] = 0
    expected = on_numpy(module, arguments)
    builder = FiberBuilder(tmp_path)
    executable = EmulatorBackend(builder=builder).compile(module)
    for builder.backward in (False, True):
        assert differing(leaves(executable.run(arguments))[0], expected[0]) == 0
    assert differing(on_kernels(module, arguments, backward=True)[0], expected[0]) == 0


_SEVERAL = """HloModule m
change {
  a = f32[] parameter(0)
  c = s32[] parameter(1)
  b = f32[] parameter(2)
  d = s32[] parameter(3)
  s = f32[] add(a, b)
  m = s32[] maximum(c, d)
  ROOT r = (f32[], s32[]) tuple(s, m)
}
ENTRY e {
  x = f32[4,9,5,6] parameter(0)
  y = s32[4,9,5,6] parameter(1)
  i = s32[4,70,2] parameter(2)
  u = f32[4,70,4] parameter(3)
  v = s32[4,70,4] parameter(4)
  ROOT r = (f32[4,9,5,6], s32[4,9,5,6]) scatter(x, y, i, u, v), update_window_dims={2},
    inserted_window_dims={1,2}, scatter_dims_to_operand_dims={2,1}, input_batching_dims={0},
    scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=change
}
"""


@needs_compiler
def test_several_operands_batches_and_windows_that_are_no_whole_rows() -> None:
    rng = np.random.default_rng(3)
    arguments = [
        rng.standard_normal((4, 9, 5, 6)).astype(np.float32),
        rng.integers(-9, 9, (4, 9, 5, 6)).astype(np.int32),
        rng.integers(-1, 9, (4, 70, 2)).astype(np.int32),
        rng.standard_normal((4, 70, 4)).astype(np.float32),
        rng.integers(-9, 9, (4, 70, 4)).astype(np.int32),
    ]
    module = parse_module(_SEVERAL)
    expected = on_numpy(module, arguments)
    for backward in (False, True):
        found = on_kernels(module, arguments, backward)
        assert [differing(a, b) for a, b in zip(found, expected, strict=True)] == [0, 0]
    assert emulator().compile(module).notes == ()


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_for_a_gpu(kind: str, tmp_path: Path) -> None:
    """What a thread loads ahead stays in registers."""
    kernels = kernels_of(_module(kind, [(1 << 20, 128, 1 << 20)]))
    resources = [c.resources for c in compile_kernels(kernels, "sm_90", folder=tmp_path).values()]
    assert [(r.spill_stores, r.stack) for r in resources] == [(0, 0)] * 2
    assert all(r.shared <= 40 << 10 for r in resources)
