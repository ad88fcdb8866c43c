"""Programs for faults to be planted in: small ones, compiled for an H100, with all that a dump holds of them.

    python -m benchmarks.gpu_ptx.dumps --python PYTHON --seed 1 --out FOLDER [--drawn 20] [--seconds 2]

Those of corpus/gpu_ptx, those of corpus/jax and corpus/gpu as the frontend made them, those of `programs.py`,
and drawn products in tiles, each with Triton, without, and with tiles that give `wgmma`. A program stays that
`run` calls right within `--seconds`, on one set of inputs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ROOT
from benchmarks.gpu_ptx.programs import programs
from hlotool.backends.base import DumpingBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.lab.fuzz.programs import Source
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dumps
from hlotool.sources.loading import load_stage

_VARIANTS = {"triton": "", "library": "triton=off", "wgmma": "autotune=64x128x64"}
#: What a replay reads, and an execution.
KEPT = ("before_optimizations.txt", "gpu_after_optimizations.txt", "buffer-assignment.txt", ".ptx", "thunk_")
_RIGHT = ("identical", "agree", "rounding")


def main() -> int:
    """Compile all programs and keep the quick ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter with jax and the plug-in for CUDA")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    manifest = tomllib.loads((ROOT / "corpus" / "MANIFEST.toml").read_text(encoding="utf-8"))
    for entry in manifest["directory"]:
        if entry["path"].startswith("gpu_ptx/") and "fault" not in entry:
            name = f"{entry['program']}.recorded"
            shutil.copytree(ROOT / "corpus" / entry["path"], given.out / name, dirs_exist_ok=True)
    written = [(name, parse_module(f"HloModule m\n\n{text}", name)) for name, text in programs()]
    found = [*_of_the_corpus(), *written, *_drawn(given.seed, given.drawn)]
    for name, module in found:
        for variant, options in _VARIANTS.items():
            if variant != "wgmma" or any(i.opcode == "dot" for i in module.instructions()):
                _compile(given.out / f"{name}.{variant}", module, given.python, options)
    _keep_quick(given.out, given.seconds)
    print(f"{len(list(given.out.iterdir()))} programs of {len(found)} x {len(_VARIANTS)}")
    return 0


def _of_the_corpus() -> Iterator[tuple[str, Module]]:
    names: Counter[str] = Counter()
    for dump in open_dumps([str(ROOT / "corpus" / "jax"), str(ROOT / "corpus" / "gpu")]):
        for owner in dump.modules:
            for stage in owner.stages[:1]:
                try:
                    module = load_stage(owner, stage)
                    name = owner.name.replace("/", "-")
                    names[name] += 1
                    yield f"{name}-{names[name]}", module
                except HlotoolError as error:
                    print(f"left out: {owner.name}: {str(error)[:160]}", file=sys.stderr)


def _drawn(seed: int, count: int) -> Iterator[tuple[str, Module]]:
    source = Source(seed, origins={"tiles": 1.0})
    for index in range(count):
        yield f"tiles-{index:02}", source.draw(index).module


def _compile(folder: Path, module: Module, python: str, options: str) -> None:
    backend = get_backend(",".join(filter(None, ("gpu-ptx:h100", options, f"python={python}"))))
    assert isinstance(backend, DumpingBackend)
    try:
        backend.dumping(folder, "").compile(module)
    except HlotoolError as error:
        print(f"left out: {folder.name}: {str(error)[:160]}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if not any(part in path.name for part in KEPT) or ".ttir" in path.name:
            path.unlink()


def _keep_quick(folder: Path, seconds: float) -> None:
    """Leave the programs that are right within so many seconds, and launch a kernel."""
    quick = {
        Path(str(row["path"])).parent.name
        for row in verdicts(
            [str(folder)], folder.with_suffix(".json"), "--no-further-sets", "--timeout", "20"
        )
        if row["verdict"] in _RIGHT and row["seconds"] <= seconds
    }
    for path in list(folder.iterdir()):
        if path.name not in quick or not any(path.glob("*.ptx")):
            shutil.rmtree(path)


def verdicts(paths: list[str], record: Path, *options: str) -> list[dict[str, object]]:
    """The rows of `hlotool run` on dumps whose PTX is executed; `record` is a file for them."""
    command = [sys.executable, "-m", "hlotool", "run", *paths, "--test", "gpu-ptx", "--jobs", "1"]
    command += ["--record", str(record), "--no-first-divergence", "--no-cache", "--no-resume", "--quiet"]
    command += ["--no-config", "--timeout", "15", *options]
    subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows: list[dict[str, object]] = json.loads(record.read_text())["modules"]
    return rows


if __name__ == "__main__":
    sys.exit(main())
