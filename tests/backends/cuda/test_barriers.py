"""Kernels as CUDA runs them: fibers give the bits of the plain loops, and every barrier is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.fibers import FiberBuilder
from support.kernel_fuzz import BATCH, KINDS, fuzz_program
from support.kernels import differing, emulator, needs_compiler

from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.kernel_backend import KernelExecutable
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"

_ARGMAX = """larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GT
  v = f32[] select(p, a, b)
  k = s32[] select(p, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}
"""


def _softmax(rows: int, columns: int) -> str:
    """Of its form, with sums in place of maxima and exponentials: every thread's share has consequences."""
    whole, part = f"f32[{rows},{columns}]", f"f32[{rows}]"
    return f"""
  x = {whole} parameter(0)
  zero = f32[] constant(0)
  m = {part} reduce(x, zero), dimensions={{1}}, to_apply=add
  mm = {whole} broadcast(m), dimensions={{0}}
  d = {whole} subtract(x, mm)
  s = {part} reduce(d, zero), dimensions={{1}}, to_apply=add
  ss = {whole} broadcast(s), dimensions={{0}}
  ROOT r = {whole} divide(d, ss)"""


def _sums(rows: int, columns: int, dimensions: str, result: str) -> str:
    return f"""
  x = f32[{rows},{columns}] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[{result}] reduce(x, zero), dimensions={{{dimensions}}}, to_apply=add"""


def _largest(rows: int, columns: int, axis: int) -> str:
    results = columns if axis == 0 else rows
    return f"""
  x = f32[{rows},{columns}] parameter(0)
  i = s32[{rows},{columns}] iota(), iota_dimension={axis}
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[{results}], s32[{results}]) reduce(x, i, low, zero), dimensions={{{axis}}}, to_apply=larger"""


#: Fused computations, each the whole program, and whether its threads wait for each other.
_CASES = {
    "row sums, a warp each": (_sums(9, 300, "1", "9"), False),
    "row sums, a block each": (_sums(3, 5000, "1", "3"), True),
    "row sums in two passes": (_sums(2, 140_000, "1", "2"), True),
    "the sum of all": (_sums(400, 500, "0,1", ""), True),
    "column sums": (_sums(500, 70, "0", "70"), True),
    "column sums of many": (_sums(300, 1024, "0", "1024"), True),
    "column sums in two passes": (_sums(20_000, 40, "0", "40"), True),
    "two sums": (
        """
  x = f32[3,5000] parameter(0)
  y = f32[3,5000] multiply(x, x)
  zero = f32[] constant(0)
  a = f32[3] reduce(x, zero), dimensions={1}, to_apply=add
  b = f32[3] reduce(y, zero), dimensions={1}, to_apply=add
  ROOT r = (f32[3], f32[3]) tuple(a, b)""",
        True,
    ),
    "the largest of short rows": (_largest(70, 130, 1), True),
    "the largest of rows": (_largest(40, 5000, 1), True),
    "the largest of long rows": (_largest(3, 70_001, 1), True),
    "the largest of columns": (_largest(300, 70, 0), True),
    "softmax of few rows": (_softmax(5, 300), True),
    "softmax, a block for each row": (_softmax(512, 1500), True),
    "transposition": (
        """
  x = f32[70,90] parameter(0)
  ROOT r = f32[90,70] transpose(x), dimensions={1,0}""",
        True,
    ),
    "product": (
        """
  x = f32[70,90] parameter(0)
  y = f32[90,80] parameter(1)
  ROOT r = f32[70,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
        True,
    ),
}


def _module(body: str) -> Module:
    """A program of one fusion."""
    parameters = re.findall(r"= (\S+) parameter\((\d+)\)", body)
    (result,) = re.findall(r"ROOT r = (.+?) \w+\(", body)
    entry = "\n".join(f"  p{number} = {shape} parameter({number})" for shape, number in parameters)
    operands = ", ".join(f"p{number}" for _, number in parameters)
    return parse_module(
        f"HloModule barriers\n{_ADD}{_ARGMAX}fused {{{body}\n}}\nENTRY main {{\n{entry}\n"
        f"  ROOT r = {result} fusion({operands}), kind=kInput, calls=fused\n}}\n"
    )


def _compiled(module: Module, folder: Path) -> tuple[KernelExecutable, FiberBuilder]:
    builder = FiberBuilder(folder)
    return EmulatorBackend(builder=builder).compile(module), builder


def _both_orders(executable: KernelExecutable, builder: FiberBuilder, arguments: Any) -> list[list[Any]]:
    found = []
    for builder.backward in (False, True):
        found.append(leaves(executable.run(arguments)))
    return found


def _arguments(module: Module) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [array_shape(parameter) for parameter in module.entry.parameters]
    return [rng.standard_normal(shape.dims).astype(np.float32) for shape in shapes]


def _is_same(a: list[Any], b: list[Any]) -> bool:
    return not any(differing(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", _CASES)
def test_no_barrier_can_be_left_out(name: str, tmp_path: Path) -> None:
    body, has_barriers = _CASES[name]
    module = _module(body)
    arguments = _arguments(module)
    executable, builder = _compiled(module, tmp_path)
    forward, backward = _both_orders(executable, builder, arguments)
    assert _is_same(forward, leaves(emulator().compile(module).run(arguments)))
    assert _is_same(forward, backward)
    assert any(builder.barriers.values()) == has_barriers
    # A choice shows what happened to one element only: of several rows, some are where it matters.
    builder.blocks = 24 if "largest" in name else 2
    unseen = []
    for kernel in builder.barriers:
        # Behind the last one, other iterations of its loop may be what needs it: its place stands for it.
        numbers, places = range(builder.barriers[kernel] - 1), range(builder.places[kernel])
        for left_out, chosen in ((builder.left_out, numbers), (builder.place_left_out, places)):
            for number in chosen:
                left_out[kernel] = number
                if _is_same(*_both_orders(executable, builder, arguments)):
                    unseen.append((kernel, number, builder.barriers[kernel], chosen))
            left_out.clear()
    assert unseen == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(BATCH, 20 * BATCH, BATCH))]
)
def test_random_fusions_as_cuda_runs_them(first: int, kind: str, tmp_path: Path) -> None:
    module, arguments = fuzz_program(kind, first)
    executable, builder = _compiled(module, tmp_path)
    forward, backward = _both_orders(executable, builder, arguments)
    assert _is_same(forward, leaves(emulator().compile(module).run(arguments)))
    assert _is_same(forward, backward)
