"""Operations with kernels of their own, larger than random fusions have them, against the numpy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy

from hlotool.backends.registry import get_backend
from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_ADD = """add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] add(a, b)
}}
"""


def _whole(kind: str, dims: tuple[int, ...], seed: int = 0) -> Any:
    """Small numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(1, 5, dims).astype(DTYPES[ELEMENT_TYPES[kind]])


def _check(text: str, *arguments: Any) -> list[str]:
    """Equal to the reference in both orders of the threads; returns the schedules of the kernels."""
    module = parse_module(text)
    executable = get_backend("cuda-emu:generated").compile(module)
    assert executable.notes == ()
    expected = on_numpy(module, list(arguments))
    for results in (leaves(executable.run(list(arguments))), on_kernels(module, list(arguments), True)):
        assert [differing(np.asarray(a), b) for a, b in zip(results, expected)] == [0] * len(expected)
    return [kernel.schedule for kernel in executable.kernels]


@pytest.mark.parametrize("kind", ["f32", "bf16", "s8", "c64"])
def test_products_in_tiles(kind: str) -> None:
    text = f"""HloModule product
fused {{
  a = {kind}[2,70,100] parameter(0)
  b = {kind}[100,130,2] parameter(1)
  n = {kind}[2,70,100] negate(a)
  ROOT r = {kind}[2,70,130] dot(n, b), lhs_batch_dims={{0}}, rhs_batch_dims={{2}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
}}
ENTRY main {{
  a = {kind}[2,70,100] parameter(0)
  b = {kind}[100,130,2] parameter(1)
  ROOT r = {kind}[2,70,130] fusion(a, b), kind=kLoop, calls=fused
}}
"""
    schedules = _check(text, _whole(kind, (2, 70, 100)), _whole(kind, (100, 130, 2), 1))
    assert schedules == ["tiles of a product"]


@pytest.mark.parametrize(
    ("kind", "features", "schedule"), [("f32", 3, "loop"), ("c64", 24, "tiles of a product")]
)
def test_holes_of_a_dilated_operand_are_not_multiplied(kind: str, features: int, schedule: str) -> None:
    """With an infinite weight they would make NaN of sums that see it only there; true zeros do."""
    text = f"""HloModule spread
ENTRY main {{
  x = {kind}[2,{features},9] parameter(0)
  w = {kind}[{features},{features},3] parameter(1)
  ROOT r = {kind}[2,{features},19] convolution(x, w), window={{size=3 pad=2_2 lhs_dilate=2}},
    dim_labels=bf0_oi0->bf0
}}
"""
    x, w = _whole(kind, (2, features, 9)), _whole(kind, (features, features, 3), 1)
    x[0, 1, 4] = 0
    w[features - 1, 1, 1] = np.inf
    assert _check(text, x, w) == [schedule]
    [result] = on_numpy(parse_module(text), [x, w])
    seen = np.asarray(result)[0, features - 1]
    assert np.isnan(seen).any()
    assert np.isfinite(seen).sum() == 10


def test_a_matrix_times_a_vector_is_a_reduction() -> None:
    text = """HloModule vector
ENTRY main {
  a = f32[300,500] parameter(0)
  x = f32[500] parameter(1)
  ROOT r = f32[300] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    schedules = _check(text, _whole("f32", (300, 500)), _whole("f32", (500,), 1))
    assert "tiles of a product" not in schedules


@pytest.mark.parametrize("groups", ["", ", feature_group_count=2"])
def test_convolutions(groups: str) -> None:
    features = 20 if groups else 10
    text = f"""HloModule convolution
ENTRY main {{
  x = f32[2,11,12,{features}] parameter(0)
  k = f32[3,3,10,16] parameter(1)
  ROOT r = f32[2,6,14,16] convolution(x, k), window={{size=3x3 stride=2x1 pad=1_1x2_2}},
    dim_labels=b01f_01io->b01f{groups}
}}
"""
    schedules = _check(text, _whole("f32", (2, 11, 12, features)), _whole("f32", (3, 3, 10, 16), 1))
    assert schedules == (["loop"] if groups else ["tiles of a product"])


_SCATTER = """  u = {t}[4000,{w}] parameter(1)
  i = s32[4000,1] parameter(2)
  ROOT r = {t}[500,9] scatter({x}, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}
