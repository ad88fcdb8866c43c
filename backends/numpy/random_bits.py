"""The counter-based generators of `rng-bit-generator`, bit for bit as XLA's expander computes them.

Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011). XLA: hlo/builder/lib/prng.cc (how keys,
counters and results map to arrays).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hlotool.ir.dtypes import Array

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
