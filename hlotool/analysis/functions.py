"""Functions of one real number: where they are defined, what values they have, and what undoes them.

Of every transcendental opcode of one operand. Source: NIST's DLMF, chapters 4 (elementary) and 7 (erf).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hlotool.analysis.interval import ANY, NONNEGATIVE, POSITIVE, Interval

#: Stands for the open end of a range that never reaches 0, such as that of exp.
ABOVE_ZERO: Final = 1e-30
_ABOVE_ZERO: Final = Interval(ABOVE_ZERO)
_WITHIN_ONE: Final = Interval(-1, 1)


@dataclass(frozen=True, slots=True)
class RealFunction:
    """A function of one real number.

    Attributes:
        apply: its value at a number of the domain; ValueError or OverflowError where that is infinite.
        inverse: a number that has a value, near 0 where there are several; None where nothing simple says it.
        image: its values.
        domain: where it is defined.
        rises: the larger the number, the larger the value.
    """

    apply: Callable[[float], float]
    inverse: Callable[[float], float] | None = None
    image: Interval = ANY
    domain: Interval = ANY
    rises: bool = True

    def range_on(self, argument: Interval) -> Interval:
        """Its values on the part of an interval that lies in the domain."""
        if not self.rises:
            return self.image
        return Interval(
            self._limit(argument.low, self.image.low), self._limit(argument.high, self.image.high)
        )

    def _limit(self, number: float, end: float) -> float:
        number = min(max(number, self.domain.low), self.domain.high)
        try:
            value = self.apply(number)
        except (OverflowError, ValueError):
            return end
        return min(max(value, self.image.low), self.image.high)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _cube_root(x: float) -> float:
    return math.copysign(abs(x) ** (1 / 3), x)


FUNCTIONS: Final[Mapping[str, RealFunction]] = {
    "acos": RealFunction(math.acos, math.cos, Interval(0, math.pi), _WITHIN_ONE, rises=False),
    "acosh": RealFunction(math.acosh, math.cosh, NONNEGATIVE, Interval(1)),
    "asin": RealFunction(math.asin, math.sin, Interval(-math.pi / 2, math.pi / 2), _WITHIN_ONE),
    "asinh": RealFunction(math.asinh, math.sinh),
    "atanh": RealFunction(math.atanh, math.tanh, domain=_WITHIN_ONE),
    "cbrt": RealFunction(_cube_root, lambda y: y**3),
    "cosh": RealFunction(math.cosh, math.acosh, Interval(1), rises=False),
    "cosine": RealFunction(math.cos, math.acos, _WITHIN_ONE, rises=False),
    "erf": RealFunction(math.erf, None, _WITHIN_ONE),
    "exponential": RealFunction(math.exp, math.log, _ABOVE_ZERO),
    "exponential-minus-one": RealFunction(math.expm1, math.log1p, Interval(-1)),
    "log": RealFunction(math.log, math.exp, domain=POSITIVE),
    "log-plus-one": RealFunction(math.log1p, math.expm1, domain=Interval(-1, avoid=-1)),
    "logistic": RealFunction(_logistic, lambda y: math.log(y / (1 - y)), Interval(ABOVE_ZERO, 1)),
    "rsqrt": RealFunction(lambda x: x**-0.5, lambda y: 1 / (y * y), _ABOVE_ZERO, POSITIVE, rises=False),
    "sine": RealFunction(math.sin, math.asin, _WITHIN_ONE, rises=False),
    "sinh": RealFunction(math.sinh, math.asinh),
    "sqrt": RealFunction(math.sqrt, lambda y: y * y, NONNEGATIVE, NONNEGATIVE),
    "tan": RealFunction(math.tan, math.atan, rises=False),
    "tanh": RealFunction(math.tanh, math.atanh, _WITHIN_ONE),
}
