"""Dots as products of stacks of matrices: what a library reads with these strides is what the dot means."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.kernels import on_numpy

from hlotool.backends.cuda import toolchain
from hlotool.backends.cuda.cublas import LARGE, Product, Stack, product_of
from hlotool.backends.cuda.toolchain import open_libraries
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module


def _module(
    left: list[int], right: list[int], result: list[int], dimensions: str, kind: str = "f64"
) -> Module:
    shapes = (f"{kind}[{','.join(map(str, dims))}]" for dims in (left, right, result))
    a, b, c = shapes
    return parse_module(
        f"HloModule m\nENTRY e {{\n  a = {a} parameter(0)\n  b = {b} parameter(1)\n"
        f"  ROOT c = {c} dot(a, b){dimensions}\n}}\n"
    )


def _random(seed: int) -> Module:
    """A dot whose dimensions stand in any order, some of size 1."""
    rng = np.random.default_rng(seed)
    sizes = [[int(rng.choice([1, 2, 3, 5])) for _ in range(rng.integers(0, 3))] for _ in range(4)]
    batch, rows, columns, summed = sizes
    operands, places = [], []
    for free in (rows, columns):
        dims = batch + summed + free
        order = rng.permutation(len(dims)) if rng.random() < 0.6 else np.arange(len(dims))
        operands.append([dims[d] for d in order])
        where = np.argsort(order)
        places.append((where[: len(batch)], where[len(batch) : len(batch) + len(summed)]))
    names = ("lhs", "rhs")
    parts = [
        f", {name}_{role}_dims={{{','.join(map(str, group))}}}"
        for name, pair in zip(names, places)
        for role, group in zip(("batch", "contracting"), pair)
        if len(group)
    ]
    return _module(*operands, batch + rows + columns, "".join(parts))


def _matrices(array: Array, stack: Stack, batch: int, rows: int, columns: int) -> Array:
    """What a library reads."""
    if stack.order is not None:
        array = array.transpose(stack.order)
    flat = np.ascontiguousarray(array).reshape(-1)
    step = flat.itemsize
    strides = (1, stack.leading) if stack.is_transposed else (stack.leading, 1)
    last = (batch - 1) * stack.stride + (rows - 1) * strides[0] + (columns - 1) * strides[1]
    assert last < flat.size
    assert stack.leading >= (rows if stack.is_transposed else columns)
    return np.lib.stride_tricks.as_strided(
        flat, (batch, rows, columns), (stack.stride * step, strides[0] * step, strides[1] * step)
    )


@pytest.mark.parametrize("seed", range(200))
def test_what_a_library_reads(seed: int) -> None:
    module = _random(seed)
    product = product_of(module.entry.root, least=1)
    assert product is not None
    rng = np.random.default_rng(seed)
    dims = [p.shape.dims for p in module.entry.parameters]  # type: ignore[union-attr]
    arguments = [rng.integers(-9, 9, d).astype(np.float64) for d in dims]
    left = _matrices(arguments[0], product.left, product.batch, product.rows, product.length)
    right = _matrices(arguments[1], product.right, product.batch, product.length, product.columns)
    [expected] = on_numpy(module, arguments)
    np.testing.assert_array_equal((left @ right).reshape(expected.shape), expected)


def _product(kind: str, size: int) -> Product | None:
    dims = [size, size]
    module = _module(dims, dims, dims, ", lhs_contracting_dims={1}, rhs_contracting_dims={0}", kind)
    return product_of(module.entry.root)


def test_which_dots_a_library_does() -> None:
    assert _product("f32", 128) is not None
    assert 127**3 < LARGE <= 128**3
    assert _product("f32", 127) is None
    assert [k for k in ("s32", "f8e4m3fn", "bf16", "c64") if _product(k, 128) is None] == ["s32", "f8e4m3fn"]


def test_common_orders_need_no_transposition() -> None:
    for left, right, dimensions in (
        ([4, 5], [5, 6], ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ([5, 4], [6, 5], ", lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        ([4, 5], [6, 5], ", lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ):
        product = product_of(_module(left, right, [4, 6], dimensions).entry.root, least=1)
        assert product is not None
        assert product.left.order is None
        assert product.right.order is None


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_library_is_found_in_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "lib64" / "libcublas.so.12"
    place.parent.mkdir()
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(place)]
    subprocess.run(command, input=b"int cublasCreate_v2(void) { return 7; }", check=True)
    monkeypatch.setattr(toolchain, "_folders", lambda: iter([tmp_path / "lib64"]))
    # Where the loader finds one of these, too, it comes first.
    found = list(open_libraries("cublas", 12))
    assert found[-1].cublasCreate_v2() == 7
    assert not list(open_libraries("cublas", 11))


def test_libraries_are_looked_for_in_toolkits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert tmp_path / "lib64" in list(toolchain._folders())
