"""What a result leaf depends on, as far as comparing its value is concerned.

Facts flow forward through a module (`dataflow`): a leaf inherits those of everything it is computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """The instruction that a fact comes from, as plain data."""

    line: int
    name: str
    opcode: str

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.opcode} %{self.name}{where}"


def origin_of(instruction: Instruction) -> Origin:
    """Name, opcode and line of `instruction`."""
    return Origin(instruction.line, instruction.name, instruction.opcode)


@dataclass(frozen=True, slots=True)
class Sum:
    """A float accumulation: the larger `error`, the more its result depends on the order of the terms.

    Attributes:
        length: number of terms, loops around it included.
        error: sqrt(length) ulps of the type that accumulates, as a relative error.
        origin: the instruction that adds.
    """

    length: int
    error: float
    origin: Origin


@dataclass(frozen=True, slots=True)
class Rounding:
    """The coarsest rounding of an intermediate float value.

    Attributes:
        epsilon: one ulp at 1 of the type or the precision rounded to.
        element_type: that type.
        origin: the first instruction that rounds to it.
    """

    epsilon: float
    element_type: ElementType
    origin: Origin


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one leaf; every field is None where nothing of the kind is upstream.

    Attributes:
        random: an instruction whose result differs between legal executions.
        decision: an instruction that makes an integer or a pred of rounded floats: one ulp may flip it.
        rounding: coarsest float arithmetic upstream.
        sum: the accumulation with the largest error upstream.
        transcendental: an instruction that each backend approximates in its own way.
    """

    random: Origin | None = None
    decision: Origin | None = None
    rounding: Rounding | None = None
    sum: Sum | None = None
    transcendental: Origin | None = None

    def join(self, other: Facts) -> Facts:
        """Facts of something computed from both."""
        if self == other or other == NOTHING:
            return self
        if self == NOTHING:
            return other
        return Facts(
            _first(self.random, other.random),
            _first(self.decision, other.decision),
            _first(self.rounding, other.rounding, lambda r: (-r.epsilon, r.origin)),
            _first(self.sum, other.sum, lambda s: (-s.error, s.origin)),
            _first(self.transcendental, other.transcendental),
        )

    @property
    def control(self) -> Facts:
        """What passes from a predicate to the values that it selects: randomness and decisions."""
        return Facts(random=self.random, decision=self.decision)


#: Facts of a parameter or a constant.
NOTHING = Facts()


_T = TypeVar("_T")


def _first(a: _T | None, b: _T | None, rank: Callable[[_T], Any] = lambda fact: fact) -> _T | None:
    """Of two facts of one kind, each None where nothing is known, the one of lower rank."""
    return a or b if a is None or b is None else min(a, b, key=rank)
