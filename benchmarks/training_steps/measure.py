"""Runs a script under `hlotool exec`, and judges what it compiled in three ways.

`captured`: what XLA returned for real arguments, by the reference; `text`: the text after optimisation, by
the text before it, on the same arguments; `generated`: the texts alone, on generated inputs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.training_steps.drawing import Script

#: What the main step of every script is called.
MAIN_STEP = "train_step"
#: Seconds for one script and the replay of what it compiled.
_LIMIT = 580


@dataclass(frozen=True)
class Row:
    """One comparison of one main step.

    Attributes:
        program: name of the script.
        way: `captured`, `text` or `generated`.
        verdict: of the whole step; empty where there is none.
        outputs: how many have each verdict.
        seconds: that the comparison took.
        reason: the verdict in one line, or why there is none.
    """

    program: str
    way: str
    verdict: str
    outputs: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str = ""


def missing_packages(script: Script) -> list[str]:
    """What the script imports and is not here."""
    return [name for name in ("jax", *script.needs) if find_spec(name) is None]


def measure(script: Script, seed: int, steps: int, folder: Path, ways: Sequence[str]) -> Iterator[Row]:
    """The comparisons of one script; its dump goes to `folder`."""
    if missing := missing_packages(script):
        yield Row(script.name, "", "", reason=f"skipped: not installed: {', '.join(missing)}")
        return
    record, error = hlotool_record(
        ["exec", "--keep", str(folder), "--only", MAIN_STEP, "--json", "--", *command(script, seed, steps)]
    )
    if record is None or record["program"]["status"] != 0:
        yield Row(
            script.name, "", "", reason=error or f"exit status {record and record['program']['status']}"
        )
        return
    for found in record["run"]["modules"]:
        is_real = found["stage_tested"] == "result"
        is_generated = (found.get("inputs") or {}).get("origin") == "generated"
        way = "captured" if is_real else "generated" if is_generated else "text"
        if way in ways:
            yield _row(script.name, way, found)
    # Of programs for several devices XLA captures no executions: those were generated already.
    is_captured = any((m.get("inputs") or {}).get("origin") == "captured" for m in record["run"]["modules"])
    if "generated" in ways and is_captured:
        yield from _generated(script.name, folder)


def command(script: Script, seed: int, steps: int) -> list[str]:
    """Runs the script as a program of its own."""
    module = "benchmarks.training_steps.run_script"
    return [sys.executable, "-m", module, script.name, "--seed", str(seed), "--steps", str(steps)]


def _generated(name: str, folder: Path) -> Iterator[Row]:
    bare = folder.with_name(folder.name + ".texts")
    shutil.rmtree(bare, ignore_errors=True)
    for path in folder.rglob(f"*{MAIN_STEP}*_optimizations.txt"):
        (target := bare / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    record, error = hlotool_record(["run", str(bare), "--json"])
    if record is None:
        yield Row(name, "generated", "", reason=error)
        return
    yield from (_row(name, "generated", found) for found in record["modules"])


def _row(name: str, way: str, found: dict[str, Any]) -> Row:
    counts: dict[str, int] = {}
    for leaf in found.get("leaves", ()):
        counts[leaf["verdict"]] = counts.get(leaf["verdict"], 0) + 1
    reason = found.get("reason", "") or (found.get("error") or {}).get("message", "")
    return Row(name, way, found["verdict"], counts, found.get("seconds", 0.0), reason)


def hlotool_record(arguments: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
    """The record that a command prints; or none, and the last line of what it said instead."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hlotool", *arguments],
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {time.monotonic() - began:.0f} s"
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return None, said[-1][:200]
