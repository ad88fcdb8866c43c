"""What is cut out around a spot: the loop that a pass has to see, its producers, and no trace's leftovers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.bisection import Here, bisected, written_dump

import hlotool
from hlotool.blame.bisection.records import PairRecord
from hlotool.judge.locate.spots import _with_producers

#: A loop that swaps two values, from which a pass takes the exchange: `(a, b)` in place of `(b, a)`.
LOOP = """HloModule swap
body {
  s = (s32[], f32[16], f32[16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[16] get-tuple-element(s), index=1
  b = f32[16] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[16], f32[16]) tuple(next, b, a)
}
condition {
  c = (s32[], f32[16], f32[16]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(k, limit), direction=LT
}
ENTRY main {
  p = f32[16] parameter(0)
  q = f32[16] parameter(1)
  far = f32[16] sine(p)
  x = f32[16] tanh(far)
  y = f32[16] cosine(q)
  zero = s32[] constant(0)
  start = (s32[], f32[16], f32[16]) tuple(zero, x, y)
  loop = (s32[], f32[16], f32[16]) while(start), condition=condition, body=body
  first = f32[16] get-tuple-element(loop), index=1
  ROOT result = f32[16] negate(first)
}
"""

#: A chain in which a pass takes a maximum for a minimum.
CHAIN = """HloModule chain
ENTRY main {
  p = f32[16] parameter(0)
  a = f32[16] sine(p)
  b = f32[16] cosine(a)
  c = f32[16] tanh(b)
  zero = f32[] constant(0.25)
  many = f32[16] broadcast(zero), dimensions={}
  d = f32[16] minimum(c, many)
  e = f32[16] exponential(d)
  ROOT f = f32[16] negate(e)
}
"""


def around(before: str, after: str, folder: Path) -> PairRecord:
    [culprit] = bisected(written_dump(folder, before, after), Here()).culprits
    assert culprit.spot is not None
    assert culprit.spot.around is not None
    return culprit.spot.around


def entry_opcodes(text: str) -> list[str]:
    return [i.opcode for i in hlotool.parse(text).entry.instructions if i.opcode != "parameter"]


def test_a_loop_stays_a_loop(tmp_path: Path) -> None:
    pair = around(LOOP, LOOP.replace("tuple(next, b, a)", "tuple(next, a, b)"), tmp_path)
    for text in (pair.before, pair.after):
        assert "while(" in text
        assert not re.search(r"ROOT \S+ = \S+ parameter", text)
    # One level of producers comes along, what is before it does not.
    assert {"tanh", "cosine"} <= set(entry_opcodes(pair.before))
    assert "sine" not in entry_opcodes(pair.before)


def test_one_level_of_producers_comes_along(tmp_path: Path) -> None:
    pair = around(CHAIN, CHAIN.replace("minimum(", "maximum("), tmp_path)
    assert sorted(entry_opcodes(pair.before)) == ["broadcast", "constant", "minimum", "tanh"]
    assert sorted(entry_opcodes(pair.after)) == ["broadcast", "constant", "maximum", "tanh"]


def test_both_programs_take_the_same_arguments(tmp_path: Path) -> None:
    """Also where the wrong program reads what the right one has no use for."""
    pair = around(CHAIN, CHAIN.replace("minimum(c, many)", "minimum(c, p)"), tmp_path)
    shapes = [
        [str(p.shape) for p in hlotool.parse(text).entry.parameters] for text in (pair.before, pair.after)
    ]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == 2


@pytest.mark.parametrize("text", [LOOP, CHAIN])
def test_the_programs_of_these_tests_are_valid(text: str) -> None:
    hlotool.parse(text)


def test_the_order_is_that_of_the_program() -> None:
    """Not that of places in memory: a search that goes on in another process finds the same text."""
    lines = [f"  a{n} = f32[16] sine({f'a{n - 1}' if n else 'p'})" for n in range(40)]
    text = "\n".join(["HloModule deep", "ENTRY main {", "  p = f32[16] parameter(0)", *lines])
    module = hlotool.parse(f"{text}\n  ROOT r = f32[16] add(a39, a1)\n}}\n")
    named = {i.name: i for i in module.instructions()}
    found = _with_producers(module.entry.root, {named["a2"]})
    assert [i.name for i in found] == [*(f"a{n}" for n in range(2, 40)), "r", "a1"]
