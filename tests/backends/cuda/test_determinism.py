"""Results of kernels repeat to the bit: in other processes, with other threads, over other memory."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from support.kernel_fuzz import KINDS
from support.kernels import needs_compiler, on_kernels
from support.sanitized import TESTS

from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

#: Every block of memory comes from the heap, filled with a byte that depends on the number.
_ON_THE_HEAP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 26)}

_ENVIRONMENTS = (
    {"HLOTOOL_THREADS": "1"},
    {"HLOTOOL_THREADS": "3"},
    {**_ON_THE_HEAP, "MALLOC_PERTURB_": "1"},
    {**_ON_THE_HEAP, "MALLOC_PERTURB_": "165"},
)


def _digests(kind: str, first: int, count: int, environment: dict[str, str]) -> list[str]:
    command = [sys.executable, "-m", "support.result_bits", kind, str(first), str(count)]
    path = os.pathsep.join(map(str, (TESTS.parent, TESTS)))
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 240, marks=pytest.mark.slow)])
def test_results_repeat(first: int, count: int, kind: str) -> None:
    expected, *others = (_digests(kind, first, count, environment) for environment in _ENVIRONMENTS)
    assert len(expected) >= count
    assert all(digests == expected for digests in others)


#: The product of complex numbers, by itself and as what it is made of.
_ROTATIONS = {
    "product": """
  z = c64[16] parameter(0)
  w = c64[16] parameter(1)
  p = pred[16] parameter(2)
  zw = c64[16] multiply(z, w)
  ROOT r = c64[16] select(p, zw, zw)""",
    "parts": """
  z = c64[16] parameter(0)
  w = c64[16] parameter(1)
  x = f32[16] real(z)
  y = f32[16] imag(z)
  c = f32[16] real(w)
  s = f32[16] imag(w)
  xc = f32[16] multiply(x, c)
  ys = f32[16] multiply(y, s)
  xs = f32[16] multiply(x, s)
  yc = f32[16] multiply(y, c)
  a = f32[16] subtract(xc, ys)
  b = f32[16] add(xs, yc)
  p = pred[16] parameter(2)
  zw = c64[16] complex(a, b)
  ROOT r = c64[16] select(p, zw, zw)""",
}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", _ROTATIONS)
def test_products_are_rounded_before_they_are_added(name: str, backward: bool) -> None:
    """Neighbours of which one is a difference and one a sum are what GCC contracts although told not to."""
    rng = np.random.default_rng(0)
    z, w = (rng.standard_normal(32).astype(np.float32).view(np.complex64) for _ in range(2))
    parts = z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real
    chosen = rng.integers(0, 2, 16).astype(bool)
    (result,) = on_kernels(
        parse_module(f"HloModule m\nENTRY main {{{_ROTATIONS[name]}\n}}\n"), [z, w, chosen], backward
    )
    np.testing.assert_array_equal([result.real, result.imag], parts)
