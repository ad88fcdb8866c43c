"""Steps of old dumps, which do not say what they are for."""

from __future__ import annotations

import pytest

from hlotool.backends.gpu_ptx.thunks import Thunk
from hlotool.backends.gpu_ptx.unnamed import name_steps
from hlotool.errors import Unsupported
from hlotool.parser.reader import parse_module


def _steps(kinds: list[str]) -> list[Thunk]:
    return [Thunk(number, kind, "", None, number) for number, kind in enumerate(kinds)]


def test_fills_and_copies_belong_to_what_follows_or_to_what_copies() -> None:
    module = parse_module(
        "ENTRY e { x = f32[4] parameter(0) n = f32[4] negate(x) c = f32[4] copy(n) ROOT r = f32[4] abs(c) }"
    )
    steps = _steps(["kMemzero", "kKernel", "kCopy", "kKernel"])
    name_steps(steps, module)
    assert [step.instruction for step in steps] == ["n", "n", "c", "r"]


def test_of_several_ways_the_one_is_taken_that_fits_to_the_end() -> None:
    reverse = "reverse({}), dimensions={{0}}".format
    module = parse_module(
        f"ENTRY e {{ x = f32[4] parameter(0) a = f32[4] {reverse('x')} b = f32[4] {reverse('a')} "
        "ROOT c = f32[4] copy(b) }"
    )
    steps = _steps(["kCopy", "kCopy", "kCopy", "kCopy"])
    name_steps(steps, module)
    assert [step.instruction for step in steps] == ["a", "b", "b", "c"]


def test_a_program_may_be_long() -> None:
    lines = [f"v{n} = f32[4] negate(v{n - 1})" for n in range(1, 3000)]
    module = parse_module("ENTRY e {\nv0 = f32[4] parameter(0)\n" + "\n".join(lines) + "\n}")
    steps = _steps(["kKernel"] * (len(lines)))
    name_steps(steps, module)
    assert [step.instruction for step in steps] == [f"v{n}" for n in range(1, 3000)]
    with pytest.raises(Unsupported, match="does not say what its steps are for"):
        name_steps(_steps(["kKernel"] * (len(lines) + 1)), module)
