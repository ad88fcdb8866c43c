"""Everything that hardware has to tell, in few minutes: `scripts/gpu-suite`.

    python -m benchmarks.gpu.suite [--dry-run] [--out FOLDER] [--resume [FOLDER]]

Writes `gpu.json` and `gpu.md`, which is made for results/gpu.md, after every finding. A part that fails, dies
or runs out of time loses nothing of the others; a second call with --resume goes on with what is unfinished.
Ends with status 0 when every part passed, or was skipped for a reason that it gives.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu import parts
from benchmarks.gpu.cases import ROOT
from benchmarks.gpu.lines import cpu_seconds
from benchmarks.gpu.results import Results
from benchmarks.gpu.sanitizers import sanitizers
from benchmarks.gpu.table import one_line
from benchmarks.gpu.work import BATCHES, Part, Settings, Work
from hlotool.backends.cuda.toolchain import find_nvcc


@dataclass(frozen=True, slots=True)
class Kind:
    """A part of the suite.

    Attributes:
        run: does it.
        seconds: that it may take in a first call, besides what the parts before it have left.
        is_endless: it takes all the time that it gets; so what they have left is for the parts behind it.
    """

    run: Callable[[Work], None]
    seconds: float
    is_endless: bool = False


#: In order: what is wanted most comes first, in case that time runs out; what only a device can tell comes
#: before what the host takes long for. Together 420 s: a GPU lent for a quarter of an hour has time for a
#: second call.
PARTS = {
    "smoke": Kind(parts.smoke, 45),
    "speed": Kind(parts.speed, 100),
    "xla": Kind(parts.xla, 85),
    "accuracy": Kind(parts.accuracy, 40),
    "tests": Kind(parts.tests, 90),
    "fuzz": Kind(parts.fuzz, 20, is_endless=True),
    "sanitizers": Kind(sanitizers, 40),
}
#: Seconds of a first call.
FIRST_CALL = sum(kind.seconds for kind in PARTS.values())
#: Of a dry run: without a GPU, g++ compiles all kernels.
_DRY = 2400.0
_USUAL = Settings("cuda")
#: Bytes of its cases, and of what it copies.
_DRY_SIZE = 1 << 20


def run_parts(names: list[str], settings: Settings, results: Results, limit: float) -> bool:
    """Run parts; returns whether all passed or had nothing to do.

    Args:
        names: of the parts.
        settings: of the run.
        results: to fill; what passed in an earlier run stays, but for the smoke: each machine has to pass.
        limit: seconds for everything, of which each part gets its share, and what those before it have left.
    """
    until = time.monotonic()
    names = [name for name in names if name == "smoke" or not results.is_passed(name)]
    stretch = limit / max(1.0, sum(PARTS[name].seconds for name in names))
    blocked = ""
    for name in names:
        kind, part = PARTS[name], results.part(name)
        start, used = time.monotonic(), cpu_seconds()
        until += stretch * kind.seconds
        end = min(until, start + stretch * kind.seconds) if kind.is_endless else until
        if blocked:
            part.update(state="not run", reason=f"smoke failed: {blocked}")
        elif end - start < 1:
            part["reason"] = "no time left"
        else:
            _run_part(name, Work(name, settings, part, end, results.save, results.about, results.cases))
        _count(part, "seconds", time.monotonic() - start)
        _count(part, "cpu", cpu_seconds() - used)
        results.save()
        reason = one_line(part["reason"] or "")
        print(f"gpu-suite: {name}: {part['state']}: {reason}", file=sys.stderr, flush=True)
        blocked = blocked or part.get("blocked", "")
    return all(results.is_good(name) for name in names)


def _count(part: Part, name: str, seconds: float) -> None:
    """Add to what earlier runs took."""
    part[name] = round(part.get(name, 0.0) + seconds, 1)


def _run_part(name: str, work: Work) -> None:
    work.save()
    try:
        PARTS[name].run(work)
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
    parser.add_argument(
        "--size", type=int, help="bytes that each case moves at least; otherwise as the device needs"
    )
    parser.add_argument("--repeats", type=int, help="readings of the clock for each case")
    parser.add_argument("--xla", choices=("gpu", "cpu", "none"), help="platform of XLA to compare with")
    parser.add_argument(
        "--limit", type=float, help=f"seconds for everything ({FIRST_CALL:.0f}; {_DRY:.0f} if dry)"
    )
    parser.add_argument("--part", choices=tuple(PARTS), action="append", help="leave out the others")
    parser.add_argument("--case", action="append", default=[], help="leave out the other cases")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "gpu-suite", help="folder of the results"
    )
    parser.add_argument(
        "--resume",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="FOLDER",
        help="go on with the results in FOLDER (that of --out): what passed or failed there is not run again",
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
        results = Results(options.out, title, settings, {name: kind.seconds for name, kind in PARTS.items()})
        if options.resume is not None:
            results.resume(options.out if options.resume == Path() else options.resume)
        limit = options.limit if options.limit is not None else _DRY if options.dry_run else FIRST_CALL
        good = run_parts(options.part or list(PARTS), settings, results, limit)
    print((options.out / "gpu.md").read_text(encoding="utf-8"))
    return 0 if good else 1


def _settings(options: argparse.Namespace, scratch: Path) -> Settings:
    is_dry = options.dry_run
    xla = options.xla or ("cpu" if is_dry else "gpu")
    backend, environment = options.backend, _environment(scratch / "cache")
    # Of some cases it would foresee nothing.
    nvcc = find_nvcc() if is_dry and not options.case else None
    if is_dry and backend == "cuda":
        backend, found = _stand_in(scratch / "stand-in")
        environment |= found
    return Settings(
        backend=backend,
        size=options.size or (_DRY_SIZE if is_dry else None),
        copied=_DRY_SIZE if is_dry else _USUAL.copied,
        repeats=options.repeats or (3 if is_dry else _USUAL.repeats),
        xla=None if xla == "none" else xla,
        cases=tuple(options.case),
        batches=1 if is_dry else BATCHES,
        patience=_DRY / FIRST_CALL if is_dry else 1.0,
        project=nvcc,
        environment=environment,
    )


def _stand_in(folder: Path) -> tuple[str, Mapping[str, str]]:
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
