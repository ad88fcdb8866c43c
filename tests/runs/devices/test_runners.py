"""Replays of programs for several devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.programs import write_module
from support.replaying import replayed, replayed_pair

from hlotool.errors import InputDataError, Location, Unsupported
from hlotool.ir.module import Module
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.device_arguments import device_arguments, global_arguments

REDUCER = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""

#: Rows of x and columns of w are spread over 2 by 2 devices.
LOGICAL = """HloModule jit_f, num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}
ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,2]<=[4]}
  w = f32[6,2] parameter(1), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  y = f32[4,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4,2] negate(y)
  ROOT t = (f32[4,2], f32[4,2]) tuple(y, s)
}
"""  # noqa: E501 - the module's header is one line

GLOBAL = "use_global_device_ids=true, replica_groups"

PARTITIONED = f"""HloModule jit_f, num_partitions=4
{REDUCER}
ENTRY main_spmd {{
  x = f32[2,3] parameter(0), sharding={{devices=[2,2]<=[4]}}
  w = f32[3,2] parameter(1), sharding={{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}}
  d = f32[2,2] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  y = f32[2,2] all-reduce(d), channel_id=1, {GLOBAL}={{{{0,1}},{{2,3}}}}, to_apply=sum
  s = f32[2,2] negate(y)
  ROOT t = (f32[2,2], f32[2,2]) tuple(y, s)
}}
"""


def test_a_partitioned_program_agrees_with_the_global_one(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, LOGICAL, PARTITIONED)
    assert row.verdict in (Verdict.AGREE, Verdict.IDENTICAL)
    assert [leaf.shape for leaf in row.leaves] == ["f32[4,2]", "f32[4,2]"]
    assert row.notes == ["out[0], out[1]: {mesh['x'=2,'y'=2], [{'x'}, {}]}, found from the values"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{{0,1},{2,3}}", "{{0,2},{1,3}}"),
        ("ROOT c = f32[] add", "ROOT c = f32[] maximum"),
        (
            "parameter(1), sharding={devices=[2,1,2]<=[2,2]T(1,0)",
            "parameter(1), sharding={devices=[2,1,2]<=[4]",
        ),
    ],
)
def test_a_wrong_partition_is_found(tmp_path: Path, old: str, new: str) -> None:
    assert old in PARTITIONED
    row = replayed_pair(tmp_path, LOGICAL, PARTITIONED.replace(old, new))
    assert row.verdict is Verdict.WRONG
    assert all(leaf.verdict is Verdict.WRONG for leaf in row.leaves)


def test_copies_that_contradict_each_other(tmp_path: Path) -> None:
    """The values are right within the tolerance, but not the same on the devices that hold copies."""
    spread = PARTITIONED.replace(
        "ROOT t = (f32[2,2], f32[2,2]) tuple(y, s)",
        """p = u32[] partition-id()
  f = f32[] convert(p)
  e = f32[] constant(1e-3)
  g = f32[] multiply(f, e)
  h = f32[2,2] broadcast(g), dimensions={}
  u = f32[2,2] add(s, h)
  ROOT t = (f32[2,2], f32[2,2]) tuple(y, u), sharding={{devices=[2,1,2]<=[4] last_tile_dim_replicate},"""
        " {devices=[2,1,2]<=[4] last_tile_dim_replicate}}",
    )
    row = replayed_pair(tmp_path, LOGICAL, spread, rtol=1.0, atol=1.0)
    assert row.verdict is Verdict.WRONG
    assert [leaf.verdict for leaf in row.leaves] == [Verdict.AGREE, Verdict.WRONG]
    assert "devices 0 and 1 should hold copies" in row.leaves[1].reason
    assert row.leaves[1].source is not None
    assert row.leaves[1].source.instruction == "u"
    assert row.notes == [row.reason]


def test_parts_that_do_not_fit_are_structural(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, LOGICAL.replace("[4,6]", "[8,6]").replace("[4,2]", "[8,2]"), PARTITIONED)
    assert row.verdict is Verdict.STRUCTURAL
    assert row.reason == "parameter 0: expected f32[8,6], got f32[2,3]"


def test_a_local_program_that_exchanges_nothing(tmp_path: Path) -> None:
    before = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[4] add(x, x)
}
"""
    row = replayed_pair(tmp_path, before, before.replace("[4]", "[2]"))
    assert row.verdict is Verdict.IDENTICAL
    assert row.leaves[0].total == 4


REPLICAS = f"""HloModule jit_f, replica_count=2
{REDUCER}
ENTRY main {{
  x = f32[3] parameter(0)
  s = f32[3] all-reduce(x), replica_groups={{}}, to_apply=sum
  ROOT t = (f32[3], f32[3]) tuple(s, x)
}}
"""


def test_replicas_have_inputs_of_their_own(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, REPLICAS, REPLICAS.replace("replica_groups={}", "replica_groups={{1,0}}"))
    assert row.verdict is Verdict.IDENTICAL
    assert [leaf.index for leaf in row.leaves] == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_a_forgotten_exchange_between_replicas(tmp_path: Path) -> None:
    after = REPLICAS.replace("replica_groups={}", "replica_groups={{0},{1}}")
    row = replayed_pair(tmp_path, REPLICAS, after)
    assert row.verdict is Verdict.WRONG
    verdicts = [leaf.verdict for leaf in row.leaves]
    assert verdicts == [Verdict.WRONG, Verdict.IDENTICAL, Verdict.WRONG, Verdict.IDENTICAL]
    assert row.leaves[2].source is not None
    assert row.leaves[2].source.instruction == "s"


def test_two_partitioned_stages_are_compared_device_by_device(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, PARTITIONED, PARTITIONED.replace("{{0,1},{2,3}}", "{{1,0},{3,2}}"))
    assert row.verdict in (Verdict.AGREE, Verdict.IDENTICAL)
    assert len(row.leaves) == 8


def test_inputs_and_outputs_of_each_device(tmp_path: Path) -> None:
    """By a key for each device, or by a first dimension of devices."""
    inputs, outputs = tmp_path / "inputs.npz", tmp_path / "outputs.npz"
    mine, other, total = np.float32([[1, 2, 3], [4, 5, 6], [5, 7, 9]])
    np.savez(inputs, **{"x@0": mine, "x@1": other})
    np.savez(outputs, **{"0": np.stack([total, total]), "1@0": mine, "1@1": mine})
    folder = tmp_path / "dump"
    folder.mkdir()
    write_module(folder, 0, REPLICAS, REPLICAS)
    pair, real = replayed(folder, inputs=str(inputs), outputs=str(outputs))
    assert pair.verdict is Verdict.IDENTICAL
    assert real.stage_tested == "result"
    verdicts = {tuple(leaf.index): leaf.verdict for leaf in real.leaves}
    assert verdicts.pop((1, 1)) is Verdict.WRONG
    assert set(verdicts.values()) == {Verdict.IDENTICAL}


def test_inputs_of_one_device_are_not_enough(tmp_path: Path) -> None:
    given = tmp_path / "inputs.npz"
    np.savez(given, x=np.zeros(3, np.float32))
    folder = tmp_path / "dump"
    folder.mkdir()
    row = replayed_pair(folder, REPLICAS, REPLICAS, inputs=str(given))
    assert row.verdict is Verdict.BAD_INPUT
    assert "x has dimensions [3]: the program is for 2 devices; give each its own as x@0, x@1" in row.reason


def test_deadlocks_are_rows(tmp_path: Path) -> None:
    """One replica exchanges more often than the other: XLA would hang."""
    after = f"""HloModule jit_f, replica_count=2
{REDUCER}
exchange {{
  p = f32[3] parameter(0)
  ROOT s = f32[3] all-reduce(p), replica_groups={{}}, to_apply=sum
}}
keep {{
  ROOT p = f32[3] parameter(0)
}}
ENTRY main {{
  x = f32[3] parameter(0)
  i = u32[] replica-id()
  j = s32[] convert(i)
  s = f32[3] conditional(j, x, x), branch_computations={{exchange, keep}}
  ROOT t = (f32[3], f32[3]) tuple(s, x)
}}
"""
    row = replayed_pair(tmp_path, REPLICAS, after)
    assert row.verdict is Verdict.CRASHED
    assert "0 waits at all-reduce %s (line 11) for 1 (which has ended)" in row.reason


def module(text: str) -> Module:
    return parse_module(text)


def test_devices_with_the_same_part_get_the_same_arguments() -> None:
    program = module("""HloModule m, replica_count=2, num_partitions=2
ENTRY e {
  a = s32[] parameter(0), sharding={replicated}
  b = s32[1] parameter(1), sharding={devices=[2]1,0}
  c = (s32[], s32[1]) parameter(2), sharding={{replicated}, {devices=[2]<=[2]}}
  ROOT r = s32[] add(a, a)
}""")
    made = device_arguments(program, lambda n: (n, 10 + n, (20 + n, 30 + n)))
    assert made == (
        (0, 11, (20, 30)),
        (0, 10, (20, 31)),
        (2, 13, (22, 32)),
        (2, 12, (22, 33)),
    )


def test_captured_parts_become_global_arguments() -> None:
    program = module("""HloModule m, num_partitions=2
ENTRY e {
  a = s32[4] parameter(0), sharding={devices=[2]<=[2]}
  b = s32[2] parameter(1)
  ROOT r = s32[4] add(a, a)
}""")
    both = np.int32([7, 8])
    where = Location("capture.pb")
    a, b = global_arguments(program, [(np.int32([1, 2]), both), (np.int32([3, 4]), both)], where)
    assert (a.tolist(), b.tolist()) == ([1, 2, 3, 4], [7, 8])
    with pytest.raises(InputDataError, match=r"capture.pb: argument b: devices 0 and 1 should hold copies"):
        global_arguments(program, [(np.int32([1, 2]), both), (np.int32([3, 4]), both + 1)], where)
    with pytest.raises(Unsupported, match="captured on 3 devices, the program has 2 partitions"):
        global_arguments(program, [(both, both)] * 3, where)
    with pytest.raises(Unsupported, match="argument a: device 0 holds dimensions"):
        global_arguments(program, [(both[:1], both)] * 2, where)


@pytest.mark.parametrize("name", ["collectives", "pmap_step", "sharded_mlp", "sharded_train_step"])
def test_the_corpus(corpus: Path, name: str) -> None:
    """Both stages, and what the eight devices of the recorded run returned."""
    folder = corpus / "jax" / name
    given = {"inputs": str(folder / "inputs.npz"), "outputs": str(folder / "outputs.npz")}
    rows = [*replayed(folder), *replayed(folder, **given)]
    assert [row.stage_tested for row in rows] == ["cpu_after_optimizations"] * 2 + ["result"]
    assert {row.verdict for row in rows} <= {Verdict.AGREE, Verdict.IDENTICAL}
