"""Blame on small pairs of programs: wiring, branches, regions, names that survived and names that did not."""

from __future__ import annotations

import numpy as np
import pytest
from support.locating import located

from hlotool.errors import HlotoolError

X = np.linspace(0.5, 2, 12, dtype=np.float32)
Y = np.linspace(-1, 1.5, 12, dtype=np.float32)


PAIR = """HloModule m
ENTRY e {
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  a = f32[12] sine(p)
  b = f32[12] cosine(q)
  ROOT t = (f32[12], f32[12]) tuple(RESULTS)
}"""


def test_exchanged_elements_of_a_tuple_are_its_fault() -> None:
    """Both values are right: what hands them on is not."""
    record = located(PAIR.replace("RESULTS", "a, b"), PAIR.replace("RESULTS", "b, a"), X, Y, output=(0,))
    assert (record.source.instruction, record.finding) == ("t", "wrong")


BRANCHES = """HloModule m
left { l = f32[12] parameter(0) ROOT lr = f32[12] sine(l) }
right { r = f32[12] parameter(0) ROOT rr = f32[12] cosine(r) }
ENTRY e {
  p = f32[12] parameter(0)
  which = s32[] parameter(1)
  ROOT out = f32[12] conditional(which, p, p), branch_computations={ORDER}
}"""


def test_branches_in_the_wrong_order_are_the_fault_of_the_conditional() -> None:
    before, after = (BRANCHES.replace("ORDER", order) for order in ("left, right", "right, left"))
    assert located(before, after, X, np.int32(0)).source.instruction == "out"


def test_a_wrong_selector_is_not_the_fault_of_the_conditional() -> None:
    text = BRANCHES.replace("ORDER", "left, right").replace("which = s32[] parameter(1)", "CHOOSE")
    given = "n = s32[] parameter(1)\n  two = s32[] constant(2)\n  which = s32[] OPCODE(n, two)"
    before, after = (text.replace("CHOOSE", given.replace("OPCODE", o)) for o in ("remainder", "divide"))
    assert located(before, after, X, np.int32(4)).source.instruction == "which"


BEFORE = """HloModule m
ENTRY e {
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  a = f32[12] sine(p)
  b = f32[12] multiply(a, q)
  c = f32[12] add(b, p)
  d = f32[12] exponential(c)
  ROOT r = f32[12] subtract(d, q)
}"""

#: The same under other names, in a fusion, with the first addition as a multiplication and the like.
AFTER = """HloModule m
f {
  x.1 = f32[12] parameter(0)
  x.2 = f32[12] parameter(1)
  x.3 = f32[12] FIRST(x.1)
  x.4 = f32[12] multiply(x.2, x.3)
  x.5 = f32[12] SECOND(x.1, x.4)
  x.6 = f32[12] exponential(x.5)
  x.7 = f32[12] negate(x.2)
  ROOT x.8 = f32[12] add(x.6, x.7)
}
ENTRY e {
  x.9 = f32[12] parameter(0)
  x.10 = f32[12] parameter(1)
  ROOT x.11 = f32[12] fusion(x.9, x.10), kind=kLoop, calls=f
}"""


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [("cosine", "add", "x.3"), ("sine", "maximum", "x.5"), ("tanh", "add", "x.3")],
)
def test_where_no_name_survived_right_values_are_put_in_its_place(
    first: str, second: str, wrong: str
) -> None:
    """Nothing downstream of the fault has the value of anything in the right program."""
    after = AFTER.replace("FIRST", first).replace("SECOND", second)
    record = located(BEFORE, after, X, Y)
    assert record.source.instruction == wrong
    assert record.instructions == [wrong]
    assert record.around == ["fusion %x.11"]
    assert (record.repair, record.repaired) != ("", 0)


def test_programs_that_agree_have_nothing_to_blame() -> None:
    after = AFTER.replace("FIRST", "sine").replace("SECOND", "add")
    with pytest.raises(HlotoolError, match="no instruction is known to differ"):
        located(BEFORE, after, X, Y)


GATHERED = """HloModule m
ENTRY e {
  p = f32[12] parameter(0)
  zero = f32[] constant(0)
  a = f32[12] sine(p)
  ROOT r = f32[2,6] reshape(a)
}"""

