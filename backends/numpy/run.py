"""One execution of a plan: what its kernels share while it lasts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.base import Probe, ReadingProbe

if TYPE_CHECKING:
    from hlotool.backends.numpy.lockstep import Device

#: Seed of the numbers that `rng` draws; every run starts from it.
SEED = 0

#: Initial state of `rng-get-and-update-state`. XLA: rng_bit_generator_expander and the CPU code generator.
INITIAL_RNG_STATE = 0x7012395


class Run:
    """State of one execution on one device.

    Attributes:
        probe: sees the result of every instruction, or None.
        reading: sees what some instructions read, or None.
        device: which of several devices this is and how it meets the others; None for the only one.
        rng_state: 128-bit state of `rng-get-and-update-state`, one per module.
    """

    def __init__(
        self,
        probe: Probe | None = None,
        device: Device | None = None,
        reading: ReadingProbe | None = None,
    ) -> None:
        is_reading = isinstance(probe, ReadingProbe)
        self.reading = probe if isinstance(probe, ReadingProbe) else reading
        self.probe = None if is_reading else probe
        self.device = device
        self.rng_state = INITIAL_RNG_STATE

    @cached_property
    def generator(self) -> np.random.Generator:
        """Source of the numbers of `rng`, in the order of execution."""
        return np.random.Generator(np.random.Philox(SEED))
