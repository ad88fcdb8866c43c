"""The sharding of a partitioned program's result, which only its proto tells."""

from __future__ import annotations

from pathlib import Path

from support.programs import AFTER, BEFORE

from hlotool.dump.directory import open_dump
from hlotool.ir.printing.sharding import sharding_text
from hlotool.parse.proto.module import parse_output_sharding
from hlotool.parse.proto.schema import message_class
from hlotool.replay.options import ReplayOptions
from hlotool.replay.records import Verdict
from hlotool.replay.run import replay_module
from hlotool.replay.task import Task


def proto(sharded: bool) -> bytes:
    """A module whose result is cut into two, the second part first."""
    message = message_class("HloProto")()
    module = message.hlo_module
    module.computations.add().name = "main"
    if sharded:
        module.spmd_output_sharding.type = 3
        module.spmd_output_sharding.tile_assignment_dimensions.append(2)
        module.spmd_output_sharding.tile_assignment_devices.extend([1, 0])
    return bytes(message.SerializeToString())


def test_the_sharding_is_read() -> None:
    sharding = parse_output_sharding(proto(sharded=True))
    assert sharding is not None
    assert sharding_text(sharding) == "{devices=[2]1,0}"
    assert parse_output_sharding(proto(sharded=False)) is None


def test_a_result_in_the_wrong_order_is_found(tmp_path: Path) -> None:
    """The values alone would suit another order; the proto beside the text says which one is right."""
    before = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[4] add(x, x)
}
"""
    title = tmp_path / "module_0000.jit_f"
    Path(f"{title}.{BEFORE}.txt").write_text(before)
    Path(f"{title}.{AFTER}.txt").write_text(before.replace("[4]", "[2]"))

    def verdict() -> Verdict:
        [module] = open_dump(str(tmp_path)).modules
        [row] = replay_module(Task(module, ReplayOptions()))
        return row.verdict

    assert verdict() is Verdict.IDENTICAL
    Path(f"{title}.{AFTER}.hlo.pb").write_bytes(proto(sharded=True))
    assert verdict() is Verdict.DIFFERS
