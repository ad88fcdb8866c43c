"""Which executions of a long run are kept: those whose results show an event, and the last ones before it.

Nothing here reads files or knows XLA: a `Keeper` is told of executions in their order, and says which go.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from hlotool.ir.arrays import Array
from hlotool.ir.types import ShapeIndex
from hlotool.judge.records import output_name
from hlotool.runs.capture.records import EventRecord

#: A module: the folder of its process, and its number there.
Key: TypeAlias = tuple[Path, int]

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


class _Waiting(NamedTuple):
    """An execution that may be one of the last before an event."""

    module: Key
    execution: int
    size: int


class Keeper:
    """Decides of the executions of all modules which ones stay on disk.

    Args:
        conditions: what makes an event.
        last: executions before an event that stay with it. Of `every` it is the execution alone.
        most_bytes: that the executions which stay may take. Where they would take more, those go first that
            only wait for an event, the oldest of all modules before the others; then new events are not kept.

    Attributes:
        events: in their order, each with its module, and without the name of that.
        executions: that were seen.
        without_result: executions whose results were not recorded.
    """

    def __init__(self, conditions: Iterable[Condition], last: int, most_bytes: float) -> None:
        self.events: list[tuple[Key, EventRecord]] = []
        self.executions = 0
        self.without_result = 0
        self._conditions = tuple(conditions)
        self._last = last
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._ring: dict[str, _Waiting] = {}
        self._values: dict[tuple[Key, ShapeIndex], deque[float]] = {}
        self._holding: dict[Key, set[tuple[Condition, ShapeIndex]]] = {}

    def see(
        self,
        module: Key,
        execution: int,
        path: str,
        size: int,
        outputs: Mapping[ShapeIndex, Array] | None,
    ) -> list[str]:
        """Take the next execution of a module; returns the paths of those that are to be deleted.

        Args:
            module: whose it is.
            execution: its number, from 1.
            path: of its file.
            size: bytes of that.
            outputs: those of the result that hold floats, real or complex; None where no result was recorded.
        """
        self.executions += 1
        self.without_result += outputs is None
        found = list(self._found(module, execution, outputs or {}))
        self._ring[path] = _Waiting(module, execution, size)
        dropped = self._shorten(module, execution - self._last)
        is_kept = path in self._ring
        if found and is_kept:
            is_sample = not any(event.output for event in found)
            self._held_bytes += sum(
                self._ring.pop(held).size for held in ([path] if is_sample else self._waiting_of(module))
            )
        self.events += [(module, msgspec.structs.replace(event, is_kept=is_kept)) for event in found]
        return dropped

    def end(self, module: Key) -> list[str]:
        """No more executions come: what of a module with events only waited for another one."""
        return self._waiting_of(module) if self.shows(module) else []

    def shows(self, module: Key) -> bool:
        """Whether executions of a module stay for what they show."""
        return any(owner == module and event.is_kept for owner, event in self.events)

    def _waiting_of(self, module: Key) -> list[str]:
        return [path for path, one in self._ring.items() if one.module == module]

    def _shorten(self, module: Key, first: int) -> list[str]:
        """Do without what was executed before `first`, and what there is no room for."""
        dropped = [path for path in self._waiting_of(module) if self._ring[path].execution < first]
        waiting = sum(one.size for path, one in self._ring.items() if path not in dropped)
        for path, one in self._ring.items():
            if self._held_bytes + waiting <= self._most_bytes:
                break
            if path not in dropped:
                dropped.append(path)
                waiting -= one.size
        for path in dropped:
            del self._ring[path]
        return dropped

    def _found(
        self, module: Key, execution: int, outputs: Mapping[ShapeIndex, Array]
    ) -> Iterator[EventRecord]:
        before = self._holding.get(module, set())
        details: dict[tuple[Condition, ShapeIndex], str] = {}
        for index, array in outputs.items():
            past = self._values.setdefault((module, index), deque(maxlen=_WINDOW))
            for condition in self._conditions:
                if detail := _detail(condition, array, past):
                    details[condition, index] = detail
            if array.ndim == 0 and array.dtype.kind != "c" and isfinite(value := float(array)):
                past.append(abs(value))
        self._holding[module] = set(details)
        for condition in self._conditions:
            if condition.kind == "every" and execution % int(condition.amount) == 0:
                yield EventRecord(execution=execution, condition=str(condition))
            if new := [index for of, index in details if of == condition and (of, index) not in before]:
                yield EventRecord(
                    execution=execution,
                    condition=str(condition),
                    output=output_name(new[0]),
                    others=len(new) - 1,
                    detail=details[condition, new[0]],
                )


def _detail(condition: Condition, array: Array, past: deque[float]) -> str:
    """How a condition holds of an output, in words; empty where it does not."""
    if condition.kind in ("nan", "inf"):
        count = int(np.count_nonzero(np.isnan(array) if condition.kind == "nan" else np.isinf(array)))
        return f"{count} of {array.size} elements" if count else ""
    if condition.kind != "jump" or array.ndim or array.dtype.kind == "c" or len(past) < _LEAST:
        return ""
    value, usual = float(array), median(past)
    if not usual or not abs(value) > condition.amount * usual:
        return ""
    return f"{value:g}, {abs(value) / usual:.3g} times the median of {len(past)} values before it"
