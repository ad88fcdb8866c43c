"""Random numbers; the counter-based generators bit for bit as XLA's expander computes them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.bit_patterns import reinterpret
from hlotool.backends.numpy.elementwise import adapt
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_KEY_STEPS = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


def threefry_bits(key: int, counter: int, bits: int, dims: tuple[int, ...]) -> tuple[Array, int]:
    """Random numbers of `bits` width and the next counter.

    64-bit numbers take one counter each. Narrower ones take the low bits of 32-bit words, two of which come
    from one counter: they are neighbours along the first dimension of even size (else the largest one).
    """
    if bits == 64:
        low, high = _threefry_at(key, counter, dims)
        return low | (high.astype(np.uint64) << 32), _wrapped(counter + prod(dims))
    if not dims:
        word, _ = _threefry_at(key, counter, ())
        return _low_bits(word, bits), _wrapped(counter + 1)
    axis = next((i for i, size in enumerate(dims) if size % 2 == 0), int(np.argmax(dims)))
    half = (*dims[:axis], -(-dims[axis] // 2), *dims[axis + 1 :])
    pair = np.stack(_threefry_at(key, counter, half), axis=axis + 1)
    words = pair.reshape(*dims[:axis], 2 * half[axis], *dims[axis + 1 :])
    inside = words[(slice(None),) * axis + (slice(dims[axis]),)]
    return _low_bits(inside, bits), _wrapped(counter + prod(half))


def philox_bits(key: int, counter: int, bits: int, dims: tuple[int, ...]) -> tuple[Array, int]:
    """Random numbers of `bits` width and the next 128-bit counter.

    Every counter gives four 32-bit words in a row; 64-bit numbers are pairs of words, low one first, and
    narrower ones the low bits of a word each.
    """
    count = prod(dims) * (2 if bits == 64 else 1)
    blocks = -(-count // 4)
    words = _philox(key, counter, blocks).reshape(-1)
    new_counter = (counter + blocks) % (1 << 128)
    if bits == 64:
        pairs = words.view("<u8")[: prod(dims)]
        return pairs.reshape(dims), new_counter
    return _low_bits(words[:count].reshape(dims), bits), new_counter


def _low_bits(words: Array, bits: int) -> Array:
    """The low bits of 32-bit words, in the unsigned type that holds that many."""
    if bits >= 8:
        return words.astype(f"u{bits // 8}")
    return np.bitwise_and(words, (1 << bits) - 1).astype(np.uint8)


def _wrapped(counter: int) -> int:
    return counter % (1 << 64)


def _threefry_at(key: int, counter: int, dims: tuple[int, ...]) -> tuple[Array, Array]:
    """Both words at counters that number the elements of `dims` in row-major order."""
    counters = np.arange(prod(dims), dtype=np.uint64).reshape(dims) + np.uint64(counter)
    return threefry2x32(_halves(key), (counters.astype(np.uint32), (counters >> 32).astype(np.uint32)))


def threefry2x32(key: tuple[Any, Any], words: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds; keys may be arrays as well as the words."""
    schedule = (*key, key[0] ^ key[1] ^ _THREEFRY_PARITY)
    x: Array = words[0] + schedule[0]
    y: Array = words[1] + schedule[1]
    for step in range(5):
        for rotation in _ROTATIONS[step % 2]:
            x = x + y
            y = (y << rotation) | (y >> (32 - rotation))
            y = y ^ x
        x = x + schedule[(step + 1) % 3]
        y = y + schedule[(step + 2) % 3] + np.uint32(step + 1)
    return x, y


def _philox(key: int, counter: int, blocks: int) -> Array:
    """Philox-4x32 with 10 rounds: u32[blocks, 4]."""
    key_low, key_high = _halves(key)
    x0, x1, x2, x3 = _counter_words(counter, blocks)
    for _ in range(10):
        first = x0.astype(np.uint64) * _PHILOX_MULTIPLIERS[0]
        second = x2.astype(np.uint64) * _PHILOX_MULTIPLIERS[1]
        x0 = (second >> 32).astype(np.uint32) ^ x1 ^ key_low
        x2 = (first >> 32).astype(np.uint32) ^ x3 ^ key_high
        x1, x3 = second.astype(np.uint32), first.astype(np.uint32)
        key_low, key_high = key_low + _PHILOX_KEY_STEPS[0], key_high + _PHILOX_KEY_STEPS[1]
    return np.stack([x0, x1, x2, x3], axis=-1)


def _counter_words(counter: int, blocks: int) -> tuple[Array, Array, Array, Array]:
    """The 32-bit words, lowest first, of `blocks` consecutive 128-bit counters."""
    low, high = counter % (1 << 64), counter >> 64
    lows = np.arange(blocks, dtype=np.uint64) + np.uint64(low)
    highs = np.where(lows < low, np.uint64((high + 1) % (1 << 64)), np.uint64(high))
    return (*_split(lows), *_split(highs))


def _split(words: Array) -> tuple[Array, Array]:
    return words.astype(np.uint32), (words >> 32).astype(np.uint32)


