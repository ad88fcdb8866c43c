"""How the constants of two programs are read as exact numbers: the same way for both.

A constant is read by itself first (`snapping`). Where nothing simple rounds to it and only the tested program
has it, a compiler made it: then it is the exact result of one operation on constants of the reference
(`relations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.pseudo_real import Known
from hlotool.backends.field.relations import Relations
from hlotool.backends.field.snapping import Precision, Reading, Rule, dyadic, precisions, reading_of
from hlotool.backends.field.words import ZERO, Words, negate
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.ir.types import ElementType, array_shapes
from hlotool.numerics.compiler_made import float_values

#: More different values than this are a table: its elements are taken as they are.
_MANY: Final = 3000
#: Elements of larger constants are not told apart by value: they are no constants of a formula.
_SMALL: Final = 64
#: So many values that follow from constants are looked at.
_MOST_FOLDED: Final = 5000


class Constants:
    """The constants of a pair of programs.

    Args:
        reference: the program whose constants are as they were written.
        tested: the other one; None where only one program is executed.
        zero_below: smaller constants are 0: 0.0 at the first attempt, `TINY_CONSTANT` at the second.

    Compile the reference first, and both before either is executed: what the reference folds explains
    constants of the other one.
    """

    def __init__(self, reference: Module, tested: Module | None = None, zero_below: float = 0.0) -> None:
        modules = [reference] if tested is None else [reference, tested]
        self._precisions = precisions(sorted(_float_types(modules), key=str))
        self._zero_below = zero_below
        self._written = {abs(v) for v in constant_values(reference) if v and np.isfinite(v)}
        self._folded: set[float] = set()
        self._relations: Relations | None = None
        self._readings: dict[float, Reading] = {}
        self._values = {v for module in modules for v in constant_values(module) if np.isfinite(v)}
        self._known: Known | None = None

    @property
    def known(self) -> Known:
        """The values of the small constants of both programs and of folded ones, for the order of numbers."""
        if self._known is None:
            found: dict[int, float] = {}
            for value in sorted(self._values | self._folded):
                word = self.reading(value).word
                found[int(word)], found[int(negate(word))] = value, -value
            self._known = Known.of(found)
        return self._known

    @property
    def readings(self) -> Mapping[float, Reading]:
        """What was read so far, by value: what a report lists."""
        return self._readings

    def folded(self, values: Array) -> None:
        """Note float values that the reference computes from constants alone, in its own arithmetic."""
        new = {abs(v) for v in np.asarray(values).astype(np.float64).ravel().tolist()}
        new = {v for v in new if v and np.isfinite(v)} - self._folded - self._written
        if new and len(self._folded) < _MOST_FOLDED:
            self._folded |= new
            self._relations = self._known = None
            # What could not be explained by the constants that were known may be now.
            self._readings = {value: found for value, found in self._readings.items() if found.is_simple}

    def words(self, values: Array) -> Words:
        """The words of float constants of any type, of the dimensions of `values`.

        The declared type does not count: a constant is read at the narrowest type of both programs that holds
        it, so that bf16 0.1 and its copy in f32 are the same number.
        """
        wide: npt.NDArray[np.float64] = np.asarray(values).astype(np.float64)
        if wide.ndim == 0:
            return self.reading(float(wide)).word.copy()
        unique, inverse = np.unique(wide.reshape(-1), return_inverse=True)
        if len(unique) > _MANY:
            return dyadic(wide)
        table = np.array([int(self.reading(v).word) for v in unique.tolist()], np.uint64)
        return table[inverse].reshape(wide.shape)

    def reading(self, value: float) -> Reading:
        """What one constant is read as."""
        found = self._readings.get(value)
        if found is None:
            found = self._read(value)
            if value == value:
                self._readings[value] = found
        return found

    def _read(self, value: float) -> Reading:
        if 0 < abs(value) < self._zero_below:
            return Reading(ZERO, "0", Rule.ZERO)
        plain = reading_of(value, self._precisions)
        if plain.is_simple or abs(value) in self._written or abs(value) in self._folded:
            return plain
        if self._relations is None:
            self._relations = Relations(
                self._written, self._folded, lambda v: reading_of(v, self._precisions)
            )
        made = self._relations.explain(abs(value), self._narrowest(value))
        if made is None:
            return plain
        return made if value > 0 else Reading(negate(made.word), f"-({made.text})", made.rule)

    def _narrowest(self, value: float) -> Precision:
        return next(p for p in self._precisions if p.holds(value))


def _float_types(modules: list[Module]) -> set[ElementType]:
    shapes = (shape for module in modules for i in module.instructions() for shape in array_shapes(i.shape))
    return {shape.element_type for shape in shapes if shape.element_type.is_inexact}


def constant_values(module: Module) -> Iterator[float]:
    """The different values of small float constants, real and imaginary parts for themselves."""
    for instruction in module.instructions():
        if instruction.literal is None:
            continue
        for array in float_values(instruction.literal):
            if array.size <= _SMALL:
                yield from np.unique(_real(array)).tolist()


def _real(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return array.view(np.float64) if array.dtype.kind == "c" else array
