"""Random fusions as schedules are for: equal to the numpy reference, in both orders of the threads."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernel_fuzz import BATCH, fuzz_program
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy

from hlotool.parser.reader import parse_module

pytestmark = needs_compiler


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(BATCH, 2000, BATCH))]
)
def test_random_schedules(first: int) -> None:
    module, arguments = fuzz_program("schedules", first)
    assert emulator().compile(module).notes == ()
    ours, backward = (on_kernels(module, arguments, order) for order in (False, True))
    theirs = on_numpy(module, arguments)
    assert {s: differing(a, b) for s, (a, b) in enumerate(zip(ours, theirs), first) if differing(a, b)} == {}
    assert {
        s: differing(a, b) for s, (a, b) in enumerate(zip(ours, backward), first) if differing(a, b)
    } == {}


def test_a_transposed_window_at_a_position_that_is_data() -> None:
    """Its tile could not be filled before the position is known: a plain loop reads it."""
    module = parse_module(
        """HloModule window
ENTRY main {
  x = f32[40,50] parameter(0)
  i = s32[] parameter(1)
  t = f32[50,40] transpose(x), dimensions={1,0}
  ROOT r = f32[30,20] dynamic-slice(t, i, i), dynamic_slice_sizes={30,20}
}
"""
    )
    arguments = [np.arange(2000, dtype=np.float32).reshape(40, 50), np.int32(7)]
    assert differing(on_kernels(module, arguments)[0], on_numpy(module, arguments)[0]) == 0
