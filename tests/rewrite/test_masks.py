"""Positions that one program alone compares the elements of a dimension with."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import Scaled, scaled

BEFORE = """HloModule m
ENTRY e {
  x = f32[4096,300] parameter(0)
  ROOT r = f32[4096,300] negate(x)
}"""


def masked(position: int, more: str = "", root: str = "select(p, x, n)") -> str:
    """One row is not what it was; the position is a constant of this program alone."""
    return f"""HloModule m
ENTRY e {{
  x = f32[4096,300] parameter(0)
  n = f32[4096,300] negate(x)
  i = s32[4096,300] iota(), iota_dimension=0
  c = s32[] constant({position})
  b = s32[4096,300] broadcast(c), dimensions={{}}
  p = pred[4096,300] compare(i, b), direction=EQ
  {more}
  ROOT r = f32[4096,300] {root}
}}"""


def plan(*texts: str, memory: float = 4 << 20) -> Scaled:
    programs = {str(number): parse_module(text) for number, text in enumerate(texts)}
    found = scaled(programs, "auto", Limits(memory, 1e9))
    assert found is not None
    return found


def differing_rows(before: Module, after: Module) -> list[int]:
    x = np.random.default_rng(0).standard_normal(before.entry.parameters[0].dims).astype(np.float32)
    one, other = (NumpyBackend().compile(module).run([x]) for module in (before, after))
    assert isinstance(one, np.ndarray)
    assert isinstance(other, np.ndarray)
    return np.flatnonzero((one != other).any(axis=1)).tolist()


@pytest.mark.parametrize("position", [1, 3, 45, 2048, 4093, 4095])
def test_a_position_of_one_program_stays_inside_of_the_dimension(position: int) -> None:
    """And the elements around it are as near to the ends as they were, or cut on both sides."""
    found = plan(BEFORE, masked(position))
    before, after = found.programs.values()
    rows = before.entry.parameters[0].array_shape.dims[0]
    assert rows < 4096
    (row,) = differing_rows(before, after)
    assert 0 < row < rows
    if position == 4095:
        assert row == rows - 1


def test_a_mask_that_both_programs_have_stays() -> None:
    found = plan(masked(45), masked(45).replace("select(p, x, n)", "select(p, x, n), metadata={}"))
    for module in found.programs.values():
        (constant,) = (i.literal for i in module.instructions() if i.opcode == "constant")
        assert constant is not None
        assert constant.array.item() == 45


def test_a_mask_in_another_form_is_the_same_mask() -> None:
    """Rows below 45 are those up to 44, and those that a slice takes."""
    lower = masked(45).replace("direction=EQ", "direction=LT")
    upto = masked(44).replace("direction=EQ", "direction=LE")
    cut = """HloModule m
ENTRY e {
  x = f32[4096,300] parameter(0)
  head = f32[45,300] slice(x), slice={[0:45], [0:300]}
  tail = f32[4051,300] slice(x), slice={[45:4096], [0:300]}
  n = f32[4051,300] negate(tail)
  ROOT r = f32[4096,300] concatenate(head, n), dimensions={0}
}"""
    for other in (upto, cut):
        found = plan(lower, other)
        before, after = found.programs.values()
        assert before.entry.parameters[0].array_shape.dims[0] < 4096
        assert differing_rows(before, after) == []


def test_a_position_that_is_something_else_too_keeps_the_dimension() -> None:
    more = "s = s32[4096,300] add(b, i) f = f32[4096,300] convert(s) z = f32[4096,300] add(f, n)"
    found = plan(BEFORE, masked(45, more, "select(p, z, n)"), memory=10 << 20)
    assert found.programs["0"].entry.parameters[0].array_shape.dims[0] == 4096
    assert any(stay.size == 4096 and "a position in it" in stay.why for stay in found.record.stay)
