"""A stand-in for the process that holds a compiler for TPUs or GPUs: a test says what that makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.aot.protocol import AheadRequest, AheadResult, CompilerSetup, Grid


@dataclass
class Compiler:
    """Answers as the process does.

    Attributes:
        ends_with: from the text of a program to the one that the compiler ends with; may raise.
        requests: what it was asked to compile.
        others: further files of the dump, by the end of their names.
        memory: bytes by what they are for.
        log: what it says.
    """

    ends_with: Callable[[str], str] = lambda text: text
    requests: list[AheadRequest] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    log: str = ""

    def call(self, function: str, argument: Any, kind: type[Any]) -> Any:
        """See `XlaProcess.call`."""
        if function.endswith(":describe"):
            return CompilerSetup("0.10.2", "compiler 1.2", "a device", 4)
        if function.endswith(":grid_of"):
            return Grid(1, 1)
        self.requests.append(argument)
        folder = Path(argument.folder)
        (folder / "module_0000.m.before_optimizations.txt").write_text(argument.text, encoding="utf-8")
        path = folder / "module_0000.m.after_codegen.txt"
        path.write_text(self.ends_with(argument.text), encoding="utf-8")
        for name, text in self.others.items():
            (folder / f"module_0000.m.{name}").write_text(text, encoding="utf-8")
        return AheadResult(str(path), self.memory, self.log)

    def start(self) -> None:
        """There is nothing to start."""


def use(monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> Compiler:
    """Have backends ask `compiler`."""
    monkeypatch.setattr(AotBackend, "_process", lambda self: compiler)
    return compiler
