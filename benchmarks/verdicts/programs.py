"""The programs whose verdicts are measured, and the legal ways of executing each of them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

#: Programs on which XLA is wrong, or differs by a rule: they are no healthy pairs.
NOT_HEALTHY = {
    "multiply.s4_widened": "XLA drops the wrap-around to four bits",
    "int4_product": "XLA drops the wrap-around to four bits",
    "compare.totalorder": "XLA folds a comparison of constants in IEEE order, at run time in total order",
}

#: Programs that need particular inputs.
INPUT_RANGES = {
    # Newton iteration for the root of a negative number never ends where it should.
    "newton_roots": (0.5, 2.0),
}

#: Without these XLA cannot compile, or computes something else than it otherwise promises.
NEEDED_PASSES = frozenset(
    {
        "batched_gather_scatter_normalizer",
        "convolution-group-converter",
        "copy-insertion",
        "flatten-call-graph",
        "fusion-wrapper",
        "gather_simplifier",
        "layout-assignment",
        # Without it products of narrow integers are computed in the narrow type: XLA is wrong.
        "operand_upcaster",
        "scatter_simplifier",
        "select_and_scatter_expander",
        "topk-decomposer",
    }
)

_BEFORE = ".before_optimizations.txt"


@dataclass(frozen=True, eq=False)
class Subject:
    """A program of the corpus.

    Attributes:
        name: directory and module, or the file's name.
        text: as the frontend made it, or written by hand.
        optimized: text of the optimised program of the same dump, empty where there is none.
        passes: files that show the program after each pass, where the dump has them.
    """

    name: str
    text: str
    optimized: str = ""
    passes: tuple[Path, ...] = ()

    @cached_property
    def module(self) -> Module:
        """The program."""
        return parse_module(self.text, self.name)

    @cached_property
    def optimized_module(self) -> Module | None:
        """The optimised program."""
        return parse_module(self.optimized, f"{self.name} optimised") if self.optimized else None

    @property
    def input_range(self) -> tuple[float, float] | None:
        """Bounds of its floats, where it needs some."""
        return INPUT_RANGES.get(self.name.split("/")[0])

    def arguments(self, seed: int) -> list[Any]:
        """Inputs that make sense to the program."""
        return list(generate_inputs(self.module, seed, self.input_range).values)


def subjects(only: str = "") -> Iterator[Subject]:
    """The programs of the corpus that one device can run.

    Args:
        only: regular expression that names must match.
    """
    for path in _files():
        name = _name(path)
        text = path.read_text(encoding="utf-8")
        if re.search(only, name) and not _obstacle(text) and not NOT_HEALTHY.keys() & set(name.split("/")):
            yield Subject(name, text, _optimized(path), _passes(path))


def _files() -> list[Path]:
    corpus = ROOT / "corpus"
    dumps = [p for folder in ("jax", "tf") for p in (corpus / folder).rglob(f"*{_BEFORE}")]
    return [*sorted((corpus / "modules").glob("*.hlo")), *sorted(dumps)]


def _name(path: Path) -> str:
    if path.suffix == ".hlo":
        return path.stem
    module = path.name.removesuffix(_BEFORE)
    return f"{path.parent.name}/{module[:60]}"


def _obstacle(text: str) -> str | None:
    """Why XLA's CPU compiler cannot run this on one device."""
    if note := re.search(r"^// (XLA on CPU: .*)", text, re.MULTILINE):
        return note[1]
    if "constant({...})" in text:
        return "its constants are elided"
    if "callback" in text:
        return "it calls back into Python"
    if re.search(r"num_partitions=[2-9]|replica_count=[2-9]", text):
        return "it is for several devices"
    return None


def _optimized(path: Path) -> str:
    beside = path.with_name(path.name.removesuffix(_BEFORE) + ".cpu_after_optimizations.txt")
    if path.suffix == ".hlo" or not beside.exists():
        return ""
    text = beside.read_text(encoding="utf-8")
    return "" if "constant({...})" in text else text


def _passes(path: Path) -> tuple[Path, ...]:
    if path.suffix == ".hlo":
        return ()
    stem = path.name.removesuffix(_BEFORE)
    beside = path.parent.glob(f"{glob.escape(stem)}.[0-9][0-9][0-9][0-9].*.txt")
    return tuple(sorted(beside))
