"""How far a float result may be from what is expected, by opcode and element type: tolerances.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from hlotool.conformance.agreement import EXACT, Tolerance
from hlotool.ir.types import ElementType

FILE = Path(__file__).with_name("tolerances.toml")


def rows() -> list[dict[str, Any]]:
    """The rows of the file, each with opcodes, types, ulps and a reason."""
    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["tolerance"]
    return found


@cache
def tolerances() -> dict[tuple[str, str], Tolerance]:
    """By opcode and element type of the result; what is not listed must be equal."""
    table = {}
    for row in rows():
        for opcode in row["opcodes"]:
            for kind in row["types"]:
                if (opcode, kind) in table:
                    raise ValueError(f"{FILE.name} has {opcode} of {kind} twice")
                table[opcode, kind] = Tolerance(row["ulps"], row.get("of", "value"))
    return table


def tolerance(opcode: str, kind: ElementType) -> Tolerance:
    """How far floats of `kind` may be apart."""
    return tolerances().get((opcode, kind.value), EXACT)
