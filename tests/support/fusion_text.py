"""Fused computations as text, under construction by the generators of random fusions."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from hlotool.ir.types import ELEMENT_TYPES, TypeClass


@dataclass(frozen=True)
class Value:
    """A named array of the fusion.

    Attributes:
        name: in the text.
        kind: element type.
        dims: sizes.
        ulps: that two libraries may be apart in it; nothing but data movement may follow where it is not 0.
        absolute: that two ways to compute it may be apart, whatever its size.
        layout: as written behind the dimensions.
        domain: of a parameter: any values, small `whole` numbers other than 0, or `finite` ones.
    """

    name: str
    kind: str
    dims: tuple[int, ...]
    ulps: float = 0
    absolute: float = 0
    layout: str = ""
    domain: str = "any"

    @property
    def shape(self) -> str:
        return shape(self.kind, self.dims) + self.layout

    @property
    def is_exact(self) -> bool:
        """Whether it is the same to the bit on every machine that rounds correctly."""
        return not self.ulps and not self.absolute


def shape(kind: str, dims: tuple[int, ...]) -> str:
    """`f32[2,3]`."""
    return f"{kind}[{','.join(map(str, dims))}]"


def ints(numbers: Any) -> str:
    """`{1,2}`."""
    return "{" + ",".join(map(str, numbers)) + "}"


def family(value: Value) -> TypeClass:
    """Of its element type."""
    return ELEMENT_TYPES[value.kind].family


@dataclass
class Fusion:
    """A fused computation under construction."""

    rng: random.Random
    number: int
    lines: list[str] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)

    def add(
        self,
        kind: str,
        dims: tuple[int, ...],
        text: str,
        *sources: Value,
        ulps: float = 0,
        absolute: float = 0,
        layout: str = "",
    ) -> Value:
        """Append an instruction whose value others may use; `sources` pass on how far they may be off."""
        ulps = max([ulps, *(s.ulps for s in sources)])
        absolute = max([absolute, *(s.absolute for s in sources)])
        value = Value(f"v{len(self.lines)}", kind, dims, ulps, absolute, layout)
        self.lines.append(f"{value.name} = {value.shape} {text}")
        self.values.append(value)
        return value

    def line(self, shape_: str, text: str) -> str:
        """Append an instruction that only what follows at once uses; returns its name."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {shape_} {text}")
        return name

    def parameter(self, kind: str, dims: tuple[int, ...], domain: str = "any") -> Value:
        """A new parameter."""
        text = f"parameter({len(self.parameters)})"
        value = Value(f"v{len(self.lines)}", kind, dims, domain=domain)
        self.lines.append(f"{value.name} = {value.shape} {text}")
        self.parameters.append(value)
        self.values.append(value)
        return value

    def hidden(self, kind: str, dims: tuple[int, ...], domain: str = "any") -> Value:
        """A new parameter that nothing else uses."""
        value = self.parameter(kind, dims, domain)
        self.values.pop()
        return value

    def scalar(self, kind: str, number: int) -> Value:
        """A constant."""
        texts = {"pred": "true", "c64": f"({number}, 1)", "c128": f"({number}, 1)", "s1": "-1"}
        return Value(self.line(f"{kind}[]", f"constant({texts.get(kind, number)})"), kind, ())

    def alike(self, value: Value) -> Value:
        """Any value of the same shape; exact unless `value` is not."""
        found = [v for v in self.values if v.kind == value.kind and v.dims == value.dims]
        found = [v for v in found if v.is_exact or not value.is_exact]
        if found and self.rng.random() < 0.7:
            return self.rng.choice(found)
        return self.parameter(value.kind, value.dims)

    def computation(self, name: str, parameters: list[str], lines: list[str]) -> str:
        """A computation that can be called; its parameters are a, b, … of the given shapes."""
        text = f"{name}{self.number}_{len(self.helpers)}"
        body = [f" {chr(97 + n)} = {s} parameter({n})" for n, s in enumerate(parameters)]
        body += [f" {line}" for line in lines]
        self.helpers.append("\n".join([f"{text} {{", *body, "}\n"]))
        return text

    def combiner(self, kind: str, text: str, result: str = "") -> str:
        """A computation of two scalars a and b."""
        return self.computation("combine", [f"{kind}[]"] * 2, [f"ROOT r = {result or kind}[] {text}"])
