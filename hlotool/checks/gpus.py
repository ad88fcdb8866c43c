"""Limits of GPUs that decide which fusions XLA may form. XLA: its target descriptions of each GPU."""

from __future__ import annotations

#: Bytes of shared memory that a block may use without asking for more: XLA's budget for a fusion.
GPUS = {
    **dict.fromkeys(("p100", "v100", "a6000", "a100", "h100", "h200", "b200"), 49152),
    "mi200": 65536,
}
