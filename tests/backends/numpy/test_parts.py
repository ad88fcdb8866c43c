"""Scatter, select-and-scatter and short reductions, which work on large arrays part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import Array, run

from hlotool.backends.numpy import reductions, threads
from hlotool.backends.numpy.kernels import scatter
from hlotool.lab.conformance.generators.cases import random_array


def in_parts(text: str, arguments: list[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array]:
    """The result at once and in the smallest parts there are."""
    (at_once,) = run(text, arguments)
    monkeypatch.setattr(scatter, "_PART_ELEMENTS", 1)
    monkeypatch.setattr(scatter, "_PART_ELEMENTS", 1)
    monkeypatch.setattr(threads, "_ELEMENTS", 1)
    (in_parts,) = run(text, arguments)
    return at_once, in_parts


SCATTER = """HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {combine}
}}
ENTRY e {{
  x = f32[5,6] parameter(0)
  i = s32[{indices}] parameter(1)
  u = f32[{updates}] parameter(2)
  ROOT r = f32[5,6] scatter(x, i, u), to_apply=f, {dims}
}}"""
ROWS = "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}"
ELEMENTS = "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}"


@pytest.mark.parametrize(
    "combine", ["add(a, b)", "multiply(b, a)", "maximum(a, b)", "subtract(a, b)", "copy(b)"]
)
@pytest.mark.parametrize(
    ("indices", "updates", "dims"),
    [
        ("4,3,1", "4,3,6", f"update_window_dims={{2}}, {ROWS}, index_vector_dim=2"),
        ("4,3", "6,4,3", f"update_window_dims={{0}}, {ROWS}, index_vector_dim=2"),
        ("4,2,3", "4,3", f"{ELEMENTS}, index_vector_dim=1"),
        ("2,4,3", "4,3", f"{ELEMENTS}, index_vector_dim=0"),
        ("2", "", f"{ELEMENTS}, index_vector_dim=0"),
        ("1", "6", f"update_window_dims={{0}}, {ROWS}, index_vector_dim=0"),
    ],
)
def test_scatter(
    combine: str, indices: str, updates: str, dims: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some windows lie outside, many positions occur several times."""

    def sizes(text: str) -> tuple[int, ...]:
        return tuple(map(int, filter(None, text.split(","))))

    rng = np.random.default_rng(0)
    text = SCATTER.format(combine=combine, indices=indices, updates=updates, dims=dims)
    starts = rng.integers(-1, 6, sizes(indices), np.int32)
    arguments = [random_array(rng, "f32", (5, 6)), starts, random_array(rng, "f32", sizes(updates))]
    at_once, parts = in_parts(text, arguments, monkeypatch)
    assert at_once.tobytes() == parts.tobytes()


@pytest.mark.parametrize(
    "window", ["size=1x3x2 stride=1x2x1", "size=2x3x2 stride=1x2x1", "size=1x2x2 stride=2x2x2"]
)
def test_select_and_scatter(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = {"1x3x2": 4, "2x3x2": 3, "1x2x2": 2}[window[5:10]]
    source = {"1x3x2": "3,5", "2x3x2": "3,5", "1x2x2": "3,3"}[window[5:10]]
    text = f"""HloModule m
ge {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}}
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[4,7,6] parameter(0)
  s = f32[{batches},{source}] parameter(1)
  z = f32[] constant(0)
  ROOT r = f32[4,7,6] select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=sum
}}"""
    rng = np.random.default_rng(0)
    shape = (batches, *map(int, source.split(",")))
    arguments = [random_array(rng, "f32", (4, 7, 6)), random_array(rng, "f32", shape)]
    at_once, parts = in_parts(text, arguments, monkeypatch)
    assert at_once.tobytes() == parts.tobytes()


@pytest.mark.parametrize("opcode", ["add", "maximum"])
def test_short_reductions(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "_LARGE", 1)
    text = f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {opcode}(a, b)
}}
ENTRY e {{
  x = f32[4,7,3] parameter(0)
  z = f32[] constant(0.5)
  ROOT r = f32[4,7] reduce(x, z), dimensions={{2}}, to_apply=f
}}"""
    at_once, parts = in_parts(text, [random_array(np.random.default_rng(0), "f32", (4, 7, 3))], monkeypatch)
    assert at_once.tobytes() == parts.tobytes()


def test_few_columns_are_reduced_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "_VERY_LARGE", 1)
    monkeypatch.setattr(reductions, "_PART", 64)
    x = random_array(np.random.default_rng(0), "f32", (4, 50, 6))
    text = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,50,6] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[6] reduce(x, z), dimensions={0,1}, to_apply=sum
}"""
    (found,) = run(text, [x])
    # In f64, one row after the other, and rounded once.
    total = np.zeros(6)
    with np.errstate(all="ignore"):
        for row in x.reshape(-1, 6):
            total = total + row
        expected = total.astype(np.float32)
    np.testing.assert_array_equal(found, expected)
