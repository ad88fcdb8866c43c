"""Are long sums of terms that are alike told from faults? Sums of few different numbers, on real XLA.

Each program is made from a seed: a dot, a convolution, a reduction, sums in windows or running ones, of f32,
f64, bf16 or f16, over 300 to 100,000 terms of one, two or a hundred different numbers, or of numbers that all
differ. XLA's result is judged as it is (legal), and that of the same program on operands of which some terms
are lost (a fault). Both are judged again without the sums in turn (`backends/numpy/executions/sums.py`).

    python -m benchmarks.freedoms.alike_terms --cases 300 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np

from hlotool.backends.xla import create
from hlotool.judge.rules import ensemble
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.parser.reader import parse_module

ADD = "f { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] add(a, b) }\n"

#: Programs over $N terms, with the dimensions of their operands and the one of the first that is summed.
FORMS: dict[str, tuple[str, Sequence[Sequence[int]], int]] = {
    "vector · matrix": (
        "ENTRY e { x = T[1,$N] parameter(0) y = T[$N,2] parameter(1) "
        "ROOT r = T[1,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
        [(1, -1), (-1, 2)],
        1,
    ),
    "matrix · matrix": (
        "ENTRY e { x = T[12,$N] parameter(0) y = T[$N,9] parameter(1) "
        "ROOT r = T[12,9] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
        [(12, -1), (-1, 9)],
        1,
    ),
    "batches": (
        "ENTRY e { x = T[3,$N,4] parameter(0) y = T[3,2,$N] parameter(1) ROOT r = T[3,4,2] dot(x, y), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={2} }",
        [(3, -1, 4), (3, 2, -1)],
        1,
    ),
    "features": (
        "ENTRY e { x = T[1,5,5,$N] parameter(0) y = T[1,1,$N,3] parameter(1) ROOT r = T[1,5,5,3] "
        "convolution(x, y), window={size=1x1}, dim_labels=b01f_01io->b01f }",
        [(1, 5, 5, -1), (1, 1, -1, 3)],
        3,
    ),
    "column": (
        ADD + "ENTRY e { x = T[$N,40] parameter(0) z = T[] constant(0) "
        "ROOT r = T[40] reduce(x, z), dimensions={0}, to_apply=f }",
        [(-1, 40)],
        0,
    ),
    "row": (
        ADD + "ENTRY e { x = T[2,$N] parameter(0) z = T[] constant(0) "
        "ROOT r = T[2] reduce(x, z), dimensions={1}, to_apply=f }",
        [(2, -1)],
        1,
    ),
    "window": (
        ADD + "ENTRY e { x = T[3,$N] parameter(0) z = T[] constant(0) "
        "ROOT r = T[3,1] reduce-window(x, z), window={size=1x$N}, to_apply=f }",
        [(3, -1)],
        1,
    ),
    "running": (
        ADD + "ENTRY e { x = T[$N] parameter(0) z = T[] constant(0) "
        "ROOT r = T[$N] reduce-window(x, z), window={size=$N pad=$M_0}, to_apply=f }",
        [(-1,)],
        0,
    ),
}
KINDS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
#: One term of so many is lost.
LOST = (10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Row:
    """One program, judged.

    Attributes:
        form: see FORMS.
        kind: element type.
        terms: of a sum.
        values: different numbers among them; 0: all are.
        lost: one of so many terms is; 0 for what XLA returns.
        verdict: as it is.
        without: the same without sums in turn.
    """

    form: str
    kind: str
    terms: int
    values: int
    lost: int
    verdict: Verdict
    without: Verdict


def rows(cases: int, seed: int) -> Iterator[Row]:
    """All programs of a seed."""
    engine = create()
    for number in range(cases):
        draw = random.Random(f"{seed}.{number}")
        form, kind, values = draw.choice(list(FORMS)), draw.choice(list(KINDS)), draw.choice((1, 2, 100, 0))
        terms = round(300 * (100_000 / 300) ** draw.random())
        text, shapes, axis = FORMS[form]
        module = parse_module(
            text.replace("T[", f"{kind}[").replace("$N", str(terms)).replace("$M", str(terms - 1))
        )
        made = [
            numbers(draw, [terms if d < 0 else d for d in dims], values if not n else 1).astype(KINDS[kind])
            for n, dims in enumerate(shapes)
        ]
        compiled = engine.compile(module)
        for lost in (0, *LOST):
            some = made
            if lost:
                index: list[Any] = [slice(None)] * made[0].ndim
                index[axis] = slice(draw.randrange(lost), None, lost)
                some = [made[0].copy(), *made[1:]]
                some[0][tuple(index)] = 0
            actual = compiled.run(some)
            found = judge(judgement_of(module, made, actual)).verdict
            with patch.object(ensemble, "has_long_sums", lambda _: False):
                without = judge(judgement_of(module, made, actual)).verdict
            yield Row(form, kind, terms, values, lost, found, without)


def numbers(draw: random.Random, dims: Sequence[int], values: int) -> Any:
    """So many different numbers between a half and two; 0: all are different."""
    rng = np.random.default_rng(draw.randrange(1 << 30))
    return rng.choice(rng.uniform(0.5, 2, values), dims) if values else rng.uniform(0.5, 2, dims)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    began = time.perf_counter()
    found = list(rows(given.cases, given.seed))
    print(f"{given.cases} programs, {time.perf_counter() - began:.0f} s\n")
    print("| | wrong | the same without sums in turn |\n|---|---|---|")
    for lost in (0, *LOST):
        for values in (1, 2, 100, 0):
            some = [row for row in found if (row.lost, row.values) == (lost, values)]
            counts = [
                Counter(v.answer is Answer.BAD for v in verdicts)
                for verdicts in ([r.verdict for r in some], [r.without for r in some])
            ]
            what = f"one of {lost} terms is lost" if lost else "what XLA returns"
            of = f"{values} different number{'s' if values > 1 else ''}" if values else "all different"
            print(f"| {what}, {of} | {counts[0][True]} of {len(some)} | {counts[1][True]} of {len(some)} |")
    accused = [row for row in found if not row.lost and row.verdict.answer is Answer.BAD]
    for row in accused:
        print(f"accused: {row}")
    if given.json:
        kept = [asdict(row) | {"verdict": row.verdict.value, "without": row.without.value} for row in found]
        given.json.write_text(json.dumps(kept, indent=1))
    sys.exit(bool(accused))


if __name__ == "__main__":
    main()
