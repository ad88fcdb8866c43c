"""Notebooks without Jupyter: the cells of a page of the documentation, and a stand-in for IPython's shell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hlotool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notebooks.md"


def cells() -> list[str]:
    """The cells on the page about notebooks, in order."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Shell:
    """What IPython's shell is to an extension, and as much of a kernel as executes `cells`."""

    def __init__(self) -> None:
        self.displayhook = SimpleNamespace(prompt_count=7)
        self.magics: dict[tuple[str, str], Callable[..., Any]] = {}
        self.names: dict[str, Any] = {}
        self.user_ns = self.names

    def register_magic_function(self, func: Callable[..., Any], magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind, magic_name] = func

    def execute(self, cell: str) -> None:
        """Execute a cell; of a magic `_` is the result."""
        first, _, rest = cell.partition("\n")
        if first.startswith("%%"):
            name, _, options = first[2:].partition(" ")
            self.names["_"] = self.magics["cell", name](options, rest)
        elif first == "%load_ext hlotool":
            hlotool.load_ipython_extension(self)
        else:
            exec(cell, self.names)
