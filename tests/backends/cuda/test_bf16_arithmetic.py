"""Sums and products of bf16 round once, so that hardware that computes in bf16 gives the same bits.

`prelude/elements.h` adds pairs of bf16 by one instruction where a GPU has it, and elsewhere rounds what f32
gives. Expected are the exact results, rounded once, to nearest even (PTX ISA, add.rn.bf16x2).
"""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.elementwise import corner_pairs
from support.gpu_kernels import kernels_of
from support.kernels import needs_compiler, on_kernels

from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.toolchain import find_nvcc
from hlotool.ir.arrays import Array
from hlotool.parser.reader import parse_module

#: The exponent of the smallest number of bf16, and the pattern of infinity.
_LEAST, _INFINITY = -133, 0x7F80

_TEXT = """HloModule m
ENTRY e {{
  a = {t}[{n}] parameter(0)
  b = {t}[{n}] parameter(1)
  s = {t}[{n}] add(a, b)
  d = {t}[{n}] subtract(a, b)
  p = {t}[{n}] multiply(a, b)
  ROOT r = ({t}[{n}], {t}[{n}], {t}[{n}]) tuple(s, d, p)
}}
"""


def _whole(value: Array) -> list[int]:
    """Finite numbers as multiples of the smallest one."""
    return [int(v) for v in np.ldexp(value.astype(np.float64), -_LEAST)]


def _rounded(numerator: int, shift: int) -> int:
    """The pattern, without its sign, of |numerator| * 2^-shift smallest numbers, rounded to nearest even."""
    size = abs(numerator)
    dropped = max(shift, size.bit_length() - 8)
    quotient, rest = divmod(size, 1 << dropped) if dropped > 0 else (size << -dropped, 0)
    half = 1 << (dropped - 1) if dropped > 0 else 0
    quotient += rest > half or (rest == half and rest > 0 and quotient & 1)
    # Significands have 8 bits; the sum with the exponent's field carries into it.
    return min(quotient + ((dropped - shift) << 7), _INFINITY)


def _pairs() -> tuple[Array, Array]:
    """Corner values, and random patterns of near and far exponents."""
    a, b = corner_pairs("bf16", 20000)
    bits = np.random.default_rng(5).integers(0, 1 << 16, (2, 40000)).astype(np.uint16)
    bits[1, :20000] = bits[0, :20000] ^ (bits[1, :20000] & 0x87FF)
    near = bits.view(ml_dtypes.bfloat16)
    a, b = np.concatenate([a, near[0]]), np.concatenate([b, near[1]])
    finite = np.isfinite(a.astype(np.float32)) & np.isfinite(b.astype(np.float32))
    return a[finite], b[finite]


@needs_compiler
def test_one_rounding() -> None:
    a, b = _pairs()
    found = on_kernels(parse_module(_TEXT.format(t="bf16", n=len(a))), [a, b])
    for got, operation in zip(found, ("add", "subtract", "multiply")):
        left, right = _whole(a), _whole(b)
        if operation == "multiply":
            exact, shift = [x * y for x, y in zip(left, right)], -_LEAST
        else:
            exact, shift = [x + y if operation == "add" else x - y for x, y in zip(left, right)], 0
        expected = np.array([_rounded(value, shift) for value in exact], np.uint16)
        patterns = got.view(np.uint16)
        assert np.array_equal(patterns & 0x7FFF, expected)
        signed = np.array([value < 0 for value in exact])
        is_zero = np.array([value == 0 for value in exact])
        assert np.array_equal((patterns >> 15).astype(bool)[~is_zero], signed[~is_zero])


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_for_every_generation(kind: str, architecture: str, tmp_path: Path) -> None:
    """Each way of rounding, software's and hardware's, is one that nvcc takes, and spills nothing."""
    kernels = kernels_of(parse_module(_TEXT.format(t=kind, n=1 << 17)))
    compiled = compile_kernels(kernels, architecture, folder=tmp_path)
    assert all(c.resources.registers and not c.resources.spill_stores for c in compiled.values())


def test_the_instructions_are_those_of_the_source() -> None:
    """Bf16 is added as such; other types, and conversions between types, are not."""
    (bf16,) = kernels_of(parse_module(_TEXT.format(t="bf16", n=64)))
    (f16,) = kernels_of(parse_module(_TEXT.format(t="f16", n=64)))
    assert re.findall(r"bf16_\w+\(", bf16.source) == ["bf16_sum(", "bf16_difference(", "bf16_product("]
    assert "bf16_" not in f16.source
