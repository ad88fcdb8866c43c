"""What reducers get, from one step to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange
from hlotool.analysis.monoids import is_choice, monoid_opcodes
from hlotool.analysis.scalar_form import scalar_form
from hlotool.analysis.value_numbers import reducing_opcode
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.search.mutation.terms import Term, Terms
from hlotool.values.monoids import neutral

#: Of the arrays of a tuple, in order.
Bounds: TypeAlias = tuple[MachineRange, ...]

#: Steps that are looked at: what still grows then is known to be nothing but its type.
_ROUNDS: Final = 4
_ANYTHING: Final = MachineRange()


def invariant(start: Sequence[MachineRange], step: Callable[[Bounds], Bounds]) -> Bounds | None:
    """Bounds that hold before every step, as each step keeps them; None where none were found.

    Args:
        start: what holds before the first step.
        step: what holds after a step, given what holds before it.
    """
    held = tuple(start)
    for number in range(_ROUNDS):
        after = step(held)
        grows = [not old.covers(new) for old, new in zip(held, after)]
        if not any(grows):
            return held
        widened = [old.union(new) if number == 0 else _ANYTHING for old, new in zip(held, after)]
        held = tuple(new if is_more else old for old, new, is_more in zip(held, widened, grows))
    return None


def first_step(instruction: Instruction, terms: Sequence[Term]) -> list[MachineRange] | None:
    """What a reducer gets in its first step: initial values and elements; None of what has no reducer."""
    if instruction.opcode not in ("reduce", "reduce-window"):
        return None
    count = len(terms) // 2
    return [one.bounds.union(init.bounds) for one, init in zip(terms[:count], terms[count:])]


def combining_opcode(instruction: Instruction) -> str | None:
    """The one operation that a reduction of one array combines its elements by, conversions aside."""
    reducer = instruction.computation("to_apply")
    if (opcode := reducing_opcode(reducer)) is not None:
        return opcode
    form = scalar_form(reducer)
    return monoid_opcodes(form)[0] if form is not None else None


def start_of_sum(instruction: Instruction, terms: Sequence[Term]) -> int | None:
    """The constant that a sum of integers starts at, which may as well be added in the end; None without."""
    if instruction.opcode != "reduce" or len(terms) != 2 or not terms[1].bounds.is_point:
        return None
    is_sum = reducing_opcode(next(instruction.called)) == "add"
    return int(terms[1].bounds.low) or None if is_sum and instruction.element_type.is_integer else None


def takes_one_each(instruction: Instruction, terms: Sequence[Term]) -> bool:
    """Whether a reduction of preds hands on its elements: each is alone, and the initial value is neutral."""
    if instruction.opcode != "reduce" or len(terms) != 2:
        return False
    opcode = combining_opcode(instruction)
    lengths = [instruction.operands[0].dims[axis] for axis in instruction.integers("dimensions")]
    init = terms[1].bounds
    if opcode is None or opcode not in opcodes_with(Trait.IDEMPOTENT):
        return False
    is_neutral = init.is_point and init.low == neutral(opcode, ElementType.PRED)
    return is_neutral and all(length == 1 for length in lengths)


def rising(instruction: Instruction, terms: Sequence[Term]) -> tuple[int, ...]:
    """Which operands of a reduction reach its reducer in ascending order: positions of an argmax, say.

    A reducer that chooses between its arguments may be applied in any bracketing that keeps the order of the
    elements, initial values first; so the reference does, and XLA's code for CPUs.
    """
    if instruction.opcode != "reduce":
        return ()
    count, axes = len(terms) // 2, instruction.integers("dimensions")
    numbers = [n for n in range(count) if _rises(terms[n], terms[count + n], axes)]
    if not numbers:
        return ()
    form = scalar_form(instruction.computation("to_apply"))
    return tuple(numbers) if form is not None and is_choice(form) else ()


def _rises(values: Term, init: Term, axes: Sequence[int]) -> bool:
    if values.known is None or init.known is None or values.bounds.nan or values.known.dtype.kind not in "iu":
        return False
    dims = values.known.shape
    kept = [d for d in range(len(dims)) if d not in axes]
    rows = values.known.transpose(*kept, *sorted(axes)).reshape(-1, prod(dims[d] for d in axes))
    rows = rows.astype(object)
    return bool(rows.size and np.all(rows[:, 1:] >= rows[:, :-1]) and np.all(rows[:, 0] >= int(init.known)))


def ordered(arguments: Sequence[Terms], numbers: Sequence[int]) -> list[Terms]:
    """The arguments of a reducer, some of which are in ascending order.

    Args:
        arguments: accumulators, then elements.
        numbers: of the operands that rise.
    """
    found, count = list(arguments), len(arguments) // 2
    for number in numbers:
        one, other = arguments[number], arguments[number + count]
        if isinstance(one, Term) and isinstance(other, Term):
            found[number] = replace(one, at_most=other.symbols)
    return found


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
