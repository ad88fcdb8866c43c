"""How numbers compare, stable orders, and what reduces through a NumPy ufunc in any order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.floats import has_negative_zero
from hlotool.backends.numpy.integers import signed_dtype
from hlotool.backends.numpy.precision import finish, native, native_dtype, sum_dtype
from hlotool.facts.scalar_form import ScalarForm, monoid_opcodes
from hlotool.ir.arrays import Array
from hlotool.ir.opcodes import OPCODES, Identity
from hlotool.ir.types import ElementType

#: By the attribute of a `compare`.
DIRECTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}

#: Narrow floats whose bit patterns are a sign and a magnitude, NaN the largest; the others compare in f32.
SIGN_MAGNITUDE = (
    ElementType.F8E3M4,
    ElementType.F8E4M3,
    ElementType.F8E4M3FN,
    ElementType.F8E5M2,
    ElementType.F16,
    ElementType.BF16,
)


def total_order_keys(values: Array) -> Array:
    """Signed integers that compare as floats of sign-magnitude layout do in total order."""
    return _flip_negative(values.view(signed_dtype(values)))


def values_of_keys(keys: Array) -> Array:
    """The floats whose total order keys these are."""
    return _flip_negative(keys).view(np.dtype(f"f{keys.dtype.itemsize}"))


def extremum_keys(values: Array, opcode: str) -> Array:
    """Keys whose `maximum` or `minimum` is XLA's: NaN wins, +0 is larger than -0."""
    keys = total_order_keys(values)
    limits = np.iinfo(keys.dtype)
    winner = keys.dtype.type(limits.max if opcode == "maximum" else limits.min)
    return np.where(np.isnan(values), winner, keys)


def _flip_negative(bits: Array) -> Array:
    """Exchange sign-magnitude and two's complement: negative numbers reverse their order."""
    width = 8 * bits.dtype.itemsize
    flipped: Array = bits ^ ((bits >> (width - 1)) & np.iinfo(bits.dtype).max)
    return flipped


# Stable orders of integers, faster than one comparison sort.
#
# NumPy sorts 16-bit integers by their digits (radix sort) in time proportional to their number. Wider ones
# are sorted by one 16-bit digit after the other, the least significant first; where rows are short, which
# makes radix sort slow, by keys that hold the position in their lower bits and are therefore all different.

#: Longer rows are sorted by digits.
_SHORT = 256

#: Bits of a key that hold the position, of 64.
_POSITION_BITS = 32


def stable_order(numbers: Sequence[Array]) -> Array:
    """The order by several integers, most significant first, along the last dimension."""
    order: Array | None = None
    for number in reversed(numbers):
        for digit in _digits(number):
            sorted_so_far = digit if order is None else take_along_last(digit, order)
            step = _order(sorted_so_far)
            order = step if order is None else take_along_last(order, step)
    if order is None:
        raise ValueError("no numbers to sort by")
    return order


def first_in_order(numbers: Array, count: int) -> Array:
    """The first `count` entries of `stable_order` of one integer."""
    if not _has_room_for_position(numbers) or count >= numbers.shape[-1]:
        return stable_order([numbers])[..., :count]
    keys = _with_positions(numbers)
    keys.partition(count - 1, axis=-1)
    return _positions(np.sort(keys[..., :count], axis=-1))


def take_along_last(values: Array, order: Array) -> Array:
    """`values[..., order[..., i]]`, row by row (`np.take_along_axis`, but quicker)."""
    length = values.shape[-1]
    if values.ndim == 1 or not order.size:
        return np.take_along_axis(values, order, axis=-1)
    starts = np.arange(0, values.size, length).reshape((*values.shape[:-1], 1))
    taken: Array = np.take(np.ascontiguousarray(values).reshape(-1), order + starts)
    return taken


def _digits(numbers: Array) -> Iterator[Array]:
    """What to sort by, one after the other: the digits of long rows, short ones whole."""
    bits = 8 * numbers.dtype.itemsize
    if bits <= 16 or numbers.shape[-1] <= _SHORT:
        yield numbers
        return
    for shift in range(0, bits - 16, 16):
        yield np.right_shift(numbers, shift).astype(np.uint16)
    yield np.right_shift(numbers, bits - 16).astype(np.int16 if numbers.dtype.kind == "i" else np.uint16)


def _order(numbers: Array) -> Array:
    if numbers.shape[-1] > _SHORT or not _has_room_for_position(numbers):
        return np.argsort(numbers, axis=-1, kind="stable")
    keys = _with_positions(numbers)
    keys.sort(axis=-1)
    return _positions(keys)


