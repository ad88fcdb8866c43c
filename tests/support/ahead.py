"""A stand-in for the process that holds a compiler for TPUs or GPUs: a test says what that makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.aot.protocol import AheadRequest, AheadResult, CompilerSetup


@dataclass
class Compiler:
    """Answers as the process does.

    Attributes:
        ends_with: from the text of a program to the one that the compiler ends with; may raise.
        requests: what it was asked to compile.
    """

    ends_with: Callable[[str], str] = lambda text: text
    requests: list[AheadRequest] = field(default_factory=list)

    def call(self, function: str, argument: Any, kind: type[Any]) -> Any:
        """See `XlaProcess.call`."""
        if function.endswith(":describe"):
            return CompilerSetup("0.10.2", "compiler 1.2", "a device", 4)
        self.requests.append(argument)
        path = Path(argument.folder) / "module_0000.m.after_codegen.txt"
        path.write_text(self.ends_with(argument.text), encoding="utf-8")
        return AheadResult(str(path))

    def start(self) -> None:
        """There is nothing to start."""


def use(monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> Compiler:
    """Have backends ask `compiler`."""
    monkeypatch.setattr(AotBackend, "_process", lambda self: compiler)
    return compiler
