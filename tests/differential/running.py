"""Runs cases on both sides, many in one compilation; says where they differ and which rule explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from support.differential import Array, leaves
from support.oracle import OracleUnable
from support.xla import XlaError, fusion_emitters, oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.types import ArrayShape
from hlotool.ir.types import leaves as shape_leaves
from hlotool.lab.conformance.agreement import DEPARTURES, tolerance, wrong
from hlotool.lab.conformance.generators.cases import Case
from hlotool.lab.conformance.judging import absolute_terms
from hlotool.lab.conformance.running import merge
from hlotool.lab.conformance.trials import Difference, explained

#: Less work for LLVM, and the code generator that compiles many small kernels fastest; every fourth batch
#: goes through the fusion emitters, which are XLA's default.
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, **fusion_emitters(False)}
DEFAULT = {"xla_backend_optimization_level": 0}


@dataclass(slots=True)
class Tally:
    """What became of the cases.

    Attributes:
        cases: compared, by opcode.
        rules: cases that a rule explains, by rule.
        refused: cases that XLA cannot compile or run, with its message.
        unable: cases that XLA alone dies of on this machine, and that have no stored answer.
        mismatches: descriptions of what no rule explains.
    """

    cases: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[Case, str]] = field(default_factory=list)
    unable: list[Case] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Self:
        self.cases += other.cases
        self.rules += other.rules
        self.refused += other.refused
        self.unable += other.unable
        self.mismatches += other.mismatches
        return self

    def __str__(self) -> str:
        counts = ", ".join(f"{opcode} {count}" for opcode, count in sorted(self.cases.items()))
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(self.rules.items()))
        found = f"{len(self.mismatches)} mismatches, {len(self.refused)} refused by XLA"
        died = "".join(f"\nXLA dies of {case.number} ({case.opcode})" for case in self.unable)
        return (
            f"{self.cases.total()} cases, {found}\nby opcode: {counts}\nby rule: {rules or 'none used'}{died}"
        )


def on_numpy(case: Case) -> list[Array]:
    """The leaves of the result."""
    return leaves(NumpyBackend().compile(case.module).run(list(case.arguments)))


def on_xla(
    cases: Sequence[Case], options: dict[str, Any]
) -> Iterator[tuple[Case, list[Array] | XlaError | OracleUnable]]:
    """The leaves of each case's result, or why there is none; a batch that fails is halved."""
    if not cases:
        return
    arguments = [argument for case in cases for argument in case.arguments]
    try:
        outputs = oracle().run(merge([case.module for case in cases]).to_text(), arguments, **options)
    except (XlaError, OracleUnable) as error:
        if len(cases) == 1:
            yield cases[0], error
            return
        middle = len(cases) // 2
        yield from on_xla(cases[:middle], options)
        yield from on_xla(cases[middle:], options)
        return
    for case in cases:
        count = len(result_shapes(case))
        yield case, outputs[:count]
        outputs = outputs[count:]


def result_shapes(case: Case) -> list[ArrayShape]:
    """Shapes of the array leaves of the result."""
    found = [shape for _, shape in shape_leaves(case.module.entry.root.shape)]
    return [shape for shape in found if isinstance(shape, ArrayShape)]


def compare_all(
    cases: Sequence[Case], stored: Callable[[Case], list[Array] | None], batch: int = 60
) -> Tally:
    """Compare on both sides, `batch` cases at a time; `stored` answers where XLA cannot."""
    tally = Tally()
    for start in range(0, len(cases), batch):
        options = DEFAULT if start // batch % 4 == 3 else QUICK
        for case, theirs in on_xla(cases[start : start + batch], options):
            if isinstance(theirs, XlaError):
                tally.refused.append((case, str(theirs)))
                continue
            answer = stored(case) if isinstance(theirs, OracleUnable) else theirs
            if answer is None:
                tally.unable.append(case)
            else:
                compare(case, answer, tally)
    return tally


def compare(case: Case, theirs: Sequence[Array], tally: Tally) -> None:
    """Count one case."""
    tally.cases[case.opcode] += 1
    ours = on_numpy(case)
    scales = absolute_terms(case) if needs_terms(case) else [None] * len(ours)
    used: set[str] = set()
    for number, (a, b, shape, scale) in enumerate(zip(ours, theirs, result_shapes(case), scales)):
        kind = shape.element_type
        unequal = wrong(b, a, kind, tolerance(case.opcode, kind), scale)
        if not unequal.any():
            continue
        difference = Difference(case, number, kind, a, b)
        for rule in DEPARTURES.values():
            mask = explained(rule, difference) & unequal
            if mask.any():
                used.add(rule.id)
                unequal = unequal & ~mask
        if unequal.any():
            tally.mismatches.append(describe(case, number, a, b, unequal))
    tally.rules.update(used)


def needs_terms(case: Case) -> bool:
    """Whether some tolerance is relative to the terms of a sum."""
    return any(tolerance(case.opcode, s.element_type).of == "terms" for s in result_shapes(case))


def describe(case: Case, leaf: int, ours: Array, theirs: Array, unequal: Array, limit: int = 4) -> str:
    """The first elements that differ, and how to get the case again."""
    rows = [
        f"  leaf {leaf}{list(map(int, index))}: ours {ours[tuple(index)]}, XLA's {theirs[tuple(index)]}"
        for index in np.argwhere(unequal)[:limit]
    ]
    return "\n".join([f"{np.count_nonzero(unequal)} elements differ", *rows, str(case)])
