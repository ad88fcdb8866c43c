"""What `hlotool diff` says of two programs: changed, moved, reordered, only here or there."""

from __future__ import annotations

from hlotool.facts.alignment.align import align
from hlotool.facts.alignment.difference import Difference, Line, Status, count_by_opcode, difference
from hlotool.parser.reader import parse_module

BASE = """HloModule m
ENTRY e {
  x = f32[8,4] parameter(0)
  t = f32[4,8] transpose(x), dimensions={1,0}, metadata={op_name="jit(f)/transpose"}
  n = f32[4,8] negate(t), metadata={op_name="jit(f)/neg"}
  ROOT a = f32[4,8] add(n, t), metadata={op_name="jit(f)/add"}
}"""


def compared(left: str, right: str) -> Difference:
    return difference(align(parse_module(left), parse_module(right)))


def differing(found: Difference) -> list[Line]:
    return [line for line in found.lines if line.status is not Status.SAME]


def test_names_and_metadata_are_no_difference() -> None:
    renamed = BASE.replace("n = ", "neg.7 = ").replace("add(n,", "add(neg.7,").replace("jit(f)", "jit(g)")
    found = compared(BASE, renamed)
    assert found.is_same
    assert [line.right.name for line in found.lines if line.renamed and line.right] == ["neg.7"]


def test_operands_of_a_sum_have_an_order_that_is_shown() -> None:
    [line] = differing(compared(BASE, BASE.replace("add(n, t)", "add(t, n)")))
    assert [change.what for change in line.changes] == ["operand 0", "operand 1"]


def test_a_layout_that_only_one_side_has_is_no_difference() -> None:
    assert compared(BASE, BASE.replace("[4,8] ", "[4,8]{1,0} ")).is_same
    laid_out = BASE.replace("[4,8] ", "[4,8]{1,0} ")
    found = compared(laid_out, laid_out.replace("n = f32[4,8]{1,0}", "n = f32[4,8]{0,1}"))
    [line] = differing(found)
    assert [(change.what, change.left) for change in line.changes] == [("layout", "f32[4,8]{1,0}")]


COPIED = BASE.replace("ROOT a = f32[4,8] add(n, t)", "c = f32[4,8] copy(n)\n  ROOT a = f32[4,8] add(c, t)")
THROUGH_ABS = BASE.replace("  n = ", "  u = f32[4,8] abs(t)\n  n = ").replace("negate(t)", "negate(u)")


def test_an_inserted_instruction_changes_its_reader_only() -> None:
    found = compared(BASE, COPIED)
    only, changed = differing(found)
    assert (only.status, changed.status) == (Status.ONLY_RIGHT, Status.CHANGED)
    assert changed.changes[0].what == "operand 0"
    assert count_by_opcode(list(found.lines))["copy"] == {Status.ONLY_RIGHT: 1}


def test_a_removed_instruction_stands_where_it_was() -> None:
    statuses = [line.status for line in compared(THROUGH_ABS, BASE).lines]
    assert statuses == [Status.SAME, Status.SAME, Status.ONLY_LEFT, Status.CHANGED, Status.SAME]


def test_what_a_fusion_takes_in_has_moved() -> None:
    fused = """HloModule m
f {
  p = f32[8,4] parameter(0)
  t = f32[4,8] transpose(p), dimensions={1,0}, metadata={op_name="jit(f)/transpose"}
  ROOT n = f32[4,8] negate(t), metadata={op_name="jit(f)/neg"}
}
ENTRY e {
  x = f32[8,4] parameter(0)
  g = f32[4,8] fusion(x), kind=kLoop, calls=f
  t2 = f32[4,8] transpose(x), dimensions={1,0}, metadata={op_name="jit(f)/transpose"}
  ROOT a = f32[4,8] add(g, t2), metadata={op_name="jit(f)/add"}
}"""
    found = compared(BASE, fused)
    moved = [line for line in found.lines if line.status is Status.MOVED]
    assert [line.right.name for line in moved if line.right] == ["t", "n"]
    assert not found.is_same
    only = {line.right.opcode for line in found.lines if line.status is Status.ONLY_RIGHT and line.right}
    assert only == {"parameter", "transpose", "fusion"}


def test_a_schedule_is_an_order() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] abs(x)
  c = f32[4] sine(x)
  ROOT t = (f32[4], f32[4], f32[4]) tuple(a, b, c)
}"""
    lines = text.splitlines()
    lines[3:6] = [lines[4], lines[5], lines[3]]
    later = "\n".join(lines)
    found = compared(text, later)
    assert [line.right.name for line in found.lines if line.reordered and line.right] == ["a"]
    assert not found.is_same
    loose = [t.replace(", is_scheduled=true", "") for t in (text, later)]
    assert compared(*loose).is_same


def test_the_header_counts() -> None:
    found = compared(BASE, BASE.replace("HloModule m", "HloModule m, num_partitions=4"))
    assert [(c.what, c.left, c.right) for c in found.header] == [("num_partitions", "", "4")]
    assert not found.is_same


def test_header_attributes_are_compared_as_they_are_printed() -> None:
    spread = "HloModule m, allow_spmd_sharding_propagation_to_output={true,false}"
    [change] = compared(BASE, BASE.replace("HloModule m", spread)).header
    assert (change.left, change.right) == ("", "{true,false}")
    assert compared(BASE, BASE.replace("HloModule m", "HloModule m, replica_count=1")).is_same
