"""What stays true of the numbers that loops and reducers hand from one step to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hlotool.analysis.machine_range import MachineRange
from hlotool.ir.module import Instruction
from hlotool.search.mutation.terms import Term, Terms, flat

#: Of the arrays of a tuple, in order.
Bounds: TypeAlias = tuple[MachineRange, ...]

#: Steps that are looked at: what still grows then is known to be nothing but its type.
_ROUNDS: Final = 4
_ANYTHING: Final = MachineRange()


def invariant(
    start: Sequence[MachineRange],
    fixed: Mapping[int, MachineRange],
    step: Callable[[Bounds], Bounds],
) -> Bounds | None:
    """Bounds that hold before every step, as each step keeps them; None where none were found.

    Args:
        start: what holds before the first step.
        fixed: what is known by other means, by place.
        step: what holds after a step, given what holds before it.
    """
    held = tuple(fixed.get(n, bounds) for n, bounds in enumerate(start))
    for number in range(_ROUNDS):
        after = step(held)
        grows = [n not in fixed and not held[n].covers(after[n]) for n in range(len(held))]
        if not any(grows):
            return held
        widened = [old.union(new) if number == 0 else _ANYTHING for old, new in zip(held, after)]
        held = tuple(new if is_more else old for old, new, is_more in zip(held, widened, grows))
    return None


def reduced(instruction: Instruction, operands: Sequence[Terms]) -> list[MachineRange] | None:
    """What a reducer gets in its first step: initial values and elements; None of what has no reducer."""
    if instruction.opcode not in ("reduce", "reduce-window"):
        return None
    terms = flat(tuple(operands))
    count = len(terms) // 2
    return [one.bounds.union(init.bounds) for one, init in zip(terms[:count], terms[count:])]


def bounded(terms: Terms, bounds: Bounds | None) -> Terms:
    """The same terms, each within the bounds of its place as well."""
    if bounds is None:
        return terms
    waiting = iter(bounds)

    def part(one: Terms) -> Terms:
        if isinstance(one, Term):
            return replace(one, bounds=one.bounds.intersection(next(waiting)))
        return tuple(part(inner) for inner in one)

    return part(terms)
