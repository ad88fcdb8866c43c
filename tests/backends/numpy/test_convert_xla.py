"""convert and bitcast-convert against XLA, between all element types."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, check, run
from support.elementwise import COMPLEX, FLOATS, PRED, SIGNED, UNSIGNED, Operation, both, by_speed

from hlotool.ir.arrays import DTYPES
from hlotool.ir.printed_literals import array_text
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.agreement import differing, flushed, is_float
from hlotool.lab.conformance.generators.cases import Case, corner_values
from hlotool.lab.conformance.judging import OPEN
from hlotool.lab.conformance.trials import Difference
from hlotool.parser.reader import parse_module

ALL = (PRED, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)


@np.errstate(all="ignore")
def samples(name: str) -> Array:
    """Corner values, ties of narrower types and their neighbours, random bit patterns."""
    corners = corner_values(name)
    kind = ELEMENT_TYPES[name]
    if kind.bits <= 8 or kind.is_complex:
        return corners
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 256, 1000 * corners.dtype.itemsize, np.uint8).view(corners.dtype)
    ties = rng.integers(0, 512, 2000) / 256.0 * 2.0 ** rng.integers(-20, 21, 2000)
    if kind.is_integer:
        ties = np.abs(ties) % (2.0 ** (kind.bits - 1))
        more = [ties, ties + 1]
    else:
        more = [ties, -ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40), ties * (1 + 2.0**-20)]
    numbers = np.concatenate(more).astype(np.float64)
    if kind.is_floating and kind.bits < 64:
        numbers = numbers.astype(np.float32)
    return np.concatenate([corners, patterns, numbers.astype(corners.dtype)])


@np.errstate(all="ignore")
def known_difference(source: str, target: str, values: Array) -> Array:
    """Where XLA's CPU code departs from the rules of `casting`."""
    wide = np.abs(values.astype(np.complex128))
    if source == "f4e2m1fn" and ELEMENT_TYPES[target].is_integer:
        return np.asarray(wide == 6)  # taken for infinity
    return np.zeros(values.shape, np.bool_)


def by_processor(source: str, target: str, values: Array, ours: Array, theirs: Array) -> Array:
    """Where XLA converts at once, or by way of f16, because the processor can (AVX512-FP16)."""
    module = parse_module(f"r = {target}[{values.size}] convert({source}[{values.size}])")
    difference = Difference(Case(0, "convert", module, [values]), 0, ELEMENT_TYPES[target], ours, theirs)
    return OPEN["conversion-by-way-of-another-type"].explains(difference)


@pytest.mark.xla
@pytest.mark.parametrize("source", by_speed(ALL, "pred s4 s64 u32 f4e2m1fn f8e4m3fn bf16 f32 f64"))
def test_convert(source: str) -> None:
    values = samples(source)
    targets = [t for t in ALL if not (source in COMPLEX and t == PRED)]  # XLA dies on complex to pred
    operations = [Operation("convert", target, (0,)) for target in targets]
    for operation, (ours, theirs) in zip(operations, both(operations, [source], [values])):
        wrong = differing(ours, theirs) & ~known_difference(source, operation.result, values)
        wrong &= ~flushed(ours, theirs, [values])
        wrong &= ~by_processor(source, operation.result, values, ours, theirs)
        assert not wrong.any(), (operation.result, values[wrong][:5], ours[wrong][:5], theirs[wrong][:5])


def converted(source: str, target: str, *values: float) -> list[float]:
    text = f"HloModule m\nENTRY e {{\n  x = {source}[{len(values)}] parameter(0)\n"
    text += f"  ROOT y = {target}[{len(values)}] convert(x)\n}}"
    kind = ELEMENT_TYPES[source]
    wide = np.array(values, np.int64 if kind.is_integer else np.float64)
    with np.errstate(all="ignore"):
        result = run(text, [wide.astype(DTYPES[kind])])[0]
    return [float(v) for v in result.astype(np.float64)] if is_float(result) else result.astype(int).tolist()


def test_float_to_integer_saturates() -> None:
    """Measured with jaxlib 0.10.2: NaN is 0, values beyond the limits are the limits."""
    big = [np.nan, np.inf, -np.inf, 300.0, -300.0, 2.9, -2.9]
    assert converted("f32", "s8", *big) == [0, 127, -128, 127, -128, 2, -2]
    assert converted("f32", "u8", *big) == [0, 255, 0, 255, 0, 2, 0]
    assert converted("f64", "s64", np.nan, 1e30, -1e30, 2.0**53 + 2) == [0, 2**63 - 1, -(2**63), 2**53 + 2]
    assert converted("f32", "s32", 2147483648.0, -2147483648.0) == [2**31 - 1, -(2**31)]
    assert converted("f32", "s4", 9.0, -9.0) == [7, -8]
    assert converted("bf16", "pred", 0.0, -0.0, np.nan, 0.5) == [0, 0, 1, 1]


def test_integers_keep_their_low_bits() -> None:
    assert converted("s32", "s8", 300, -300, 128) == [44, -44, -128]
    assert converted("s32", "u4", 17, -1) == [1, 15]
    assert converted("s32", "s4", 8, 24, -9) == [-8, -8, 7]


