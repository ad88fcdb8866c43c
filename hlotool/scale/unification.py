"""Two terms are one size: what has to be equal in one and the other for that, part by part.

A size is taken apart where the other one has parts, once for everything that has it: two ways of cutting it
are refined to one that both follow. Where none is, `Unlike` is raised; what was related before stays right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from hlotool.scale.matching import largest_common, value_of, without_common
from hlotool.scale.terms import Form, Size, Terms

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
