"""Which executions of a long run are kept: those whose results show an event, and the last ones before it.

A `Keeper` is told of executions in their order, and says which are to be written. It runs within the user's
program, in whatever Python that uses: nothing is imported but the standard library, and NumPy where JAX is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

#: Values of a scalar that its median is of, and how many there must be.
_WINDOW, _LEAST = 20, 5


@dataclass(frozen=True, slots=True)
class Condition:
    """When an execution is an event.

    Attributes:
        kind: `nan` and `inf` (an element of an output with floats), `jump` (the magnitude of a scalar output
            is more than `amount` times the median of its last 20 values), `every` (the number of the
            execution is a multiple of `amount`).
        amount: see there; 0 for the others.
    """

    kind: str
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{self.amount:g}" if self.amount else self.kind


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """The conditions in `nan|inf|jump:5|every:1000`; raises ValueError."""
    return tuple(map(_condition, text.split("|")))


def _condition(word: str) -> Condition:
    kind, _, amount = word.partition(":")
    if word in ("nan", "inf"):
        return Condition(word)
    if kind == "every" and re.fullmatch(r"[1-9][0-9]{0,11}", amount):
        return Condition(kind, int(amount))
    if kind == "jump" and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", amount) and float(amount) > 1:
        return Condition(kind, float(amount))
    raise ValueError("write nan, inf, jump:F with F above 1 or every:N, several with | between them")


class Output(NamedTuple):
    """An output with floats, real or complex.

    Attributes:
        is_finite: known to be without NaN and infinity.
        is_scalar: a real number, whose history counts.
        value: gives the array.
    """

    is_finite: bool
    is_scalar: bool
    value: Callable[[], Any]


class _Waiting(NamedTuple, Generic[T]):
    """An execution that may be one of the last before an event."""

    module: Hashable
    execution: int
    size: int
    kept: T


class Keeper(Generic[T]):
    """Decides of the executions of all modules which ones are written.

    Args:
        conditions: what makes an event.
        last: executions before an event that stay with it. Of `every` it is the execution alone.
        most_bytes: that the executions which stay may take, and those that wait. Where they would take more,
            those go first that only wait for an event, the oldest of all modules before the others; then new
            events are not kept.
    """

    def __init__(self, conditions: Iterable[Condition], last: int, most_bytes: float) -> None:
        self._conditions = tuple(conditions)
        self._last = last
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._ring: list[_Waiting[T]] = []
        self._values: dict[tuple[Hashable, str], deque[float]] = {}
        self._holding: dict[Hashable, set[tuple[Condition, str]]] = {}

    def see(
        self, module: Hashable, execution: int, kept: T, size: int, outputs: Mapping[str, Output]
    ) -> tuple[list[dict[str, Any]], list[T]]:
        """Take the next execution of a module.

        Args:
            module: whose it is.
            execution: its number, from 1.
            kept: what stands for it.
            size: bytes of that.
            outputs: those of the result that hold floats, by name.

        Returns:
            the events, as an `EventRecord` has them, and what stands for the executions that are to be
            written, in their order.
        """
        found = list(self._found(module, execution, outputs))
        own = _Waiting(module, execution, size, kept)
        self._ring.append(own)
        self._shorten(module, execution - self._last)
        is_kept = own in self._ring
        chosen = []
        if found and is_kept:
            is_sample = not any(event["output"] for event in found)
            chosen = [one for one in self._ring if one is own or (one.module == module and not is_sample)]
            self._ring = [one for one in self._ring if one not in chosen]
            self._held_bytes += sum(one.size for one in chosen)
        return [event | {"is_kept": is_kept} for event in found], [one.kept for one in chosen]

    def _shorten(self, module: Hashable, first: int) -> None:
        """Do without what was executed before `first`, and what there is no room for."""
        self._ring = [one for one in self._ring if one.module != module or one.execution >= first]
        while self._ring and self._held_bytes + sum(one.size for one in self._ring) > self._most_bytes:
            del self._ring[0]

    def _found(
        self, module: Hashable, execution: int, outputs: Mapping[str, Output]
    ) -> Iterator[dict[str, Any]]:
        before = self._holding.get(module, set())
        still = {name for condition, name in before if condition.kind in ("nan", "inf")}
        details: dict[tuple[Condition, str], str] = {}
        for name, output in outputs.items():
            past = self._values.setdefault((module, name), deque(maxlen=_WINDOW))
            for condition in self._conditions:
                if name in still and not output.is_finite and condition.kind in ("nan", "inf"):
                    # What follows the first NaN is NaN, too: to count it again takes long, and tells nothing.
                    detail = "still" if (condition, name) in before else ""
                else:
                    detail = _detail(condition, output, past)
                if detail:
                    details[condition, name] = detail
            if output.is_scalar and isfinite(value := float(output.value())):
                past.append(abs(value))
        self._holding[module] = set(details)
        for condition in self._conditions:
            if condition.kind == "every" and execution % int(condition.amount) == 0:
                yield {"execution": execution, "condition": str(condition), "output": ""}
            if new := [name for of, name in details if of == condition and (of, name) not in before]:
                yield {
                    "execution": execution,
                    "condition": str(condition),
                    "output": new[0],
                    "others": len(new) - 1,
                    "detail": details[condition, new[0]],
                }


def _detail(condition: Condition, output: Output, past: deque[float]) -> str:
    """How a condition holds of an output, in words; empty where it does not."""
    if condition.kind in ("nan", "inf"):
        if output.is_finite:
            return ""
        import numpy as np

        array = output.value()
        count = int(np.count_nonzero(np.isnan(array) if condition.kind == "nan" else np.isinf(array)))
        return f"{count} of {array.size} elements" if count else ""
    if condition.kind != "jump" or not output.is_scalar or len(past) < _LEAST:
        return ""
    value, usual = float(output.value()), median(past)
    if not usual or not abs(value) > condition.amount * usual:
        return ""
    return f"{value:g}, {abs(value) / usual:.3g} times the median of {len(past)} values before it"
