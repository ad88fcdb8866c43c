"""What XLA:GPU generates, executed here: how many programs run, and is a right one called wrong?

    python -m benchmarks.gpu_ptx --python PYTHON --seed 1 --drawn 40 [--variant triton=off] [--jobs 1]

The programs of corpus/jax and corpus/gpu as the frontend made them, and drawn ones, are compiled by the
plug-in of PYTHON for an H100, by each variant of its options, and executed from PTX. A program that is wrong
in the HLO after all passes is told apart from one that is wrong as generated. Prints a table; every `wrong`
and every reason why something did not run is listed below it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from hlotool.ir.printer import print_module
from hlotool.lab.fuzz.programs import Source

_CORPUS = ("corpus/jax", "corpus/gpu")
_VARIANTS = ("", "triton=off")

#: Verdicts of programs that ran.
_RIGHT = ("identical", "agree", "rounding")
#: What the compiler says of what it does not take, or runs out of.
_REFUSED = re.compile(r"gpu-ptx:h100[^ ]*: [A-Z_]+: ")
#: Why a program has nothing to do with one GPU.
_NOT_FOR_A_GPU = re.compile(
    r"No FFI handler|one device|user's Python|returns its parts|elided|captured executions only"
)


@dataclass
class Tally:
    """Of one variant.

    Attributes:
        verdicts: how many programs got each.
        wrong: programs that are wrong as generated, with the reason.
        wrong_before: those that are wrong in the HLO.
        others: programs by why they did not run.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    wrong_before: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Count a row of the record of a run."""
        verdict, name, reason = row["verdict"], row["name"], row.get("reason") or str(row.get("error"))
        if verdict not in _RIGHT and verdict != "wrong":
            if _NOT_FOR_A_GPU.search(reason):
                verdict = "not for a GPU"
            elif _REFUSED.search(reason):
                verdict = "refused by the compiler"
            elif verdict != "timeout":
                verdict = "did not run"
            self.others.append(f"{name}: {verdict}: {reason}")
        elif verdict == "wrong":
            verdict = "wrong before" if reason.startswith("the same as") else "wrong"
            (self.wrong_before if verdict != "wrong" else self.wrong).append(f"{name}: {reason}")
        self.verdicts[verdict] += 1


def main() -> int:
    """Run all variants and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter with jax and the plug-in for CUDA")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=40)
    parser.add_argument("--variant", action="append", help="options beside the GPU [none, triton=off]")
    parser.add_argument("--corpus", nargs="*", default=_CORPUS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=120)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, text in enumerate(drawn(given.seed, given.drawn)):
            (folder / f"drawn_{number:03}.hlo").write_text(text)
        for variant in given.variant or _VARIANTS:
            report(variant, tally(variant, given, folder))
    return 0


def drawn(seed: int, count: int) -> Iterator[str]:
    """Programs of the fuzzer for one device."""
    source = Source(seed)
    for index in range(count):
        yield print_module(source.draw(index).module)


def tally(variant: str, given: argparse.Namespace, folder: Path) -> Tally:
    """Run everything with one variant of the compiler's options."""
    record = folder / "record.json"
    backend = ",".join(filter(None, ("gpu-ptx:h100", variant, f"python={given.python}")))
    command = [sys.executable, "-m", "hlotool", "run", *given.corpus, str(folder), "--test", backend]
    command += ["--record", str(record), "--jobs", str(given.jobs), "--timeout", str(given.timeout)]
    # Programs are judged on one set of inputs each: there are many, and kernels are executed slowly.
    command += ["--no-first-divergence", "--no-further-sets", "--no-cache", "--no-resume", "--quiet"]
    subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    found = Tally()
    for row in json.loads(record.read_text())["modules"]:
        found.add(row)
    return found


def report(variant: str, found: Tally) -> None:
    """Print a row of the table, and what it counts of what went wrong."""
    ran = sum(found.verdicts[each] for each in (*_RIGHT, "wrong", "wrong before"))
    able = ran + found.verdicts["did not run"] + found.verdicts["timeout"]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(found.verdicts.items()))
    print(f"| {variant or 'default'} | {ran} of {able} | {counts} |")
    for title, lines in (("wrong", found.wrong), ("wrong before", found.wrong_before), ("", found.others)):
        for line in lines:
            print(f"    {title} {' '.join(line.split())[:300]}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