#: The sine computed by a loop that is made for it.
LOOPED = """HloModule m
go {
  s = (s32[], f32[12], f32[12]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  times = s32[] constant(TIMES)
  ROOT again = pred[] compare(i, times), direction=LT
}
step {
  s = (s32[], f32[12], f32[12]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[12] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[12] sine(x)
  ROOT t = (s32[], f32[12], f32[12]) tuple(next, x, y)
}
ENTRY e {
  p = f32[12] parameter(0)
  first = s32[] constant(0)
  zero = f32[] constant(0)
  zeros = f32[12] broadcast(zero), dimensions={}
  state = (s32[], f32[12], f32[12]) tuple(first, p, zeros)
  loop = (s32[], f32[12], f32[12]) while(state), condition=go, body=step
  y = f32[12] get-tuple-element(loop), index=2
  ROOT r = f32[2,6] reshape(y)
}"""


def test_a_loop_that_is_never_entered_is_to_blame_not_the_zeros_that_it_hands_on() -> None:
    """Zeros cannot be the sine of an argument: no other constant in their place would be right."""
    record = located(GATHERED, LOOPED.replace("TIMES", "0"), X)
    assert (record.source.instruction, record.instructions, record.finding) == ("loop", ["loop"], "wrong")


CHOSEN = """HloModule m
ENTRY e {
  PREFIXp = f32[12] parameter(0)
  PREFIXq = f32[12] parameter(1)
  PREFIXnone = f32[] constant(nan)
  PREFIXnones = f32[12] broadcast(PREFIXnone), dimensions={}
  PREFIXless = pred[12] compare(PREFIXp, PREFIXq), direction=LT
  PREFIXroot = f32[12] sqrt(PREFIXp)
  PREFIXinner = f32[12] select(PREFIXless, PREFIXq, PREFIXroot)
  PREFIXmore = pred[12] compare(PREFIXq, PREFIXp), direction=GE
  ROOT PREFIXouter = f32[12] select(PREFIXmore, PREFIXnones, PREFIXREAD)
}"""


def test_what_reads_a_constant_in_the_place_of_a_value_is_to_blame() -> None:
    """NaN everywhere cannot be made of arguments: no other constant in its place would be right."""
    before = CHOSEN.replace("READ", "inner").replace("PREFIX", "")
    after = CHOSEN.replace("READ", "nones").replace("PREFIX", "x.")
    assert located(before, after, X, Y).source.instruction == "x.outer"


SUMMED = """HloModule m
combine {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT c = f32[] OPCODE(l, r)
}
ENTRY e {
  PREFIXp = f32[12] parameter(0)
  PREFIXzero = f32[] constant(0)
  PREFIXa = f32[12] MAKE
  ROOT PREFIXsum = f32[] reduce(PREFIXa, PREFIXzero), dimensions={0}, to_apply=combine
}"""


def test_the_references_computation_in_its_place_clears_what_is_before_it() -> None:
    """A reduction that subtracts: adding as the reference does makes it right, so its operand is."""
    before = SUMMED.replace("MAKE", "sine(p)").replace("OPCODE", "add").replace("PREFIX", "")
    after = SUMMED.replace("MAKE", "sine(x.p)").replace("OPCODE", "subtract").replace("PREFIX", "x.")
    record = located(before, after, X)
    assert record.instructions == ["x.sum"]
    assert record.repair.startswith("the reference's")


TWICE = """HloModule m
scaled {
  v = f32[12] parameter(0)
  g = f32[12] tanh(v)
  ROOT s = f32[12] multiply(g, v)
}
ENTRY e {
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  one = f32[12] call(p), to_apply=scaled
  b = f32[12] add(one, q)
  two = f32[12] call(b), to_apply=scaled
  sum = f32[12] add(two, q)
  ROOT out = f32[12] tanh(READ)
}"""


def test_the_values_of_a_function_that_is_called_twice_are_told_apart() -> None:
    """What the second call returns is right, though it is not what the first one returned."""
    before, after = TWICE.replace("READ", "sum"), TWICE.replace("READ", "two")
    assert located(before, after.replace("  sum = f32[12] add(two, q)\n", ""), X, Y).instructions == ["out"]


CARRIED = """HloModule m
body {
  state = (s32[], f32[12], f32[12]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  u = f32[12] get-tuple-element(state), index=1
  w = f32[12] get-tuple-element(state), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  x = f32[12] multiply(u, w)
  ROOT handed = (s32[], f32[12], f32[12]) tuple(m, NEXT, w)
}
condition {
  state = (s32[], f32[12], f32[12]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(n, three), direction=LT
}
ENTRY e {
  p = f32[12] parameter(0)
  zero = s32[] constant(0)
  start = f32[] constant(2)
  starts = f32[12] broadcast(start), dimensions={}
  first = (s32[], f32[12], f32[12]) tuple(zero, starts, p)
  loop = (s32[], f32[12], f32[12]) while(first), condition=condition, body=body
  last = f32[12] get-tuple-element(loop), index=1
  ROOT out = s32[12] convert(last)
}"""


