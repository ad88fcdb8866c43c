"""Random fusions as schedules are for: equal to the numpy reference, in both orders of the threads."""

from __future__ import annotations

import pytest
from support.kernel_fuzz import BATCH, fuzz_program
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy

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
