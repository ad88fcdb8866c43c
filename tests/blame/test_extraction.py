"""Parts of programs with the values that they got."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.subgraph import cut_named
from hlotool.errors import Unsupported, UsageError

TEXT = """HloModule parts
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
fused { x = f32[4] parameter(0) c = f32[4] cosine(x) ROOT e = f32[4] exponential(c) }
body {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[4] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[4] add(v, v)
  ROOT out = (s32[], f32[4]) tuple(next, w)
}
condition {
  state.1 = (s32[], f32[4]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}
ENTRY main {
  p = f32[4] parameter(0)
  f = f32[4] fusion(p), kind=kLoop, calls=fused
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, f)
  loop = (s32[], f32[4]) while(start), condition=condition, body=body
  r = f32[4] get-tuple-element(loop), index=1
  none = f32[] constant(0)
  ROOT t = f32[] reduce(r, none), dimensions={0}, to_apply=sum
}
"""

ARGUMENTS = (np.array([0, 1, 2, 3], np.float32),)


def run(names: list[str], **options: int) -> list[object]:
    cut = cut_named(Case(hlotool.parse(TEXT), ARGUMENTS), names, **options)
    return hlotool.run(hlotool.parse(cut.case.text), cut.case.arguments)


def test_a_fusion_and_an_instruction_inside_it() -> None:
    expected = np.exp(np.cos(ARGUMENTS[0]))
    np.testing.assert_allclose(run(["f"])[0], expected, rtol=1e-6)  # type: ignore[arg-type]
    np.testing.assert_allclose(run(["%e"])[0], expected, rtol=1e-6)  # type: ignore[arg-type]
    np.testing.assert_allclose(run(["fused"])[0], expected, rtol=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [0, 1, 2])
def test_an_iteration_of_a_loop(call: int) -> None:
    start = np.exp(np.cos(ARGUMENTS[0]))
    expected = start * 2.0 ** (call + 1)
    np.testing.assert_allclose(run(["w"], call=call)[0], expected, rtol=1e-6)  # type: ignore[arg-type]
    counter, value = run(["body"], call=call)
    assert int(counter) == call + 1  # type: ignore[call-overload]
    np.testing.assert_allclose(value, expected, rtol=1e-6)  # type: ignore[arg-type]


def test_operands_come_along_as_far_as_asked() -> None:
    whole = Case(hlotool.parse(TEXT), ARGUMENTS)
    assert [i.name for i in cut_named(whole, ["t"]).inputs] == ["r"]
    assert [i.name for i in cut_named(whole, ["t"], height=9).inputs] == ["p"]


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        (["nothing"], {}, UsageError, "no instruction or computation %nothing"),
        (["w", "t"], {}, UsageError, "not of one computation"),
        (["w"], {"call": 3}, UsageError, "executed 3 times"),
        (["s"], {}, Unsupported, "applied to scalars"),
        (["p"], {}, UsageError, "a parameter alone"),
    ],
)
def test_what_cannot_be_cut_out(
    names: list[str], options: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(names, **options)


EXCHANGE = """HloModule ring, num_partitions=2
body {
  v = f32[2] parameter(0)
  d = f32[2] add(v, v)
  ROOT p = f32[2] collective-permute(d), channel_id=1, source_target_pairs={{0,1},{1,0}}
}
ENTRY main {
  x = f32[2] parameter(0)
  e = f32[2] exponential(x)
  ROOT c = f32[2] call(e), to_apply=body
}
"""


def test_what_exchanges_values_gets_those_of_each_device() -> None:
    rows = (np.array([0, 1], np.float32),), (np.array([2, 3], np.float32),)
    case = Case(hlotool.parse(EXCHANGE), rows)
    cut = cut_named(case, ["p"]).case
    assert (cut.copies, cut.module.num_partitions) == (2, 2)
    results = hlotool.run(hlotool.parse(cut.text), cut.arguments, partitions=2)
    np.testing.assert_allclose(results, [2 * np.exp(rows[1]), 2 * np.exp(rows[0])], rtol=1e-6)
    alone = cut_named(case, ["d"]).case
    assert (alone.copies, alone.module.num_partitions) == (1, 1)
    np.testing.assert_allclose(alone.arguments, np.exp(rows[0]), rtol=1e-6)
