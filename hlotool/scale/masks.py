"""Positions that the elements of a dimension are compared with: the bounds of masks.

`compare(iota, 45)` says where something begins or ends. Where all programs say it of the same dimension it
means the same in all, whatever the size becomes. What one of them says alone is in another form in the
others, or a fault: the dimension is cut there, and the position follows what lies before it. Else it would
lie behind the end of a smaller dimension, and what it does would be nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Instruction
from hlotool.scale.places import Found, Places
from hlotool.scale.rules.base import place
from hlotool.scale.sizes import Size
from hlotool.scale.spread import HANDS_ON, SAME


class _Bound(NamedTuple):
    """A position that an iota is compared with.

    Attributes:
        compare: of operands of which the one of this number is the position.
        number: of the operand.
        constant: that holds the position.
        size: of the dimension that the iota counts.
    """

    compare: Instruction
    number: int
    constant: Instruction
    size: Size

    @property
    def stated(self) -> tuple[int, int]:
        """The position, and the number of positions."""
        position = integer_constant(self.constant)
        assert position is not None
        return position, self.size.value


def relate_masks(programs: Sequence[Places]) -> None:
    """Cut dimensions at the positions that only some of the programs compare them with.

    A dimension that cannot be cut there stays, and so does one whose position is something else, too.
    """
    bounds = [[*_bounds(places)] for places in programs]
    everywhere = set.intersection(*({bound.stated for bound in found} for found in bounds))
    for places, found in zip(programs, bounds):
        alone = [bound for bound in found if bound.stated not in everywhere]
        _follow(places, [bound for bound in alone if 0 < bound.stated[0] < bound.size.value])


def _follow(places: Places, bounds: Sequence[_Bound]) -> None:
    sizes = places.known.sizes
    others = _read_elsewhere(places, bounds)
    for bound in bounds:
        why = f"{place(bound.compare)}: a position in it, in one program only"
        position, count = bound.stated
        held = Found(seen={*_arranged(places, bound)}, ends={(bound.compare, bound.number)})
        first, rest = sizes.new(position), sizes.new(count - position)
        if bound.constant in others or not held.hold(bound.constant, first, 1, 0):
            sizes.freeze(bound.size, why)
            continue
        sizes.same_sum(bound.size, [first, rest], why)
        places.found.add(held)


def _read_elsewhere(places: Places, bounds: Sequence[_Bound]) -> set[Instruction]:
    """Constants that are not only bounds."""
    ends = {(bound.compare, bound.number) for bound in bounds}
    constants = {bound.constant for bound in bounds}
    found = set[Instruction]()
    for instruction in places.spread.calls.home if constants else ():
        if instruction.opcode in SAME or instruction.opcode in HANDS_ON:
            continue
        for number, operand in enumerate(instruction.operands):
            source = places.stripped(operand)
            if source in constants and (instruction, number) not in ends:
                found.add(source)
    return found


def _arranged(places: Places, bound: _Bound) -> Iterator[Instruction]:
    """What hands the position on to the comparison."""
    found = places.spread.origin(bound.compare.operands[bound.number])
    while found is not None and found is not bound.constant:
        yield found
        found = places.spread.origin(found.operands[0])


def _bounds(places: Places) -> Iterator[_Bound]:
    """What is the same on all devices; numbers of devices are told with shards."""
    for instruction in places.spread.calls.home:
        if instruction.opcode != "compare":
            continue
        for number, operand in enumerate(instruction.operands):
            counted = places.stripped(instruction.operands[1 - number])
            if counted is None or counted.opcode != "iota":
                continue
            constant = places.stripped(operand)
            if constant is not None and integer_constant(constant) is not None:
                size = places.known.of(counted)[counted.integer("iota_dimension")]
                yield _Bound(instruction, number, constant, size)
