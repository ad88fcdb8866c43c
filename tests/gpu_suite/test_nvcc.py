"""The kernels of the measured programs, at the sizes that are measured, compiled for an H200."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gpu_kernels import kernels_of
from support.kernels import needs_compiler

from benchmarks.gpu.cases import all_cases
from hlotool.backends.cuda.build import compile_kernels
from hlotool.backends.cuda.compilers import find_compiler
from hlotool.errors import BackendUnavailable
from hlotool.parse.reader import parse_module


@needs_compiler
def test_no_measured_kernel_spills_registers(tmp_path: Path) -> None:
    try:
        compiler = find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    kernels = {k.name: k for case in all_cases(1) for k in kernels_of(parse_module(case.text))}
    compiled = compile_kernels(kernels.values(), "sm_90", compiler, tmp_path)
    assert compiled.keys() == kernels.keys()
    assert all(c.resources.registers for c in compiled.values())
    spilling = {
        n: c.resources for n, c in compiled.items() if c.resources.spill_stores or c.resources.spill_loads
    }
    assert spilling == {}
