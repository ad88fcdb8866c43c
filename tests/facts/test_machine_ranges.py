"""What values are sure to be in the arithmetic of the machine; each bound follows from IEEE 754, or HLO."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hlotool.facts.flow import CallGraph
from hlotool.facts.machine_range import MachineRange, of_value, rounded
from hlotool.facts.machine_ranges import MachineRanges
from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module

INF = math.inf
PARAMETERS = """
  x = f32[4] parameter(0) y = f32[4] parameter(1) i = s32[4] parameter(2) h = f16[4] parameter(3)
  one = f32[4] constant({1, 1, 1, 1}) b = f32[4] constant({-2, 3, 0, 1})
  t = f32[4] tanh(x) s = f32[4] convert(i)
  zero = f32[] constant(0) low = f32[] constant(-inf)
"""


def range_of_root(body: str) -> MachineRange:
    module = parse_module(
        "HloModule m\nadd { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }\n"
        "max { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] maximum(p, q) }\n"
        "any { p = pred[] parameter(0) q = pred[] parameter(1) ROOT r = pred[] add(p, q) }\n"
        f"ENTRY e {{ {PARAMETERS} {body} }}"
    )
    return MachineRanges(CallGraph(module)).of(module.entry.root)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # NaN comes from infinities of both signs, and from 0 times infinity.
        ("ROOT r = f32[4] add(x, y)", MachineRange(-INF, INF, True, True)),
        ("ROOT r = f32[4] add(b, one)", MachineRange(-1, 4, False, False)),
        ("ROOT r = f32[4] multiply(b, one)", MachineRange(-2, 3, False, True)),
        ("ROOT r = f32[4] multiply(s, s)", MachineRange(0, 2.0**62, False, False)),
        ("ROOT r = f32[4] divide(one, b)", MachineRange(-INF, INF, False, True)),
        ("ROOT r = f32[4] subtract(one, one)", MachineRange(0, 0, False, False)),
        # 0x3f800000 is 1; with 23 more bits it is anything below 2. 9 bits less are 23.
        ("u = u32[4] bitcast-convert(i) n = u32[4] constant({9, 9, 9, 9}) "
         "w = u32[4] shift-right-logical(u, n) "
         "e = u32[4] constant({1065353216, 1065353216, 1065353216, 1065353216}) o = u32[4] or(w, e) "
         "ROOT r = f32[4] bitcast-convert(o)", MachineRange(1, 2 - 2.0**-23, False, False)),
        # Sums of pred have no rounding.
        ("f = pred[] constant(false) c = pred[4] compare(x, y), direction=LT "
         "ROOT r = pred[] reduce(c, f), dimensions={0}, to_apply=any", MachineRange(0, 1, False, False)),
        ("f = pred[4] constant({0, 0, 0, 0}) c = pred[4] compare(x, y), direction=LT "
         "ROOT r = pred[] dot(c, f), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
         MachineRange(0, 0, False, False)),
        # A sign, and exponents of NaN.
        ("ROOT r = f32[4] bitcast-convert(i)", MachineRange(-INF, INF, True, True)),
        ("u = u32[4] bitcast-convert(i) n = u32[4] constant({1, 1, 1, 1}) "
         "w = u32[4] shift-right-logical(u, n) "
         "ROOT r = f32[4] bitcast-convert(w)", MachineRange(-INF, INF, True, True)),
        # f16 ends at 65504: what is larger becomes infinite.
        ("ROOT r = f16[4] convert(s)", MachineRange(-INF, INF, False, True)),
        ("ROOT r = f32[4] convert(h)", MachineRange(-INF, INF, True, True)),
        # tanh keeps NaN and -0, and never leaves [-1, 1].
        ("ROOT r = f32[4] tanh(x)", MachineRange(-1, 1, True, True)),
        ("ROOT r = f32[4] abs(t)", MachineRange(0, 1, True, False)),
        # rsqrt(-0) is -inf, sqrt(-0) is -0.
        ("ROOT r = f32[4] rsqrt(t)", MachineRange(-INF, INF, True, False)),
        ("ROOT r = pred[4] is-finite(s)", MachineRange(1, 1, False, False)),
        ("ROOT r = pred[4] is-finite(x)", MachineRange(0, 1, False, False)),
        ("ROOT r = pred[4] compare(t, t), direction=NE", MachineRange(0, 1, False, False)),
        ("three = f32[4] constant({3, 3, 3, 3}) ROOT r = pred[4] compare(t, three), direction=LT",
         MachineRange(0, 1, False, False)),
        ("three = f32[4] constant({3, 3, 3, 3}) ROOT r = pred[4] compare(t, three), direction=NE",
         MachineRange(1, 1, False, False)),
        ("ROOT r = f32[] reduce(b, low), dimensions={0}, to_apply=max", MachineRange(-2, 3, False, False)),
    ],
)  # fmt: skip
def test_ranges(body: str, expected: MachineRange) -> None:
    assert range_of_root(body) == expected


def test_sums_of_one_sign_keep_it_and_may_be_a_little_more() -> None:
    found = range_of_root("ROOT r = f32[] reduce(one, zero), dimensions={0}, to_apply=add")
    assert found.low == 0
    assert 4 <= found.high < 4.001
    assert not found.nan


def test_functions_of_libraries_may_be_off() -> None:
    """exp(1) is 2.718…, and no library has to return just that."""
    found = range_of_root("ROOT r = f32[4] exponential(one)")
    assert found.low < math.e < found.high < 2.7184


@pytest.mark.parametrize("kind", [ElementType.F32, ElementType.F16, ElementType.BF16, ElementType.F8E4M3FN])
def test_rounding_stays_within(kind: ElementType) -> None:
    rng = np.random.default_rng(0)
    for low in rng.uniform(-500, 500, 200):
        high = low + rng.uniform(0, 3)
        between = np.linspace(low, high, 9)
        least, most = rounded(low, high, kind)
        with np.errstate(all="ignore"):
            values = between.astype(dtype_of(kind)).astype(np.float64)
        values = values[~np.isnan(values)]
        assert ((least <= values) & (values <= most)).all()


def test_a_value_is_what_it_is() -> None:
    assert of_value(np.array([1.0, -0.0, np.nan], np.float32)) == MachineRange(-0.0, 1, True, True)
    assert of_value(np.array([2**63 - 1], np.int64)) == MachineRange(2**63 - 1, 2**63 - 1, False, False)


def test_a_scalar_of_numpy_is_a_value() -> None:
    assert of_value(np.asarray([7])[0]) == MachineRange(7, 7, nan=False, negative_zero=False)
