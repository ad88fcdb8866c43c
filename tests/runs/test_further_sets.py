"""What agrees on the plain inputs is run on further sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.replaying import replayed_pair

from hlotool.inputs.captured import load_inputs
from hlotool.interface.report.module import module_details
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.records import ModuleRecord

RIGHT = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
}"""

#: Starts beyond the end go round, where XLA clamps them: right on every index in range.
WRAPS = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  n = s32[] constant(6)
  j = s32[] add(i, n)
  k = s32[] remainder(j, n)
  ROOT y = f32[3] dynamic-slice(x, k), dynamic_slice_sizes={3}
}"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def against_right(folder: Path, tested: str, **options: object) -> ModuleRecord:
    return replayed_pair(folder, RIGHT, tested, **{"budget": "60", **options})


def test_a_fault_that_only_a_further_set_shows(tmp_path: Path) -> None:
    row = against_right(tmp_path / "dump", WRAPS)
    assert row.verdict is Verdict.WRONG
    assert row.inputs is not None
    assert "indices out of range" in row.inputs.description
    assert row.inputs.sets[-1].verdict is Verdict.WRONG
    assert all(one.verdict is Verdict.IDENTICAL for one in row.inputs.sets[:-1])
    values = load_inputs(row.inputs.file, parse_module(RIGHT))
    assert not 0 <= int(values[1]) <= 5
    again = against_right(tmp_path / "dump", WRAPS, inputs=row.inputs.file)
    assert again.verdict is Verdict.WRONG


def test_without_further_sets_it_agrees(tmp_path: Path) -> None:
    row = against_right(tmp_path / "dump", WRAPS, further_sets=False)
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.sets == []


def test_what_is_right_is_right_on_all_sets(tmp_path: Path) -> None:
    row = against_right(tmp_path / "dump", RIGHT, thorough=True, budget=None)
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.description == "generated with seed 0"
    assert len(row.inputs.sets) > 10


def test_no_time_no_sets(tmp_path: Path) -> None:
    row = against_right(tmp_path / "dump", RIGHT, budget="0")
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.sets == []


def test_tolerances_of_the_user_suit_the_plain_values(tmp_path: Path) -> None:
    row = against_right(tmp_path / "dump", WRAPS, rtol=1e-3)
    assert row.inputs is not None
    assert row.inputs.sets == []


EPSILON = """HloModule jit_f
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[6] parameter(0)
  q = f32[6] multiply(x, x)
  zero = f32[] constant(0)
  s = f32[] reduce(q, zero), dimensions={0}, to_apply=add
  tiny = f32[] constant(3e-06)
  t = f32[] add(s, tiny)
  r = f32[] rsqrt(t)
  b = f32[6] broadcast(r), dimensions={}
  ROOT y = f32[6] multiply(x, b)
}"""


#: The same product, rounded otherwise.
IN_THREE_STEPS = """three = f32[] constant(3)
  threes = f32[6] broadcast(three), dimensions={}
  more = f32[6] multiply(x, threes)
  less = f32[6] divide(b, threes)
  ROOT y = f32[6] multiply(more, less)"""


def test_another_function_gets_further_sets_as_well(tmp_path: Path) -> None:
    """No value shows the lost epsilon but zeros, of which it makes NaN; f64 does not, either."""
    tiny, lost = (EPSILON.replace("3e-06", value) for value in ("1e-20", "0"))
    lost = lost.replace("ROOT y = f32[6] multiply(x, b)", IN_THREE_STEPS)
    assert replayed_pair(tmp_path / "plain", tiny, lost, further_sets=False).verdict is Verdict.DIFFERS
    row = replayed_pair(tmp_path / "dump", tiny, lost)
    assert row.verdict is Verdict.WRONG
    assert row.inputs is not None
    assert row.inputs.sets


TWO = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  i = s32[] parameter(2)
  m = f32[8] maximum(x, y)
  s = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
  d = f32[8] subtract(x, y)
  ROOT t = (f32[8], f32[3], f32[8]) tuple(m, s, d)
}"""
#: Loses the NaN of one operand, and what is beyond the end.
TWO_FAULTS = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  i = s32[] parameter(2)
  p = pred[8] compare(x, y), direction=GT
  m = f32[8] select(p, x, y)
  n = s32[] constant(6)
  j = s32[] add(i, n)
  k = s32[] remainder(j, n)
  s = f32[3] dynamic-slice(x, k), dynamic_slice_sizes={3}
  d = f32[8] subtract(x, y)
  ROOT t = (f32[8], f32[3], f32[8]) tuple(m, s, d)
}"""


