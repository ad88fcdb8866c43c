"""What constants are divisors and factors of, and which dimensions that was summed, or is spread, over.

The number of elements of a mean stands where it is divided by: below a sum over them, and, in gradients,
beside values that are made of such a sum, or are given back to each element, so that they are broadcast over
what the mean was taken of. Values are followed through calls, tuples and loops, and through arithmetic of
which the result is so many times as large where an operand is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from hlotool.facts.flow import INLINED, CallGraph, computed_by
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import users
from hlotool.rewrite.scale.per_device import SAME
from hlotool.rewrite.scale.sizes import Relations
from hlotool.rewrite.scale.terms import Form, Size

#: Sizes whose product is a number of elements; products among them are taken apart, and ones left out.
Term: TypeAlias = "frozenset[tuple[Size, int]]"

#: Values are not followed further than this.
_FURTHEST: Final = 24
#: Nor through more arithmetic: the gradient of a normalisation has five steps between a sum and its divisor.
_MOST_ARITHMETIC: Final = 6
#: So many times as large where an operand is, or all operands of a sum are.
_LINEAR: Final = frozenset({"add", "multiply", "negate", "subtract"})
_NONE: Final[frozenset[Term]] = frozenset()


class Quotient(Struct, frozen=True):
    """A place where a constant divides a value, or multiplies it.

    Attributes:
        reader: the division or multiplication.
        constant: its operand that has the value of the constant.
        value: the other one.
    """

    reader: Instruction
    constant: Instruction
    value: Instruction


class Quotients:
    """Where values come from and go to in one program, which must not change meanwhile."""

    def __init__(self, known: Relations, module: Module) -> None:
        """Read `module`.

        Raises:
            ValueError: a computation calls itself.
        """
        self._known = known
        self._calls = CallGraph(module)
        self._users: dict[Instruction, list[Instruction]] = {}
        for computation in module.computations:
            self._users.update(users(computation))

    def of(self, constant: Instruction) -> list[Quotient | None]:
        """Where a constant divides or multiplies something; None stands for whatever else is made of it."""
        found: list[Quotient | None] = []
        pending, seen = [constant], {constant}
        while pending:
            value = pending.pop()
            home = self._calls.home.get(value)
            if home is None:
                continue
            if value is home.root:
                callers = self._calls.callers[home]
                if not callers or any(caller.opcode not in INLINED for caller in callers):
                    found.append(None)
                pending += [one for one in callers if one not in seen]
                seen.update(callers)
            for user in self._users[value]:
                if user.opcode in SAME or user.opcode in INLINED:
                    new = [user] if user.opcode in SAME else _taken(value, user)
                    pending += [one for one in new if one not in seen]
                    seen.update(new)
                else:
                    found.append(_quotient(value, user))
        return found

    def is_of_sum(self, quotient: Quotient) -> bool:
        """Whether it is a sum, of whatever, that is divided."""
        return self._is_sum(quotient.value, 0)

    def terms(self, quotient: Quotient) -> frozenset[Term]:
        """What the divided value was summed over, or spread over, or the quotient is spread over."""
        sources = self._sources(quotient.value, 0, 0) | self._sources(quotient.constant, 0, 0)
        return sources | self._spread(quotient.reader, 0, 0)

    def term(self, sizes: list[Size]) -> Term:
        """Sizes as what their product is made of."""
        found: dict[Size, int] = {}
        pending = [*sizes]
        while pending:
            size = self._known.sizes.root(pending.pop())
            if size.form is Form.PRODUCT:
                pending += size.parts
            elif size.value != 1:
                found[size] = found.get(size, 0) + 1
        return frozenset(found.items())

    def summed(self) -> Iterator[Term]:
        """What sums of floats run over."""
        for instruction in self._calls.home:
            if instruction.opcode == "reduce" and instruction.operands[0].element_type.is_inexact:
                yield self._reduced(instruction)

    def _reduced(self, instruction: Instruction) -> Term:
        dims = self._known.of(instruction.operands[0])
        return self.term([dims[d] for d in instruction.integers("dimensions")])

    def _broadcast(self, instruction: Instruction) -> Term:
        """The dimensions that a broadcast adds."""
        kept = instruction.integers("dimensions")
        return self.term([d for n, d in enumerate(self._known.of(instruction)) if n not in kept])

    def _is_sum(self, value: Instruction, depth: int) -> bool:
        if depth > _FURTHEST:
            return False
        parts = computed_by(value, self._calls)
        return all(
            not index
            and (
                source.opcode in ("reduce", "all-reduce")
                or (source.opcode in SAME and self._is_sum(source.operands[0], depth + 1))
            )
            for source, index in parts
        )

    def _sources(self, value: Instruction, moves: int, arithmetic: int) -> frozenset[Term]:
        """What a value, or a factor of each of its summands, is a sum over, or was broadcast over."""
        parts = computed_by(value, self._calls)
        return _common(
            _NONE if index else self._computed_from(source, moves, arithmetic) for source, index in parts
        )

    def _computed_from(self, value: Instruction, moves: int, arithmetic: int) -> frozenset[Term]:
        if moves > _FURTHEST or arithmetic > _MOST_ARITHMETIC:
            return _NONE
        opcode, operands = value.opcode, value.operands
        if opcode == "reduce" and isinstance(value.shape, ArrayShape):
            return frozenset({self._reduced(value)})
        if opcode in SAME:
            own = frozenset({self._broadcast(value)} if opcode == "broadcast" else ())
            return own | self._sources(operands[0], moves + 1, arithmetic)
        if opcode in ("negate", "divide"):
            return self._sources(operands[0], moves, arithmetic + 1)
        if opcode not in _LINEAR:
            return _NONE
        one, other = (self._sources(operand, moves, arithmetic + 1) for operand in operands)
        return one | other if opcode == "multiply" else one & other

    def _spread(self, value: Instruction, moves: int, arithmetic: int) -> frozenset[Term]:
        """What everything that is made of a value is broadcast over."""
        if moves > _FURTHEST or arithmetic > _MOST_ARITHMETIC:
            return _NONE
        home = self._calls.home[value]
        found = (self._spread_by(value, user, moves, arithmetic) for user in self._users[value])
        if value is not home.root:
            return _common(found)
        callers = self._calls.callers[home]
        if not callers or any(caller.opcode not in INLINED for caller in callers):
            return _NONE
        return _common(chain(found, (self._spread(caller, moves + 1, arithmetic) for caller in callers)))

    def _spread_by(
        self, value: Instruction, user: Instruction, moves: int, arithmetic: int
    ) -> frozenset[Term]:
        if user.opcode == "broadcast" and (added := self._broadcast(user)):
            return frozenset({added})
        if user.opcode in SAME:
            return self._spread(user, moves + 1, arithmetic)
        if user.opcode in _LINEAR or (user.opcode == "divide" and user.operands[0] is value):
            return self._spread(user, moves, arithmetic + 1)
        if user.opcode in INLINED:
            return _common(self._spread(one, moves + 1, arithmetic) for one in _taken(value, user))
        if user.opcode == "tuple" and user is self._calls.home[user].root:
            return self._spread_in_tuple(user, user.operands.index(value), moves, arithmetic)
        return _NONE

    def _spread_in_tuple(
        self, result: Instruction, number: int, moves: int, arithmetic: int
    ) -> frozenset[Term]:
        """What an element of the tuple that a fusion returns is broadcast over."""
        callers = self._calls.callers[self._calls.home[result]]
        readers = [reader for caller in callers for reader in self._users[caller]]
        if any(one.opcode not in INLINED for one in callers) or any(
            one.opcode != "get-tuple-element" for one in readers
        ):
            return _NONE
        taken = [one for one in readers if one.integer("index") == number]
        return _common(self._spread(one, moves + 1, arithmetic) for one in taken)


def _quotient(constant: Instruction, reader: Instruction) -> Quotient | None:
    """What a reader makes of a constant, where it is a quotient or a product with something else."""
    is_divisor = reader.opcode == "divide" and reader.operands[1] is constant
    others = [operand for operand in reader.operands if operand is not constant]
    if len(others) != 1 or not (is_divisor or reader.opcode == "multiply"):
        return None
    return Quotient(reader, constant, others[0])


def _taken(value: Instruction, caller: Instruction) -> list[Instruction]:
    """The parameters that a fusion or a call passes a value for."""
    parameters = next(caller.called).parameters
    return [p for p, operand in zip(parameters, caller.operands) if operand is value]


def _common(found: Iterable[frozenset[Term]]) -> frozenset[Term]:
    """What all have, of which there is one at least; no more are asked for than it takes to know."""
    common: frozenset[Term] | None = None
    for one in found:
        common = one if common is None else common & one
        if not common:
            break
    return common or _NONE
