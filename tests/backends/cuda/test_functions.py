"""Functions of f32 that the kernels bring along: close to the mathematical value everywhere."""

from __future__ import annotations

from math import erf

import numpy as np
import numpy.typing as npt
import pytest
from support.kernels import differing, emulator, needs_compiler

from hlotool.facts.float_order import ulp_distance
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_FUNCTIONS = {
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "tanh": np.tanh,
    "erf": np.vectorize(erf, otypes=[np.float64]),
}
_SIZE = 1 << 16
#: As `prelude/functions.h` says.
_ULPS = 3


def _values() -> npt.NDArray[np.float32]:
    """Every kind of f32, most of them where the functions are not constant."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 1 << 32, _SIZE // 2, np.uint64).astype(np.uint32).view(np.float32)
    near = np.float32(10) ** rng.uniform(-6, 2.2, _SIZE // 2 - 8) * rng.choice([-1, 1], _SIZE // 2 - 8)
    corners = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e-45, -1e-45]
    return np.concatenate([patterns, near.astype(np.float32), np.array(corners, np.float32)])


@pytest.mark.parametrize("opcode", _FUNCTIONS)
def test_within_three_units_in_the_last_place(opcode: str) -> None:
    shape = f"f32[{_SIZE}]"
    module = parse_module(
        f"HloModule f\nENTRY main {{\n  x = {shape} parameter(0)\n  ROOT r = {shape} {opcode}(x)\n}}\n"
    )
    x = _values()
    found, backward = (np.asarray(emulator(order).compile(module).run([x])) for order in (False, True))
    assert differing(found, backward) == 0
    with np.errstate(all="ignore"):
        expected = np.asarray(_FUNCTIONS[opcode](x.astype(np.float64))).astype(np.float32)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    known = ~np.isnan(expected)
    assert ulp_distance(found[known], expected[known], ElementType.F32).max() <= _ULPS
    zero = expected == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
