"""Calls, branches, loops; and that loops update their buffers in place."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from support.budget import processor_budget
from support.differential import check, leaves, parse, run
from support.xla import oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import EndlessLoop
from hlotool.ir.module import Instruction

FACTORIAL = """HloModule factorial
condition {
  state = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  ROOT more = pred[] compare(i, one), direction=GT
}
body {
  state = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  less = s32[] subtract(i, one)
  product = s32[] get-tuple-element(state), index=1
  next = s32[] multiply(product, i)
  ROOT result = (s32[], s32[]) tuple(less, next)
}
ENTRY e {
  n = s32[] parameter(0)
  one = s32[] constant(1)
  init = (s32[], s32[]) tuple(n, one)
  ROOT loop = (s32[], s32[]) while(init), condition=condition, body=body
}"""


@pytest.mark.xla
@pytest.mark.parametrize("n", [0, 1, 5])
def test_while(n: int) -> None:
    check(FACTORIAL, [np.int32(n)])


def test_probe_sees_every_iteration() -> None:
    seen: list[tuple[str, Any]] = []

    def probe(instruction: Instruction, value: Any) -> None:
        seen.append((instruction.name, value))

    NumpyBackend().compile(parse(FACTORIAL)).run([np.int32(4)], probe)
    assert [int(v) for name, v in seen if name == "next"] == [4, 12, 24]


#: A loop that writes row i; its body is the computation `update`, reached in different ways.
WRITES = """HloModule writes
update {{
  x = f32[{rows},{columns}] parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  value = f32[] convert(i)
  row = f32[1,{columns}] broadcast(value), dimensions={{}}
  ROOT new = f32[{rows},{columns}] dynamic-update-slice(x, row, i, zero)
}}
condition {{
  state = (f32[{rows},{columns}], s32[]) parameter(0)
  i = s32[] get-tuple-element(state), index=1
  end = s32[] constant({iterations})
  ROOT more = pred[] compare(i, end), direction=LT
}}
body {{
  state = (f32[{rows},{columns}], s32[]) parameter(0)
  x = f32[{rows},{columns}] get-tuple-element(state), index=0
  zero = s32[] constant(0)
  first = f32[1,1] dynamic-slice(x, zero, zero), dynamic_slice_sizes={{1,1}}
  i = s32[] get-tuple-element(state), index=1
  {step}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT result = (f32[{rows},{columns}], s32[]) tuple(new, next)
}}
ENTRY e {{
  zero = f32[] constant(0)
  x = f32[{rows},{columns}] broadcast(zero), dimensions={{}}
  start = s32[] constant(0)
  init = (f32[{rows},{columns}], s32[]) tuple(x, start)
  loop = (f32[{rows},{columns}], s32[]) while(init), condition=condition, body=body
  ROOT written = f32[{rows},{columns}] get-tuple-element(loop), index=0
}}"""

STEPS = {
    "call": "new = {shape} call(x, i), to_apply=update",
    "fusion": "new = {shape} fusion(x, i), kind=kLoop, calls=update",
    "bitcasts": "flat = f32[{size}] bitcast(x)\n  back = {shape} bitcast(flat)\n"
    "  new = {shape} fusion(back, i), kind=kLoop, calls=update",
    "plain": "zeros = s32[] constant(0)\n  value = f32[] convert(i)\n"
    "  row = f32[1,{columns}] broadcast(value), dimensions={{}}\n"
    "  new = {shape} dynamic-update-slice(x, row, i, zeros)",
    "barrier": "both = ({shape}, s32[]) tuple(x, i)\n  held = ({shape}, s32[]) opt-barrier(both)\n"
    "  y = {shape} get-tuple-element(held), index=0\n  new = {shape} call(y, i), to_apply=update",
}


def writes(step: str, rows: int, columns: int, iterations: int) -> str:
    shape = f"f32[{rows},{columns}]"
    body = STEPS[step].format(shape=shape, columns=columns, size=rows * columns)
    return WRITES.format(rows=rows, columns=columns, iterations=iterations, step=body)


@pytest.mark.parametrize("step", STEPS)
def test_loops_update_their_buffers_in_place(step: str) -> None:
    """The first iteration copies the initial value, no other one allocates: 100 MB exist twice at no time."""
    rows, columns, iterations = 25, 1 << 20, 24
    executable = NumpyBackend().compile(parse(writes(step, rows, columns, iterations)))
    tracemalloc.start()
    result = leaves(executable.run([]))[0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result[:, 0].tolist() == [*range(iterations), 0]
    assert peak < 1.5 * result.nbytes


def test_ten_thousand_updates_of_a_large_buffer() -> None:
    """Time by iterations, not by bytes: copying 100 MB each time would take minutes."""
    rows, columns = 10000, 2560
    executable = NumpyBackend().compile(parse(writes("plain", rows, columns, rows)))
    with processor_budget(20):
        result = leaves(executable.run([]))[0]
    assert result.nbytes > 100e6
    assert np.array_equal(result[:, -1], np.arange(rows))


@pytest.mark.xla
@pytest.mark.parametrize("step", ["call", "plain"])
def test_loop_results(step: str) -> None:
    check(writes(step, 5, 3, 4), [])


def test_loops_leave_arguments_and_constants_alone() -> None:
    text = """HloModule m
