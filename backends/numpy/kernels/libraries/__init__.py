"""Custom calls into libraries for GPUs and CPUs: one file per library, one small function per target."""

from __future__ import annotations

import pkgutil
from importlib import import_module


def load() -> None:
    """Register all of them; only programs that make such calls need the time."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