def test_the_other_outputs_go_on(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path / "dump", TWO, TWO_FAULTS)
    assert row.verdict is Verdict.WRONG
    assert [leaf.verdict for leaf in row.leaves] == [Verdict.IDENTICAL, Verdict.WRONG, Verdict.IDENTICAL]
    assert row.inputs is not None
    first, second = [one for one in row.inputs.sets if one.wrong]
    assert (first.wrong, second.wrong) == ([[1]], [[0]])
    [note] = [note for note in row.notes if note.startswith("another cause")]
    assert "out[0] is wrong" in note
    again = replayed_pair(tmp_path / "dump", TWO, TWO_FAULTS, inputs=note.rpartition(" ")[2])
    assert again.leaves[0].verdict is Verdict.WRONG
    text = reported(row)
    assert "1 other output agrees bit for bit, also on" in text
    assert "extra input sets" in text


def reported(row: ModuleRecord) -> str:
    console = Console(width=200, record=True)
    console.print(module_details(row))
    return console.export_text()


LOOP = """HloModule jit_f
body {
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] negate(x)
  ROOT t = (s32[], s32[], f32[4]) tuple(j, n, y)
}
cond {
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY main {
  n = s32[] parameter(0)
  x = f32[4] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], s32[], f32[4]) tuple(zero, n, x)
  w = (s32[], s32[], f32[4]) while(s), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=2
}"""


def test_a_loop_that_ends_on_one_side_only(tmp_path: Path) -> None:
    """It looks for its limit, which is negative in one of the sets."""
    row = replayed_pair(tmp_path / "dump", LOOP, LOOP.replace("LT", "NE"))
    assert row.verdict is Verdict.WRONG
    assert row.error is not None
    assert "cpu_after_optimizations does not end where before_optimizations does" in row.error.message
    assert row.inputs is not None
    values = load_inputs(row.inputs.file, parse_module(LOOP))
    assert int(values[0]) < 0


SORT = """HloModule jit_f
less { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY main {
  k = s32[3] parameter(0)
  v = f32[3] parameter(1)
  ROOT s = (s32[3], f32[3]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
}"""


def test_a_promise_that_only_a_further_set_breaks(tmp_path: Path) -> None:
    """The plain keys are all different, and two sorts that need not agree on ties do."""
    row = replayed_pair(tmp_path / "dump", SORT, SORT.replace(" is_stable=true,", ""))
    assert row.verdict is Verdict.WRONG
    assert "sort %s was stable and is not" in row.reason
    assert row.inputs is not None
    assert len(set(np.asarray(load_inputs(row.inputs.file, parse_module(SORT))[0]).tolist())) < 3


def test_a_run_that_takes_too_long_is_one_set_of_many(tmp_path: Path) -> None:
    """A root that is never found where numbers are negative: the other sets are run all the same."""
    endless = LOOP.replace(
        "ROOT p = pred[] compare(i, n), direction=LT",
        """x = f32[4] get-tuple-element(s), index=2
  c = f32[1] slice(x), slice={[0:1]}
  h = f32[] reshape(c)
  l = f32[] constant(-1000)
  a = pred[] compare(i, n), direction=LT
  b = pred[] compare(h, l), direction=LT
  ROOT p = pred[] or(a, b)""",
    ).replace("negate(x)", "add(x, x)")
    row = replayed_pair(tmp_path / "dump", endless, endless)
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    verdicts = [one.verdict for one in row.inputs.sets]
    assert Verdict.TIMEOUT in verdicts
    assert verdicts.count(Verdict.IDENTICAL) > 10


def test_what_only_the_tested_program_decides_is_counted(tmp_path: Path) -> None:
    row = replayed_pair(
        tmp_path / "dump", TWO, TWO.replace("maximum(x, y)", "minimum(x, y)"), further_sets=False
    )
    assert row.coverage_tested is not None
    assert (row.coverage_tested.decisions, row.coverage_tested.covered) == (1, 1)
    same = replayed_pair(tmp_path / "same", TWO, TWO)
    assert same.coverage_tested is None


def test_what_amplifies_rounding_is_asked_what_it_means(tmp_path: Path) -> None:
    """Beyond 127 rounds a counter of 8 bits is wrong, and by then the numbers say nothing any more."""
    counted = """c = f32[] convert(i)
  d = f32[4] broadcast(c), dimensions={}
  f = f32[4] cosine(x)
  g = f32[4] multiply(x, f)
  y = f32[4] add(g, d)"""
    right = LOOP.replace("y = f32[4] negate(x)", counted)
    narrow = right.replace("convert(i)", "convert(k)").replace(
        "c = f32[]", "k = s8[] convert(i)\n  c = f32[]"
    )
    row = replayed_pair(tmp_path / "dump", right, narrow)
    assert row.verdict is Verdict.DIFFERS
    assert row.inputs is not None
    assert "130 in %n" in row.inputs.description
    assert row.divergence is not None
    assert row.divergence.source.opcode == "convert"
