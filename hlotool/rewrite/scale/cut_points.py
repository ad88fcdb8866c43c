"""Dimensions are cut at the positions that programs state, so that these stay inside of smaller ones.

`compare(iota, 45)` says where something begins or ends. Left as it is 45 would lie behind the end of a
dimension that becomes 17, and what it does would be nothing, a fault in it included. So the dimension is cut
there, on both sides, and the constant follows what lies before it: prefix and suffix keep their ends, and
the element at the place stays an element.

A position means the same in all programs if it follows in all, or in none. So all that is said of one
dimension follows, or nothing does. Where one program says what the other one does not, it is in another form
in that one (a slice, a table, padding: these are cut at the same place), or a fault. Where the other one has
a constant that may be the same position in a way that is not understood, that is open, and the dimension
stays. The limit of an index is left alone in such doubt, for programs are full of them; where only one of
them has it, it is reported as not seen.

A number that follows in none lies behind the end, and is the same in both only where both have it in the
same form. A scatter leaves out a window that does not fit, and an update, which a compiler makes of it where
it does, moves it; a slice whose place is fixed has followed. So where the forms differ what lies before the
place keeps its size. And so does a dimension with a window whose place is computed from constants in a way
that is not understood, for a compiler may have computed it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.rewrite.scale.places import Found, PlaceConstant, Places, TableConstant
from hlotool.rewrite.scale.position_constants import Doubt, Stated, Statement
from hlotool.rewrite.scale.sizes import Sizes, Unseen, place
from hlotool.rewrite.scale.terms import Size

#: A compiler hides a position in a number that is a little larger or smaller: what it adds to an index
#: besides, such as the one of the last element, is no more than that. At 0 a limit in another form, one
#: number away, would not be seen; from 4 to 64 nothing changes
#: (benchmarks/results/scaled.md, "Thresholds of smaller sizes").
NEAR: Final = 8
#: Where both programs state more positions than this of one dimension it is taken apart: they stay as they
#: are in both. At 0 no place would follow that both have; from 4 to 64 nothing changes (likewise).
_MOST_SHARED: Final = 8


@dataclass
class _Said:
    """What one program says of one dimension.

    Attributes:
        statements: whose constants may follow.
        shared: whose constants are something else, too, and cannot.
        left: that are left alone, for other programs may have them in other forms.
        doubts: about other numbers, by signature.
    """

    statements: list[Statement] = field(default_factory=list)
    shared: list[Statement] = field(default_factory=list)
    left: list[Statement] = field(default_factory=list)
    doubts: dict[Hashable, Doubt] = field(default_factory=dict)

    @property
    def positions(self) -> set[int]:
        """That are stated."""
        return _positions([*self.statements, *self.shared])


def _positions(statements: Iterable[Statement]) -> set[int]:
    return {position for one in statements for position in one.positions if position > 0}


def relate_stated(programs: Sequence[Places]) -> None:
    """Cut dimensions at the positions that are stated of them."""
    stated = [Stated(places) for places in programs]
    sizes = programs[0].known.sizes
    dimensions: dict[Size, list[_Said]] = {}

    def of(size: Size, number: int) -> _Said:
        """What one of the programs says of a dimension."""
        return dimensions.setdefault(sizes.root(size), [_Said() for _ in programs])[number]

    for number, program in enumerate(stated):
        for one in program.statements:
            said = of(one.size, number)
            (said.left if _is_vague(one, stated) else said.statements).append(one)
        for one in program.shared:
            said = of(one.size, number)
            (said.left if one.is_limit else said.shared).append(one)
        for doubt in program.doubts:
            of(doubt.size, number).doubts.setdefault(doubt.signature, doubt)
    for program in stated if len(stated) > 1 else ():
        for start in program.untold:
            sizes.freeze(start.size, f"{place(start.reader)}: where it begins is computed from constants")
    for size, all_said in dimensions.items():
        dimension = _Dimension(sizes, size, all_said, stated)
        dimension.decide()
        programs[0].known.unseen += dimension.unseen()


def _is_vague(statement: Statement, stated: Sequence[Stated]) -> bool:
    """Whether it limits an index that some program may have in a form that is not recognised as one,
    with the same limit: compilers compute an index again where they need it.

    The end of what an index may be stands beside the size in many programs, and is the same only where it is
    the same number, or where something is compared with its neighbour: `i < n` is `i <= n - 1`.
    """
    position = max(statement.positions)
    near = 0 if statement.is_last else NEAR
    numbers = {position, position + statement.offset}
    beside = {number + step for number in numbers for step in (-1, 1)} if statement.is_last else set()
    return statement.is_limit and any(
        any(abs(number - other) <= near for number in numbers for other in program.others)
        or not beside.isdisjoint(program.compared)
        for program in stated
    )


@dataclass
class _Dimension:
    """One dimension, and what each of the programs says of it.

    Attributes:
        sizes: all.
        size: of the dimension.
        said: by each program.
        stated: by each program, of all dimensions.
    """

    sizes: Sizes
    size: Size
    said: Sequence[_Said]
    stated: Sequence[Stated]

    def decide(self) -> None:
        """Cut the dimension, keep it, or leave it and its constants alone."""
        followed = self._follow_all()
        if self.sizes.root(self.size).why:
            return
        staying = [
            [one for one in (*said.statements, *said.shared) if one not in followed] for said in self.said
        ]
        if not self._are_alike(staying):
            for statement in (one for side in staying for one in side):
                for position in statement.beyond:
                    why = f"{place(statement.reader)}: a position in it, in other forms elsewhere"
                    first, _ = _cut_around(self.sizes, statement, position, why)
                    self.sizes.freeze(first, why)

    def _are_alike(self, sides: Sequence[Sequence[Statement]]) -> bool:
        """Whether the programs say the same where no number follows, though dimensions become smaller."""
        said = [{(position, one.form) for one in side for position in one.beyond} for side in sides]
        is_same = all(one == said[0] for one in said)
        return is_same and not (len(said) > 1 and any(self.sizes.is_cut(self.size, at) for at, _ in said[0]))

    def _follow_all(self) -> set[Statement]:
        """Let all that may follow do so, or keep the dimension; the statements that follow."""
        is_clear = all(one.doubts.keys() == self.said[0].doubts.keys() for one in self.said)
        if not is_clear:
            for one in self.said:
                one.left += [statement for statement in one.statements if statement.is_limit]
                one.statements = [statement for statement in one.statements if not statement.is_limit]
        everywhere = set.intersection(*(one.positions for one in self.said))
        anywhere = set[int]().union(*(one.positions for one in self.said))
        alone = anywhere - everywhere
        left = set[int]().union(*(_positions(one.shared) for one in self.said))
        are_alike = self._are_alike([[*one.statements, *one.shared] for one in self.said])
        if not alone and (not is_clear or (len(anywhere) > _MOST_SHARED and are_alike)):
            return set()
        if alone:
            why = f"{place(self._reader(alone))}: a position in it, in one program only"
            if not is_clear or self._is_mixed():
                self.sizes.freeze(self.size, why)
                return set()
            staying = self._staying(alone, left)
            if staying:
                # What lies before a position that cannot follow stays, and so does the position.
                first, _ = _cut(self.sizes, self.size, max(staying), why)
                self.sizes.freeze(first, why)
                left -= set(range(max(staying) + 1))
        followed = set[Statement]()
        for program, one in zip(self.stated, self.said):
            for statement in one.statements:
                if left.isdisjoint(statement.positions):
                    _follow(program, statement)
                    followed.add(statement)
        return followed

    def _is_mixed(self) -> bool:
        """Whether elements of it are mixed by a reshape."""
        return not self.sizes.mixed_atoms().isdisjoint(self.sizes.atoms(self.size))

    def unseen(self) -> Iterator[Unseen]:
        """What one of the programs has alone, and nothing follows."""
        for number, one in enumerate(self.said):
            others = [*zip(self.said, self.stated)]
            del others[number]
            for statement in one.left:
                position = max(statement.positions)
                numbers = {position, position + statement.offset}
                if others and all(
                    numbers.isdisjoint(said.positions | _positions(said.left) | program.others)
                    for said, program in others
                ):
                    text = f"{place(statement.reader)}: {position} of {self.size.value}"
                    yield Unseen(self.size, position, text)
            for signature, doubt in one.doubts.items():
                if others and not any(
                    signature in said.doubts or doubt.number in program.others for said, program in others
                ):
                    text = f"{place(doubt.reader)}: {doubt.number}, along {self.size.value}"
                    yield Unseen(self.size, doubt.number, text)

    def _staying(self, alone: set[int], left: set[int]) -> set[int]:
        """Positions that cannot follow, though programs say different things there."""
        near = {other for other in left if any(abs(position - other) <= NEAR for position in alone)}
        compared = {
            position
            for program, said in zip(self.stated, self.said)
            for position in alone - said.positions
            if not program.compared.isdisjoint((position - 1, position, position + 1))
        }
        return near | compared

    def _reader(self, positions: set[int]) -> Instruction:
        """What reads one of the positions first."""
        statements = (one for said in self.said for one in (*said.statements, *said.shared))
        return next(one.reader for one in statements if not positions.isdisjoint(one.positions))


def _follow(program: Stated, statement: Statement) -> None:
    """Cut the dimension, and let the constant be what lies before the position, or behind it."""
    sizes, constant = program.places.known.sizes, statement.constant
    why = f"{place(statement.reader)}: a position that cannot be derived"
    assert constant.literal is not None
    array = constant.literal.array.astype(np.int64)
    parts: list[Size] = []
    for position, value in zip(statement.positions, array.reshape(-1)):
        if position < 0:
            parts.append(sizes.fixed(0, "no position"))
            continue
        first, rest = _cut_around(sizes, statement, position, why)
        parts.append(rest if statement.wraps and value < 0 else first)
    inside = np.array(statement.positions).reshape(array.shape) >= 0
    factors = np.where((array < 0) & statement.wraps, -1, 1) * inside
    offsets = np.where(inside, statement.offset, array)
    if len(parts) > 1:
        table = TableConstant(tuple(parts), factors, offsets)
        before = program.places.tables.get(constant)
        program.places.tables[constant] = table if before is None else before.with_more(table, sizes)
        return
    found = Found(
        held={constant: [PlaceConstant(parts[0], factors, offsets)]},
        seen={*_arranged(program.places, statement)},
        ends={(statement.reader, statement.number), *program.settled},
    )
    program.places.found.add(found)


def _cut_around(sizes: Sizes, statement: Statement, position: int, why: str) -> tuple[Size, Size]:
    """What lies before a position in a dimension, and behind it, with room for the window that begins
    there."""
    first, rest = _cut(sizes, statement.size, position, why)
    window = statement.window
    if window is not None and window.value > 1:
        behind = sizes.new(rest.value - window.value)
        sizes.same_sum(statement.size, [first, window, behind], why)
    return first, rest


def _cut(sizes: Sizes, size: Size, position: int, why: str) -> tuple[Size, Size]:
    """What lies before a position in a dimension, and behind it."""
    first, rest = sizes.new(position), sizes.new(size.value - position)
    sizes.same_sum(size, [first, rest], why)
    return first, rest


def _arranged(places: Places, statement: Statement) -> Iterator[Instruction]:
    """What hands the position on to its reader."""
    found = places.spread.origin(statement.reader.operands[statement.number])
    while found is not None and found is not statement.constant:
        yield found
        found = places.spread.origin(found.operands[0])
