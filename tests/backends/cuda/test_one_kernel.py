"""A sum of products is one kernel that reads its inputs once and keeps nothing else in memory."""

from __future__ import annotations

import re

import pytest

from hlotool.backends.cuda.codegen.partition import KernelProgram, of_fusion
from hlotool.backends.cuda.codegen.schedules import Kernel, Part
from hlotool.ir.module import Computation
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.fuse import Fuse

_SUM = """HloModule sum
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[{size}] parameter(0)
  y = f32[{size}] parameter(1)
  z = f32[{size}] parameter(2)
  m = f32[{size}] multiply(y, z)
  s = f32[{size}] add(x, m)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(s, zero), dimensions={{0}}, to_apply=add
}}
"""


def _program(size: int) -> KernelProgram:
    module = parse_module(_SUM.format(size=size))
    Fuse().run(module, Context("fuse"))
    (fusion,) = (i for i in module.entry.instructions if i.opcode == "fusion")
    (computation,) = (c for c in fusion.called if isinstance(c, Computation))
    assert module.entry.root is fusion
    return of_fusion(computation)


def _body(kernel: Kernel) -> str:
    """Without the parameters."""
    return kernel.source.partition("{")[2]


@pytest.mark.parametrize(("size", "passes"), [(1000, 1), (60_000, 1), (1 << 24, 2)])
def test_a_sum_of_products(size: int, passes: int) -> None:
    first, *later = _program(size).kernels
    assert len(later) == passes - 1
    for parameter in ("p0", "p1", "p2"):
        assert len(re.findall(rf"\b{parameter}\b", _body(first))) == 1
    for kernel in later:
        read = [b for n, b in enumerate(kernel.inputs) if re.search(rf"\bp{n}\b", _body(kernel))]
        assert all(isinstance(buffer, Part) for buffer in read)
    parts = [written for written in first.outputs if isinstance(written, Part)]
    assert sum(part.size for part in parts) <= size // 1000
