"""The way back from a result to its fault: state of loops, parts of tuples, masks, what a pass made anew."""

from __future__ import annotations

import numpy as np
from support.locating import located

X = np.linspace(0.5, 2, 12, dtype=np.float32)
Y = np.linspace(-1, 1.5, 12, dtype=np.float32)

GROWING = """HloModule m
plus {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
body {
  state = (f32[12], f32[12]) parameter(0)
  u = f32[12] get-tuple-element(state), index=0
  v = f32[12] get-tuple-element(state), index=1
  w = f32[12] add(u, v)
  x = f32[12] multiply(v, v)
  ROOT handed = (f32[12], f32[12]) tuple(ORDER)
}
condition {
  state = (f32[12], f32[12]) parameter(0)
  u = f32[12] get-tuple-element(state), index=0
  none = f32[] constant(0)
  sum = f32[] reduce(u, none), dimensions={0}, to_apply=plus
  limit = f32[] constant(1000)
  ROOT less = pred[] compare(sum, limit), direction=LT
}
ENTRY e {
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  first = (f32[12], f32[12]) tuple(p, q)
  loop = (f32[12], f32[12]) while(first), condition=condition, body=body
  ROOT out = f32[12] get-tuple-element(loop), index=0
}"""


def test_what_a_condition_reads_of_the_state_goes_wrong_in_the_first_iteration() -> None:
    """The wrong loop ends at another iteration: its condition reads what went wrong long before."""
    one, other = (GROWING.replace("ORDER", order) for order in ("w, x", "x, w"))
    record = located(one, other, X, Y + 2)
    assert (record.instructions, record.around) == (["handed"], ["while %loop, iteration 1"])


COUNTED = """HloModule m
shifted {
  BODY
}
less { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  p = f32[4] parameter(0)
  n = s32[4] iota(), iota_dimension=0
  sorted = (f32[4], s32[4]) sort(p, n), dimensions={0}, to_apply=less
  k = s32[4] get-tuple-element(sorted), index=1
  counted = s32[4] fusion(k), kind=kLoop, calls=shifted
  ROOT out = s32[4] negate(counted)
}"""


def test_a_part_of_a_tuple_is_right_under_its_name_be_it_of_few_small_numbers() -> None:
    """The fusion returns what the sort gave: the sort is right, the fusion is not."""
    given = "k = s32[4] parameter(0)"
    before = COUNTED.replace("BODY", f"{given}\n  ROOT more = s32[4] add(k, k)")
    after = COUNTED.replace("BODY", f"ROOT {given}")
    record = located(before, after, np.array([3, 1, 4, 2], np.float32))
    assert record.instructions == ["counted"]


MASKED = """HloModule m
largest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
ENTRY e {
  p = f32[3,4] parameter(0)
  r = s32[3,4] iota(), iota_dimension=0
  c = s32[3,4] iota(), iota_dimension=1
  seen = pred[3,4] compare(c, r), direction=LE
  low = f32[] constant(-1e9)
  lows = f32[3,4] broadcast(low), dimensions={}
  score = f32[3,4] OPCODE(p)
  chosen = f32[3,4] select(seen, score, lows)
  top = f32[3] reduce(chosen, low), dimensions={1}, to_apply=largest
  REST
}"""


def test_a_value_behind_a_mask_of_huge_numbers_is_followed() -> None:
    """Beside a billion all else looks like rounding, and the pass that took the reshapes away did no harm."""
    wide = "wide = f32[3,1] reshape(top)\n  flat = f32[3] reshape(wide)\n"
    before = MASKED.replace("OPCODE", "cosine").replace("REST", f"{wide}  ROOT out = f32[3] negate(flat)")
    after = MASKED.replace("OPCODE", "sine").replace("REST", "ROOT out = f32[3] negate(top)")
    assert located(before, after, np.outer(X[:3], Y[:4])).instructions == ["score"]


PICKED = """HloModule m
ENTRY e {
  p = f32[12,12] parameter(0)
  q = s32[1] parameter(1)
  r = s32[1] parameter(2)
  both = s32[2] concatenate(ORDER), dimensions={0}
  head = s32[1] slice(both), slice={[0:1]}
  tail = s32[1] slice(both), slice={[1:2]}
  i = s32[] reshape(head)
  j = s32[] reshape(tail)
  ROOT out = f32[3,3] dynamic-slice(p, i, j), dynamic_slice_sizes={3,3}
}"""


def test_operands_of_their_own_names_that_changed_places_were_not_read_by_mistake() -> None:
    before, after = (PICKED.replace("ORDER", order) for order in ("q, r", "r, q"))
    record = located(before, after, np.outer(X, Y), np.array([2], np.int32), np.array([5], np.int32))
    assert record.instructions == ["both"]


BRANCHES = """HloModule m
left {
  l = (f32[12], f32[12]) parameter(0)
  a = f32[12] get-tuple-element(l), index=0
  ROOT lr = f32[12] sine(a)
}
right {
  r = (f32[12], f32[12]) parameter(0)
  b = f32[12] get-tuple-element(r), index=0
  ROOT rr = f32[12] cosine(b)
}
ENTRY e {
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  which = s32[] parameter(2)
  one = (f32[12], f32[12]) tuple(p, q)
  two = (f32[12], f32[12]) tuple(q, p)
  ROOT out = f32[12] conditional(which, one, two), branch_computations={ORDER}
}"""


def test_exchanged_branches_of_different_arguments_are_the_fault_of_the_conditional() -> None:
    """Neither branch gives the right value here: each gets the argument of the other one."""
    before, after = (BRANCHES.replace("ORDER", order) for order in ("left, right", "right, left"))
    assert located(before, after, X, Y, np.int32(0)).instructions == ["out"]


CHOSEN = """HloModule m
ENTRY e {
  p = f32[4,12] parameter(0)
  found = (f32[4,3], s32[4,3]) topk(p), k=3, largest=true
  ROOT out = s32[4,3] get-tuple-element(found), index=1
}"""

SORTED = """HloModule m
more { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT m = pred[] compare(a, b), direction=GT }
ENTRY e {
  p = f32[4,12] parameter(0)
  numbers = s32[4,12] iota(), iota_dimension=1
  sorted = (f32[4,12], s32[4,12]) sort(p, numbers), dimensions={1}, to_apply=more
  values = f32[4,12] get-tuple-element(sorted), index=0
  both = (f32[4,12], s32[4,12]) tuple(values, numbers)
  k = s32[4,12] get-tuple-element(both), index=1
  ROOT first = s32[4,3] slice(k), slice={[0:4], [0:3]}
}"""


def test_a_tuple_that_a_pass_made_is_one_of_its_suspects() -> None:
    """The numbers are handed on as they were before the sort, which nothing in the right program tells."""
    x = np.outer(X[:4], Y) * np.array([[1], [-1], [2], [-3]], np.float32)
    assert located(CHOSEN, SORTED, x).instructions == ["numbers", "both", "first"]
