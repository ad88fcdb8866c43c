"""Values of the reference that explain a wrong result: what a stale buffer holds, an addend that is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlotool.backends.base import Value
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.numerics.facts import origin_of
from hlotool.numerics.patterns import Difference, Pattern, close, difference

#: Values looked at: loops compute many.
_MOST_VALUES = 4000


@dataclass(slots=True)
class SourceFinder:
    """The probe of an execution of the reference that compares what it sees with what is wrong.

    Attributes:
        found: the difference to be explained.
        addend: the value that the result lacks.
        stale: the value that it holds.
    """

    found: Difference
    addend: Pattern | None = None
    stale: Pattern | None = None
    _seen: int = 0

    @property
    def pattern(self) -> Pattern | None:
        """The one that says more, as far as values were seen."""
        return self.addend or self.stale

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        self._seen += 1
        if self._seen > _MOST_VALUES or not isinstance(value, np.ndarray) or value.ndim == 0:
            return
        if value.shape != self.found.actual.shape or self.found.wrong.sum() < 2:
            return
        with np.errstate(all="ignore"):
            self._look(instruction, value)

    def _look(self, instruction: Instruction, value: Array) -> None:
        found = self.found
        wide = difference(value, value, found.wrong, found.tolerance).expected
        here = wide[found.wrong]
        if wide.dtype != found.actual.dtype:
            return
        lacks = found.expected[found.wrong] - found.actual[found.wrong]
        is_addend = np.abs(here).max() > 0 and any(
            close(sign * here, lacks, found.tolerance, found.scale).all() for sign in (1, -1)
        )
        if self.addend is None and found.wrong.mean() > 0.5 and is_addend:
            self.addend = Pattern("missing addend", f"the values lack {origin_of(instruction)}")
        if self.stale is None and np.ptp(np.abs(here)) > 0 and found.explains(wide):
            self.stale = Pattern(
                "stale value", f"the wrong elements hold the value of {origin_of(instruction)}"
            )
