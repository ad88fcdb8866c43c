"""Kernels compiled for GPUs by every compiler there is: random fusions, the measured programs, the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from support.cuda_programs import DOTS, PROGRAMS
from support.gpu_kernels import kernels_of
from support.kernel_fuzz import KINDS, fuzz_program
from support.kernels import needs_compiler

from benchmarks.gpu.cases import all_cases
from hlotool.backends.cuda.backend import Compiled, compile_kernels
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.toolchain import Compiler, installed_compilers
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

pytestmark = needs_compiler

_FAMILIES = ("NVRTC 13", "NVRTC 12", "nvcc")
_ARCHITECTURES = ("sm_75", "sm_90", "sm_100")

#: Fusions, and kernels, of one compilation.
_BATCH = 60


@cache
def _compiler(family: str) -> Compiler:
    """One whose version begins so."""
    found = next((c for c in installed_compilers() if c.version.startswith(family)), None)
    if found is None:
        pytest.skip(f"there is no {family} here")
    return found


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


@cache
def _random_kernels(kind: str, first: int, count: int) -> list[Kernel]:
    return kernels_of(fuzz_program(kind, first, count)[0])


def _fuzz() -> Iterator[object]:
    """Few fusions by each compiler, and for the newest architecture; far more where time does not matter."""
    for kind in KINDS:
        yield from (pytest.param(kind, 0, 15, family, "sm_90") for family in _FAMILIES)
        yield pytest.param(kind, 0, 15, _FAMILIES[0], "sm_100")
        for family, architecture in product(_FAMILIES, _ARCHITECTURES):
            for first in range(0, 5000 if family == _FAMILIES[0] else 1000, _BATCH):
                yield pytest.param(kind, first, _BATCH, family, architecture, marks=pytest.mark.slow)


@pytest.mark.parametrize(("kind", "first", "count", "family", "architecture"), list(_fuzz()))
def test_random_fusions(
    kind: str, first: int, count: int, family: str, architecture: str, tmp_path: Path
) -> None:
    compiler = _compiler(family)
    kernels = _random_kernels(kind, first, count)
    compiled = _compiled(kernels, architecture, compiler, tmp_path)
    assert compiled.keys() == {kernel.name for kernel in kernels}
    assert all(c.resources.registers for c in compiled.values())
    assert _spilling(compiled, _AROUND_CALLS) == []


def _each_compiler(*quick: tuple[str, str]) -> list[object]:
    """All pairs of a compiler and an architecture; those that are not named where time does not matter."""
    pairs = product(_FAMILIES, _ARCHITECTURES)
    return [pytest.param(*pair, marks=() if pair in quick else pytest.mark.slow) for pair in pairs]


@cache
def _measured_kernels() -> list[Kernel]:
    texts = [*(case.text for case in all_cases(1)), *PROGRAMS.values(), *DOTS.values()]
    return list({k.name: k for text in texts for k in kernels_of(parse_module(text))}.values())


@pytest.mark.parametrize(("family", "architecture"), _each_compiler(("NVRTC 13", "sm_90"), ("nvcc", "sm_90")))
def test_the_measured_programs_and_those_of_the_tests(family: str, architecture: str, tmp_path: Path) -> None:
    compiler = _compiler(family)
    kernels = _measured_kernels()
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


@pytest.mark.parametrize(("family", "architecture"), _each_compiler())
@pytest.mark.parametrize("part", ["modules", "jax", "tf"])
def test_the_corpus(part: str, family: str, architecture: str, corpus: Path, tmp_path: Path) -> None:
    compiler = _compiler(family)
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
