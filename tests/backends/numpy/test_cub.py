"""Sorting and scanning by CUB: against `sort` on the same backend and against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import parse, run
from support.library_modules import call_module, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported


def radix_sort(target: str, shapes: list[str], config: str, values: list[Any]) -> list[Any]:
    """Sorted arrays, without workspace."""
    text = call_module(target, f"({', '.join([*shapes, 'u8[1000]{0}'])})", shapes, config)
    return run(text, values)[: len(shapes)]


OLD, NEW = "__cub$DeviceRadixSort", "xla.gpu.ext.cub_sort_keys"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["f32", "bf16", "s32", "u8", "s64"])
@pytest.mark.parametrize("new", [False, True])
def test_rows_of_keys(kind: str, descending: bool, new: bool) -> None:
    shape = f"{kind}[3,50]"
    values = operands_of([shape], limit=100)
    flag = str(descending).lower()
    config = f"{{descending = {flag}, batch_size = 3 : i64}}" if new else f'{{"descending":{flag}}}'
    (result,) = radix_sort(NEW if new else OLD, [shape], config, values)
    expected = np.sort(values[0].astype(np.float64), axis=-1)
    np.testing.assert_array_equal(result.astype(np.float64), expected[:, ::-1] if descending else expected)


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_pairs_are_sorted_as_by_sort(direction: str) -> None:
    shapes = ["f32[4,60]", "s32[4,60]"]
    keys, values = operands_of(shapes, limit=1000)
    keys = np.round(keys)
    plain = f"""HloModule plain
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction={direction}, type=TOTALORDER
}}
ENTRY e {{
  k = f32[4,60] parameter(0)
  v = s32[4,60] parameter(1)
  ROOT s = (f32[4,60], s32[4,60]) sort(k, v), dimensions={{1}}, is_stable=true, to_apply=less
}}"""
    config = f'{{"descending":{str(direction == "GT").lower()}}}'
    keys = np.where(keys == 0, np.float32(0), keys)
    for result, expected in zip(radix_sort(OLD, shapes, config, [keys, values]), run(plain, [keys, values])):
        np.testing.assert_array_equal(result, expected)


def test_special_floats() -> None:
    """NaN by its sign at one end or the other; zeros keep their order."""
    nan = np.float32(np.nan)
    keys = np.array([1, nan, -0.0, -nan, 0.0, -np.inf, np.inf, -0.0], np.float32)
    places = np.arange(8, dtype=np.int32)
    shapes = ["f32[8]", "s32[8]"]
    _, order = radix_sort(OLD, shapes, '{"descending":false}', [keys, places])
    assert order.tolist() == [3, 5, 2, 4, 7, 0, 6, 1]
    _, order = radix_sort(OLD, shapes, '{"descending":true}', [keys, places])
    assert order.tolist() == [1, 6, 0, 2, 4, 7, 5, 3]


def test_rows_lie_in_memory() -> None:
    """The library sees bytes: rows are as long as the last dimension, wherever the layout puts it."""
    text = call_module(OLD, "(s32[2,3]{0,1}, u8[8])", ["s32[2,3]{0,1}"], '{"descending":false}')
    x = np.array([[6, 4, 2], [5, 3, 1]], np.int32)
    # In memory: 6 5 4 3 2 1, in rows of three.
    assert run(text, [x])[0].tolist() == [[4, 6, 2], [5, 1, 3]]


@pytest.mark.parametrize("kind", ["f32", "bf16", "s32"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(kind: str, reverse: bool) -> None:
    shape = f"{kind}[2,7,3]"
    config = (
        f'{{"vector_length":"3","row_length":"7","column_length":"2","kind":"SUM",'
        f'"is_reverse":{str(reverse).lower()}}}'
    )
    (x,) = operands_of([shape], limit=50)
    text = call_module("xla.gpu.ext.cub_scan", f"({shape}, u8[100])", [shape], config)
    result = run(text, [x])[0]
    wide = x.astype(np.float64)
    expected = np.cumsum(wide[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(wide, axis=1)
    np.testing.assert_array_equal(result, rounded_to(kind, expected))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('{"vector_length":"1","row_length":"7","column_length":"2","kind":"SUM"}', "over dimensions"),
        ('{"vector_length":"3","row_length":"7","column_length":"2"}', "no sum"),
    ],
)
def test_scans_that_are_refused(config: str, reason: str) -> None:
    text = call_module("xla.gpu.ext.cub_scan", "(f32[2,7,3], u8[100])", ["f32[2,7,3]"], config)
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text))