def test_a_value_that_a_loop_loses_is_the_fault_of_its_body() -> None:
    """What arrives is a constant, as in the right program before the loop: it is not wrong, nor its tuple."""
    before, after = (CARRIED.replace("NEXT", value) for value in ("x", "u"))
    record = located(before, after, 8 * X)
    assert (record.instructions, record.around) == (["handed"], ["while %loop, iteration 1"])


def test_a_fusion_that_returns_what_it_was_given_is_to_blame() -> None:
    """A pass made it of an instruction that is gone: neither the tuple nor what the fusion reads is wrong."""
    before = """HloModule m
    ENTRY e {
      p = f32[12] parameter(0)
      a = f32[12] sine(p)
      b = f32[12] exponential(a)
      ROOT t = (f32[12], f32[12]) tuple(a, b)
    }"""
    after = """HloModule m
    f {
      ROOT v = f32[12] parameter(0)
    }
    ENTRY e {
      p = f32[12] parameter(0)
      a = f32[12] sine(p)
      fused = f32[12] fusion(a), kind=kLoop, calls=f
      ROOT t = (f32[12], f32[12]) tuple(a, fused)
    }"""
    assert located(before, after, X, output=(1,)).instructions == ["fused"]


def test_exchanged_operands_of_an_operation_on_few_numbers_are_its_fault() -> None:
    """Five numbers are too few to know a value again; the operands of the same operation are compared."""
    text = """HloModule m
    ENTRY e {
      p = s32[5] parameter(0)
      low = s32[5] negate(p)
      high = s32[5] abs(p)
      NAME.0 = pred[5] compare(p, high), direction=LT
      NAME.1 = s32[5] xor(p, high)
      NAME.2 = s32[5] multiply(p, low)
      NAME.3 = s32[5] select(NAME.0, SIDES)
      ROOT out = s32[5] add(NAME.3, high)
    }"""
    before = text.replace("SIDES", "NAME.1, NAME.2").replace("NAME", "a")
    after = text.replace("SIDES", "NAME.2, NAME.1").replace("NAME", "b")
    assert located(before, after, np.array([3, -1, 4, -1, 5], np.int32)).instructions == ["b.3"]


def test_where_a_bias_is_missing_its_reader_is_named() -> None:
    """The product is right; nothing of the missing sum is left but what reads the product instead."""
    text = """HloModule m
    ENTRY e {
      p = f32[12] parameter(0)
      q = f32[12] parameter(1)
      NAME.1 = f32[12] multiply(p, q)
      NAME.2 = f32[12] add(NAME.1, q)
      ROOT NAME.3 = f32[12] tanh(READ)
    }"""
    before = text.replace("READ", "NAME.2").replace("NAME", "a")
    after = text.replace("      NAME.2 = f32[12] add(NAME.1, q)\n", "").replace("READ", "NAME.1")
    assert located(before, after.replace("NAME", "b"), X, Y).source.instruction == "b.3"


SEARCHED = """HloModule m
body {
  state = (s32[], s32[5], s32[5], s32[5]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  low = s32[5] get-tuple-element(state), index=1
  high = s32[5] get-tuple-element(state), index=2
  p = s32[5] get-tuple-element(state), index=3
  one = s32[] constant(1)
  next = s32[] add(n, one)
  gap = s32[5] subtract(high, low)
  moved = s32[5] multiply(gap, p)
  ROOT handed = (s32[], s32[5], s32[5], s32[5]) tuple(next, moved, high, p)
}
condition {
  state = (s32[], s32[5], s32[5], s32[5]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  times = s32[] constant(3)
  ROOT less = pred[] compare(n, times), direction=LT
}
ENTRY e {
  p = s32[5] parameter(0)
  zero = s32[] constant(0)
  sixteen = s32[] constant(16)
  zeros = s32[5] broadcast(zero), dimensions={}
  many = s32[5] broadcast(sixteen), dimensions={}
  first = (s32[], s32[5], s32[5], s32[5]) tuple(zero, BOUNDS, p)
  loop = (s32[], s32[5], s32[5], s32[5]) while(first), condition=condition, body=body
  ROOT out = s32[5] get-tuple-element(loop), index=1
}"""


def test_exchanged_state_of_a_loop_is_the_fault_of_the_tuple_not_of_the_operation_that_reads_both() -> None:
    """The difference has exchanged operands, but under the names that it has in the right program."""
    before, after = (SEARCHED.replace("BOUNDS", order) for order in ("zeros, many", "many, zeros"))
    assert located(before, after, np.array([3, -1, 4, -1, 5], np.int32)).instructions == ["first"]