condition {
  x = s32[3] parameter(0)
  first = s32[1] slice(x), slice={[0:1]}
  scalar = s32[] reshape(first)
  ten = s32[] constant(10)
  ROOT more = pred[] compare(scalar, ten), direction=LT
}
body {
  x = s32[3] parameter(0)
  twenty = s32[1] constant({20})
  zero = s32[] constant(0)
  ROOT y = s32[3] dynamic-update-slice(x, twenty, zero)
}
ENTRY e {
  x = s32[3] parameter(0)
  c = s32[3] constant({1, 2, 3})
  first = s32[3] while(x), condition=condition, body=body
  second = s32[3] while(c), condition=condition, body=body
  ROOT result = (s32[3], s32[3]) tuple(first, second)
}"""
    executable = NumpyBackend().compile(parse(text))
    x = np.array([4, 5, 6], np.int32)
    for _ in range(2):
        first, second = leaves(executable.run([x]))
        assert first.tolist() == [20, 5, 6]
        assert second.tolist() == [20, 2, 3]
    assert x.tolist() == [4, 5, 6]


CONDITIONAL = """HloModule m
double {{
  x = f32[] parameter(0)
  ROOT y = f32[] add(x, x)
}}
minus {{
  x = f32[] parameter(0)
  ROOT y = f32[] negate(x)
}}
square {{
  x = f32[] parameter(0)
  ROOT y = f32[] multiply(x, x)
}}
ENTRY e {{
  which = {selector}[] parameter(0)
  x = f32[] parameter(1)
  {conditional}
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 100])
def test_conditional_by_index(index: int) -> None:
    """An index outside the branches takes the last one. XLA: operation_semantics.md#conditional."""
    conditional = "ROOT r = f32[] conditional(which, x, x, x), branch_computations={double, minus, square}"
    text = CONDITIONAL.format(selector="s32", conditional=conditional)
    (result,) = check(text, [np.int32(index), np.float32(3)])
    assert result == {0: 6, 1: -3}.get(index, 9)


@pytest.mark.xla
@pytest.mark.parametrize("predicate", [True, False])
def test_conditional_by_predicate(predicate: bool) -> None:
    conditional = "ROOT r = f32[] conditional(which, x, x), true_computation=double, false_computation=minus"
    text = CONDITIONAL.format(selector="pred", conditional=conditional)
    (result,) = check(text, [np.bool_(predicate), np.float32(3)])
    assert result == (6 if predicate else -3)


def test_asynchronous_call() -> None:
    """XLA: docs/async_ops.md."""
    text = """HloModule m
double {
  x = f32[2] parameter(0)
  ROOT y = f32[2] add(x, x)
}
ENTRY e {
  x = f32[2] parameter(0)
  start = ((f32[2]), f32[2], s32[]) async-start(x), calls=double
  update = ((f32[2]), f32[2], s32[]) async-update(start)
  ROOT done = f32[2] async-done(update)
}"""
    assert run(text, [np.array([1, 2], np.float32)])[0].tolist() == [2, 4]


def test_annotations_are_identities() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  y = f32[2] add-dependency(x, t)
  pair = (f32[2], f32[2]) tuple(y, x)
  held = (f32[2], f32[2]) opt-barrier(pair)
  ROOT z = f32[2] get-tuple-element(held), index=0
}"""
    assert run(text, [np.array([1, 2], np.float32)])[0].tolist() == [1, 2]


def endless(update: str, condition: str = "compare(i, five), direction=LT") -> str:
    return f"""
    condition {{
      state = (s32[], f32[3]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      x = f32[3] get-tuple-element(state), index=1
      five = s32[] constant(5)
      ROOT more = pred[] {condition}
    }}
    body {{
      state = (s32[], f32[3]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      x = f32[3] get-tuple-element(state), index=1
      one = s32[] constant(1)
      {update}
    }}
    ENTRY e {{
      i = s32[] parameter(0)
      x = f32[3] parameter(1)
      init = (s32[], f32[3]) tuple(i, x)
      ROOT loop = (s32[], f32[3]) while(init), condition=condition, body=body
    }}"""


NOTHING_CHANGES = endless("ROOT next = (s32[], f32[3]) tuple(i, x)")
STATE = [np.int32(0), np.float32([1, np.nan, -0.0])]


def test_an_endless_loop_is_reported_at_once() -> None:
    with pytest.raises(EndlessLoop, match=r"endless loop: while %loop .* no longer changes"):
        run(NOTHING_CHANGES, STATE)


@pytest.mark.xla
def test_xla_removes_an_endless_loop() -> None:
    number, array = oracle().run(NOTHING_CHANGES, STATE)
    assert number == 0
    np.testing.assert_array_equal(array, STATE[1])


def test_a_loop_that_counts_only_is_not_endless() -> None:
    counts = endless("j = s32[] add(i, one)\nROOT next = (s32[], f32[3]) tuple(j, x)")
    assert int(run(counts, [np.int32(-5000), STATE[1]])[0]) == 5


def test_a_loop_that_waits_for_a_random_number_is_not_endless() -> None:
    drawn = (
        "zero = s32[] constant(0)\nhigh = s32[] constant(4000)\n"
        "r = s32[] rng(zero, high), distribution=rng_uniform\nlast = s32[] constant(3999)\n"
        "found = pred[] compare(r, last), direction=EQ\nj = s32[] select(found, last, i)\n"
        "ROOT next = (s32[], f32[3]) tuple(j, x)"
    )
    assert int(run(endless(drawn), STATE)[0]) == 3999
