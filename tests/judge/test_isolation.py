"""Each instruction alone on a backend that is wrong in one respect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.xla import JAXLIB

from hlotool.backends.base import Executable
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.ties import reversed_ties, ties_in
from hlotool.errors import Unsupported
from hlotool.inputs.captured import load_inputs
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.judge.locate import isolation
from hlotool.judge.locate.isolation import divergence_on
from hlotool.judge.locate.locator import NotFound
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

TEXT = """HloModule m
cond {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}
scaled {
  p = f32[3] parameter(0)
  c = f32[3] cosine(p)
  ROOT t = f32[3] tanh(c), metadata={op_name="jit(f)/tanh" source_file="m.py" source_line=5}
}
body {
  u = (s32[], f32[3]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  one = s32[] constant(1)
  k = s32[] add(j, one)
  x = f32[3] get-tuple-element(u), index=1
  y = f32[3] fusion(x), kind=kLoop, calls=scaled
  z = f32[3] add(y, x)
  ROOT v = (s32[], f32[3]) tuple(k, z)
}
ENTRY e {
  a = f32[3] parameter(0)
  b = f32[3] negate(a)
  zero = s32[] constant(0)
  init = (s32[], f32[3]) tuple(zero, b)
  w = (s32[], f32[3]) while(init), condition=cond, body=body
  o = f32[3] get-tuple-element(w), index=1
  ROOT r = f32[3] abs(o)
}"""


class Faulty(NumpyBackend):
    """Takes one opcode for another, and refuses a third.

    Args:
        opcode: what it does not do.
        instead: what it does in its place.
        refused: what it cannot execute.
    """

    def __init__(self, opcode: str, instead: str, refused: str = "") -> None:
        self.opcode = opcode
        self.instead = instead
        self.refused = refused

    def compile(self, module: Module) -> Any:
        copy = clone_module(module).module
        for instruction in copy.instructions():
            if instruction.opcode == self.refused:
                raise Unsupported("not today", instruction.name, instruction.opcode)
            if instruction.opcode == self.opcode:
                instruction.opcode = self.instead
        executable: Executable = super().compile(copy)
        return executable


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a faulty backend the one that is asked for."""

    def use(*faults: str) -> None:
        monkeypatch.setattr(isolation, "get_backend", lambda _: Faulty(*faults))

    return use


def found(*arguments: Any, reference: str = TEXT) -> Any:
    tested = parse_module(TEXT)
    other = tested if reference == TEXT else parse_module(reference)
    return divergence_on("faulty", other, tested, arguments, [()], Budget())


VALUES = np.float32([0.5, 1.0, 1.5])


def test_an_instruction_of_the_entry(backend: Any) -> None:
    backend("negate", "exponential")
    record = found(VALUES)
    assert (record.source.instruction, record.around) == ("b", [])
    assert record.local is not None
    assert record.local.mismatched == 3
    assert record.notes == ["instructions run alone on faulty, each on right operands: 1"]


def test_inside_of_a_fusion_in_a_loop(backend: Any) -> None:
    backend("tanh", "logistic")
    record = found(VALUES)
    assert record.source.instruction == "t"
    assert record.around == ["fusion %y", "while %w, iteration 1"]
    assert (record.source.file, record.source.file_line) == ("m.py", 5)


class FaultyWhenFused(NumpyBackend):
    """Takes the root of a fusion of several operations for another one; each alone is right."""

    def compile(self, module: Module) -> Any:
        copy = clone_module(module).module
        for instruction in copy.instructions():
            if instruction.opcode == "tanh" and instruction.operands[0].opcode == "cosine":
                instruction.opcode = "logistic"
        return super().compile(copy)


def test_inside_of_a_fusion_that_is_wrong_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "get_backend", lambda _: FaultyWhenFused())
    record = found(VALUES)
    assert record.source.instruction == "t"
    assert record.around == ["fusion %y", "while %w, iteration 1"]
    assert record.local is not None
    assert record.local.mismatched == 3


def test_after_a_loop_that_is_right(backend: Any) -> None:
    backend("abs", "negate")
    record = found(VALUES)
    assert record.source.instruction == "r"


def test_a_loop_of_right_instructions_is_only_suspected(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here because no iteration is looked into; else because rounding grows from step to step."""
    backend("tanh", "logistic")
    monkeypatch.setattr(isolation, "_MOST_ITERATIONS", 0)
    record = found(VALUES)
    assert (record.finding, record.source.instruction) == ("suspected", "w")


def test_all_right(backend: Any) -> None:
    backend("sine", "cosine")
    with pytest.raises(NotFound, match="each on right operands: 3; all are right"):
        found(VALUES)


def test_what_the_backend_refuses_is_counted(backend: Any) -> None:
    backend("abs", "negate", "negate")
    record = found(VALUES)
    assert record.source.instruction == "r"
    assert record.notes == ["instructions run alone on faulty, each on right operands: 2; 1 could not be"]


def test_a_fault_of_the_program_is_looked_for_there(backend: Any) -> None:
    """The tested stage is wrong on the reference, too: the backend is innocent."""
    backend("sine", "cosine")
    record = found(VALUES, reference=TEXT.replace("tanh(c)", "sqrt(c)"))
    assert record.source.instruction == "t"
    assert record.expected_source.opcode == "sqrt"


def run_alone(path: Path, arguments: Sequence[Any], outputs: Sequence[tuple[int, ...]]) -> Any:
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    return divergence_on("xla", module, module, arguments, outputs, Budget())


@pytest.mark.xla
@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        pytest.param(
            *("norms_of_many_rows", "ynn_fusion"),
            marks=pytest.mark.skipif(JAXLIB >= (0, 12, 0), reason="this XLA computes it rightly"),
        ),
        ("shifted_update_in_place", "bitcast_dynamic-update-slice_fusion"),
    ],
)
def test_real_miscompiles_of_code_generation(name: str, instruction: str) -> None:
    """The program is right, what XLA makes of it is not: one fusion, alone, shows it."""
    folder = CORPUS / "miscompiles" / name
    [after] = folder.glob("*after_optimizations.txt")
    module = parse_module(after.read_text(encoding="utf-8"), str(after))
    record = run_alone(after, load_inputs(str(folder / "inputs.npz"), module), [()])
    assert instruction in (record.source.instruction, *(call.partition("%")[2] for call in record.around))


SORTING = """HloModule m
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT before = pred[] compare(a, b), direction=LT
}
ENTRY e {
  k = s32[8] parameter(0)
  i = s32[8] iota(), iota_dimension=0
  s = (s32[8], s32[8]) sort(k, i), dimensions={0}, to_apply=less
  j = s32[8] get-tuple-element(s), index=1
  ROOT r = s32[8] negate(j)
}"""


class Reversing(Faulty):
    """The same, and the last of equal elements first."""

    def compile(self, module: Module) -> Any:
        with ties_in(reversed_ties):
            return super().compile(module)


def test_another_order_of_ties_is_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "get_backend", lambda _: Reversing("negate", "abs"))
    module = parse_module(SORTING)
    keys = np.int32([1, 0, 1, 0, 1, 2, 2, 1])
    record = divergence_on("faulty", module, module, [keys], [()], Budget())
    assert record.source.instruction == "r"
    assert record.notes == ["instructions run alone on faulty, each on right operands: 3"]