RENAMED = """HloModule m
body {
  PREFIXstate = (s32[], s32[12], s32[12]) parameter(0)
  PREFIXn = s32[] get-tuple-element(PREFIXstate), index=0
  PREFIXmade = s32[12] get-tuple-element(PREFIXstate), index=1
  PREFIXread = s32[12] get-tuple-element(PREFIXstate), index=2
  PREFIXone = s32[] constant(1)
  PREFIXnext = s32[] add(PREFIXn, PREFIXone)
  PREFIXx = s32[1] dynamic-slice(PREFIXread, PREFIXn), dynamic_slice_sizes={1}
  PREFIXy = s32[1] negate(PREFIXx)
  PREFIXput = s32[12] dynamic-update-slice(PREFIXmade, PREFIXy, PREFIXn)
  ROOT PREFIXhanded = (s32[], s32[12], s32[12]) tuple(PREFIXnext, PREFIXput, PREFIXread)
}
condition {
  PREFIXstate = (s32[], s32[12], s32[12]) parameter(0)
  PREFIXn = s32[] get-tuple-element(PREFIXstate), index=0
  PREFIXtimes = s32[] constant(12)
  ROOT PREFIXless = pred[] compare(PREFIXn, PREFIXtimes), direction=LT
}
ENTRY e {
  p = s32[12] parameter(0)
  zero = s32[] constant(0)
  zeros = s32[12] broadcast(zero), dimensions={}
  first = (s32[], s32[12], s32[12]) tuple(zero, STATE)
  PREFIXloop = (s32[], s32[12], s32[12]) while(first), condition=condition, body=body
  ROOT PREFIXout = s32[12] get-tuple-element(PREFIXloop), index=1
}"""


def test_where_few_names_survive_those_of_what_hands_a_value_on_still_tell() -> None:
    """The loop reads zeros, a right value that nothing tells from others, in the place of its argument."""
    before = RENAMED.replace("PREFIX", "").replace("STATE", "zeros, p")
    after = RENAMED.replace("PREFIX", "x.").replace("STATE", "p, zeros")
    assert located(before, after, np.arange(1, 13, dtype=np.int32)).instructions == ["first"]


SLICED = """HloModule m
fused {
  d = f32[1,12] parameter(0)
  ROOT s = f32[1,12] sine(d)
}
body {
  state = (s32[], f32[6,12], f32[6,12]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  p = f32[6,12] get-tuple-element(state), index=1
  q = f32[6,12] get-tuple-element(state), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  row = f32[1,12] dynamic-slice(p, INDEX, zero), dynamic_slice_sizes={1,12}
  double = f32[1,12] add(row, row)
  made = f32[1,12] fusion(double), kind=kLoop, calls=fused
  put = f32[6,12] dynamic-update-slice(q, made, n, zero)
  ROOT handed = (s32[], f32[6,12], f32[6,12]) tuple(next, p, put)
}
condition {
  state = (s32[], f32[6,12], f32[6,12]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  times = s32[] constant(6)
  ROOT less = pred[] compare(n, times), direction=LT
}
ENTRY e {
  p = f32[6,12] parameter(0)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  nothing = f32[6,12] broadcast(none), dimensions={}
  first = (s32[], f32[6,12], f32[6,12]) tuple(zero, p, nothing)
  loop = (s32[], f32[6,12], f32[6,12]) while(first), condition=condition, body=body
  ROOT out = f32[6,12] get-tuple-element(loop), index=2
}"""


def test_the_value_of_another_iteration_is_made_by_what_should_make_it_not_handed_on_wrongly() -> None:
    """The right program has the wrong row, too, one iteration later: the fusion reads what it should."""
    record = located(SLICED.replace("INDEX", "n"), SLICED.replace("INDEX", "next"), np.outer(Y[:6], X))
    assert "row" in record.instructions
    assert "made" not in record.instructions


def test_a_loop_that_hands_its_zeros_on_is_at_fault_not_the_tuple_that_they_come_from() -> None:
    """The loop's tuple is on the way of both values, whatever name the zeros have got."""
    before = SLICED.replace("INDEX", "n")
    after = before.replace("tuple(next, p, put)", "tuple(next, p, q)").replace("nothing", "zeros")
    record = located(before, after, np.outer(Y[:6], X))
    assert (record.instructions, record.around) == (["handed"], ["while %loop, iteration 1"])
