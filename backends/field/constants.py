"""How the constants of two programs are read as exact numbers: the same way for both.

A constant of the reference is read by itself (`snapping`), and what the reference computes from constants
alone is the exact result of that. A constant that only the tested program has was made by a compiler: it is
what the reference computes so, or the result of a few operations on constants of the reference (`relations`).
Only where neither explains it is it read by itself: one number in seven is a short decimal by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.pseudo_real import Known
from hlotool.backends.field.relations import Relations
from hlotool.backends.field.snapping import (
    SMALL,
    Precision,
    Reading,
    Rule,
    Tables,
    dyadic,
    precisions,
    reading_of,
)
from hlotool.backends.field.words import ZERO, Words, negate
from hlotool.facts.compiler_made import float_values
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.ir.types import array_shapes

#: More different values than this are a table: its elements are taken as they are.
_MANY: Final = 3000
#: So many values that follow from constants are looked at.
_MOST_FOLDED: Final = 5000


class Constants:
    """The constants of a pair of programs.

    Args:
        reference: the program whose constants are as they were written.
        tested: the other one; None where only one program is executed.
        zeros: sizes of constants that are taken for 0: none at the first attempt.

    Compile the reference first, and both before either is executed: what the reference computes from
    constants explains constants of the other one.

    Attributes:
        tables: what explains larger ones.
    """

    def __init__(
        self, reference: Module, tested: Module | None = None, zeros: Collection[float] = ()
    ) -> None:
        modules = [reference] if tested is None else [reference, tested]
        self._precisions = precisions_of(*modules)
        self._zeros = zeros
        self._written = {abs(v) for v in constant_values(reference) if v and np.isfinite(v)}
        self._tables: set[float] = set()
        self._folded: set[float] = set()
        self._derived: dict[float, Reading] = {}
        self._off: dict[float, float] = {}
        self._exact: dict[int, float] = {}
        self._relations: Relations | None = None
        self._own: Relations | None = None
        self._readings: dict[float, Reading] = {}
        self._values = {v for module in modules for v in constant_values(module) if np.isfinite(v)}
        self._known: Known | None = None
        self.tables = Tables(reference, tested)

    @property
    def known(self) -> Known:
        """The values of the small constants of both programs and of folded ones, for the order of numbers."""
        if self._known is None:
            found: dict[int, float] = {}
            # Of two values that are read as one number the reference's own counts.
            for value in sorted(self._values | self._folded, key=lambda v: (abs(v) in self._written, v)):
                self._note_size(found, self.reading(value).word, value)
            found = {**self._exact, **found}
            self._known = Known.of(found)
        return self._known

    @property
    def values(self) -> frozenset[float]:
        """The finite values of the small constants of both programs."""
        return frozenset(self._values)

    def note(self, value: float) -> Words:
        """The word of a number that the order of numbers is to know: a constant's, or the number as it is."""
        if value == 0 or value in self._values or -value in self._values:
            return self._read(value).word
        word = dyadic(np.array(value))
        if int(word) not in self._exact:
            self._note_size(self._exact, word, value)
            self._known = None
        return word

    @property
    def readings(self) -> Mapping[float, Reading]:
        """What was read so far, by value: what a report lists."""
        return self._readings

    def folded(self, values: Array, off: npt.ArrayLike = 0.0) -> None:
        """Note float values that the reference computes from constants alone, in its own arithmetic.

        Args:
            values: of any dimensions.
            off: by how much roundings on the way may have moved each: another compiler gets another number.
        """
        self._note_off(values, off)
        new = {abs(v) for v in np.asarray(values).astype(np.float64).ravel().tolist()}
        new = {v for v in new if v and np.isfinite(v)} - self._folded - self._written
        if new and len(self._folded) < _MOST_FOLDED:
            self._folded |= new
            self._forget()

    def _note_off(self, values: Array, off: npt.ArrayLike) -> None:
        sizes = np.abs(np.asarray(values).astype(np.float64)).ravel()
        for size, most in zip(sizes.tolist(), np.broadcast_to(off, np.shape(values)).ravel().tolist()):
            self._off[size] = max(most, self._off.get(size, 0.0))

    def derived(self, values: Array, exact: Words, is_reference: bool, off: npt.ArrayLike = 0.0) -> Words:
        """The words of float values that a program computes from constants alone.

        Args:
            values: as the program's own arithmetic rounds them.
            exact: what they are without rounding, of the same dimensions.
            is_reference: whether they explain constants of the tested program.
            off: by how much roundings on the way may have moved each.

        Returns:
            `exact`, but numbers of few bits as they are: 1 - 1e-38 is 1 to every compiler.
        """
        wide: npt.NDArray[np.float64] = np.asarray(values).astype(np.float64)
        if is_reference:
            self._note_off(values, off)
        words = np.array(np.broadcast_to(exact, wide.shape))
        for at, value in np.ndenumerate(wide):
            plain = self._plain(float(value))
            if plain.rule in (Rule.SHORT, Rule.ZERO):
                words[at] = plain.word
                continue
            word = words[at]
            self._note_size(self._exact, word, float(value))
            self._known = None
            size = abs(float(value))
            if is_reference and size not in self._written and len(self._derived) < _MOST_FOLDED:
                positive = np.asarray(word if value > 0 else negate(word))
                self._derived[size] = Reading(positive, f"{size:.9g} unrounded", Rule.DERIVED)
                self._forget()
        return words

    @staticmethod
    def _note_size(sizes: dict[int, float], word: Words, value: float) -> None:
        sizes[int(word)], sizes[int(negate(word))] = value, -value

    def _forget(self) -> None:
        """What was found in the light of fewer constants of the reference."""
        self._relations = self._known = None

    def words(self, values: Array, is_written: bool = False) -> Words:
        """The words of float constants of any type, of the dimensions of `values`.

        The declared type does not count: a constant is read at the narrowest type of both programs that holds
        it, so that bf16 0.1 and its copy in f32 are the same number.

        Args:
            values: the constants.
            is_written: they stand in the reference: no compiler made them.
        """
        wide: npt.NDArray[np.float64] = np.asarray(values).astype(np.float64)
        if wide.ndim == 0:
            return self.reading(float(wide)).word.copy()
        if not is_written and (found := self.tables.find(wide)) is not None:
            return found
        unique, inverse = np.unique(wide.reshape(-1), return_inverse=True)
        if len(unique) > _MANY:
            return dyadic(wide)
        if is_written and wide.size > SMALL:
            self._tables.update(v for v in np.abs(unique).tolist() if v not in self._written)
        table = np.array([int(self.reading(v).word) for v in unique.tolist()], np.uint64)
        return table[inverse].reshape(wide.shape)

    def words_of_bits(self, values: Array) -> Words:
        """The words of floats that a program spells by their bits: as they are, but for constants.

        The neighbour of 1.6, made of its bits, is a constant of the program that has it folded.
        """
        wide: npt.NDArray[np.float64] = np.asarray(values).astype(np.float64)
        words = dyadic(wide)
        sizes = np.array(sorted({abs(v) for v in self._values if v}))
        if not sizes.size:
            return words
        at = np.minimum(np.searchsorted(sizes, np.abs(wide)), sizes.size - 1)
        is_constant = sizes[at] == np.abs(wide)
        if is_constant.any():
            words = np.array(words)
            words[is_constant] = self.words(wide[is_constant])
        return words

    def reading(self, value: float) -> Reading:
        """What one constant is read as."""
        found = self._readings.get(value)
        if found is None:
            found = self._read(value)
            if value == value:
                self._readings[value] = found
        return found

    def _read(self, value: float) -> Reading:
        plain = self._plain(value)
        size = abs(value)
        if plain.rule in (Rule.SHORT, Rule.ZERO) or size in self._tables:
            return plain
        made = self._made_by_frontend(size) if size in self._written else self._derived.get(size)
        if made is None and size not in self._written and size not in self._folded:
            made = self._made(size)
        if made is None:
            return plain
        return made if value > 0 else Reading(negate(made.word), f"-({made.text})", made.rule)

    def _plain(self, value: float) -> Reading:
        """What a constant is read as by itself."""
        if abs(value) in self._zeros:
            return Reading(ZERO, "0", Rule.ZERO)
        return reading_of(value, self._precisions)

    def _made_by_frontend(self, size: float) -> Reading | None:
        """What a positive number of the reference is made of, where it is not simple: simple ones of its."""
        if self._plain(size).rule is not Rule.DYADIC:
            return None
        if self._own is None:
            simple = {v for v in self._written if self._plain(v).rule is not Rule.DYADIC}
            self._own = Relations(simple, {}, self._plain)
        return self._own.explain(size, self._narrowest(size))

    def _made(self, size: float) -> Reading | None:
        """What a compiler made a positive number of; None where nothing explains it."""
        if self._relations is None:
            folded = {size: self._off.get(size, 0.0) for size in (*self._folded, *self._derived)}
            self._relations = Relations(self._written, folded, self.reading)
        return self._relations.explain(size, self._narrowest(size))

    def _narrowest(self, value: float) -> Precision:
        return narrowest(value, self._precisions)


def narrowest(value: float, types: Sequence[Precision]) -> Precision:
    """The narrowest of `types` that holds `value`; the last one is f64, which does."""
    return next(p for p in types if p.holds(value))


def precisions_of(*modules: Module) -> tuple[Precision, ...]:
    """The float types of programs, and f32 and f64 in any case, from narrow to wide."""
    shapes = (shape for module in modules for i in module.instructions() for shape in array_shapes(i.shape))
    types = {shape.element_type for shape in shapes if shape.element_type.is_inexact}
    return precisions(sorted(types, key=str))


def constant_values(module: Module) -> Iterator[float]:
    """The different values of small float constants, real and imaginary parts for themselves."""
    for instruction in module.instructions():
        if instruction.literal is None:
            continue
        for array in float_values(instruction.literal):
            if array.size <= SMALL:
                yield from np.unique(array.view(np.float64) if array.dtype.kind == "c" else array).tolist()
