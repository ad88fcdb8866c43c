"""The cases of `hlotool/lab/conformance/spec/*.hlo`, whose results real XLA gave, in the field.

Numbers that are simple fractions stay so: what XLA computed from them, rounded, must be what the field has.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.field import evaluated

from hlotool.errors import Unsupported
from hlotool.ir.arrays import Array
from hlotool.ir.types import ArrayShape, leaves
from hlotool.lab.conformance.spec_files import SpecCase, read_spec, result_leaves, spec_files

#: Without a value of their own: the laws that they have are tested elsewhere.
OPAQUE = {
    "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosh", "cosine", "erf", "exponential",
    "exponential-minus-one", "log", "log-plus-one", "logistic", "rng", "rsqrt", "sine", "sinh",
    "sqrt", "tan", "tanh",
}  # fmt: skip

#: Magnitudes in between are recognised when they come out of a computation.
SMALLEST, LARGEST = 1e-4, 1e4

#: Case → why the field has something else.
OTHERWISE = {
    "add: f4e2m1fn saturates": "nothing saturates",
    "batch-norm-grad: with respect to operand, scale and offset": "roots are no fractions",
    "batch-norm-inference: f64": "roots are no fractions",
    "batch-norm-training: output, mean, biased variance": "roots are no fractions",
    "batch-norm-training: another feature dimension": "roots are no fractions",
    "bitcast-convert: f8 to u8": "there is no -0",
    "cholesky: the lower factor": "modulo Q a root has either sign",
    "cholesky: the upper factor": "modulo Q a root has either sign",
    "cholesky: batches": "modulo Q a root has either sign",
    "cholesky: complex": "modulo Q a root has either sign",
    "cholesky: imaginary parts of the diagonal are ignored": "modulo Q a root has either sign",
    "convert: s32 to f4e2m1fn": "nothing saturates",
    "convert: u8 to f8e8m0fnu": "nothing is rounded",
    "convert: f64 to bf16 goes through f32": "nothing is rounded",
    "custom-call: lapack_spotrf_ffi: the other triangle is left as it was": "a black box",
    "dot: f8e4m3fn operands": "nothing is rounded",
    "fft: a length that is not a power of two": "cosines are no fractions",
    "fft: a real signal gives half of the spectrum": "cosines are no fractions",
    "fft: and back, an odd length": "cosines are no fractions",
    "fft: c128": "cosines are no fractions",
    "fft: two dimensions": "cosines are no fractions",
    "fusion: every instruction rounds to its own type": "nothing is rounded",
    "iota: f4e2m1fn saturates": "nothing saturates",
    "map: bits of scalars": "there is no -0",
    "multiply: f4e2m1fn": "nothing is rounded",
    "power: bf16": "2^(1/2) is no fraction",
    "power: complex zero and one": "powers of complex numbers have no laws",
    "reduce-precision: ties to even": "nothing is rounded",
    "reduce-precision: rank 0": "nothing is rounded",
    "rng-bit-generator: f32 results are raw bits": "fractions of such terms are not recognised",
    "topk: total order: +0 over -0": "there is no -0",
}

CASES = [
    case for path in spec_files() for case in read_spec(path) if case.opcode not in OPAQUE and not case.error
]


def values(case: SpecCase) -> list[Array]:
    module = case.module
    found = []
    for device in range(len(case.grid)):
        shapes = [s for p in module.entry.parameters for _, s in leaves(p.shape)]
        given = [leaf for value in case.arguments(module, device) for leaf in flat(value)]
        expected = case.expected(module, device)
        pairs = zip([*shapes, *result_leaves(module)], [*given, *expected])
        found += [np.asarray(value) for shape, value in pairs if isinstance(shape, ArrayShape)]
    return [array for array in found if array.dtype.kind not in "biu" and array.dtype.names is None]


def flat(value: object) -> list[object]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def is_moderate(array: Array) -> bool:
    """Neither NaN nor infinite nor of a size that the field does not recognise; integers of few bits are."""
    with np.errstate(all="ignore"):
        wide = array.astype(np.complex128)
    parts = np.abs(np.concatenate([wide.real.ravel(), wide.imag.ravel()]))
    return bool(np.all((parts == 0) | ((parts >= SMALLEST) & (parts <= LARGEST))))


MODERATE = [case for case in CASES if all(map(is_moderate, values(case)))]


def test_exceptions_are_cases() -> None:
    assert OTHERWISE.keys() <= set(map(str, MODERATE))


@pytest.mark.parametrize("case", [case for case in MODERATE if str(case) not in OTHERWISE], ids=str)
def test_case(case: SpecCase) -> None:
    module = case.module
    arguments = [case.arguments(module, device) for device in range(len(case.grid))]
    try:
        results = evaluated(module, arguments, case.grid, seed=5)
    except Unsupported as error:
        pytest.skip(error.reason)
    for device, result in enumerate(results):
        for shape, value, wanted in zip(result_leaves(module), result, case.expected(module, device)):
            if isinstance(shape, ArrayShape):
                check(shape, np.asarray(value), np.asarray(wanted))


def check(shape: ArrayShape, value: Array, wanted: Array) -> None:
    if not shape.element_type.is_inexact:
        assert np.array_equal(value, wanted)
        return
    # What XLA rounded to its type; many cases round more than once.
    rounding = {8: 0.13, 16: 1e-2}.get(shape.element_type.real_part.bits, 1e-4)
    wide = wanted.astype(np.complex128)
    assert value.shape == wide.shape
    assert np.allclose(value, wide, rtol=rounding, atol=1e-6)
