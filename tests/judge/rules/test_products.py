"""Products that overflow in another order, and functions that are exact nowhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.judging import executed, judged_leaf

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.noise import Member
from hlotool.backends.numpy.executions.policy import Policy
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.ir.arrays import Array
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.parser.reader import parse_module

F32 = np.float32

BIG_PRODUCT = """ENTRY e {
  x = f32[12] parameter(0)
  b = f32[] constant(1e30)
  big = f32[12] broadcast(b), dimensions={}
  s = f32[] constant(1e-30)
  small = f32[12] broadcast(s), dimensions={}
  u = f32[12] multiply(x, big)
  v = f32[12] multiply(u, small)
  ROOT w = f32[12] multiply(v, big)
}"""


def test_a_product_that_overflows_in_another_order_is_range() -> None:
    """1e60 occurs where the two large factors meet first: the result of no text at hand."""
    x = np.linspace(0.5, 2, 12).astype(F32)
    assert judged_leaf(BIG_PRODUCT, [x], np.full(12, np.inf, F32)).verdict is Verdict.RANGE
    reordered = executed(BIG_PRODUCT, [x])
    reordered[3:] = np.inf
    assert judged_leaf(BIG_PRODUCT, [x], reordered).verdict is Verdict.RANGE
    other_way_round = BIG_PRODUCT.replace("multiply(u, small)", "multiply(u, big)")
    other_way_round = other_way_round.replace("multiply(v, big)", "multiply(v, small)")
    assert judged_leaf(other_way_round, [x], executed(BIG_PRODUCT, [x])).verdict is Verdict.RANGE
    assert judged_leaf(other_way_round, [x], np.full(12, 3, F32)).verdict is Verdict.WRONG
    wrong = np.full(12, np.inf, F32)
    wrong[0] = 7
    assert judged_leaf(BIG_PRODUCT, [x], wrong).verdict is Verdict.WRONG
    ordinary = BIG_PRODUCT.replace("1e30", "10").replace("1e-30", "0.1")
    assert judged_leaf(ordinary, [x], np.full(12, np.inf, F32)).verdict is Verdict.WRONG


REDUCED_PRODUCT = """mul {
  a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT m = f16[] multiply(a, b)
}
ENTRY e {
  x = f16[5] parameter(0)
  c = f16[] constant(0.25)
  cs = f16[5] broadcast(c), dimensions={}
  scaled = f16[5] multiply(x, cs)
  one = f16[] constant(1)
  ROOT r = f16[] reduce(scaled, one), dimensions={0}, to_apply=mul
}"""


def test_a_factor_that_is_taken_out_of_a_reduction_is_range() -> None:
    """LLVM multiplies by 0.25 five times in the end: until then there is a number that f16 does not hold."""
    x = np.array([-16.5, -10.1, 18.9, 16.4, 15.9], np.float16)
    infinite = np.full((), np.inf, np.float16)
    assert judged_leaf(REDUCED_PRODUCT, [x], infinite).verdict is Verdict.RANGE
    assert judged_leaf(REDUCED_PRODUCT, [x], -infinite).verdict is Verdict.WRONG
    assert judged_leaf(REDUCED_PRODUCT, [x / 8], infinite).verdict is Verdict.WRONG
    with_start = REDUCED_PRODUCT.replace("constant(1)", "constant(2)")
    assert judged_leaf(with_start, [x / 2], infinite).verdict is Verdict.WRONG


@pytest.mark.parametrize(("opcode", "verdict"), [("cbrt", Verdict.ROUNDING), ("sqrt", Verdict.WRONG)])
def test_the_cube_root_of_a_cube_need_not_be_whole(opcode: str, verdict: Verdict) -> None:
    """jaxlib 0.6 gives 4 less an ulp of f16 for 64. Square roots are rounded correctly."""
    text = f"""ENTRY e {{
  x = f16[4] parameter(0)
  r = f16[4] {opcode}(x)
  ROOT c = f32[4] convert(r)
}}"""
    x = np.array([64, 729, 4096, 4096], np.float16)
    actual = executed(text, [x])
    actual[3] -= np.spacing(np.float16(actual[3]))
    assert judged_leaf(text, [x], actual).verdict is verdict


SQUARES = """ENTRY e {
  z = c64[64] parameter(0)
  w = c64[64] OPERATION
  r = f32[64] real(w)
  ROOT c = f64[64] convert(r)
}"""
#: Ways to multiply a number by itself.
WAYS = {
    "multiply": "multiply(z, z)",
    "dot": "dot(z, z), lhs_batch_dims={0}, rhs_batch_dims={0}, "
    "lhs_contracting_dims={}, rhs_contracting_dims={}",
}


def _square(seed: int) -> tuple[Array, list[Array]]:
    """Numbers whose parts are nearly the same; the real parts of their squares, as processors make them.

    Both products are rounded, or the first, or the second alone.
    """
    rng = np.random.default_rng(seed)
    real = rng.uniform(1, 2, 64).astype(np.float32)
    imag = (real * (1 + rng.uniform(-1e-3, 1e-3, 64))).astype(np.float32)
    imag[0] = real[0]  # Of the real part nothing is left, or what one product has lost.
    exact = [np.square(part.astype(np.float64)) for part in (real, imag)]
    rounded = [np.square(part).astype(np.float64) for part in (real, imag)]
    ways = [(rounded[0], rounded[1]), (rounded[0], exact[1]), (exact[0], rounded[1])]
    z = (real + 1j * imag).astype(np.complex64)
    return z, [np.float32(one - other).astype(np.float64) for one, other in ways]


@pytest.mark.parametrize("way", WAYS)
def test_the_real_part_of_a_product_may_keep_one_rounding_less(way: str) -> None:
    """XLA:CPU fuses one product with the subtraction (FMA): what cancels leaves another number."""
    text = SQUARES.replace("OPERATION", WAYS[way])
    for seed in range(4):
        z, results = _square(seed)
        expected = executed(text, [z])
        assert any((np.abs(real - expected) > 1e-6 * np.abs(expected)).any() for real in results)
        for real in results:
            assert judged_leaf(text, [z], real).verdict.answer is not Answer.BAD
            real[5] += 1e-3
            assert judged_leaf(text, [z], real).verdict.answer is Answer.BAD


def test_parts_of_a_product_that_are_exact_stay() -> None:
    """A real number times a real one has no imaginary part in any execution."""
    text = SQUARES.replace("OPERATION", WAYS["multiply"]).replace("real(w)", "imag(w)")
    z = np.linspace(1.1, 1.9, 64).astype(np.complex64)
    assert judged_leaf(text, [z], np.full(64, 1e-9)).verdict.answer is Answer.BAD


@pytest.mark.parametrize("member", range(1, 6))
def test_parts_that_are_infinite_or_negative_zeros_stay(member: int) -> None:
    """Times a real number, in every execution that leaves signs of zeros alone."""
    text = "ENTRY e { z = c64[3] parameter(0) w = c64[3] parameter(1) ROOT r = c64[3] multiply(z, w) }"
    z = np.array([complex(-0.0, 1.3), complex(np.inf, 1.1), complex(1.7, -0.0)], np.complex64)
    w = np.array([3.1, 3.1, 3.1], np.complex64)
    module = parse_module(text)
    plain = NumpyBackend().compile(module).run([z, w])
    varied = VariedBackend(Policy(varied=True), Member(member)).compile(module).run([z, w])
    for one, other in ((plain.real, varied.real), (plain.imag, varied.imag)):
        assert np.array_equal(np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(other)]))
        assert np.array_equal(np.isfinite(one), np.isfinite(other))
        assert np.array_equal(np.isinf(one), np.isinf(other))


SCALED = """mul {
  a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT m = f16[] multiply(a, b)
}
ENTRY e {
  x = f16[7,2] parameter(0)
  c = f16[] constant(0.25)
  cs = f16[7,2] broadcast(c), dimensions={}
  scaled = f16[7,2] multiply(x, cs)
  one = f16[] constant(1)
  ROOT r = f16[2] reduce(scaled, one), dimensions={0}, to_apply=mul
}"""
WINDOWS = """mul {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] multiply(a, b)
}
ENTRY e {
  x = f32[6] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[3] reduce-window(x, one), window={size=4}, to_apply=mul
}"""


def test_a_zero_that_comes_after_an_overflow() -> None:
    """What jaxlib 0.10.2 gives: it multiplies the 8s first, and takes the quarters out of the loop."""
    x = np.float16([[2, 8], [0, 8], [8, 8], [3, 7], [7, 8], [8, 8], [8, 0]])
    assert not executed(SCALED, [x]).any()
    assert judged_leaf(SCALED, [x], np.float16([0, np.nan])).verdict is Verdict.RANGE
    for faulty in ([np.nan, 3], [1, 0], [0, 3]):
        assert judged_leaf(SCALED, [x], np.float16(faulty)).verdict is Verdict.WRONG
    tame = np.where(x == 8, np.float16(0.5), x)
    assert judged_leaf(SCALED, [tame], np.float16([0, np.nan])).verdict is Verdict.WRONG


def test_zeros_and_overflows_in_windows() -> None:
    x = F32([1e20, 0, 1e20, 1e10, 1e-20, 3])
    expected = executed(WINDOWS, [x])
    assert expected.tolist() == [0, 0, expected[2]]
    for actual in ([np.nan, 0, expected[2]], [0, 0, expected[2]]):
        assert judged_leaf(WINDOWS, [x], F32(actual)).verdict.answer is Answer.GOOD
    for faulty in ([0, np.nan, expected[2]], [0, 0, np.nan], [np.nan, 0, 2 * expected[2]]):
        assert judged_leaf(WINDOWS, [x], F32(faulty)).verdict is Verdict.WRONG
