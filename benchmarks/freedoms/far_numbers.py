"""Are results of f64 that are far from 1, or reach far, told from faults? On real XLA.

Each program is made from a seed: tails of a Gaussian, a softmax, powers, running products, products of
matrices, sums and norms, of numbers between 1e-300 and 1e300. XLA's result is judged as it is (legal), and
with one element, which is no denormal number, off by a millionth or as a tenth of itself (faults). All are
judged again in the unit 1 (`hlotool/facts/exchangeability.py`), in which squares vanish or overflow.

    python -m benchmarks.freedoms.far_numbers --cases 300 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from hlotool.backends.xla import create
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.parser.reader import parse_module

REDUCER = "f { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] OP(a, b) }\n"
SUM = REDUCER.replace("OP", "add") + "ENTRY e { x = f64[9,40] parameter(0) zero = f64[] constant(0) "

#: Programs of one operand, or two; the first one has the dimensions of x, the second those of y.
FORMS: dict[str, str] = {
    "Gaussian": "ENTRY e { x = f64[9,40] parameter(0) s = f64[9,40] multiply(x, x) n = f64[9,40] negate(s) "
    "ROOT r = f64[9,40] exponential(n) }",
    "softmax": SUM.replace("add", "maximum").replace("constant(0)", "constant(-inf)")
    + "m = f64[9] reduce(x, zero), dimensions={1}, to_apply=f w = f64[9,40] broadcast(m), dimensions={0} "
    "d = f64[9,40] subtract(x, w) ROOT r = f64[9,40] exponential(d) }",
    "power": "ENTRY e { x = f64[9,40] parameter(0) k = f64[] constant(17) b = f64[9,40] broadcast(k), "
    "dimensions={} ROOT r = f64[9,40] power(x, b) }",
    "running product": REDUCER.replace("OP", "multiply")
    + "ENTRY e { x = f64[9,40] parameter(0) one = f64[] constant(1) ROOT r = f64[9,40] "
    "reduce-window(x, one), window={size=1x40 pad=0_0x39_0}, to_apply=f }",
    "product": "ENTRY e { x = f64[9,40] parameter(0) y = f64[40,7] parameter(1) "
    "ROOT r = f64[9,7] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "sum": SUM + "ROOT r = f64[9] reduce(x, zero), dimensions={1}, to_apply=f }",
    "norm": SUM + "s = f64[9,40] multiply(x, x) r = f64[9] reduce(s, zero), dimensions={1}, to_apply=f "
    "ROOT n = f64[9] sqrt(r) }",
}
#: What the faulty element is multiplied by.
FAULTS = (1 + 1e-6, 0.1)


@dataclass(frozen=True, slots=True)
class Row:
    """One program, judged.

    Attributes:
        form: see FORMS.
        least: magnitude of its results.
        largest: likewise.
        factor: of the faulty element; 1 for what XLA returns.
        verdict: as it is.
        without: the same in the unit 1.
    """

    form: str
    least: float
    largest: float
    factor: float
    verdict: Verdict
    without: Verdict


def rows(cases: int, seed: int) -> Iterator[Row]:
    """All programs of a seed."""
    engine = create()
    for number in range(cases):
        draw = random.Random(f"{seed}.{number}")
        form = draw.choice(list(FORMS))
        module = parse_module(FORMS[form])
        arguments = operands(draw, form, [p.shape.dims for p in module.entry.parameters])  # type: ignore[union-attr]
        right = np.array(engine.compile(module).run(arguments))
        normal = np.flatnonzero(np.isfinite(right) & (np.abs(right) > 1e-300))
        if not normal.size:
            continue
        magnitudes = np.abs(right.flat[normal])
        place = normal[draw.randrange(normal.size)]
        for factor in (1.0, *FAULTS):
            actual = right.copy()
            actual.flat[place] *= factor
            found = judge(judgement_of(module, arguments, actual)).verdict
            with patch("hlotool.facts.exchangeability._exponents", lambda m: np.zeros_like(m, np.int32)):
                without = judge(judgement_of(module, arguments, actual)).verdict
            yield Row(form, float(magnitudes.min()), float(magnitudes.max()), factor, found, without)


def operands(draw: random.Random, form: str, shapes: list[Any]) -> list[Any]:
    """Numbers for a form, whose results are f64, though they may be far from 1."""
    rng = np.random.default_rng(draw.randrange(1 << 30))
    plain = [rng.uniform(0.5, 2, dims) * rng.choice([-1, 1], dims) for dims in shapes]
    match form:
        case "Gaussian":
            return [value * draw.uniform(1, 12) for value in plain]
        case "softmax":
            return [value * draw.uniform(1, 160) for value in plain]
        case "power":
            return [np.abs(value) * 10 ** draw.uniform(-16, 16) for value in plain]
        case "running product":
            return [value * 10 ** draw.uniform(-6, 6) for value in plain]
        case _:
            return [value * 10 ** (draw.uniform(-290, 290) / len(plain)) for value in plain]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    began = time.perf_counter()
    found = list(rows(given.cases, given.seed))
    print(f"{len(found) // (1 + len(FAULTS))} programs, {time.perf_counter() - began:.0f} s\n")
    print("| | wrong | the same in the unit 1 |\n|---|---|---|")
    for factor in (1.0, *FAULTS):
        for form in FORMS:
            some = [row for row in found if (row.factor, row.form) == (factor, form)]
            wrong, without = (
                sum(verdict.answer is Answer.BAD for verdict in verdicts)
                for verdicts in ([row.verdict for row in some], [row.without for row in some])
            )
            what = "what XLA returns" if factor == 1 else f"one element times {factor}"
            print(f"| {what}, {form} | {wrong} of {len(some)} | {without} of {len(some)} |")
    accused = [row for row in found if row.factor == 1 and row.verdict.answer is Answer.BAD]
    for row in accused:
        print(f"accused: {row}")
    if given.json:
        kept = [asdict(row) | {"verdict": row.verdict.value, "without": row.without.value} for row in found]
        given.json.write_text(json.dumps(kept, indent=1))
    sys.exit(bool(accused))


if __name__ == "__main__":
    main()
