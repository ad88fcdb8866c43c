"""Limits of GPUs that decide which fusions XLA may form. XLA: its target descriptions of each GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        shared_memory: bytes that a block may use without asking for more, XLA's budget for a fusion.
        shared_memory_optin: bytes that a block may use at most.
    """

    shared_memory: int
    shared_memory_optin: int


GPUS = {
    "p100": Gpu(49152, 49152),
    "v100": Gpu(49152, 98304),
    "a6000": Gpu(49152, 101376),
    "a100": Gpu(49152, 166912),
    "h100": Gpu(49152, 232448),
    "h200": Gpu(49152, 232448),
    "b200": Gpu(49152, 232448),
    "mi200": Gpu(65536, 65536),
}
