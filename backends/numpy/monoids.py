"""Sums, products, extrema and logic: what reduces through a NumPy ufunc, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.ordering import extremum_keys, has_negative_zero, values_of_keys
from hlotool.backends.numpy.precision import finish, native, native_dtype, sum_dtype
from hlotool.facts.scalar_form import ScalarForm, monoid_opcodes
from hlotool.ir.arrays import Array
from hlotool.ir.opcodes import OPCODES, Identity
from hlotool.ir.types import ElementType

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
