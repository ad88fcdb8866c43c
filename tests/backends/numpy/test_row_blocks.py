"""Rows in several parts give what they give at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import run

from hlotool.backends.numpy import threads
from hlotool.backends.numpy.threads import by_rows
from hlotool.lab.conformance.generators.cases import random_array


@pytest.mark.parametrize("dims", [(5,), (6, 5), (1, 6, 5), (2, 7, 3), (7, 2, 3), (0, 3), (3, 0)])
@pytest.mark.parametrize("elements", [1, 4, 10, 1000])
def test_every_row_is_seen_once(
    dims: tuple[int, ...], elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_ELEMENTS", elements)
    x, y = (np.random.default_rng(seed).normal(size=dims) for seed in range(2))
    total, first = by_rows(lambda rows: [rows[0] + rows[1], rows[0][..., :1]], [x, y])
    assert np.array_equal(total, x + y)
    assert np.array_equal(first, x[..., :1])


SORT = """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[6,7,4] parameter(0)
  i = s32[6,7,4] parameter(1)
  ROOT r = (f32[6,7,4], s32[6,7,4]) sort(x, i), dimensions={1}, to_apply=less
}"""

TOP = """HloModule m
ENTRY e {
  x = f32[6,7,4] parameter(0)
  ROOT r = (f32[6,7,2], s32[6,7,2]) topk(x), k=2, largest=true
}"""

CUMULATIVE = """HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {opcode}(a, b)
}}
ENTRY e {{
  x = f32[6,7,4] parameter(0)
  z = f32[] constant(1)
  ROOT r = f32[6,7,4] reduce-window(x, z), window={{size=1x7x1 pad=0_0x{pad}x0_0}}, to_apply=f
}}"""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (SORT, ("f32", "s32")),
        (TOP, ("f32",)),
        *((CUMULATIVE.format(opcode=o, pad=p), ("f32",)) for o in ("add", "maximum") for p in ("6_0", "0_6")),
    ],
)
def test_kernels(text: str, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arguments: list[Any] = [random_array(rng, kind, (6, 7, 4)) for kind in kinds]
    at_once = run(text, arguments)
    monkeypatch.setattr(threads, "_ELEMENTS", 16)
    in_parts = run(text, arguments)
    for a, b in zip(at_once, in_parts, strict=True):
        assert a.tobytes() == b.tobytes()
