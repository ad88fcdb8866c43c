"""Kernels as CUDA runs them: fibers give the bits of the plain loops, and every barrier is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.fibers import FiberBuilder
from support.kernel_fuzz import BATCH, KINDS, fuzz_program
from support.kernels import differing, emulator, needs_compiler

from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.executable import KernelExecutable
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module

pytestmark = needs_compiler

_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"

#: Fused computations by name; each is the whole program.
_CASES = {
    "row sums": """
  x = f32[3,1000] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[3] reduce(x, zero), dimensions={1}, to_apply=add""",
    "short row sums": """
  x = f32[9,300] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[9] reduce(x, zero), dimensions={1}, to_apply=add""",
    "whole sum": """
  x = f32[400,500] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add""",
    "column sums": """
  x = f32[500,70] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[70] reduce(x, zero), dimensions={0}, to_apply=add""",
    "sums of two": """
  x = f32[3,1000] parameter(0)
  y = f32[3,1000] multiply(x, x)
  zero = f32[] constant(0)
  a = f32[3] reduce(x, zero), dimensions={1}, to_apply=add
  b = f32[3] reduce(y, zero), dimensions={1}, to_apply=add
  ROOT r = (f32[3], f32[3]) tuple(a, b)""",
    "softmax": """
  x = f32[5,300] parameter(0)
  zero = f32[] constant(0)
  m = f32[5] reduce(x, zero), dimensions={1}, to_apply=add
  mm = f32[5,300] broadcast(m), dimensions={0}
  d = f32[5,300] subtract(x, mm)
  s = f32[5] reduce(d, zero), dimensions={1}, to_apply=add
  ss = f32[5,300] broadcast(s), dimensions={0}
  ROOT r = f32[5,300] divide(d, ss)""",
    "transposition": """
  x = f32[70,90] parameter(0)
  ROOT r = f32[90,70] transpose(x), dimensions={1,0}""",
}


def _module(body: str) -> Module:
    return parse_module(f"HloModule barriers\n{_ADD}ENTRY main {{{body}\n}}\n")


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
    module = _module(_CASES[name])
    arguments = _arguments(module)
    executable, builder = _compiled(module, tmp_path)
    forward, backward = _both_orders(executable, builder, arguments)
    assert _is_same(forward, leaves(emulator().compile(module).run(arguments)))
    assert _is_same(forward, backward)
    unseen = []
    for kernel, count in builder.barriers.items():
        for number in range(count):
            builder.left_out = {kernel: number}
            if _is_same(*_both_orders(executable, builder, arguments)):
                unseen.append((kernel, number, count))
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
