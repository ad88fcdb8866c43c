"""What a new opcode needs: 2^x, as good as the exponential, in a copy of the sources.

CONTRIBUTING.md, "Add an opcode", lists the places; whatever else knows opcodes asks the table for facts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.opcode_places import PLACES, missing

from hlotool.ir.opcodes import OPCODES

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Edit:
    """Lines that are added to a file after a line that begins in some way; a file of its own without one."""

    file: str
    after: str
    text: str


EDITS = (
    Edit(
        "hlotool/ir/opcode_table.py",
        "exponential ",
        "toy-exp2 1 exp | transcendental exponential on=f | | result_accuracy",
    ),
    Edit("backends/numpy/kernels/arithmetic.py", '    "exponential":', '    "toy-exp2": np.exp2,'),
    Edit(
        "backends/numpy/executions/rounding_errors.py",
        '    "exponential":',
        '    "toy-exp2": Row(2, "a toy"),',
    ),
    Edit(
        "backends/cuda/codegen/elementwise.py",
        '    "exponential": "exponential(',
        '    "toy-exp2": "exponential({0} * 0.6931471805599453f)",',
    ),
    Edit(
        "hlotool/lab/fuzz/programs/steps_elementwise.py",
        '    "exponential":',
        '    "toy-exp2": _Domain(4, 16),',
    ),
    Edit(
        "hlotool/facts/ranges.py",
        '    "exponential":',
        '    "toy-exp2": RealFunction(lambda x: 2.0**x, math.log2, _ABOVE_ZERO),',
    ),
    Edit(
        "hlotool/facts/machine_rules.py",
        '    "exponential":',
        '    "toy-exp2": _monotone(lambda x: 2.0**x, least=0),',
    ),
    Edit(
        "hlotool/lab/conformance/spec/toy-exp2.hlo",
        "",
        "// case: f32\n// source: a toy\n// input: {3, -1}\n// expect: {8, 0.5}\n// tolerance: 2 ulp\n"
        "r = f32[2] toy-exp2(f32[2])\n",
    ),
)

#: Everything that is done with an opcode, done with the new one.
USES = """
import random, shutil
import numpy as np
from hlotool.facts.ranges import ABOVE_ZERO
from hlotool.facts.ranges import Interval
from hlotool.facts.machine_range import MachineRange
from hlotool.facts import machine_rules, ranges
from hlotool.facts.work import Prices
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.rounding_errors import row_of
from hlotool.lab.conformance.generators.cases import generators
from hlotool.lab.conformance.spec_files import FOLDER, read_spec
from hlotool.inputs.adversarial.inverses import inverted
from hlotool.lab.fuzz.programs.draft import Shared
from hlotool.lab.fuzz.programs.drawn import finished
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.drawn import grow
from hlotool.lab.fuzz.programs.limits import Preferences
from hlotool.checks.inspect.costs import CostAnalysis
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.printer import print_module
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ElementType
from hlotool.ir.verifier import verify
from hlotool.facts.result_facts import EXACT
from hlotool.parser.reader import parse_module
from support.field import evaluated
from support.kernels import on_kernels

TEXT = "HloModule m\\n\\nENTRY main {\\n  x = f32[4] parameter(0)\\n  ROOT r = f32[4] toy-exp2(x)\\n}\\n"
module = parse_module(TEXT)
x = np.array([3, -1, 0, 0.5], np.float32)
root = module.entry.root
assert not list(verify(module))
assert parse_module(print_module(module)).entry.root.opcode == "toy-exp2"
assert infer_shape("toy-exp2", [root.shape], {}) == root.shape
assert np.allclose(NumpyBackend().compile(module).run([x]), 2.0**x, rtol=1e-6)
assert len(np.asarray(evaluated(module, [[x]], DeviceGrid(1, 1), 0)[0][0])) == 4
if shutil.which("g++"):
    assert np.allclose(on_kernels(module, [x])[0], 2.0**x, rtol=1e-6)
graph = Graph("main", Shared(random.Random(0), Preferences(), 40))
graph.fresh(ElementType.F32, (3,))
grow(graph, 6, {"toy-exp2": 1.0})
assert any(i.opcode == "toy-exp2" for i in finished(graph).instructions())
assert "toy-exp2" in generators()
(case,) = read_spec(FOLDER / "toy-exp2.hlo")
assert CostAnalysis().of_computation(module.entry).transcendentals == 4
assert Prices().of(module.entry) == Prices().of(parse_module(TEXT.replace("toy-exp2", "exponential")).entry)
assert ranges.range_of(root, [Interval(0, 3)]) == Interval(1, 8)
assert 8 <= machine_rules.range_of(root, [MachineRange(0, 3)]).high < 8.1
assert inverted(root, [1.0], 8.0) == [(0, 3.0)]
assert row_of("toy-exp2").relative(ElementType.F32) > 0 and "toy-exp2" not in EXACT
"""


def _edit(folder: Path, edits: Sequence[Edit]) -> None:
    for edit in edits:
        file = folder / edit.file
        if not edit.after:
            file.write_text(edit.text, encoding="utf-8")
            continue
        lines = (ROOT / edit.file).read_text(encoding="utf-8").splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines) if line.startswith(edit.after))
        file.write_text("".join([*lines[: at + 1], edit.text, "\n", *lines[at + 1 :]]), encoding="utf-8")


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, text=True, capture_output=True, check=False)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for room in ("hlotool", "backends", "grammar"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_eight_places_are_enough_and_each_is_named_where_it_is_forgotten(sources: Path) -> None:
    named = ("-m", "support.opcode_places", "toy-exp2")
    assert _python(sources, *named).stdout.startswith(EDITS[0].file)
    _edit(sources, EDITS[:1])
    forgotten = [line.partition(":")[0] for line in _python(sources, *named).stdout.splitlines()]
    assert len(forgotten) == len(EDITS) - 1 == 7
    assert all(any(edit.file.startswith(place) for place in forgotten) for edit in EDITS[1:])
    _edit(sources, EDITS[1:])
    for arguments in (named, ("-c", USES)):
        run = _python(sources, *arguments)
        assert not run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("opcode", OPCODES)
def test_every_opcode_is_where_it_has_to_be(opcode: str) -> None:
    assert not list(missing(opcode))


def test_contributing_lists_the_places() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("## Add an opcode") : text.index("## Add a custom call")]
    for where in ("hlotool/ir/opcode_table.py", *(place.where for place in PLACES)):
        assert where in section