def _has_room_for_position(numbers: Array) -> bool:
    return 8 * numbers.dtype.itemsize <= 64 - _POSITION_BITS and numbers.shape[-1] < 1 << _POSITION_BITS


def _with_positions(numbers: Array) -> Array:
    """Different 64-bit integers in the stable order of `numbers`."""
    keys = numbers.astype(np.int64 if numbers.dtype.kind == "i" else np.uint64)
    keys <<= _POSITION_BITS
    keys |= np.arange(numbers.shape[-1], dtype=keys.dtype)
    return keys


def _positions(keys: Array) -> Array:
    keys &= (1 << _POSITION_BITS) - 1
    return keys.astype(np.int64, copy=False)


#: opcode → (ufunc on numbers, ufunc on pred). XLA: on pred, add is `or` and multiply is `and`.
_UFUNCS: dict[str, tuple[np.ufunc, np.ufunc]] = {
    "add": (np.add, np.logical_or),
    "multiply": (np.multiply, np.logical_and),
    "maximum": (np.maximum, np.logical_or),
    "minimum": (np.minimum, np.logical_and),
    "and": (np.bitwise_and, np.logical_and),
    "or": (np.bitwise_or, np.logical_or),
    "xor": (np.bitwise_xor, np.logical_xor),
}


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a monoid does its work on given arrays.

    Attributes:
        values: the arrays, converted.
        dtype: of the accumulator, for ufunc methods.
        identity: neutral element, as a value of `dtype`.
        restore: back to the element type.
    """

    values: tuple[Array, ...]
    dtype: np.dtype[Any]
    identity: Any
    restore: Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative and commutative operation on one element type.

    Attributes:
        opcode: an associative one.
        element_type: of both arguments and the result.
    """

    opcode: str
    element_type: ElementType

    @property
    def identity(self) -> Identity:
        """Its neutral element, but for the sign of a zero."""
        identity = OPCODES[self.opcode].identity
        assert identity is not None
        return identity

    @property
    def ufunc(self) -> np.ufunc:
        """The operation on arrays of the domain."""
        return _UFUNCS[self.opcode][self.element_type is ElementType.PRED]

    @property
    def is_float_extremum(self) -> bool:
        """A maximum or minimum of floats, where the sign of zeros needs care."""
        return self.opcode in ("maximum", "minimum") and self.element_type.is_floating

    def domain(self, *values: Array) -> Domain:
        """Convert `values` of the element type to what the ufunc works on.

        NumPy's extrema return either zero on ties of -0 and +0, XLA's the larger (or smaller) one: where a
        -0 occurs, the work is done on integers of the same order.
        """
        kind = self.element_type
        natives = tuple(native(v, kind) for v in values)
        if self.is_float_extremum and any(map(has_negative_zero, natives)):
            keys = tuple(extremum_keys(v, self.opcode) for v in natives)
            dtype = keys[0].dtype
            return Domain(keys, dtype, self._integer_identity(dtype), self._restore_keys)
        dtype = sum_dtype(kind) if self.opcode == "add" else native_dtype(kind)
        return Domain(natives, dtype, self._identity(dtype), self._finish)

    def _finish(self, value: Array) -> Array:
        return finish(value, self.element_type)

    def _restore_keys(self, keys: Array) -> Array:
        return finish(values_of_keys(keys), self.element_type)

    def _identity(self, dtype: np.dtype[Any]) -> Any:
        identity = self.identity
        if dtype == np.bool_:
            return dtype.type(identity in (Identity.ONE, Identity.HIGHEST, Identity.ALL_BITS))
        if identity in (Identity.LOWEST, Identity.HIGHEST):
            if not self.element_type.is_floating:
                return self._integer_identity(dtype)
            return dtype.type(-np.inf if identity is Identity.LOWEST else np.inf)
        if identity is Identity.ONE:
            return dtype.type(1)
        if identity is Identity.ALL_BITS:
            return np.invert(dtype.type(0))
        # -0 + x is x for every x, +0 + -0 is not -0.
        zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0)
        return dtype.type(zero)

    def _integer_identity(self, dtype: np.dtype[Any]) -> Any:
        limits = np.iinfo(dtype)
        return dtype.type(limits.min if self.opcode == "maximum" else limits.max)


def find_monoids(form: ScalarForm) -> tuple[Monoid, ...] | None:
    """The monoid of every output of f(accumulators…, elements…), or None when one of them is none."""
    found = monoid_opcodes(form)
    monoids = [Monoid(opcode, o.element_type) for opcode, o in zip(found, form.outputs) if opcode is not None]
    return tuple(monoids) if monoids and len(monoids) == len(form.outputs) else None
