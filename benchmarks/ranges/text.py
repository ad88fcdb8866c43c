"""HLO texts of small programs, line by line, for pairs that differ in a range, a guard or a tie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ElementType


@dataclass(slots=True)
class Lines:
    """A program that grows by a line at a time.

    Attributes:
        computations: that it calls, as text.
        lines: of the entry.
        parameters: their shapes.
    """

    computations: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)

    def parameter(self, shape: str) -> str:
        """The next parameter."""
        self.parameters.append(shape)
        return self.let(shape, f"parameter({len(self.parameters) - 1})")

    def let(self, shape: str, text: str) -> str:
        """A new instruction; its name."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {shape} {text}")
        return name

    def constant(self, shape: str, value: float) -> str:
        """A number in every element of an array."""
        kind, _, dims = shape.partition("[")
        text = str(int(value)) if kind[0] in "su" else f"{value:.9g}"
        one = self.let(f"{kind}[]", f"constant({text})")
        return one if dims == "]" else self.let(shape, f"broadcast({one}), dimensions={{}}")

    def module(self, root: str) -> str:
        """The text, which returns `root`."""
        body = "\n  ".join(
            line.replace(f"{root} =", f"ROOT {root} =", 1) if line.startswith(f"{root} =") else line
            for line in self.lines
        )
        return "\n".join(["HloModule m", *self.computations, f"ENTRY e {{\n  {body}\n}}"])


@dataclass(frozen=True, slots=True)
class Pair:
    """Two programs, and what is known of them by construction.

    Attributes:
        family: of what it is made.
        left: text of the first program.
        right: of the second one.
        differs: whether they are different functions of real numbers and integers.
        witnesses: arguments that show it; of the same function some of the most suspect ones.
        is_special: they differ at NaN or infinity alone, which are no real numbers.
        is_free: one leaves the order of equal elements open, which the other one does not.
    """

    family: str
    left: str
    right: str
    differs: bool
    witnesses: tuple[tuple[Any, ...], ...]
    is_special: bool = False
    is_free: bool = False


def array(shape: str, values: Any) -> Any:
    """An argument of a shape such as `f32[4]`; one number stands for all elements."""
    kind, _, dims = shape.rstrip("]").partition("[")
    sizes = tuple(int(d) for d in dims.split(",") if d)
    found = np.asarray(values, np.float64 if kind[0] in "fb" else np.int64)
    return np.array(np.broadcast_to(found, sizes)).astype(dtype_of(ElementType(kind)))
