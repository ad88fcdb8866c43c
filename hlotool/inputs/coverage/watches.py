"""What looks at one decision of a run: most at operands, loops at iterations, sorts at results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, Final, Protocol

import numpy as np

from hlotool.backends.base import ResultReader, Value
from hlotool.backends.numpy.lanes import Lanes, lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.windows import as_int64
from hlotool.facts.decisions import Decision, Kind
from hlotool.facts.demands import start_indices
from hlotool.facts.flow import reducing_opcode
from hlotool.inputs.coverage.outcomes import has_nan, outcome_tests, some
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape

#: Kinds whose tests take Python numbers, which are several times quicker than scalars of NumPy.
_OF_NUMBERS: Final = frozenset(
    {Kind.COMPARISON, Kind.SELECTION, Kind.CLAMPING, Kind.EXTREMUM, Kind.SHIFT, Kind.SIGN, Kind.START_INDEX}
)
#: Kinds that ask every element by itself.
_ELEMENTWISE: Final = frozenset(
    {
        Kind.CLAMPING, Kind.COMPARISON, Kind.CONVERSION, Kind.DIVISION, Kind.EXTREMUM, Kind.FINITENESS,
        Kind.LOGIC, Kind.OVERFLOW, Kind.SELECTION, Kind.SHIFT, Kind.SIGN,
    }
)  # fmt: skip
#: From so many elements on so many are asked first.
_LARGE, _SAMPLED = 1 << 14, 1 << 11
#: Indices are counted place by place up to so many places for each of them.
_SPARSE = 16


class Watch(Protocol):
    """Looks at one decision."""

    @property
    def is_done(self) -> bool:
        """Nothing is left to be seen."""

    def look(self, values: Sequence[Value]) -> ResultReader | None:
        """See operands; the answer, if any, is to be shown the result."""


class OperandWatch:
    """A decision whose outcome its operands show.

    Args:
        decision: in question.
        seen: gets its outcomes.
        wanted: outcomes to look for.
    """

    def __init__(self, decision: Decision, seen: set[str], wanted: Sequence[str]) -> None:
        tests = outcome_tests(decision) if wanted else {}
        self._seen = seen
        self._open = [(outcome, tests[outcome]) for outcome in wanted]
        self._is_of_numbers = decision.kind in _OF_NUMBERS and all(
            isinstance(o.shape, ArrayShape) and o.shape.rank == 0 and not o.shape.element_type.is_complex
            for o in (decision.instruction.operands[n] for n in decision.operands)
        )
        self._operands = decision.operands
        is_elementwise = decision.kind in _ELEMENTWISE and decision.instruction.opcode != "reduce"
        self._sample = _sample(decision.instruction.dims) if is_elementwise else None

    @property
    def is_done(self) -> bool:
        """See `Watch`."""
        return not self._open

    def look(self, values: Sequence[Any]) -> None:
        """See `Watch`."""
        if self._is_of_numbers:
            values = list(values)
            for number in self._operands:
                values[number] = values[number].item()
        elif self._sample is not None:
            values = list(map(_without_repetitions, values))
            self._ask([v[self._sample] if v.ndim == len(self._sample) else v for v in values])
        if self._open:
            self._ask(values)

    def _ask(self, values: Sequence[Any]) -> None:
        occurred = [outcome for outcome, test in self._open if test(values)]
        if occurred:
            self._seen.update(occurred)
            self._open = [(outcome, test) for outcome, test in self._open if outcome not in occurred]


def _sample(dims: Sequence[int]) -> tuple[slice, ...] | None:
    """Some first elements of large arrays, where most of what occurs at all does; None for small ones."""
    if prod(dims) < _LARGE:
        return None
    left, parts = _SAMPLED, []
    for dim in reversed(dims):
        parts.append(slice(min(dim, max(1, left))))
        left //= max(1, dim)
    return tuple(reversed(parts))


def _without_repetitions(value: Any) -> Any:
    """The part of an array that a broadcast repeats."""
    if value.ndim == 0 or 0 not in value.strides:
        return value
    return value[tuple(slice(1) if step == 0 else slice(None) for step in value.strides)]


class TripCounter:
    """How often a loop runs.

    Args:
        decision: in question.
        seen: gets its outcomes.
        wanted: outcomes to look for.
        running: the loop that runs each body now.

    Attributes:
        beat: an instruction that runs once in each iteration; None where there is none to be watched.
        body: of the loop.
    """

    def __init__(
        self,
        decision: Decision,
        seen: set[str],
        wanted: Sequence[str],
        running: dict[Computation, TripCounter],
    ) -> None:
        self.body = decision.instruction.computation("body")
        root = self.body.root
        self.beat: Instruction | None = None if root.opcode in ("parameter", "constant") else root
        self._seen = seen
        self._running = running
        self._wanted = frozenset(wanted)
        self._count: int | None = None

    @property
    def is_done(self) -> bool:
        """See `Watch`."""
        return self._wanted <= self._seen

    def look(self, values: Sequence[Value]) -> None:
        """The loop begins."""
        self.finish()
        if self.beat is not None:
            self._count = 0
            self._running[self.body] = self

    def iterate(self) -> None:
        """The loop goes on."""
        if self._count is not None:
            self._count += 1
            if self._count > 1:
                self.finish()

    def finish(self) -> None:
        """The loop is over, or has run often enough."""
        if self._count is not None:
            self._seen.add(("none", "one", "several")[min(self._count, 2)])
            self._count = None


class Iterations:
    """Tells the counter of the loop that runs a body.

    Args:
        counter: of one loop with this body.
        running: see `TripCounter`.
    """

    def __init__(self, counter: TripCounter, running: dict[Computation, TripCounter]) -> None:
        self._counter = counter
        self._running = running

    @property
    def is_done(self) -> bool:
        """See `Watch`."""
        return self._counter.is_done

    def look(self, values: Sequence[Value]) -> None:
        """An iteration ends."""
        if self._running.get(self._counter.body) is self._counter:
            self._counter.iterate()


class _Jointly:
    """A decision whose outcomes are found together."""

    def __init__(self, decision: Decision, seen: set[str], wanted: Sequence[str]) -> None:
        self._instruction = decision.instruction
        self._wanted = frozenset(wanted)
        self._seen = seen

    @property
    def is_done(self) -> bool:
        """See `Watch`."""
        return self._wanted <= self._seen


class OrderWatch(_Jointly):
    """Whether a sort or a choice of the largest meets elements that it does not tell apart.

    Args:
        decision: in question.
        seen: gets its outcomes.
        wanted: outcomes to look for.
        lowering: compiles the comparator.
    """

    def __init__(self, decision: Decision, seen: set[str], wanted: Sequence[str], lowering: Lowering) -> None:
        super().__init__(decision, seen, wanted)
        self._odd = decision.odd
        self._less: Lanes | None = None
        self._axis = -1
        if self._instruction.opcode == "sort":
            self._less = lanes(self._instruction.computation("to_apply"), lowering)
            (self._axis,) = self._instruction.integers("dimensions")

    def look(self, values: Sequence[Any]) -> ResultReader | None:
        """See `Watch`."""
        self._seen.update(self._odd if self._odd and has_nan(values[0]) else ())
        return self._compare_neighbours

    def _compare_neighbours(self, value: Any) -> None:
        results = value if isinstance(value, tuple) else (value,)
        rows = [np.moveaxis(result, self._axis, -1) for result in results]
        earlier, later = ([r[..., part] for r in rows] for part in (slice(-1), slice(1, None)))
        if earlier[0].size == 0:
            return
        if self._less is None:
            differ = earlier[0] != later[0]
        else:
            differ = self._less(*(side for pair in zip(earlier, later) for side in pair))[0]
        self._seen.update(["distinct"] if differ.any() else [])
        self._seen.update([] if differ.all() else ["ties"])


class NanWatch(_Jointly):
    """Whether NaN is among what is combined.

    Sums, products and extrema of NaN are NaN: where the result, which is smaller, has none, no term is one.
    """

    def look(self, values: Sequence[Any]) -> ResultReader | None:
        """See `Watch`."""
        terms = values[: max(1, len(values) // 2)]

        def find() -> None:
            self._seen.add("NaN" if any(map(has_nan, terms)) else "numbers")

        def find_in_result(value: Any) -> None:
            if has_nan(value):
                find()
            else:
                self._seen.add("numbers")

        if not self._hands_on:
            find()
        return find_in_result if self._hands_on else None

    @cached_property
    def _hands_on(self) -> bool:
        """Whether a NaN among the terms shows in the result."""
        if self._instruction.opcode != "reduce":
            return False
        return reducing_opcode(self._instruction.computation("to_apply")) is not None


class OverlapWatch(_Jointly):
    """Whether a gather reads, a scatter writes windows once, or the same one again."""

    def look(self, values: Sequence[Any]) -> None:
        """See `Watch`."""
        instruction = self._instruction
        starts = start_indices(instruction)
        if not starts:
            return
        indices = np.asarray(values[starts[0].operand])
        position: Any = 0
        inside: Any = True
        for start in starts:
            component = indices if start.axis is None else np.take(indices, start.position, start.axis)
            component = as_int64(component)
            inside = inside & (component >= 0) & (component <= start.limit)
            position = position * (start.limit + 1) + component
        found = np.asarray(position)[np.asarray(inside)]
        places = prod(start.limit + 1 for start in starts)
        if places <= _SPARSE * found.size:
            counts = np.bincount(found, minlength=1)
        else:
            _, counts = np.unique(found, return_counts=True)
        self._seen.update(["repeated"] if (counts > 1).any() else [])
        self._seen.update(["distinct"] if (counts == 1).any() else [])


class TiesWatch(_Jointly):
    """Whether a reduction that chooses, such as an argmax, has equal elements to choose from."""

    def look(self, values: Sequence[Any]) -> ResultReader | None:
        """See `Watch`."""
        keys = np.asarray(values[0])
        axes = tuple(self._instruction.integers("dimensions"))

        def compare(value: Any) -> None:
            chosen = np.expand_dims(np.asarray(value[0]), axes)
            equal = np.count_nonzero(keys == chosen, axis=axes)
            self._seen.update(["distinct"] if some(equal <= 1) else [])
            self._seen.update(["ties"] if some(equal > 1) else [])

        return compare
