"""Can the exact arbiter be trusted, and what does it cost?

    python -m benchmarks.exact [legal] [faults] [cost] [thresholds] [--only REGEX] [--limit N] [--seed N]
                               [--other-python PATH] [--ways REGEX] [--faults N] [--again] [--seconds N]
                               [--elements N]
                               [PATH…]

**legal**: programs and what real XLA made of them, which are the same functions: every dump of the corpus and
beside it, each after every pass; every program compiled anew, at three optimisation levels, with passes
disabled one at a time, by another version of jaxlib; and JAX programs that `--seed` draws (`programs`),
with constants that nobody saw before. Every pair that is called unequal is listed, and so is what is refused.

**faults**: those of the catalogue of `hlotool.faults` that must be found (`verdicts.faults`), and faults that
rounding hides (`BELOW_ROUNDING`), each with the statistical judge's verdict beside it.

**cost**: one instruction on vectors of N elements, and programs of the corpus or of the dumps at PATH, in the
field, on NumPy, in f64, and as the judge's ensemble.

**thresholds**: corpus pairs, drawn constants and roots at half and twice each threshold, or the one that
`--only` names; only on request.

What XLA makes of programs and what was found is kept in `--folder`; what is done is not done again. `--again`
proves anew.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.units import measured
from benchmarks.exact.cost import HEADING, PROGRAMS, costs
from benchmarks.exact.faults import catalogue_records, small_records
from benchmarks.exact.measure import legal_records, said
from benchmarks.exact.records import DECODER, FaultRecord, LegalRecord
from benchmarks.exact.report import fault_report, legal_report
from benchmarks.exact.subjects import subjects
from benchmarks.exact.thresholds import SENSITIVITY_HEADING, sensitivities
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE

PARTS = ("legal", "faults", "cost", "thresholds")


def _legal(arguments: argparse.Namespace) -> Iterable[str]:
    names = _chosen((s.name for s in subjects(arguments.seed)), arguments)
    how = {"folder": arguments.folder, "other_python": arguments.other_python, "seed": arguments.seed}
    how |= {"ways": arguments.ways, "seconds": arguments.seconds}
    part = f"legal {arguments.ways} " if arguments.ways else "legal"
    records = _records(re.sub(r"\W+", "_", part), names, partial(legal_records, **how), arguments)
    return legal_report(r for r in records if isinstance(r, LegalRecord))


def _faults(arguments: argparse.Namespace) -> Iterable[str]:
    how = {"folder": arguments.folder, "wanted": arguments.faults, "seed": arguments.seed}
    found: list[FaultRecord] = []
    for part, kinds, work, most in (
        ("small", BELOW_ROUNDING, small_records, 5 * arguments.faults),
        ("catalogue", CATALOGUE, catalogue_records, arguments.faults),
    ):
        names = _chosen((kind.name for kind in kinds), arguments)
        records = _records(part, names, partial(work, **{**how, "wanted": most}), arguments)
        found += [r for r in records if isinstance(r, FaultRecord)]
    return fault_report(found)


def _chosen(names: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    return [name for name in names if re.search(arguments.only, name)][: arguments.limit]


def _records(part: str, names: list[str], work: Any, arguments: argparse.Namespace) -> list[Any]:
    path = arguments.folder / f"{part}{arguments.seed or ''}.jsonl"
    return list(
        measured(path, DECODER, names, work, processes=arguments.processes, again=arguments.again, said=said)
    )


def _cost(arguments: argparse.Namespace) -> Iterable[str]:
    corpus = ROOT / "corpus" / "jax"
    paths = arguments.paths or [corpus / name for name in PROGRAMS]
    yield f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    yield ""
    yield HEADING
    yield from map(str, costs([p for p in paths if p.exists()], arguments.elements))


def _thresholds(arguments: argparse.Namespace) -> Iterable[str]:
    yield SENSITIVITY_HEADING
    paths = arguments.paths or sorted((ROOT / "corpus" / "jax").iterdir())
    yield from map(str, sensitivities(paths, arguments.folder, arguments.only))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="PART|PATH", help="all parts but thresholds by default")
    parser.add_argument("--only", default="", help="regular expression for programs, or kinds of faults")
    parser.add_argument("--limit", type=int, help="so many programs, and kinds, at most")
    parser.add_argument("--seed", type=int, default=0, help="of programs, points and faults")
    parser.add_argument("--other-python", default="", help="interpreter that has another version of jaxlib")
    parser.add_argument(
        "--ways", default="", help="regular expression for ways in which legal pairs are made"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for one proof of a legal pair")
    parser.add_argument("--faults", type=int, default=12, help="per kind; five times as many small ones")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hlotool-exact")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="prove anew; what XLA made is kept")
    parser.add_argument("--elements", type=int, default=10**6, help="of the vectors of `cost`")
    arguments = parser.parse_args()
    parts = [word for word in arguments.what if word in PARTS]
    arguments.paths = [Path(word) for word in arguments.what if word not in PARTS]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    reports = {"legal": _legal, "faults": _faults, "cost": _cost, "thresholds": _thresholds}
    for part in parts or PARTS[:-1]:
        for line in reports[part](arguments):
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
