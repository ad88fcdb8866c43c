"""The kernels of backend `cuda`, compiled to PTX by NVRTC and executed, have the bits that g++ gives them."""

from __future__ import annotations

from functools import cache

import pytest
from support.differential import leaves
from support.kernel_fuzz import fuzz_program
from support.kernels import differing, emulator, needs_compiler
from support.ptx_builder import PtxBuilder

from hlotool.backends.cuda.toolchain import Nvrtc, find_nvrtcs
from hlotool.backends.cuda_emu.backend import EmulatorBackend

pytestmark = needs_compiler


@cache
def nvrtc() -> Nvrtc:
    found = next(find_nvrtcs(), None)
    if found is None:
        pytest.skip("there is no NVRTC here")
    return found


@pytest.mark.parametrize("kind", ["fusions", "schedules"])
@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 120, 6))])
def test_random_fusions(kind: str, first: int) -> None:
    """To the bit, also when warps take turns in another order."""
    module, arguments = fuzz_program(kind, first, 6)
    expected = leaves(emulator().compile(module).run(arguments))
    for seed in (0, 1):
        builder = PtxBuilder(nvrtc(), seed)
        found = leaves(EmulatorBackend(builder=builder).compile(module).run(arguments))
        assert builder.instructions > 0
        assert [differing(x, y) for x, y in zip(found, expected, strict=True)] == [0] * len(expected)
