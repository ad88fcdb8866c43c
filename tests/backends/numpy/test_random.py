"""Random bits to the bit, legacy random numbers by their distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import Array, leaves, parse, run
from support.elementwise import by_speed
from support.xla import JAXLIB, oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported

KEY = 0x123456789ABCDEF0
THREEFRY_STATE = [KEY, 2**64 - 2]
PHILOX_STATE = [KEY, 2**64 - 2, 7]


def generator(algorithm: str, shape: str, words: int) -> str:
    pair = f"(u64[{words}], {shape})"
    return f"""HloModule m
ENTRY e {{
  state = u64[{words}] parameter(0)
  both = {pair} rng-bit-generator(state), algorithm={algorithm}
  next = u64[{words}] get-tuple-element(both), index=0
  bits = {shape} get-tuple-element(both), index=1
  ROOT result = {pair} tuple(next, bits)
}}"""


def draw(algorithm: str, shape: str, state: list[int]) -> tuple[list[int], Array]:
    new, bits = run(generator(algorithm, shape, len(state)), [np.array(state, np.uint64)])
    return [int(word) for word in new], bits


def test_philox_vector() -> None:
    """Counter carry into the upper half; measured with jaxlib 0.10.2."""
    state, bits = draw("rng_philox", "u32[6]", PHILOX_STATE)
    assert state == [KEY, 0, 8]
    assert bits.tolist() == [0x25C9B2D0, 0x0CA6F05A, 0x644F27D0, 0x1837C7F2, 0x053E97E3, 0x703C71EF]


def test_threefry_vector() -> None:
    """Both words of a counter are neighbours along the even dimension; measured with jaxlib 0.10.2."""
    state, bits = draw("rng_three_fry", "u32[3,2]", THREEFRY_STATE)
    assert state == [KEY, 1]
    assert bits.tolist() == [[0x3C3B507A, 0x7093E72C], [0xA4317BA7, 0x21F1AACA], [0x5EFF803D, 0x4CE380F9]]
    _, bits = draw("rng_three_fry", "u32[2,3]", THREEFRY_STATE)
    assert bits.tolist() == [[0x3C3B507A, 0xA4317BA7, 0x5EFF803D], [0x7093E72C, 0x21F1AACA, 0x4CE380F9]]


def test_philox_with_two_words_counts_from_the_key() -> None:
    """u64[2]: the key is the upper half of the counter. XLA: rng_bit_generator_expander.cc."""
    state, bits = draw("rng_philox", "u32[4]", [KEY, 5])
    assert state == [KEY, 6]
    assert (bits == draw("rng_philox", "u32[4]", [KEY, 5, KEY])[1]).all()
    assert (bits == draw("rng_default", "u32[4]", [KEY, 5])[1]).all()


#: Signed types of less than a byte, and the first XLA for which their random bits are unsigned numbers.
NARROW = ("s4", "s2")
FORGETS_SIGNS = (0, 12, 0)


def as_unsigned(text: str, shape: str) -> str:
    """The generator of `text` with its bits as unsigned numbers, which is all that some XLAs can hand out."""
    unsigned = f"u{shape[1:]}"
    head, root = text.split("  ROOT ")
    root = root.replace(shape, unsigned).replace("bits", "u")
    return f"{head}  u = {unsigned} bitcast-convert(bits)\n  ROOT {root}"


SHAPES = (
    "u32[4] u32[3] u32[3,2] u32[2,3] u32[1,3,5] u32[5,3] u32[] u32[0] u32[2,2,3] u64[3] u64[2,2] u64[]"
    " f32[2] f64[2] f16[4] bf16[3] s8[5] u8[4] s16[3] s32[7] s64[2] u4[4] s4[5] u2[4] f8e4m3fn[3] f4e2m1fn[3]"
)


@pytest.mark.xla
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox", "rng_default"])
@pytest.mark.parametrize(
    "shape", by_speed(tuple(SHAPES.split()), "u32[3] u32[2,3] u64[3] f16[4] s4[5] u32[]")
)
def test_bits_are_those_of_xla(algorithm: str, shape: str) -> None:
    states = [THREEFRY_STATE] if algorithm == "rng_three_fry" else [PHILOX_STATE, [KEY, 2**64 - 1]]
    for state in states:
        text = generator(algorithm, shape, len(state))
        if shape.startswith(NARROW) and JAXLIB >= FORGETS_SIGNS:
            text = as_unsigned(text, shape)
        expected_state, expected = oracle().run(text, [np.array(state, np.uint64)])
        new, bits = draw(algorithm, shape, state)
        assert new == [int(word) for word in expected_state]
        assert raw(bits) == raw(expected)


@pytest.mark.xla
@pytest.mark.skipif(JAXLIB < FORGETS_SIGNS, reason="this XLA keeps the sign")
def test_bits_of_narrow_types_have_lost_their_sign() -> None:
    """As the docstring of `rng-bit-generator` says; where this fails, it has to say until which version."""
    text = """HloModule m
