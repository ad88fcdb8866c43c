"""What a family draws: a JAX function, and what its arguments are.

It is imported under every jaxlib, and imports nothing of hlotool.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Make = Callable[[random.Random], "Program"]

#: Families by name, in the order of their definition.
FAMILIES: dict[str, Make] = {}


@dataclass(frozen=True)
class Argument:
    """One argument of a program.

    Attributes:
        kind: `float`, `positive`, `int`, `index` (into `limit` rows), `count` (of iterations), `bool`.
        dims: of the array.
        dtype: name of the element type.
        limit: rows that an index may name.
    """

    kind: str
    dims: tuple[int, ...]
    dtype: str
    limit: int = 0


@dataclass(frozen=True)
class Program:
    """A function as somebody would write it.

    Attributes:
        function: what is compiled.
        arguments: what it takes, in order.
        devices: how many it runs on.
    """

    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    devices: int = 1


def family(make: Make) -> Make:
    """Enter a family under its own name."""
    FAMILIES[make.__name__] = make
    return make


def floats(*dims: int, dtype: str = "float32") -> Argument:
    """Numbers of either sign."""
    return Argument("float", dims, dtype)


def positive(*dims: int, dtype: str = "float32") -> Argument:
    """Numbers above 0."""
    return Argument("positive", dims, dtype)


def integers(*dims: int, dtype: str = "int32") -> Argument:
    """Integers of any size."""
    return Argument("int", dims, dtype)


def index(limit: int, *dims: int, dtype: str = "int32") -> Argument:
    """Positions among `limit`."""
    return Argument("index", dims, dtype, limit)


def count(dtype: str = "int32") -> Argument:
    """How often a loop runs."""
    return Argument("count", (), dtype)


def preds(*dims: int) -> Argument:
    """Booleans."""
    return Argument("bool", dims, "bool")
