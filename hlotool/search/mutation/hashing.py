"""Symbols: 64-bit hashes, in arrays."""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.ir.dtypes import Array

Symbols: TypeAlias = npt.NDArray[np.uint64]

#: Integers that are told by their symbols: places in arrays of which elements are looked at one by one.
_LARGEST_NUMBER: Final = 4096

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(values: Symbols) -> Symbols:
    """Every word scrambled, as splitmix64 does."""
    with np.errstate(over="ignore"):
        words = np.asarray(values + _ODD, np.uint64)
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        return np.asarray(words ^ (words >> np.uint64(31)), np.uint64)


def key_of(*parts: object) -> np.uint64:
    """A word for what is equal as text."""
    text = "\0".join(map(str, parts)).encode()
    return np.uint64(zlib.crc32(text) << 32 | zlib.adler32(text[::-1]))


def combined(key: np.uint64, *parts: Symbols) -> Symbols:
    """One symbol for each row of symbols, in this order."""
    with np.errstate(over="ignore"):
        result = mixed(np.asarray(key, np.uint64))
        for part in parts:
            result = mixed(result * np.uint64(3) + part)
        return result


def unordered(key: np.uint64, one: Symbols, other: Symbols) -> Symbols:
    """One symbol for each pair, the same for the pair turned around."""
    with np.errstate(over="ignore"):
        return combined(key, mixed(one) + mixed(other), one ^ other)


def along(symbols: Symbols, axes: tuple[int, ...]) -> Symbols:
    """One symbol for all elements along `axes`, in their order."""
    axes = tuple(axes)
    kept = [d for d in range(symbols.ndim) if d not in axes]
    moved = symbols.transpose(*kept, *axes)
    flat = moved.reshape(*(symbols.shape[d] for d in kept), -1)
    with np.errstate(over="ignore"):
        places = np.arange(flat.shape[-1], dtype=np.uint64) * _ODD
        return mixed(mixed(flat ^ mixed(places)).sum(-1, dtype=np.uint64) + np.uint64(flat.shape[-1]))


def set_along(symbols: Symbols, axes: tuple[int, ...]) -> Symbols:
    """One symbol for all different elements along `axes`, in whatever order."""
    kept = [d for d in range(symbols.ndim) if d not in axes]
    moved = symbols.transpose(*kept, *axes)
    ordered = np.sort(moved.reshape(*(symbols.shape[d] for d in kept), -1), axis=-1)
    is_new = np.ones(ordered.shape, bool)
    is_new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    with np.errstate(over="ignore"):
        return mixed(np.where(is_new, mixed(ordered), np.uint64(0)).sum(-1, dtype=np.uint64))


def bag_along(symbols: Symbols, axis: int) -> Symbols:
    """One symbol for all elements along an axis, in whatever order, with how often each is there."""
    with np.errstate(over="ignore"):
        return mixed(mixed(symbols).sum(axis, dtype=np.uint64) + np.uint64(symbols.shape[axis]))


def bag(symbols: Symbols) -> Symbols:
    """One symbol for all elements, in whatever order, with how often each is there."""
    with np.errstate(over="ignore"):
        return mixed(np.asarray(mixed(symbols).sum(dtype=np.uint64) + np.uint64(symbols.size), np.uint64))


def whole(symbols: Symbols) -> Symbols:
    """One symbol for an array."""
    shaped = key_of("array", symbols.shape)
    return combined(shaped, along(symbols, tuple(range(symbols.ndim))))


def numbered(key: Symbols | np.uint64, dims: tuple[int, ...]) -> Symbols:
    """A symbol of its own for every element of an array, which follow from `key`."""
    size = int(np.prod(dims, dtype=np.int64))
    places = np.arange(size, dtype=np.uint64).reshape(dims)
    return combined(np.uint64(key), places)


def of_values(value: Array) -> Symbols:
    """Symbols of known values: equal numbers have equal ones, in whatever type they are held."""
    if np.iscomplexobj(value):
        return combined(key_of("complex"), of_values(value.real), of_values(value.imag))
    if value.dtype.kind in "biu" or _is_small_integer(value):
        return combined(key_of("integer"), value.astype(np.int64).view(np.uint64))
    numbers: Any = value.astype(np.float64)
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return combined(key_of("float"), numbers.view(np.uint64))


def numbers(symbols: Symbols) -> list[int | None]:
    """The integers that elements are known to be, small ones, in row-major order; None for other elements."""
    known = _small_numbers()
    return [known.get(symbol) for symbol in symbols.reshape(-1).tolist()]


@cache
def _small_numbers() -> dict[int, int]:
    small = np.arange(-_LARGEST_NUMBER, _LARGEST_NUMBER + 1)
    return dict(zip(of_values(small).tolist(), small.tolist()))


def _is_small_integer(value: Array) -> bool:
    return value.dtype.name in ("int2", "int4", "uint2", "uint4")
