"""Which accesses of shared memory are ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine


class Races:
    """Happens-before among the threads of blocks."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def arrived(self, number: int, threads: NDArray[np.intp]) -> None:
        """Threads arrive at barrier `number`."""

    def joined(self, blocks: NDArray[np.intp], number: int | None) -> None:
        """Barrier `number` is complete in `blocks`; None: one that all threads reached together."""

    def reads(self, offsets: NDArray[np.int64], width: int) -> None:
        """The active threads read `width` bytes of shared memory each."""

    def writes(self, offsets: NDArray[np.int64], width: int) -> None:
        """The active threads write `width` bytes of shared memory each."""

    def synchronised(self) -> None:
        """The active threads of each warp meet at an instruction that all of them execute."""

    def suspend(self) -> bool:
        """Accesses are atomic until `resume`."""
        return True

    def resume(self, kept: bool) -> None:
        """The end of what is atomic."""
