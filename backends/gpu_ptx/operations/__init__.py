"""What each opcode does, a file for each family."""

from __future__ import annotations

from importlib import import_module

_FAMILIES = (
    "integers",
    "bit_fields",
    "floats",
    "approximate",
    "comparisons",
    "conversions",
    "moves",
    "warps",
    "atomics",
    "matrices",
    "asynchronous",
    "bulk",
    "warpgroups",
)


def load() -> None:
    """Register all rules."""
    for family in _FAMILIES:
        import_module(f"{__name__}.{family}")
