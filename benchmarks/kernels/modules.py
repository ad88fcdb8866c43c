"""Every program at hand on generated kernels against the numpy reference.

    python -m benchmarks.kernels.modules [--test cuda-emu:backward] [--only REGEX] [FOLDER …]

Folders are the corpus and, where they lie beside the checkout, XLA's test modules and dumps of models. Each
is one `hlotool run`, which judges by the rules of verdicts and takes up where an interrupted run stopped.
Programs that the numpy reference does not run either are counted apart: `--test numpy` runs them, too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import ROOT, SHARED

_FOLDERS = (
    ROOT / "corpus" / "modules",
    ROOT / "corpus" / "jax",
    ROOT / "corpus" / "tf",
    SHARED / "hlo" / "xla",
    SHARED / "hlo" / "models",
    SHARED / "dumps",
)

#: Verdicts of programs that both sides run alike.
_GOOD = ("identical", "agree", "rounding")
#: Verdicts of programs whose legal executions differ too much to tell right from wrong.
_NOT_JUDGED = ("not comparable", "unstable")
#: Verdicts of programs that have no result to compare.
_NOT_RUN = ("unsupported", "bad input", "out of memory", "timeout")

_FALLBACK = re.compile(r"([\w-]+) x\d+")


@dataclass(slots=True)
class Sweep:
    """What became of the programs of one folder.

    Attributes:
        verdicts: how many programs got each.
        not_judged: programs whose legal executions differ too much, with the reason.
        neither: programs that the reference does not run either, with its reason.
        bad: the others without a good verdict: what has to be explained.
        fallbacks: by opcode, how many programs have the host execute it.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    not_judged: dict[str, str] = field(default_factory=dict)
    neither: dict[str, str] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    fallbacks: Counter[str] = field(default_factory=Counter)


def sweep(folder: Path, backend: str, options: argparse.Namespace) -> Sweep:
    """Run the programs of a folder on a backend, and those that fail on the reference."""
    found, failed = Sweep(), {}
    for record in _records(folder, backend, options):
        found.verdicts[record["verdict"]] += 1
        found.fallbacks.update(_fallbacks(record["notes"]))
        reason = f"{record['verdict']}: {record['reason']}"
        if record["verdict"] in _NOT_JUDGED:
            found.not_judged[record["name"]] = reason
        elif record["verdict"] not in _GOOD:
            failed[record["name"]] = reason
    if failed:
        names = "|".join(map(re.escape, failed))
        options = argparse.Namespace(**{**vars(options), "only": f"^({names})$"})
        for record in _records(folder, "numpy", options):
            if record["name"] in failed and record["verdict"] in _NOT_RUN:
                found.neither[record["name"]] = failed.pop(record["name"])
    found.bad = failed
    return found


def _records(folder: Path, backend: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "hlotool", "run", str(folder), "--test", backend, "--json"]
    command += ["--stages", "*"] if any(folder.rglob("*before_optimizations.txt")) else []
    command += ["--jobs", "1", "--timeout", str(options.timeout), "--memory-limit", options.memory_limit]
    command += ["--only", options.only] if options.only else []
    command += ["--no-resume"] if options.no_resume else []
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    records: list[dict[str, Any]] = json.loads(done.stdout)["modules"]
    return records


def _fallbacks(notes: Iterable[str]) -> set[str]:
    texts = (note.removeprefix("host fallbacks: ") for note in notes if note.startswith("host fallbacks: "))
    return {opcode for text in texts for opcode in _FALLBACK.findall(text)}


def _print(folder: Path, found: Sweep, seconds: float) -> None:
    total = found.verdicts.total()
    counts = [f"{found.verdicts[verdict]} {verdict}" for verdict in _GOOD]
    counts.append(f"{len(found.not_judged)} that cannot be judged")
    counts.append(f"{len(found.neither)} that the reference does not run either")
    counts.append(f"{len(found.bad)} otherwise ({seconds:.0f} s)")
    print(f"{'/'.join(folder.parts[-2:])}: {total} programs, {', '.join(counts)}")
    for program, reason in sorted({**found.not_judged, **found.bad}.items()):
        print(f"  {program}: {reason}")
    sys.stdout.flush()


def main() -> int:
    """Print one paragraph per folder, then what the host executes; fail if anything is left to explain."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=_FOLDERS)
    parser.add_argument("--test", default="cuda-emu", help="the backend [%(default)s]")
    parser.add_argument("--only", default="", help="regular expression that names of programs match")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one program [%(default)s]")
    parser.add_argument("--memory-limit", default="8G", help="of one process [%(default)s]")
    parser.add_argument("--no-resume", action="store_true", help="start anew after an interruption")
    options = parser.parse_args()
    fallbacks: Counter[str] = Counter()
    is_good = True
    for folder in (f for f in options.folders if f.is_dir()):
        start = time.perf_counter()
        found = sweep(folder, options.test, options)
        _print(folder, found, time.perf_counter() - start)
        fallbacks += found.fallbacks
        is_good = is_good and not found.bad
    counts = ", ".join(f"{opcode} {count}" for opcode, count in fallbacks.most_common())
    print(f"programs in which the host executes an operation: {counts or 'none'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