"""


@pytest.mark.parametrize("kind", ["f32", "s4", "f16"])
@pytest.mark.parametrize("operand", ["x", "n"])
@pytest.mark.parametrize("width", [9, 5])
def test_many_updates(kind: str, operand: str, width: int) -> None:
    """Floats are added in the order of the updates; indices out of bounds, and many of each."""
    head = "HloModule scatter\n" + _ADD + "ENTRY main {{\n  x = {t}[500,9] parameter(0)\n"
    text = head + "  n = {t}[500,9] negate(x)\n" + _SCATTER
    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal((500, 9)), rng.standard_normal((4000, width)) * 3]
    values = [n.astype(DTYPES[ELEMENT_TYPES[kind]]) for n in numbers]
    indices = rng.integers(-3, 503, (4000, 1)).astype(np.int32)
    schedules = _check(text.format(t=kind, x=operand, w=width), *values, indices)
    assert schedules[-1] == "rows of a scatter"


def test_a_scattered_operand_that_lies_in_memory_stays_what_it_is() -> None:
    head = "HloModule scatter\n" + _ADD + "ENTRY main {{\n  x = {t}[500,9] parameter(0)\n"
    module = parse_module((head + _SCATTER).format(t="f32", x="x", w=9))
    x, updates = np.zeros((500, 9), np.float32), np.ones((4000, 9), np.float32)
    result = emulator().compile(module).run([x, updates, np.zeros((4000, 1), np.int32)])
    assert np.asarray(result)[0, 0] == 4000
    assert not x.any()


@pytest.mark.parametrize("rows", [3, 0])
def test_windows_that_collapse_from_nothing(rows: int) -> None:
    """Nothing is read: of an operand without rows there is nothing."""
    text = f"""HloModule gather
ENTRY e {{
  x = s32[{rows},2] parameter(0)
  i = s32[2,1] parameter(1)
  ROOT r = s32[2,2] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{0,2}}
}}"""
    _check(text, np.ones((rows, 2), np.int32), np.int32([[0], [1]]))


def test_large_products_go_to_a_library() -> None:
    text = """HloModule large
ENTRY main {
  a = f32[256,256] parameter(0)
  b = f32[256,256] parameter(1)
  ROOT r = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    module = parse_module(text)
    assert get_backend("cuda-emu").compile(module).launches == 0
    assert get_backend("cuda-emu").compile(module).notes == ()
    assert get_backend("cuda-emu:generated").compile(module).launches == 1


def test_results_that_are_tuples_of_tuples_and_inputs() -> None:
    text = """HloModule nested
fused {
  x = f32[5] parameter(0)
  c = f32[2] constant({1, 2})
  n = f32[5] negate(x)
  pair = (f32[5], f32[2]) tuple(n, c)
  ROOT r = ((f32[5], f32[2]), f32[5], f32[5]) tuple(pair, x, n)
}
ENTRY main {
  x = f32[5] parameter(0)
  ROOT r = ((f32[5], f32[2]), f32[5], f32[5]) fusion(x), kind=kLoop, calls=fused
}
"""
    _check(text, np.arange(5, dtype=np.float32))


@pytest.mark.parametrize(("between", "launches"), [("", 1), ("transpose", 2999)])
def test_long_chains(between: str, launches: int) -> None:
    """One kernel where no recursion is needed, else one for each operation; never a stack overflow."""
    lines, last = ["  x = f32[4,4] parameter(0)"], "x"
    for number in range(1500):
        lines.append(f"  v{number} = f32[4,4] add({last}, x)")
        last = f"v{number}"
        if between and number < 1499:
            lines.append(f"  t{number} = f32[4,4] transpose({last}), dimensions={{1,0}}")
            last = f"t{number}"
    body = "\n".join([*lines[:-1], lines[-1].replace("  v", "  ROOT v", 1)])
    text = f"""HloModule chain
fused {{
{body}
}}
ENTRY main {{
  x = f32[4,4] parameter(0)
  ROOT r = f32[4,4] fusion(x), kind=kLoop, calls=fused
}}
"""
    module = parse_module(text)
    executable = emulator().compile(module)
    assert executable.launches == launches
    result = executable.run([np.ones((4, 4), np.float32)])
    np.testing.assert_array_equal(result, np.full((4, 4), 1501.0))