def _halves(key: int) -> tuple[np.uint32, np.uint32]:
    return np.uint32(key % (1 << 32)), np.uint32(key >> 32)


_UNSIGNED = {
    1: ElementType.U1,
    2: ElementType.U2,
    4: ElementType.U4,
    8: ElementType.U8,
    16: ElementType.U16,
    32: ElementType.U32,
    64: ElementType.U64,
}


@lowers("rng-bit-generator")
def rng_bit_generator(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The new state and random bits, or these alone, whatever their type.

    The state is u64[2], key and counter; Philox also takes u64[3] with a 128-bit counter, and with u64[2]
    uses the key as the counter's upper half. `rng_default` is Philox, as on CPU and GPU.
    jaxlib 0.12 makes bits of s4 and s2 without their sign: converted they are 0 to 15, and as results of a
    program they cannot be read (earlier versions do as here, which is what the type says).
    XLA: operation_semantics.md#rngbitgenerator, rng_bit_generator_expander.cc.
    """
    algorithm = instruction.text("algorithm")
    if algorithm not in ("rng_default", "rng_philox", "rng_three_fry"):
        raise lowering.unsupported(instruction, f"random algorithm {algorithm}")
    shape = _bits_shape(instruction, lowering)
    element_type, dims = shape.element_type, shape.dims
    unsigned = _UNSIGNED[element_type.bits]

    def kernel(state: Array) -> Any:
        key, *counters = (int(word) for word in state)
        if algorithm == "rng_three_fry":
            numbers, counter = threefry_bits(key, counters[0], element_type.bits, dims)
        else:
            high = counters[1] if len(counters) > 1 else key
            numbers, counter = philox_bits(key, counters[0] | high << 64, element_type.bits, dims)
        words = [key, counter % (1 << 64), counter >> 64]
        new_state = np.array(words[: len(state)], np.uint64)
        return new_state, reinterpret(numbers, unsigned, element_type).reshape(dims)

    return kernel if isinstance(instruction.shape, TupleShape) else lambda state: kernel(state)[1]


def _bits_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    shape = instruction.shape
    bits = shape.elements[1] if isinstance(shape, TupleShape) and len(shape.elements) == 2 else shape
    if not isinstance(bits, ArrayShape):
        raise lowering.unsupported(instruction, f"random bits of shape {shape}")
    if bits.element_type.is_complex or bits.element_type is ElementType.PRED:
        raise lowering.unsupported(instruction, f"random bits are not defined on {bits.element_type}")
    return bits


@lowers("rng-get-and-update-state")
def rng_get_and_update_state(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The module's 128-bit generator state, low half first, which then moves on by `delta`.

    Every run starts from the state that XLA compiles into a program; a real program goes on from run to run.
    XLA: hlo_opcode.h.
    """
    delta = instruction.integer("delta")

    def kernel(_: list[Any], run: Run) -> Array:
        state = run.rng_state
        run.rng_state = (state + delta) % (1 << 128)
        return np.array([state % (1 << 64), state >> 64], np.uint64)

    return Calling(kernel)


@lowers("rng")
def rng(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Numbers of a distribution: uniform over [a, b), or normal with mean a and standard deviation b.

    No two XLA programs draw the same numbers here. These come from a generator with a fixed seed that starts
    anew with every run, so runs repeat; they may be compared with XLA's by their distribution only.
    XLA: operation_semantics.md#rnguniform, #rngnormal.
    """
    shape = instruction.array_shape
    element_type, dims = shape.element_type, shape.dims
    distribution = instruction.text("distribution")
    if distribution not in ("rng_uniform", "rng_normal"):
        raise lowering.unsupported(instruction, f"distribution {distribution}")
    if element_type.is_floating:
        return _floats(element_type, dims, distribution)
    if element_type.is_integer and distribution == "rng_uniform":
        return _uniform_integers(element_type, dims)
    raise lowering.unsupported(instruction, f"{distribution} is not defined on {element_type}")


def _floats(element_type: ElementType, dims: tuple[int, ...], distribution: str) -> Kernel:
    uniform = distribution == "rng_uniform"
    finish = adapt(_between if uniform else _around, [element_type] * 3, element_type)
    dtype = compute_dtype(element_type)

    def kernel(parameters: list[Any], run: Run) -> Any:
        draw = run.generator.random if uniform else run.generator.standard_normal
        return finish(parameters[0], parameters[1], draw(dims, dtype))

    return Calling(kernel)


def _between(low: Array, high: Array, fraction: Array) -> Any:
    return fraction * (high - low) + low


def _around(mean: Array, deviation: Array, normal: Array) -> Any:
    return normal * deviation + mean


def _uniform_integers(element_type: ElementType, dims: tuple[int, ...]) -> Kernel:
    dtype = np.dtype(np.int64 if element_type.is_signed else np.uint64)
    final = dtype_of(element_type)

    def kernel(limits: list[Any], run: Run) -> Array:
        low, high = int(limits[0]), int(limits[1])
        numbers = run.generator.integers(low, max(low + 1, high), dims, dtype)
        return np.asarray(numbers).astype(final)

    return Calling(kernel)
