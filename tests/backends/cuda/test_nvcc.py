"""Kernels compiled for GPUs: random fusions, the measured programs, the corpus; what spills registers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from support.gpu_kernels import kernels_of
from support.kernel_fuzz import KINDS, fuzz_program
from support.kernels import needs_compiler

from benchmarks.gpu.cases import all_cases
from hlotool.backends.cuda.build import Compiled, compile_kernels
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.compilers import Compiler, find_compiler
from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.errors import BackendUnavailable, HlotoolError
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module

pytestmark = needs_compiler

_ARCHITECTURES = ("sm_75", "sm_90", "sm_100")

#: Fusions, and kernels, of one compilation.
_BATCH = 60


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    try:
        return find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def _compiled(
    kernels: list[Kernel], architecture: str, compiler: Compiler, folder: Path
) -> dict[str, Compiled]:
    if architecture not in compiler.architectures:
        pytest.skip(f"{compiler.version} does not know {architecture}")
    found: dict[str, Compiled] = {}
    for start in range(0, len(kernels), _BATCH):
        found |= compile_kernels(kernels[start : start + _BATCH], architecture, compiler, folder)
    return found


#: Bytes that random fusions may spill: around calls of library functions, ptxas saves a few registers.
_AROUND_CALLS = 64


def _spilling(compiled: dict[str, Compiled], most: int = 0) -> list[str]:
    spilled = {name: max(c.resources.spill_stores, c.resources.spill_loads) for name, c in compiled.items()}
    return [name for name, size in spilled.items() if size > most]


def _fuzz() -> Iterator[object]:
    for kind in KINDS:
        yield pytest.param(kind, 0, 15, "sm_90")
        for first, architecture in product(range(0, 5000, _BATCH), _ARCHITECTURES):
            yield pytest.param(kind, first, _BATCH, architecture, marks=pytest.mark.slow)


@pytest.mark.parametrize(("kind", "first", "count", "architecture"), list(_fuzz()))
def test_random_fusions(
    kind: str, first: int, count: int, architecture: str, compiler: Compiler, tmp_path: Path
) -> None:
    kernels = kernels_of(fuzz_program(kind, first, count)[0])
    compiled = _compiled(kernels, architecture, compiler, tmp_path)
    assert compiled.keys() == {kernel.name for kernel in kernels}
    assert all(c.resources.registers for c in compiled.values())
    assert _spilling(compiled, _AROUND_CALLS) == []


@pytest.mark.parametrize(
    "architecture", [pytest.param(a, marks=() if a == "sm_90" else pytest.mark.slow) for a in _ARCHITECTURES]
)
def test_the_measured_programs(architecture: str, compiler: Compiler, tmp_path: Path) -> None:
    kernels = [kernel for case in all_cases(1) for kernel in kernels_of(parse_module(case.text))]
    compiled = _compiled(kernels, architecture, compiler, tmp_path)
    assert compiled.keys() == {kernel.name for kernel in kernels}
    assert _spilling(compiled) == []


def _programs(folder: Path) -> Iterator[Module]:
    """Those of a dump that hlotool can read and plan."""
    for found in open_dump(folder).modules:
        for stage in (*found.stages, *found.others):
            try:
                yield load_stage(found, stage)
            except HlotoolError:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("architecture", _ARCHITECTURES)
@pytest.mark.parametrize("part", ["modules", "jax", "tf"])
def test_the_corpus(part: str, architecture: str, compiler: Compiler, corpus: Path, tmp_path: Path) -> None:
    kernels: dict[str, Kernel] = {}
    for module in _programs(corpus / part):
        try:
            kernels |= {kernel.name: kernel for kernel in kernels_of(module)}
        except HlotoolError:  # what the reference does not execute either
            continue
    assert len(kernels) > 20
    compiled = _compiled(list(kernels.values()), architecture, compiler, tmp_path)
    assert compiled.keys() == kernels.keys()
    assert _spilling(compiled) == []
