"""The rules by which XLA is known to differ from the numpy backend: departures.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("departures.toml")


@dataclass(frozen=True, slots=True)
class Departure:
    """One known difference, which is no fault of the program that shows it.

    Attributes:
        id: short name.
        side: `cpu` (XLA's CPU code generator and its passes), `evaluator` (XLA's HloEvaluator, which also
            folds constants), `gpu` or `tpu` (their compilers).
        opcodes: where it shows.
        types: element types that are concerned, in words.
        xla: what XLA gives.
        ours: what the numpy backend gives.
        until: the first version of jaxlib in which some of its cases do not show it any more.
        predicate: function of `predicates` that says which elements it explains; None where
            random tests do not meet it.
        example: a module that shows it; None where a spec case does, or a predicate alone.
    """

    id: str
    side: str
    opcodes: tuple[str, ...]
    types: str
    xla: str
    ours: str
    until: tuple[int, ...] | None = None
    predicate: str | None = None
    example: Example | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A module and HLO literal text: of its inputs, of our result, of XLA's; debug options for XLA."""

    text: str
    inputs: tuple[str, ...]
    ours: str
    xla: str
    options: dict[str, Any] = field(default_factory=dict)


def _read() -> dict[str, Departure]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["departure"]
    return {row["id"]: Departure(**_typed(row)) for row in rows}


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    example = row.get("example")
    if example is not None:
        example = Example(**{**example, "inputs": tuple(example["inputs"])})
    until = tuple(row["until"]) if "until" in row else None
    return {**row, "opcodes": tuple(row["opcodes"]), "until": until, "example": example}


DEPARTURES = _read()
