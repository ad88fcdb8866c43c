"""Everything that hardware has to tell, in one run of at most ten minutes: `scripts/gpu-suite`.

    python -m benchmarks.gpu.suite [--dry-run] [--out FOLDER]

Writes `gpu.json` and `gpu.md`, which is made for RESULTS.md, after every finding. A part that fails, dies or
runs out of time loses nothing of the others. Ends with status 0 when every part passed, or was skipped for a
reason that it gives.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu import machine, parts
from benchmarks.gpu.cases import ROOT
from benchmarks.gpu.parts import Settings, Work
from benchmarks.gpu.table import markdown, one_line


@dataclass(frozen=True, slots=True)
class Kind:
    """A part of the suite.

    Attributes:
        run: does it.
        limit: seconds that it may take.
    """

    run: Callable[[Work], None]
    limit: float


#: In order: what is wanted most comes first, in case that time runs out.
PARTS = {
    "tests": Kind(parts.tests, 150),
    "measure": Kind(parts.measure, 330),
    "fuzz": Kind(parts.fuzz, 45),
    "sanitizers": Kind(parts.sanitizers, 110),
}


class Results:
    """What goes into the files.

    Args:
        folder: of the files.
        title: of the table.
        settings: of the run.
    """

    def __init__(self, folder: Path, title: str, settings: Settings) -> None:
        self._folder = folder
        options = {k: v for k, v in asdict(settings).items() if k != "environment"}
        self.data: dict[str, Any] = {
            "title": title,
            "options": options,
            "machine": machine.describe(),
            "parts": {},
        }
        folder.mkdir(parents=True, exist_ok=True)

    def save(self) -> None:
        """Write both files; readers see old or new ones, never half of one."""
        _replace(self._folder / "gpu.json", json.dumps(self.data, indent=1, allow_nan=False) + "\n")
        _replace(self._folder / "gpu.md", markdown(self.data))


def _replace(path: Path, text: str) -> None:
    pending = path.with_suffix(f"{path.suffix}.tmp")
    pending.write_text(text, encoding="utf-8")
    pending.replace(path)


def run_parts(
    names: list[str], settings: Settings, results: Results, limit: float, slack: float = 1.0
) -> bool:
    """Run parts; returns whether all passed or had nothing to do.

    Args:
        names: of the parts.
        settings: of the run.
        results: to fill.
        limit: seconds for everything.
        slack: times the limit of each part.
    """
    finish = time.monotonic() + limit
    for name in names:
        start = time.monotonic()
        part: parts.Part = {"state": "unfinished", "reason": "it is under way"}
        results.data["parts"][name] = part
        results.save()
        until = min(finish, start + slack * PARTS[name].limit)
        if until - start < 1:
            part["reason"] = "no time left"
        else:
            _run_part(PARTS[name], Work(settings, part, until, results.save))
        part["seconds"] = round(time.monotonic() - start, 1)
        results.save()
        reason = one_line(part["reason"] or "")
        print(f"gpu-suite: {name}: {part['state']}: {reason}", file=sys.stderr, flush=True)
    return all(part["state"] in ("passed", "skipped") for part in results.data["parts"].values())


def _run_part(kind: Kind, work: Work) -> None:
    try:
        kind.run(work)
    except Exception:  # a fault of this part, of whatever kind, is none of the others'
        work.part.update(state="failed", reason=traceback.format_exc())


def _environment(cache: Path) -> dict[str, str]:
    """Of all processes: kernels are compiled anew, and XLA takes memory only as it needs it."""
    path = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HLOTOOL_CACHE": str(cache),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu-suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true", help="small cases, XLA for CPU; no GPU is needed")
    parser.add_argument("--backend", choices=("cuda", "cuda-emu"), default="cuda")
    parser.add_argument("--scale", type=float, help="of the cases' sizes; 1 is for a large GPU")
    parser.add_argument("--repeats", type=int, help="readings of the clock for each case")
    parser.add_argument("--xla", choices=("gpu", "cpu", "none"), help="platform of XLA to compare with")
    parser.add_argument("--limit", type=float, help="seconds for everything (570; 2400 if dry)")
    parser.add_argument("--part", choices=tuple(PARTS), action="append", help="leave out the others")
    parser.add_argument("--case", action="append", default=[], help="leave out the other cases")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "gpu-suite", help="folder of the results"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; returns the exit status."""
    options = _parser().parse_args(arguments)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    # Leaving in order ends the processes, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gpu-suite-") as scratch:
        settings = _settings(options, Path(scratch))
        title = f"{'Dry run of ' if options.dry_run else ''}`scripts/gpu-suite`, {time.strftime('%Y-%m-%d')}"
        results = Results(options.out, title, settings)
        # Without a GPU, g++ compiles all kernels.
        limit, slack = (2400, 5) if options.dry_run else (570, 1)
        limit = limit if options.limit is None else options.limit
        good = run_parts(options.part or list(PARTS), settings, results, limit, slack)
    print((options.out / "gpu.md").read_text(encoding="utf-8"))
    return 0 if good else 1


def _settings(options: argparse.Namespace, scratch: Path) -> Settings:
    is_dry = options.dry_run
    xla = options.xla or ("cpu" if is_dry else "gpu")
    backend, environment = options.backend, _environment(scratch / "cache")
    if is_dry and backend == "cuda":
        backend, found = _stand_in(scratch / "stand-in")
        environment |= found
    return Settings(
        backend=backend,
        scale=options.scale or (1 / 1024 if is_dry else 1.0),
        repeats=options.repeats or (3 if is_dry else 30),
        xla=None if xla == "none" else xla,
        cases=tuple(options.case),
        batches=1 if is_dry else parts.BATCHES,
        environment=environment,
    )


def _stand_in(folder: Path) -> tuple[str, dict[str, str]]:
    """A backend that needs no GPU, and variables of its processes: the tests' stand-in for the driver."""
    from support import fake_driver

    if missing := fake_driver.missing():
        print(f"gpu-suite: no stand-in for a GPU, since {missing}: going on with cuda-emu", file=sys.stderr)
        return "cuda-emu", {}
    folder.mkdir()
    fake_driver.build(folder)
    variables = fake_driver.environment(folder)
    # Only its nvcc makes kernels that it can run.
    return "cuda:compiler=nvcc", {name: variables[name] for name in ("LD_LIBRARY_PATH", "PATH")}


if __name__ == "__main__":
    sys.exit(main())
