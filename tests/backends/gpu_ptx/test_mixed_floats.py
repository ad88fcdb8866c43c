"""Arithmetic in f32 on operands of f16 and bf16, as code for B200 has it (PTX ISA 8.6, "Mixed Precision")."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.ptx import kernel_text, run_kernel

KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
READ = """mul.wide.u32 %d1, %r60, 4; add.u64 %d2, %d1, %d60; add.u64 %d3, %d1, %d61; add.u64 %d4, %d1, %d62;
ld.global.f32 %f1, [%d2]; ld.global.f32 %f2, [%d3]; cvt.rn.KIND.f32 %h1, %f1; cvt.rn.KIND.f32 %h2, %f2;
OPERATION
st.global.f32 [%d4], %f3;"""


def _toward_zero(exact: Fraction) -> np.float32:
    nearest = np.float32(float(exact))
    if abs(Fraction(float(nearest))) > abs(exact):
        return np.nextafter(nearest, np.float32(0))
    return nearest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("operation", "exact"),
    [
        ("add.rz.f32.KIND %f3, %h1, %f2;", lambda a, b, c: a + c),
        ("sub.rz.f32.KIND %f3, %h1, %f2;", lambda a, b, c: a - c),
        ("fma.rz.f32.KIND %f3, %h1, %h2, %f2;", lambda a, b, c: a * b + c),
    ],
)
def test_operands_of_a_narrower_type(kind: str, operation: str, exact: Any) -> None:
    """Towards zero, against exact fractions."""
    x, y = np.random.default_rng(5).normal(size=(2, 32)).astype(np.float32)
    body = READ.replace("OPERATION", operation).replace("KIND", kind)
    (found,), _ = run_kernel(kernel_text(body, 3), [x, y], [(32, np.float32)])
    narrow = [values.astype(KINDS[kind]).astype(np.float64).tolist() for values in (x, y)]
    expected = [
        _toward_zero(exact(Fraction(a), Fraction(b), Fraction(c)))
        for a, b, c in zip(*narrow, y.astype(np.float64).tolist())
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
