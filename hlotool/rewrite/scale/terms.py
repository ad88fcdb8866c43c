"""Sizes as terms (atoms, products, sums), and two terms made one, part by part.

A term is a number of elements; it may have to stay. A size is taken apart where the other one has parts,
once for everything that has it: two ways of cutting it are refined to one that both follow. Where none is,
`Unlike` is raised; what was related before stays right. Lists of sizes that are the same as a whole are
matched by their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import gcd, prod
from typing import Final

from msgspec import Struct, field


class Form(Enum):
    """What a size is."""

    ATOM = "atom"
    PRODUCT = "product"
    SUM = "sum"


class Size(Struct, eq=False):
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


def without_common(ones: list[Size], others: list[Size]) -> tuple[list[Size], list[Size]]:
    """Summands that only one of two equal sums has, by size: 1 + x is x + 1, whatever x becomes."""
    common = Counter(ones) & Counter(others)
    rests: list[list[Size]] = []
    for parts in (ones, others):
        left = Counter(common)
        rest: list[Size] = []
        for part in parts:
            if left[part]:
                left[part] -= 1
            else:
                rest.append(part)
        rests.append(rest)
    a, b = rests
    by_value = sorted(a, key=value_of), sorted(b, key=value_of)
    return by_value if [*map(value_of, by_value[0])] == [*map(value_of, by_value[1])] else (a, b)


def value_of(size: Size) -> int:
    """Its number in the program as it is."""
    return size.value


def as_many(ones: Sequence[Size], others: Sequence[Size]) -> bool:
    """Whether arrays with these dimensions hold the same number of elements, and any at all."""
    count = prod(map(value_of, ones))
    return count != 0 and count == prod(map(value_of, others))


def runs(ones: Sequence[Size], others: Sequence[Size]) -> Iterable[tuple[list[Size], list[Size]]]:
    """The shortest runs of dimensions of two arrays that hold equal numbers of elements."""
    left, right = list(ones), list(others)
    while left or right:
        run, other = [left.pop(0)], [right.pop(0)]
        a, b = run[0].value, other[0].value
        while a != b:
            if a < b:
                run.append(left.pop(0))
                a *= run[-1].value
            else:
                other.append(right.pop(0))
                b *= other[-1].value
        yield run, other


def largest_common(
    ones: Sequence[Size], others: Sequence[Size], is_fixed: Callable[[Size], bool]
) -> tuple[int, int, int] | None:
    """The positions of two factors that have most in common, and how much it is; None where none have.

    What may change is matched with what may change first: devices are 8 by chance where heads are.
    """
    pairs = [
        (is_fixed(one) == is_fixed(other), gcd(one.value, other.value), position, place)
        for position, one in enumerate(ones)
        for place, other in enumerate(others)
    ]
    common = [pair for pair in pairs if pair[1] > 1]
    if not common:
        return None
    _, shared, position, place = max(common, key=lambda pair: pair[:2])
    return position, place, shared


#: Terms are not taken apart deeper than this; what would need it is frozen.
_DEEPEST: Final = 60
#: And not into more parts at once: 1 + x = x + y would be taken apart into ones.
_MOST_STEPS: Final = 300


class Unlike(Exception):
    """Two ways of cutting a size have no refinement in common."""


class Unification(Terms):
    """Makes sizes equal; its methods raise `Unlike` where they cannot be."""

    def _unify(self, one: Size, other: Size, depth: int) -> None:
        a, b = self.root(one), self.root(other)
        if a is b:
            return
        if a.value != b.value or depth > _DEEPEST:
            raise Unlike
        if a.form is Form.ATOM or (a.form is Form.SUM and b.form is Form.PRODUCT):
            a, b = b, a
        if a.form is Form.PRODUCT and b.form is Form.PRODUCT:
            self._match(a.parts, b.parts, Form.PRODUCT, depth + 1)
        elif a.form is Form.SUM and b.form is Form.SUM:
            self._match(a.parts, b.parts, Form.SUM, depth + 1)
        elif b.form is Form.SUM and not (self._is_fixed(a) and self._is_fixed(b)):
            self._match([a], b.parts, Form.SUM, depth + 1)
        # The relation between the parts may have found them equal.
        a, b = self.root(a), self.root(b)
        if a is b:
            return
        if a.form is Form.ATOM:
            a, b = b, a
        b.same = a
        why, b.why = b.why, ""
        if why or a.why:
            self.freeze(a, why or a.why)

    def _match(
        self, ones: Sequence[Size], others: Sequence[Size], form: Form, depth: int, in_order: bool = False
    ) -> None:
        """Two products, or two sums, are the same: part by part, in order; larger parts are taken apart.

        Factors in another order are no reason to give up, but where they have to be `in_order`.
        """
        left, right = self._parts(ones, form), self._parts(others, form)
        if form is Form.SUM:
            left, right = without_common(left, right)
            if [one.value for one in left] == [other.value for other in right]:
                for one, other in zip(left, right):
                    self._unify(one, other, depth + 1)
                return
        steps = 0
        while left and right:
            if (steps := steps + 1) > _MOST_STEPS:
                raise Unlike
            # What was related before may have cut these meanwhile.
            left[:1], right[:1] = self._parts(left[:1], form), self._parts(right[:1], form)
            a, b = left[0], right[0]
            if form is Form.PRODUCT and max(a.value, b.value) % min(a.value, b.value):
                if in_order:
                    raise Unlike
                self._commute(left, right, depth + 1)
                return
            left, right = left[1:], right[1:]
            if a.value == b.value:
                self._unify(a, b, depth + 1)
                continue
            if a.value < b.value:
                a, b, left, right = b, a, right, left
            # The larger one begins with the smaller one; its rest has to match what follows.
            left[:0] = self._parts([self._rest(a, b, form, depth + 1)], form)
        if left or right:
            raise Unlike

    def _commute(self, ones: Sequence[Size], others: Sequence[Size], depth: int) -> None:
        """Two products are the same that no order of factors matches: 3 heads of 16 are 2 shards of 24.

        Two factors share as much as they have in common, 8 here, and both products are the same for any
        number in its place.
        """
        left, right = list(ones), list(others)
        while left and right:
            left, right = without_common(self._parts(left, Form.PRODUCT), self._parts(right, Form.PRODUCT))
            if not left or not right:
                break
            if depth > _DEEPEST or (found := largest_common(left, right, self._is_fixed)) is None:
                raise Unlike
            one, other, common = found
            stays = self._is_fixed(left[one]) or self._is_fixed(right[other])
            shared = self.fixed(common, "a factor of a number that stays") if stays else self.new(common)
            for whole, rest in ((left.pop(one), left), (right.pop(other), right)):
                if whole.value == common:
                    self._unify(whole, shared, depth + 1)
                else:
                    rest.append(self._factored(whole, shared, depth + 1))
        if left or right:
            raise Unlike

    def _rest(self, whole: Size, first: Size, form: Form, depth: int) -> Size:
        """What makes `first` the whole: a factor or a summand."""
        if form is Form.PRODUCT:
            if whole.value % first.value:
                raise Unlike
            return self._factored(whole, first, depth)
        own, rest = self._cut(whole, first.value, depth, first)
        self._unify(own, first, depth)
        return rest

    def _factored(self, whole: Size, major: Size, depth: int) -> Size:
        """The rest by which `major` is multiplied to give `whole`, which is no product yet."""
        if depth > _DEEPEST:
            raise Unlike
        if whole.form is Form.SUM and self._is_fixed(whole) and self._is_fixed(major):
            return self.fixed(whole.value // major.value, "a factor of a number that stays")
        rest = self.new(whole.value // major.value)
        if whole.form is Form.SUM:
            product = Size(whole.value, Form.PRODUCT, [major, rest])
            try:
                self._unify(product, whole, depth + 1)
            except Unlike:
                # All three stay; what else is made of them need not.
                self.freeze_all((whole, major, rest), "a sum of parts that have no common factor")
        else:
            whole.form, whole.parts = Form.PRODUCT, [major, rest]
            if whole.why:
                self.freeze(whole, whole.why)
        return rest

    def _cut(self, whole: Size, at: int, depth: int, like: Size | None = None) -> tuple[Size, Size]:
        """`whole`, which is no sum yet, as a sum of two parts of which the first is `at`, the size `like`."""
        whole = self.root(whole)
        if depth > _DEEPEST:
            raise Unlike
        if whole.form is Form.SUM:
            parts = self._parts([whole], Form.SUM)
            if parts[0].value == at and len(parts) == 2:
                return parts[0], parts[1]
            raise Unlike
        if whole.form is Form.ATOM:
            first, rest = self.new(at), self.new(whole.value - at)
            whole.form, whole.parts = Form.SUM, [first, rest]
            if whole.why:
                self.freeze(whole, whole.why)
            return first, rest
        return self._cut_product(whole, at, depth, like)

    def _cut_product(self, whole: Size, at: int, depth: int, like: Size | None) -> tuple[Size, Size]:
        """A product as a sum of two parts: (x + y) * m is x * m + y * m.

        The first factor is cut that can be cut there; where there is one, one that leaves factors of the
        first part.
        """
        parts = self._parts(whole.parts, Form.PRODUCT)
        able = [n for n, part in enumerate(parts) if at % (whole.value // part.value) == 0]
        if not able:
            return self._cut_row(parts, at, depth)
        told = Counter(map(value_of, [] if like is None else self._parts([like], Form.PRODUCT)))
        minors = {n: [*parts[:n], *parts[n + 1 :]] for n in able}
        number = next((n for n in able if Counter(map(value_of, minors[n])) <= told), able[0])
        x, y = self._pieces(parts[number], at // (whole.value // parts[number].value), depth + 1)
        return self._product([x, *minors[number]]), self._product([y, *minors[number]])

    def _cut_row(self, factors: list[Size], at: int, depth: int) -> tuple[Size, Size]:
        """A product cut within one of its rows: (x + 1 + y) * (r + s) is x * m + r, and s + y * m."""
        major, *minors = factors
        row = self._product(minors)
        rows, within = divmod(at, row.value)
        before, behind = self._pieces(major, rows, depth + 1) if rows else (None, major)
        first, rest = self._pieces(row, within, depth + 1)
        last = self._pieces(behind, 1, depth + 1)[1] if behind.value > 1 else None
        return (
            self._sum([*([self._product([before, row])] if before else []), first]),
            self._sum([rest, *([self._product([last, row])] if last else [])]),
        )

    def _pieces(self, whole: Size, at: int, depth: int) -> tuple[Size, Size]:
        """A size as two parts, wherever it is cut already."""
        whole = self.root(whole)
        if whole.form is not Form.SUM:
            return self._cut(whole, at, depth)
        parts, before = self._parts([whole], Form.SUM), 0
        for number, part in enumerate(parts):
            if before == at:
                return self._sum(parts[:number]), self._sum(parts[number:])
            if before < at < before + part.value:
                first, rest = self._cut(part, at - before, depth + 1)
                return self._sum([*parts[:number], first]), self._sum([rest, *parts[number + 1 :]])
            before += part.value
        raise Unlike
