"""Programs whose arguments are on the device: to run them there, and to time them by its clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.cuda.memory import Memory, Resident
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.run import Run


class Prepared:
    """A program with its arguments on the device.

    Args:
        memory: of the device.
        plan: of the program.
        values: its arguments as residents.
    """

    def __init__(self, memory: Memory, plan: Plan, values: Sequence[Any]) -> None:
        self._memory = memory
        self._plan = plan
        self._values = values
        for value in values:
            _send(value)

    def run(self) -> Any:
        """Queue one execution; the result stays on the device (`to_arrays` brings it down).

        Arguments are not modified: what the program would update in place is copied.
        """
        with np.errstate(all="ignore"):
            return self._plan(list(self._values), Run())

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Milliseconds of one execution by the device's clock, measured `repeats` times.

        Args:
            repeats: how many measurements.
            inner: executions within each, so that what the host does between them does not count for as much.
        """
        device = self._memory.device

        def work() -> None:
            for _ in range(inner):
                self.run()

        return [device.time(work) / inner for _ in range(repeats)]


def _send(value: Any) -> None:
    if isinstance(value, tuple):
        for part in value:
            _send(part)
    elif isinstance(value, Resident):
        value.storage.on_device()