ENTRY e {
  state = u64[2] parameter(0)
  both = (u64[2], s4[5]) rng-bit-generator(state), algorithm=rng_three_fry
  bits = s4[5] get-tuple-element(both), index=1
  ROOT result = s8[5] convert(bits)
}"""
    state = np.array(THREEFRY_STATE, np.uint64)
    [theirs], [ours] = oracle().run(text, [state]), run(text, [state])
    assert ours.tolist() == [-6, -4, 7, -6, -3]
    assert theirs.tolist() == [10, 12, 7, 10, 13]


def raw(bits: Array) -> Any:
    """Bit patterns; XLA's client hands out unsigned integers whatever the type."""
    if bits.dtype.name in ("int4", "int2"):
        return (bits.astype(np.int8) & (15 if bits.dtype.name == "int4" else 3)).tolist()
    if bits.dtype.name in ("uint4", "uint2"):
        return bits.astype(np.uint8).tolist()
    return bits.view(f"u{bits.dtype.itemsize}").tolist()


def test_generator_state_counts_up() -> None:
    """XLA's initial state, low half first; every run starts there."""
    text = """HloModule m
ENTRY e {
  a = u64[2] rng-get-and-update-state(), delta=5
  b = u64[2] rng-get-and-update-state(), delta=7
  ROOT r = (u64[2], u64[2]) tuple(a, b)
}"""
    executable = NumpyBackend().compile(parse(text))
    for _ in range(2):
        first, second = leaves(executable.run([]))
        assert first.tolist() == [0x7012395, 0]
        assert second.tolist() == [0x7012395 + 5, 0]


def rng(shape: str, distribution: str, a: float, b: float) -> Array:
    name = shape.split("[")[0]
    text = f"""HloModule m
ENTRY e {{
  a = {name}[] constant({a})
  b = {name}[] constant({b})
  ROOT r = {shape} rng(a, b), distribution={distribution}
}}"""
    executable = NumpyBackend().compile(parse(text))
    first, second = (leaves(executable.run([]))[0] for _ in range(2))
    assert (first == second).all()
    return first.astype(np.float64)


@pytest.mark.parametrize("name", ["f64", "f32", "bf16", "f16"])
def test_rng_floats(name: str) -> None:
    uniform = rng(f"{name}[100,100]", "rng_uniform", -1, 3)
    assert -1 <= uniform.min() < -0.9
    assert 2.9 < uniform.max() <= 3
    assert abs(uniform.mean() - 1) < 0.05
    normal = rng(f"{name}[100,100]", "rng_normal", 1, 2)
    assert abs(normal.mean() - 1) < 0.1
    assert abs(normal.std() - 2) < 0.1


@pytest.mark.parametrize("name", ["s32", "u8", "s64", "u64", "s4"])
def test_rng_integers(name: str) -> None:
    numbers = rng(f"{name}[1000]", "rng_uniform", 2, 7)
    assert sorted(set(numbers)) == [2, 3, 4, 5, 6]


def test_two_draws_differ() -> None:
    text = """HloModule m
ENTRY e {
  a = f32[] constant(0)
  b = f32[] constant(1)
  x = f32[4] rng(a, b), distribution=rng_uniform
  y = f32[4] rng(a, b), distribution=rng_uniform
  ROOT d = f32[4] subtract(x, y)
}"""
    assert (run(text, [])[0] != 0).all()


def test_normal_integers_are_refused() -> None:
    with pytest.raises(Unsupported, match="rng_normal is not defined on s32"):
        rng("s32[4]", "rng_normal", 0, 1)
