"""XLA on the same text: results, and how many kernels its optimised program launches."""

from __future__ import annotations

import numpy as np
import pytest
from support.xla import oracle

from benchmarks.gpu.accuracy import distance, leaves
from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import all_cases
from benchmarks.gpu.xla_side import Kernels, NoXla, XlaProgram, count_kernels, device
from hlotool.backends.numpy import NumpyBackend
from hlotool.parser.reader import parse_module

_OPTIMISED = """HloModule optimised, is_scheduled=true
fused { p = f32[8] parameter(0) ROOT r = f32[8] add(p, p) }
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] fusion(x), kind=kLoop, calls=fused
  c = f32[8] copy(y)
  ROOT r = (s32[], f32[8]) tuple(i, c)
}
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  f = f32[8] fusion(x), kind=kLoop, calls=fused
  b = f32[2,4] bitcast(f)
  l = f32[8] custom-call(b), custom_call_target="__cublas$gemm"
  t = (s32[], f32[8]) tuple(i, l)
  w = (s32[], f32[8]) while(t), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""


def test_kernels_are_counted_where_control_flow_leads() -> None:
    # The fusions of entry and body, the library call, the copy, the comparison.
    assert count_kernels(parse_module(_OPTIMISED)) == Kernels(fusions=2, launches=5)


@pytest.mark.xla
@pytest.mark.parametrize("name", ["softmax_f32", "argmax_bf16", "row_updates_f32", "mlp_training_step"])
def test_xla_computes_the_cases(name: str) -> None:
    case = next(c for c in all_cases(1 / 4096) if c.name == name)
    arguments = arguments_of(case)
    oracle().run(case.text, arguments)  # XLA runs in this very process below, and must not die of it
    program = XlaProgram(case.text, arguments, "cpu")
    program.enqueue()
    program.wait()
    expected = leaves(NumpyBackend().compile(parse_module(case.text)).run(arguments))
    found = distance(expected, program.leaves())
    assert found.misfits == 0
    assert found.relative < 1e-5
    kernels = program.kernels()
    assert isinstance(kernels, Kernels)
    assert 1 <= kernels.fusions <= kernels.launches


def test_a_platform_that_is_not_here() -> None:
    with pytest.raises(NoXla, match="XLA for fantasy"):
        device("fantasy")


@pytest.mark.xla
def test_what_xla_refuses_is_an_error() -> None:
    with pytest.raises(Exception, match="nosuch"):
        XlaProgram("HloModule m\nENTRY e { ROOT x = f32[2] nosuch() }", [np.zeros(2)], "cpu")