def test_rounding_to_narrow_floats() -> None:
    """To f16 and bf16 f64 goes through f32, as on XLA's CPU; to f8 it is rounded once."""
    assert converted("f64", "bf16", 1 + 2.0**-8 + 2.0**-40) == [1.0]
    assert converted("f64", "f16", 1 + 2.0**-11 + 2.0**-40) == [1.0]
    assert converted("f64", "f8e4m3fn", 1 + 2.0**-4 + 2.0**-40) == [1.125]
    assert converted("s64", "bf16", 2**33 + 2**25 + 1) == [2.0**33]
    assert converted("f32", "f8e5m2", 61439.0, 61440.0) == [57344.0, np.inf]
    assert converted("f32", "f8e4m3", 247.0, 248.0) == [240.0, np.inf]
    overflow = converted("f32", "f8e4m3fn", 464.0, 465.0, np.inf)
    assert overflow[0] == 448
    assert np.isnan(overflow[1:]).all()
    f4 = converted("f32", "f4e2m1fn", np.inf, 100.0, -100.0, np.nan)
    assert f4 == [6, 6, -6, 0]
    assert np.signbit(f4[3])


@pytest.mark.xla
@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["f6e2m3fn", "f6e3m2fn"])
def test_six_bits_where_constants_are_folded(source: str, target: str) -> None:
    """All values, their ties and neighbours: XLA's CPU compiler knows no f6, its evaluator converts."""
    every = np.sort(corner_values(target).astype(np.float32))
    ties = (every[1:] + every[:-1]) / 2
    random = np.random.default_rng(0).normal(size=1000).astype(np.float32) * 8
    near = [np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([every, ties, *near, random, np.array([1e30, -1e30, 1e-40], np.float32)])
    text = f"""HloModule m
ENTRY e {{
  x = {source}[{values.size}] constant({array_text(values, ELEMENT_TYPES["f32"])})
  narrow = {target}[{values.size}] convert(x)
  twice = {target}[{values.size}] add(narrow, narrow)
  y = f32[{values.size}] convert(narrow)
  z = f32[{values.size}] convert(twice)
  ROOT r = (f32[{values.size}], f32[{values.size}]) tuple(y, z)
}}"""
    check(text, [])


def test_six_bits_have_a_byte() -> None:
    """XLA: the shape rule of bitcast-convert takes f6 for 8 bits; ml_dtypes would read the two above."""
    text = "HloModule m\nENTRY e {\n  x = u8[3] parameter(0)\n  ROOT y = f6e3m2fn[3] bitcast-convert(x)\n}"
    found = run(text, [np.array([0b001100, 0b11001100, 0b011111], np.uint8)])[0]
    assert found.astype(np.float32).tolist() == [1, 1, 28]
    assert converted("f32", "f6e2m3fn", np.inf, -100.0, np.nan) == [7.5, -7.5, 0]


@pytest.mark.xla
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("s4[2]", "s8[]"),
        ("s4[3,2]", "u8[3]"),
        ("s8[2]", "s4[2,2]"),
        ("u8[2]", "u2[2,4]"),
        ("u2[2,4]", "u8[2]"),
        ("f4e2m1fn[2,2]", "u8[2]"),
        ("f8e4m3fn[2]", "s4[2,2]"),
        ("f32[3]", "u8[3,4]"),
        ("u8[3,4]", "f32[3]"),
        ("s64[2,3]", "s32[2,3,2]"),
        ("u16[2,2]", "s32[2]"),
        ("s4[8]", "s32[]"),
        ("s32[2]", "s4[2,8]"),
        ("bf16[5]", "u16[5]"),
        ("f32[5]", "s32[5]"),
        ("s4[6]", "u4[6]"),
        ("u2[3]", "s2[3]"),
        ("f64[0]", "s64[0]"),
    ],
)
def test_bitcast_convert(source: str, target: str) -> None:
    name, dims = source[:-1].split("[")
    shape = tuple(int(d) for d in dims.split(",") if d)
    values = corner_values(name)
    argument = np.resize(values[~np.isnan(values.astype(np.float64))], shape)
    text = f"HloModule m\nENTRY e {{\n  x = {source} parameter(0)\n  ROOT y = {target} bitcast-convert(x)\n}}"
    check(text, [argument])


def test_s1_and_u1() -> None:
    """Types without a dtype of their own: -1 and 0, 0 and 1."""
    assert converted("s32", "s1", 0, 1, 2, 3, -1) == [0, -1, 0, -1, -1]
    assert converted("s32", "u1", 0, 1, 2, 3, -1) == [0, 1, 0, 1, 1]
    text = """HloModule m
ENTRY e {
  x = u8[2] parameter(0)
  bits = u1[2,8] bitcast-convert(x)
  ones = u1[2,8] xor(bits, bits)
  flipped = u1[2,8] not(ones)
  sum = u1[2,8] add(bits, flipped)
  ROOT y = u8[2] bitcast-convert(sum)
}"""
    assert run(text, [np.array([0b1010, 0xFF], np.uint8)])[0].tolist() == [0b11110101, 0]
