"""The instructions to blame, inside of loops, branches, fusions and reducers, on the values that occurred."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.inputs.frames import frames_of, value_in
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.locate.locator import Search
from hlotool.judge.locate.recording import on_one_device, trace
from hlotool.judge.locate.report import divergence_record
from hlotool.judge.locate.spots import Spot, cut_out
from hlotool.judge.records import DivergenceRecord

LOOP = """HloModule loop
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
body {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[8] get-tuple-element(state), index=1
  y = f32[8] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  three = s32[] constant(3)
  late = pred[] compare(i, three), direction=GE
  mask = pred[8] broadcast(late), dimensions={}
  z = f32[8] BODY
  chosen = f32[8] select(mask, z, x)
  twice = f32[8] add(chosen, y)
  ROOT out = (s32[], f32[8], f32[8]) tuple(next, twice, y)
}
condition {
  state.1 = (s32[], f32[8], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(LIMIT)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}
ENTRY main {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[8], f32[8]) tuple(zero, p, q)
  loop = (s32[], f32[8], f32[8]) while(init), condition=condition, body=body
  r = f32[8] get-tuple-element(loop), index=1
  none = f32[] constant(0)
  total = f32[] reduce(r, none), dimensions={0}, to_apply=add
  ROOT result = (f32[8], f32[]) tuple(r, total)
}
"""


def loop(body: str = "multiply(x, y)", limit: int = 6) -> str:
    return LOOP.replace("BODY", body).replace("LIMIT", str(limit))


ARGUMENTS = (np.linspace(0.5, 2, 8, dtype=np.float32), np.linspace(-1, 1.5, 8, dtype=np.float32))


def located(
    before: str, after: str, output: tuple[int, ...] = (), arguments: object = ARGUMENTS
) -> tuple[DivergenceRecord, Spot]:
    """What is to blame for an output, and the two small programs of it, which differ."""
    assert isinstance(arguments, tuple)
    search = Search(*(on_one_device(hlotool.parse(t), arguments) for t in (before, after)), Budget())
    try:
        found = search.first([output])
        record, spot = divergence_record(search, found, [output]), cut_out(found)
    finally:
        search.close()
    assert spot is not None
    one, other = (hlotool.run(m, spot.arguments) for m in (spot.before, spot.after))
    assert not np.array_equal(one[0], other[0], equal_nan=True), "the small programs agree"
    return record, spot


def names(record: DivergenceRecord) -> set[str]:
    return {name for name in record.instructions if not name.startswith("constant")}


def test_the_first_iteration_that_differs_is_named() -> None:
    record, spot = located(loop(), loop("divide(x, y)"), (0,))
    assert names(record) == {"z"}
    assert record.around == ["while %loop, iteration 4"]
    assert len(spot.arguments) == 2


def test_an_operand_that_was_exchanged_is_named() -> None:
    record, _ = located(loop("subtract(x, y)"), loop("subtract(y, x)"), (0,))
    assert names(record) == {"z"}


def test_a_loop_that_ends_early_is_its_limit() -> None:
    record, _ = located(loop(), loop(limit=5), (0,))
    assert set(record.instructions) == {"limit"}


def test_a_wrong_reducer_is_named_inside() -> None:
    wrong = loop().replace("ROOT s = f32[] add(a, b)", "ROOT s = f32[] maximum(a, b)")
    record, _ = located(loop(), wrong, (1,))
    assert record.source.instruction == "total"
    assert record.inside.startswith("%s = ")


BRANCHES = """HloModule branches
left { l = f32[8] parameter(0) ROOT lr = f32[8] negate(l) }
right { r = f32[8] parameter(0) c = f32[8] cosine(r) ROOT rr = f32[8] RIGHT }
ENTRY main {
  p = f32[8] parameter(0)
  which = s32[] constant(7)
  ROOT out = f32[8] conditional(which, p, p), branch_computations={left, right}
}
"""


def test_a_wrong_branch_is_entered() -> None:
    before, after = (BRANCHES.replace("RIGHT", text) for text in ("sine(c)", "tanh(c)"))
    record, _ = located(before, after, (), ARGUMENTS[:1])
    assert names(record) == {"rr"}
    assert record.around == ["conditional %out"]


PLAIN = """HloModule plain
ENTRY main {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  a = f32[8] add(p, q)
  root = f32[8] sqrt(a)
  ROOT out = f32[8] divide(p, root)
}
"""

FUSED = """HloModule fused
computation {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a.1 = f32[8] add(x, y)
  inverse = f32[8] WRONG(a.1)
  ROOT m = f32[8] multiply(x, inverse)
}
ENTRY main {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  ROOT out = f32[8] fusion(p, q), kind=kLoop, calls=computation
}
"""

POSITIVE = (np.linspace(0.5, 2, 8, dtype=np.float32), np.linspace(0.1, 1.5, 8, dtype=np.float32))


def test_a_pattern_that_was_rewritten_is_blamed_as_a_whole() -> None:
    """x / sqrt(a) became x * cbrt(a): everything between equal values is to blame, and nothing before."""
    record, spot = located(PLAIN, FUSED.replace("WRONG", "cbrt"), (), POSITIVE)
    assert names(record) == {"inverse", "m"}
    assert record.around == ["fusion %out"]
    assert [i.opcode for i in spot.before.entry.instructions if i.opcode != "parameter"][-1] == "divide"


def test_a_wrong_constant_is_named() -> None:
    text = """HloModule c
    ENTRY main {
      p = f32[8] parameter(0)
      c = f32[] constant(2)
      b = f32[8] broadcast(c), dimensions={}
      ROOT m = f32[8] multiply(p, b)
    }"""
    record, _ = located(text, text.replace("constant(2)", "constant(2.5)"), (), ARGUMENTS[:1])
    assert record.instructions == ["c"]


def test_differences_of_rounding_do_not_mislead() -> None:
    """A sum in another order differs a little before the real fault does much."""
    before = """HloModule r
    ENTRY main {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      a = f32[8] add(p, q)
      b = f32[8] add(a, p)
      ROOT m = f32[8] sine(b)
    }"""
    after = before.replace("add(p, q)", "add(p, p)").replace("add(a, p)", "add(a, q)")
    record, _ = located(before, after.replace("sine", "cosine"))
    assert names(record) == {"m"}


CALLS = """HloModule calls
id { ROOT x = f32[8] parameter(0) }
inner { y = f32[8] parameter(0) ROOT n = f32[8] negate(y) }
outer { z = f32[8] parameter(0) a = f32[8] call(z), to_apply=inner ROOT b = f32[8] call(a), to_apply=inner }
ENTRY main {
  p = f32[8] parameter(0)
  i = f32[8] call(p), to_apply=id
  t = pred[] constant(true)
  c = f32[8] conditional(t, i, i), true_computation=id, false_computation=inner
  ROOT o = f32[8] call(c), to_apply=outer
}
"""


def test_traces_hold_every_execution() -> None:
    module = hlotool.parse(CALLS)
    entry = trace(module, ARGUMENTS[:1])
    computations = {c.name: c for c in module.computations}
    frames = list(frames_of(entry, computations["inner"]))
    root = computations["inner"].root
    values = [value_in(frame, root) for frame in frames]
    np.testing.assert_array_equal(values, [-ARGUMENTS[0], ARGUMENTS[0]])
    assert len(list(frames_of(entry, computations["id"]))) == 2
    assert next(frames_of(entry, computations["outer"])).caller is not None


def test_iterations_are_told_apart() -> None:
    module = hlotool.parse(loop())
    body = next(c for c in module.computations if c.name == "body")
    frames = list(frames_of(trace(module, ARGUMENTS), body))
    counter = next(i for i in body.instructions if i.name == "next")
    assert [int(value_in(frame, counter)) for frame in frames] == [1, 2, 3, 4, 5, 6]
    assert [frame.iteration for frame in frames] == list(range(6))
    state = value_in(frames[4], body.parameters[0])
    assert isinstance(state, tuple)
    assert int(state[0]) == 4


def test_a_trace_that_does_not_fit_is_refused() -> None:
    with pytest.raises(hlotool.errors.Unsupported, match="more than"):
        trace(hlotool.parse(loop()), ARGUMENTS, Budget(samples=20))
