"""hlotool: interpret, replay, check and bisect XLA HLO dumps.

The names below are the public API; everything else may change between minor versions.
They load on first use, so that `import hlotool` and `hlotool --help` stay cheap.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlotool._version import __version__

if TYPE_CHECKING:
    from hlotool.api import bisect, compare, load, parse, prove, run
    from hlotool.ir.module import Module

__all__ = ["Module", "__version__", "bisect", "compare", "load", "parse", "prove", "run"]

# `grammar/` and `backends/` are top-level folders that install as sub-packages. In a checkout that is
# not installed nothing maps them, so their parent joins the search path; installed copies still win.
_root = Path(__file__).resolve().parent.parent
if (_root / "backends" / "__init__.py").is_file() and (_root / "grammar" / "__init__.py").is_file():
    __path__.append(str(_root))

_HOME = {
    "Module": "hlotool.ir.module",
    "bisect": "hlotool.api",
    "compare": "hlotool.api",
    "load": "hlotool.api",
    "parse": "hlotool.api",
    "prove": "hlotool.api",
    "run": "hlotool.api",
}


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'hlotool' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `hlotool.parse` the public function: importing the sub-package `hlotool/parse/` would hide it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

logging.getLogger(__name__).addHandler(logging.NullHandler())
