"""A command imports what it runs: programs are read and executed in workers, and these render nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.budget import HUNG

from hlotool.checks import run as checking
from hlotool.checks.inspect import run as inspecting
from hlotool.runs.options import kept as replaying

PROGRAM = "HloModule small\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"

#: What only a worker needs, or nothing but other commands.
HEAVY = (
    "numpy",
    "ml_dtypes",
    "scipy",
    "lark",
    "email",
    "importlib.metadata",
    "rich.progress",
    "hlotool.ir.arrays",
    "hlotool.ir.attributes",
    "hlotool.ir.module",
    "hlotool.ir.opcodes",
    "hlotool.backends.base",
    "hlotool.backends.numpy",
    "hlotool.facts.dataflow",
    "hlotool.judge.locate",
    "hlotool.parser.reader",
    "hlotool.parser.text",
    "hlotool.runs.run",
    "hlotool.sources.loading",
)
PROBE = """
import json, sys
from hlotool.__main__ import main
main(json.loads(sys.argv[1]))
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("run --no-cache", 128),
        ("run --no-cache --json", 120),
        ("check", 126),
        ("inspect", 106),
    ],
)
def test_a_command_imports_what_it_runs(command: str, most: int, tmp_path: Path) -> None:
    """`most` of our own modules, a few more than there are."""
    file = tmp_path / "small.hlo"
    file.write_text(PROGRAM, encoding="utf-8")
    name, *options = command.split()
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps([name, str(file), *options])],
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    loaded: list[str] = json.loads(ended.stderr.splitlines()[-1])
    heavy = [name for name in loaded if any(f"{name}.".startswith(f"{one}.") for one in HEAVY)]
    assert heavy == []
    own = [name for name in loaded if name.startswith("hlotool.")]
    assert len(own) <= most, own


#: What no worker needs before its first program.
ABSENT = (
    "rich",
    "lark",
    "scipy",
    "hlotool.interface",
    "hlotool.lab",
    "hlotool.blame",
    "hlotool.backends.xla",
    "hlotool.judge.locate",
    "hlotool.judge.rules",
    "hlotool.parser.mlir",
    "hlotool.parser.mlir_constants",
    "hlotool.rewrite.scale.plan",
    "hlotool.runs.exact",
    "hlotool.sources.directory",
    "hlotool.sources.wrapped",
)


@pytest.mark.parametrize(
    ("preload", "most"), [(replaying.PRELOAD, 219), (checking.PRELOAD, 104), (inspecting.PRELOAD, 120)]
)
def test_a_worker_imports_what_it_runs(preload: tuple[str, ...], most: int) -> None:
    names = ", ".join(("hlotool.system.worker", *preload))
    code = f"import sys, json, {names}; print(json.dumps([*sys.modules]))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    loaded: list[str] = json.loads(ended.stdout)
    assert [name for name in loaded if any(f"{name}.".startswith(f"{one}.") for one in ABSENT)] == []
    own = [name for name in loaded if name.startswith("hlotool.")]
    assert len(own) <= most, own
