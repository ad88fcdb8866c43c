"""Programs for several devices become small: what exchanges values keeps the devices that it needs."""

from __future__ import annotations

import numpy as np
import pytest
from support.reduction import holds, reduced, run

import hlotool
from hlotool.blame.reduction.case import Case, observe
from hlotool.blame.reduction.reducer import Reduction
from hlotool.blame.reduction.simpler import on_devices
from hlotool.ir.devices import expand_groups, source_target_ids
from hlotool.ir.module import Instruction, Module

TEXT = """HloModule step, num_partitions=8
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
body {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[4] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  shifted = f32[4] collective-permute(v), channel_id=2,
    source_target_pairs={{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}
  turned = f32[4] cosine(shifted)
  ROOT out = (s32[], f32[4]) tuple(next, turned)
}
condition {
  state.1 = (s32[], f32[4]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[8]<=[8]}
  y = f32[4] parameter(1), sharding={devices=[8]<=[8]}
  e = f32[4] exponential(x)
  m = f32[4] multiply(e, y)
  r = f32[4] all-reduce(m), channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true, to_apply=sum
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, r)
  loop = (s32[], f32[4]) while(start), condition=condition, body=body
  w = f32[4] get-tuple-element(loop), index=1
  id = u32[] partition-id()
  own = f32[] convert(id)
  all = f32[4] broadcast(own), dimensions={}
  ROOT t = f32[4] add(w, all)
}
"""

ROWS = tuple((np.full(4, d, np.float32), np.arange(4, dtype=np.float32) + d) for d in range(8))


def shrunk(*opcodes: str) -> tuple[Module, Reduction]:
    found, _ = reduced(hlotool.parse(TEXT), holds(*opcodes), ROWS)
    return hlotool.parse(found.case.text), found


def only(module: Module, opcode: str) -> Instruction:
    [instruction] = [i for i in module.instructions() if i.opcode == opcode]
    return instruction


def test_an_all_reduce_keeps_one_device() -> None:
    """The smallest program with the opcode: a group of one, which is legal HLO."""
    module, found = shrunk("all-reduce")
    assert expand_groups(only(module, "all-reduce").replica_groups) == ((0,),)
    assert (module.num_partitions, found.case.size) == (1, 1)
    run(module, found.case.arguments)


def test_a_program_that_must_exchange_keeps_two_devices() -> None:
    """Bad is what adds values of two devices."""

    def exchanges(module: Module, _: object) -> str:
        groups = [expand_groups(i.replica_groups) for i in module.instructions() if i.opcode == "all-reduce"]
        return "bad" if any(len(group) > 1 for own in groups for group in own) else ""

    found, _ = reduced(hlotool.parse(TEXT), exchanges, ROWS)
    module = hlotool.parse(found.case.text)
    assert expand_groups(only(module, "all-reduce").replica_groups) == ((0, 1),)
    assert (module.num_partitions, found.case.copies, found.case.size) == (2, 2, 1)
    assert len(run(module, found.case.arguments)) == 2


def test_a_loop_that_exchanges_becomes_one_iteration() -> None:
    module, found = shrunk("collective-permute")
    assert "while" not in {i.opcode for i in module.instructions()}
    assert found.case.size == 1
    run(module, found.case.arguments)


def test_what_exchanges_nothing_is_a_program_for_one_device() -> None:
    module, found = shrunk("exponential")
    assert (module.num_partitions, found.case.size) == (1, 1)
    assert [array.shape for array in found.case.arguments] == [(1,)]


@pytest.mark.parametrize("kept", [(0, 1), (2, 3), (4, 5, 6, 7), (1,)])
def test_the_devices_that_stay_do_what_they_did(kept: tuple[int, ...]) -> None:
    """Where no group is cut in two; what a device calls itself changes."""
    text = (
        TEXT.replace("add(w, all)", "add(w, w)")
        if len(kept) == 4
        else TEXT.replace("add(w, all)", "add(r, r)")
    )
    case = Case(hlotool.parse(text), ROWS)
    smaller = on_devices(case, kept)
    assert smaller is not None
    pairs = source_target_ids(
        next(i for i in smaller.module.instructions() if i.opcode == "collective-permute")
    )
    assert all(max(pair) < len(kept) for pair in pairs)
    if len(kept) > 1:
        whole = run(case.module, case.arguments)
        own = run(smaller.module, smaller.arguments)
        np.testing.assert_array_equal(own, [whole[device] for device in kept])


def test_every_device_is_observed() -> None:
    case = Case(hlotool.parse(TEXT), ROWS)
    values = observe(case)
    [m] = [i for i in case.module.entry.instructions if i.name == "m"]
    [r] = [i for i in case.module.entry.instructions if i.name == "r"]
    np.testing.assert_array_equal(values[5][r], np.asarray(values[4][m]) + np.asarray(values[5][m]))
