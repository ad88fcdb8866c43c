"""Sizes as terms: numbers of elements that are atoms, products or sums of others, and may have to stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import prod


class Form(Enum):
    """What a size is."""

    ATOM = "atom"
    PRODUCT = "product"
    SUM = "sum"


@dataclass(eq=False, slots=True)
class Size:
    """The size of a dimension.

    Attributes:
        value: in the program as it is.
        form: whether it follows from its `parts`.
        parts: factors, the major one first, or summands in order; empty for an atom.
        why: it keeps its value for that reason; empty where it may change.
        same: stands for it, once the two were found equal.
    """

    value: int
    form: Form = Form.ATOM
    parts: list[Size] = field(default_factory=list)
    why: str = ""
    same: Size | None = None

    def __repr__(self) -> str:
        return f"<size {self.value}, {self.form.value}>"


#: Sizes of the dimensions of an array, in order.
Dims = tuple[Size, ...]


class Terms:
    """What sizes are made of, and what follows from their parts; a size that was found equal to another one
    is the one that stands for it."""

    def new(self, value: int) -> Size:
        """A size that nothing is known of yet; 0 and 1 stay what they are."""
        return Size(value, why="" if value > 1 else "of size 0 or 1")

    def fixed(self, value: int, why: str) -> Size:
        """A number that stays."""
        return Size(value, why=why)

    def root(self, size: Size) -> Size:
        """What stands for a size now."""
        found = size
        while found.same is not None:
            found = found.same
        while size.same is not None:
            size.same, size = found, size.same
        return found

    def freeze(self, size: Size, why: str) -> None:
        """A size keeps its number, and so does all it is made of."""
        pending = [size]
        while pending:
            found = self.root(pending.pop())
            found.why = found.why or why
            pending += found.parts

    def freeze_all(self, sizes: Iterable[Size], why: str) -> None:
        """Each of them keeps its number."""
        for size in sizes:
            self.freeze(size, why)

    def atoms(self, size: Size) -> list[Size]:
        """What a size is made of in the end, each once."""
        found: dict[Size, None] = {}
        pending, seen = [size], set[Size]()
        while pending:
            one = self.root(pending.pop())
            if one.form is Form.ATOM:
                found[one] = None
            elif one not in seen:
                seen.add(one)
                pending += one.parts
        return list(found)

    def evaluate(self, size: Size, chosen: Mapping[Size, int], known: dict[Size, int] | None = None) -> int:
        """The number of a size when atoms get the `chosen` ones, and all others keep theirs.

        Args:
            size: whose number is wanted.
            chosen: new numbers of atoms.
            known: numbers of terms that were asked for before, to which this one is added.
        """
        one, known = self.root(size), {} if known is None else known
        number = known.get(one)
        if number is None:
            if one.form is Form.ATOM:
                number = one.value if one.why else chosen.get(one, one.value)
            else:
                numbers = [self.evaluate(part, chosen, known) for part in one.parts]
                number = prod(numbers) if one.form is Form.PRODUCT else sum(numbers)
            known[one] = number
        return number

    def _is_fixed(self, size: Size) -> bool:
        """Whether all that a size is made of keeps its number, so that it need not be taken apart alike."""
        return all(atom.why for atom in self.atoms(size))

    def _parts(self, sizes: Iterable[Size], form: Form) -> list[Size]:
        """Factors or summands that are no products or sums themselves, without ones or zeros."""
        neutral = 1 if form is Form.PRODUCT else 0
        found: list[Size] = []
        for size in sizes:
            one = self.root(size)
            if one.form is form:
                # Kept flat: what is cut into a hundred slices, one after the other, would be as deep.
                one.parts = self._parts(one.parts, form)
                found += one.parts
            elif one.value != neutral:
                found.append(one)
        return found

    def _product(self, parts: list[Size]) -> Size:
        # A product of a size and 1 is that size.
        parts = [part for part in parts if part.value != 1] or parts[:1]
        return parts[0] if len(parts) == 1 else Size(prod(p.value for p in parts), Form.PRODUCT, parts)

    def _sum(self, parts: list[Size]) -> Size:
        return parts[0] if len(parts) == 1 else Size(sum(p.value for p in parts), Form.SUM, parts)
