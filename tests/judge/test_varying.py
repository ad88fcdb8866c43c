"""The instruction that makes runs differ, on a backend that does something else now and then."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend, NumpyExecutable
from hlotool.backends.numpy.lowering import Lowering
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.module import Instruction, Module
from hlotool.judge.locate import varying
from hlotool.judge.locate.locator import NotFound
from hlotool.judge.locate.varying import Spread, origin_of_spread, repeats
from hlotool.parser.reader import parse_module

TEXT = """HloModule m
cond {
  s = (s32[], f32[512]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}
scaled {
  p = f32[512] parameter(0)
  c = f32[512] cosine(p)
  ROOT t = f32[512] tanh(c)
}
body {
  u = (s32[], f32[512]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  one = s32[] constant(1)
  k = s32[] add(j, one)
  x = f32[512] get-tuple-element(u), index=1
  y = f32[512] fusion(x), kind=kLoop, calls=scaled
  z = f32[512] add(y, x)
  ROOT v = (s32[], f32[512]) tuple(k, z)
}
ENTRY e {
  a = f32[512] parameter(0)
  b = f32[512] negate(a)
  zero = s32[] constant(0)
  init = (s32[], f32[512]) tuple(zero, b)
  w = (s32[], f32[512]) while(init), condition=cond, body=body
  o = f32[512] get-tuple-element(w), index=1
  total = f32[] dot(o, o), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[512], f32[]) tuple(o, total)
}"""
VALUES = np.random.default_rng(0).normal(size=512).astype(np.float32)


class Racing(NumpyBackend):
    """Does something else in every fifth run of one opcode: adds to one element, or rounds up."""

    def __init__(self, opcode: str, amount: float = 0.0) -> None:
        self.opcode = opcode
        self.amount = amount
        self._turns = itertools.count(1)

    def compile(self, module: Module) -> NumpyExecutable:
        return NumpyExecutable(module, Lowering(module, policy=self).plan(module.entry))  # type: ignore[arg-type]

    def kernel(self, instruction: Instruction, kernel: Any) -> Any:
        if instruction.opcode != self.opcode:
            return kernel

        def raced(*operands: Any) -> Any:
            if next(self._turns) % 5:
                return kernel(*operands)
            result = np.array(kernel(*operands))
            if not self.amount:
                return np.nextafter(result, np.inf, dtype=result.dtype)
            result.flat[7 % result.size] += np.float32(self.amount)
            return result

        return raced


def found(monkeypatch: pytest.MonkeyPatch, backend: Racing, spread: Spread) -> Any:
    monkeypatch.setattr(varying, "get_backend", lambda _: backend)
    return origin_of_spread("racing", parse_module(TEXT), [VALUES], spread, Budget())


@pytest.mark.parametrize(("opcode", "name"), [("negate", "b"), ("tanh", "t"), ("dot", "total")])
def test_wrong_in_some_runs(monkeypatch: pytest.MonkeyPatch, opcode: str, name: str) -> None:
    record = found(monkeypatch, Racing(opcode, 20.0), Spread(7, 20, is_wrong=True))
    assert (record.source.instruction, record.finding, record.doubt) == (name, "wrong", 0.01)
    assert record.around == (["fusion %y", "while %w, iteration 1"] if name == "t" else [])
    assert "at a rate of 0.18 (7 of 20 runs)" in record.notes[0]


def test_rounded_otherwise_in_some_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    record = found(monkeypatch, Racing("dot"), Spread(7, 20, is_wrong=False))
    assert (record.source.instruction, record.finding) == ("total", "varies")


def test_a_race_that_the_result_does_not_show_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of the program were no more than different; those of the instruction are wrong."""
    record = found(monkeypatch, Racing("tanh", 2.0), Spread(7, 20, is_wrong=False))
    assert (record.source.instruction, record.finding) == ("t", "wrong")


def test_a_program_that_does_not_differ_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="do not differ"):
        found(monkeypatch, Racing("sine", 2.0), Spread(7, 20, is_wrong=True))


def test_runs_that_a_step_needs() -> None:
    """At half of the rate half as many cases are to be expected, and twice as many runs are needed."""
    assert repeats(0.5, 1, 0.01) == 7
    assert 1 - 0.5**7 > 0.99 > 1 - 0.5**6
    assert repeats(0.01, 10, 0.01) == 688
    assert Spread(20, 20, True).rate < Spread(200, 200, True).rate < 1
    assert Spread(1, 1000, True).rate == 0.02
