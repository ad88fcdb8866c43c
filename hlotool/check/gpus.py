"""Limits of GPUs that decide which fusions XLA may form. XLA: its target descriptions of each GPU."""

from __future__ import annotations

#: Bytes of shared memory that a block may use without asking for more: XLA's budget for a fusion.
GPUS = {
    "p100": 49152,
    "v100": 49152,
    "a6000": 49152,
    "a100": 49152,
    "h100": 49152,
    "h200": 49152,
    "b200": 49152,
    "mi200": 65536,
}
