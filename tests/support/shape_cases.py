"""Shapes that each opcode accepts, and shapes that it refuses: the tables in tests/ir/data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

DATA = Path(__file__).resolve().parent.parent / "ir" / "data"
CALLEES = (DATA / "callees.hlo").read_text(encoding="utf-8")

#: What an end reads must come from a start, so one is put between the parameter and the instruction.
_STARTED = "  p0 = f32[4] parameter(0)\n  s = ((f32[4]), f32[4], u32[]) async-start(p0), calls=same\n"


class ShapeCase(NamedTuple):
    """One instruction, and the rule that it breaks (None when it is valid)."""

    opcode: str
    operands: str
    attributes: str
    result: str
    rule: str | None = None

    def __str__(self) -> str:
        return f"{self.opcode}({self.operands})-{self.result}-{self.attributes}"

    def module(self) -> Module:
        """A module whose root is the instruction; not to be changed."""
        return _parsed(self.text())

    def text(self) -> str:
        """The module's text."""
        shapes = [s.strip() for s in self.operands.split("~")] if self.operands else []
        parameters = "".join(f"  p{i} = {shape} parameter({i})\n" for i, shape in enumerate(shapes))
        inside = ", ".join(f"p{i}" for i in range(len(shapes)))
        if self.opcode in ("async-update", "async-done"):
            parameters, inside = _STARTED, "s"
        inside = {"parameter": "0", "constant": "{1, 2}"}.get(self.opcode, inside)
        attributes = f", {self.attributes}" if self.attributes else ""
        root = f"  ROOT r = {self.result} {self.opcode}({inside}){attributes}\n"
        return f"HloModule case\n{CALLEES}\nENTRY main {{\n{parameters}{root}}}\n"


@cache
def _parsed(text: str) -> Module:
    return parse_module(text)


def valid_cases() -> list[ShapeCase]:
    """Instructions that follow the rules."""
    return [ShapeCase(c[0], c[1], c[2], c[3]) for c in _rows("valid_shapes.txt")]


def invalid_cases() -> list[ShapeCase]:
    """Instructions that break one rule each."""
    return [ShapeCase(c[1], c[2], c[3], c[4], rule=c[0]) for c in _rows("invalid_shapes.txt")]


def _rows(name: str) -> Iterator[list[str]]:
    words: dict[str, str] = {}
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("$"):
            word, _, meaning = line.partition(" = ")
            words[word] = meaning
            continue
        for word, meaning in words.items():
            line = line.replace(word, meaning)
        yield [cell.strip() for cell in line.split("|")]
