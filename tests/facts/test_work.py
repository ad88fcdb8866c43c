"""The work of a program follows from its text and from how often its loops go round."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.work import Prices, once
from hlotool.ir.module import Computation, Module
from hlotool.parser.reader import parse_module
from hlotool.system.resources import work_done

LOOP = """HloModule m
cond {
  s = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[16] get-tuple-element(s), index=1
  k = s32[] constant(1)
  j = s32[] add(i, k)
  y = f32[16] add(x, x)
  ROOT t = (s32[], f32[16]) tuple(j, y)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[16] parameter(1)
  s = (s32[], f32[16]) tuple(i, x)
  ROOT w = (s32[], f32[16]) while(s), condition=cond, body=body
}"""

BRANCHES = """HloModule m
cheap {
  x = f32[64] parameter(0)
  ROOT y = f32[64] negate(x)
}
dear {
  x = f32[64] parameter(0)
  a = f32[64] tanh(x)
  b = f32[64] tanh(a)
  ROOT y = f32[64] tanh(b)
}
ENTRY e {
  p = pred[] parameter(0)
  x = f32[64] parameter(1)
  ROOT y = f32[64] conditional(p, x, x), true_computation=cheap, false_computation=dear
}"""


def named(module: Module, name: str) -> Computation:
    return next(one for one in module.computations if one.name == name)


def work_of(text: str, *arguments: object) -> int:
    executable = NumpyBackend().compile(parse_module(text))
    before = work_done()
    executable.run(arguments)  # type: ignore[arg-type]
    return work_done() - before


def test_every_iteration_counts() -> None:
    x = np.ones(16, np.float32)
    none, two, five = (work_of(LOOP, np.int32(start), x) for start in (5, 3, 0))
    module = parse_module(LOOP)
    prices = Prices()
    cond, body = (prices.of(named(module, name)) for name in ("cond", "body"))
    assert none == prices.of(module.entry)
    assert (two - none, five - none) == (2 * (cond + body), 5 * (cond + body))
    assert once(module.entry) == none + cond + body


def test_the_branch_that_is_taken_counts() -> None:
    x = np.ones(64, np.float32)
    cheap, dear = (work_of(BRANCHES, np.bool_(chosen), x) for chosen in (True, False))
    prices, module = Prices(), parse_module(BRANCHES)
    assert dear - cheap == prices.of(named(module, "dear")) - prices.of(named(module, "cheap")) > 0


def test_equal_runs_are_equal_work() -> None:
    x = np.ones(16, np.float32)
    assert work_of(LOOP, np.int32(0), x) == work_of(LOOP, np.int32(0), 3 * x)


@pytest.mark.parametrize("workspace", ["s8[4194304]", "u8[4194304]"])
def test_what_a_library_works_in_is_no_work(workspace: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[4,4] parameter(0)
  ROOT c = (f32[4,4], {workspace}) custom-call(x, x), custom_call_target="__cublas$gemm"
}}"""
    most, least = (Prices().of(parse_module(each).entry) for each in (text, text.replace("4194304", "0")))
    assert most == least > Prices().of(parse_module(text.replace("4,4", "2,2")).entry)
