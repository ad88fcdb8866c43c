"""The measured programs: valid HLO whose traffic is what its shapes say, computed right by kernels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from support.kernels import emulator, needs_compiler

from benchmarks.gpu.accuracy import distance, leaves, same_bits
from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import KINDS, Case, Group, Input, all_cases, sized_cases
from benchmarks.gpu.targets import ACCURACY
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.types import array_shapes
from hlotool.ir.verifier import verify_or_raise
from hlotool.parser.reader import parse_module

_SMALL = {case.name: case for case in all_cases(1 / 4096)}
_LARGE = {case.name: case for case in all_cases(1)}


def _bytes(case: Case) -> tuple[int, int]:
    """Of the arguments and of the result, as the program's text says."""
    module = parse_module(case.text)
    read = sum(s.byte_size for p in module.entry.parameters for s in array_shapes(p.shape))
    return read, sum(s.byte_size for s in array_shapes(module.entry.root.shape))


@pytest.mark.parametrize("name", _LARGE)
def test_programs_are_valid(name: str) -> None:
    for case in (_LARGE[name], _SMALL[name]):
        module = parse_module(case.text)
        verify_or_raise(module)
        shapes = [shape for p in module.entry.parameters for shape in array_shapes(p.shape)]
        assert [(i.kind, i.dims) for i in case.inputs] == [(s.element_type.value, s.dims) for s in shapes]


def test_every_kind_of_kernel_in_every_type() -> None:
    assert {case.group for case in _LARGE.values()} == set(Group)
    stems = {name.rpartition("_")[0] for name in _LARGE} - {"mlp_training"}
    assert set(_LARGE) == {f"{stem}_{kind}" for stem in stems for kind in KINDS} | {"mlp_training_step"}


@pytest.mark.parametrize("name", [n for n, c in _LARGE.items() if c.group.target is not None])
def test_large_cases_are_larger_than_caches(name: str) -> None:
    assert 250e6 < _LARGE[name].traffic < 5e9


@pytest.mark.parametrize("name", _LARGE)
def test_traffic(name: str) -> None:
    case = _LARGE[name]
    read, written = _bytes(case)
    if "pad_slice" in name:  # half of the first argument is never read
        assert case.traffic == read + written - case.inputs[0].byte_size // 2
    elif "row_updates" in name:
        assert case.traffic == pytest.approx(read + written, rel=0.01)
    elif case.group is not Group.PROGRAM:
        assert case.traffic == read + written


def test_matrix_products_count_two_operations_for_each_term() -> None:
    case = _LARGE["matmul_f32"]
    (rows, inner), (_, columns) = (i.dims for i in case.inputs)
    assert case.operations == 2 * rows * inner * columns


#: Of each way to lay a kernel out, one; the dry run of the suite computes all.
_COMPUTED = {"argmax_f32", "layer_norm_bf16", "row_updates_f32", "scatter_add_bf16", "transpose_f32"}


def _named(name: str) -> Any:
    return name if name in _COMPUTED else pytest.param(name, marks=pytest.mark.slow)


@needs_compiler
@pytest.mark.parametrize("name", [_named(n) for n in _SMALL if not n.startswith("matmul")])
def test_kernels_compute_them(name: str) -> None:
    case = _SMALL[name]
    arguments = arguments_of(case)
    kept = [a.copy() for a in arguments]
    backends: list[Any] = [NumpyBackend(), emulator()]
    results = [leaves(b.compile(parse_module(case.text)).run(arguments)) for b in backends]
    found = distance(*results)
    assert found.misfits == 0
    assert found.relative <= ACCURACY[name.rpartition("_")[2]]
    assert same_bits(arguments, kept)


def test_arguments_repeat_and_are_no_zeros() -> None:
    case = Case("some_f32", Group.ROW, "", (Input("f32", (9, 1 << 20)), Input("s32", (50,), below=7)), 0)
    floats, integers = arguments_of(case)
    assert same_bits([floats, integers], arguments_of(case))
    assert floats.shape == (9, 1 << 20)
    assert np.count_nonzero(floats) > 0.999 * floats.size
    assert not np.array_equal(floats[0], floats[4])
    assert set(integers) == set(range(7))


@pytest.mark.parametrize("size", [50_000_000, 420_000_000, 1_000_000_000])
def test_cases_of_a_size_move_so_much_and_hardly_more(size: int) -> None:
    for case in sized_cases(size):
        if case.group is Group.LIBRARY:
            assert case.traffic <= min(1.1 * size, _LARGE[case.name].traffic)
        elif case.group is not Group.PROGRAM:
            assert size <= case.traffic <= 1.1 * size, case.name
    assert [case.name for case in sized_cases(size)] == list(_LARGE)


def test_sizes_follow_the_scale() -> None:
    sizes = [
        {case.name: sum(prod(i.dims) for i in case.inputs) for case in all_cases(scale)}
        for scale in (1 / 64, 1 / 16, 1)
    ]
    for name in _LARGE:
        if not name.startswith("mlp"):
            assert sizes[0][name] < sizes[1][name] < sizes[2][name]
