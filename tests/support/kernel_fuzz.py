"""Programs of random fusions for everything that kernels are tested by."""

from __future__ import annotations

from typing import Any

from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from support.random_fusions import arguments_of, module_of, random_fusion
from support.random_schedules import random_schedule, whole_numbers

#: Fusions of one compilation.
BATCH = 12

#: What builds fusions: of all operations, with functions that libraries compute differently, and of the sizes
#: that schedules are for.
KINDS = ("fusions", "functions", "schedules")


def fuzz_program(kind: str, first: int, count: int = BATCH) -> tuple[Module, list[Any]]:
    """A program that runs the fusions of `count` seeds, and its arguments."""
    seeds = range(first, first + count)
    if kind == "schedules":
        fusions = [random_schedule(seed) for seed in seeds]
        return parse_module(module_of(fusions)), whole_numbers(fusions, first)
    fusions = [random_fusion(seed, kind == "functions") for seed in seeds]
    return parse_module(module_of(fusions)), arguments_of(fusions, first)
