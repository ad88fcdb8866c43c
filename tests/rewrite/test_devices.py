"""Programs for several devices with smaller sizes: shards, where they begin, and what is looked up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.replaying import replayed

from hlotool.blame.reduction.case_worker import optimised
from hlotool.errors import Unsupported
from hlotool.ir.module import Module
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.per_device import Spread
from hlotool.rewrite.scale.plan import Scaled, scaled

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"

#: Two layers, of which each of four devices has a quarter of the features between them.
BEFORE = f"""HloModule layers, num_partitions=4
{SUM}
ENTRY main {{
  x = f32[48,256] parameter(0), sharding={{replicated}}
  w = f32[256,512] parameter(1), sharding={{devices=[1,4]<=[4]}}
  v = f32[512,256] parameter(2), sharding={{devices=[4,1]<=[4]}}
  h = f32[48,512] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[48,512] tanh(h)
  y = f32[48,256] dot(t, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[48,256] sine(y)
}}
"""

#: What a partitioner makes of it; at OFFSET stands where the quarter of a device begins.
AFTER = f"""HloModule layers, num_partitions=4
{SUM}
ENTRY main {{
  x = f32[48,256] parameter(0), sharding={{replicated}}
  w = f32[256,128] parameter(1), sharding={{devices=[1,4]<=[4]}}
  v = f32[128,256] parameter(2), sharding={{devices=[4,1]<=[4]}}
  h = f32[48,128] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[48,128] tanh(h)
  y = f32[48,256] dot(t, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  all = f32[48,256] all-reduce(y), channel_id=1, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true,
    to_apply=sum
  zero = s32[] constant(0)
  id = u32[] partition-id()
  OFFSET
  own = f32[48,64] dynamic-slice(all, zero, start), dynamic_slice_sizes={{48,64}}
  s = f32[48,64] sine(own)
  ROOT r = f32[48,256] all-gather(s), channel_id=2, replica_groups={{{{0,1,2,3}}}},
    use_global_device_ids=true, dimensions={{1}}
}}
"""

#: Ways of counting out where the shard of a device begins.
OFFSETS = {
    "product": "n = s32[] convert(id) step = s32[] constant(64) start = s32[] multiply(n, step)",
    "table": "step = s32[4] constant({0,64,128,192}) "
    "e = s32[1] dynamic-slice(step, id), dynamic_slice_sizes={1} start = s32[] reshape(e)",
    "sum": "n = s32[] convert(id) step = s32[] constant(64) m = s32[] multiply(n, step) "
    "k = s32[] constant(-64) l = s32[] add(m, k) start = s32[] subtract(l, k)",
}
PRODUCT = AFTER.replace("OFFSET", OFFSETS["product"])


def plan(*texts: str, sizes: str = "1M") -> Scaled:
    programs = {str(n): parse_module(text) for n, text in enumerate(texts)}
    found = scaled(programs, sizes, Limits(float("inf"), float("inf")))
    assert found is not None
    return found


def dims_of(module: Module, name: str) -> tuple[int, ...]:
    return next(i.dims for i in module.instructions() if i.name == name)


def value_of(module: Module, name: str) -> list[int]:
    literal = next(i.literal for i in module.instructions() if i.name == name)
    assert literal is not None
    return [int(n) for n in literal.array.reshape(-1)]


def reasons(found: Scaled) -> str:
    return "\n".join(f"{stay.size}: {stay.why}" for stay in found.record.stay)


def dump_of(folder: Path, before: str, after: str) -> Path:
    folder.mkdir()
    (folder / "module_0001.layers.before_optimizations.txt").write_text(before)
    (folder / "module_0001.layers.cpu_after_optimizations.txt").write_text(after)
    return folder


@pytest.mark.parametrize("way", OFFSETS)
def test_shards_and_their_places_follow_the_whole(way: str) -> None:
    found = plan(BEFORE, AFTER.replace("OFFSET", OFFSETS[way]))
    before, after = found.programs.values()
    assert before.num_partitions == after.num_partitions == 4
    assert found.record.stay == []
    wide, narrow = dims_of(before, "w")[1], dims_of(after, "w")[1]
    assert wide == 4 * narrow < 512
    whole, own = dims_of(after, "all")[1], dims_of(after, "own")[1]
    assert dims_of(before, "y")[1] == whole == 4 * own < 256
    expected = [0, own, 2 * own, 3 * own] if way == "table" else [own]
    assert value_of(after, "step") == expected
    assert len({own, narrow, dims_of(after, "x")[0]}) == 3


def test_both_sides_agree(tmp_path: Path) -> None:
    [row] = replayed(dump_of(tmp_path / "d", BEFORE, PRODUCT), scale="1M")
    assert row.scaled is not None
    assert row.verdict in (Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING)


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("to_apply=sum\n", "to_apply=most\n", "all"),
        ("multiply(n, step)", "add(n, step)", "own"),
        ("all-gather(s)", "all-gather(own)", "r"),
    ],
)
def test_a_wrong_exchange_shows_and_is_named(right: str, wrong: str, named: str, tmp_path: Path) -> None:
    most = "most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n"
    after = PRODUCT.replace(SUM, SUM + most).replace(right, wrong)
    assert after != PRODUCT
    [row] = replayed(dump_of(tmp_path / "d", BEFORE, after), scale="4M", first_divergence=True)
    assert row.verdict is Verdict.WRONG
    assert row.divergence is not None
    assert named in row.divergence.instructions


def test_a_place_that_is_more_than_that_keeps_the_sizes() -> None:
    """The number of elements before a shard is a limit of something else, too."""
    used = PRODUCT.replace("sine(own)", "clamp(low, own, high)").replace(
        "own =", "k = f32[] convert(step) low = f32[] negate(k) high = f32[] add(k, k) own ="
    )
    found = plan(BEFORE, used, sizes="4M")
    assert dims_of(found.programs["1"], "own")[1] == 64
    assert "64: constant %step" in reasons(found)


def test_a_number_of_a_device_that_is_not_understood_keeps_the_sizes() -> None:
    odd = PRODUCT.replace(
        "start = s32[] multiply(n, step)", "m = s32[] multiply(n, step) start = s32[] abs(m)"
    )
    found = plan(BEFORE, odd, sizes="4M")
    assert dims_of(found.programs["1"], "own")[1] == 64
    assert "64: " in reasons(found)


def test_shards_that_are_not_alike_stay() -> None:
    """Ten rows on four devices: three each, and two of padding."""
    before = """HloModule m, num_partitions=4
    ENTRY main { x = f32[90,512] parameter(0), sharding={devices=[4,1]<=[4]} ROOT r = f32[90,512] tanh(x) }"""
    after = """HloModule m, num_partitions=4
    ENTRY main { x = f32[23,512] parameter(0), sharding={devices=[4,1]<=[4]} ROOT r = f32[23,512] tanh(x) }"""
    found = plan(before, after, sizes="512=3")
    assert dims_of(found.programs["0"], "x") == (90, 3)
    assert dims_of(found.programs["1"], "x") == (23, 3)
    assert "90: shards that cannot be derived" in reasons(found)


LOOKUP_BEFORE = """HloModule m, num_partitions=2
ENTRY main {
  table = f32[600,384] parameter(0), sharding={devices=[2,1]<=[2]}
  ids = s32[20] parameter(1), sharding={replicated}
  column = s32[20,1] reshape(ids)
  ROOT rows = f32[20,384] gather(table, column), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,384}
}"""

LOOKUP_AFTER = f"""HloModule m, num_partitions=2
{SUM}
ENTRY main {{
  table = f32[300,384] parameter(0), sharding={{devices=[2,1]<=[2]}}
  ids = s32[20] parameter(1), sharding={{replicated}}
  zero = s32[] constant(0)
  zeros = s32[20] broadcast(zero), dimensions={{}}
  last = s32[] constant(599)
  lasts = s32[20] broadcast(last), dimensions={{}}
  index = s32[20] clamp(zeros, ids, lasts)
  id = u32[] partition-id()
  n = s32[] convert(id)
  step = s32[] constant(300)
  first = s32[] multiply(n, step)
  firsts = s32[20] broadcast(first), dimensions={{}}
  least = s32[] constant(299)
  end = s32[] add(first, least)
  ends = s32[20] broadcast(end), dimensions={{}}
  before = pred[20] compare(index, firsts), direction=LT
  behind = pred[20] compare(index, ends), direction=GT
  none = pred[20] or(before, behind)
  own = s32[20] subtract(index, firsts)
  column = s32[20,1] reshape(own)
  found = f32[20,384] gather(table, column), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,384}}
  others = pred[20,384] broadcast(none), dimensions={{0}}
  nothing = f32[] constant(0)
  nothings = f32[20,384] broadcast(nothing), dimensions={{}}
  kept = f32[20,384] select(others, nothings, found)
  ROOT rows = f32[20,384] all-reduce(kept), channel_id=1, replica_groups={{{{0,1}}}},
    use_global_device_ids=true, to_apply=sum
}}"""


def test_a_table_in_parts(tmp_path: Path) -> None:
    """The first row that a device has, its last one, and the last of all follow the rows."""
    found = plan(LOOKUP_BEFORE, LOOKUP_AFTER, sizes="300=7,384=5")
    after = found.programs["1"]
    assert dims_of(after, "table") == (7, 5)
    assert [value_of(after, name) for name in ("step", "least", "last")] == [[7], [6], [13]]
    [row] = replayed(dump_of(tmp_path / "d", LOOKUP_BEFORE, LOOKUP_AFTER), scale="300=7,384=5")
    assert row.verdict is Verdict.IDENTICAL


def test_a_bound_that_is_no_number_of_shards_keeps_the_rows() -> None:
    found = plan(LOOKUP_BEFORE, LOOKUP_AFTER.replace("constant(599)", "constant(598)"), sizes="384=5")
    assert (
        300 not in {size.old for size in found.record.sizes}
        or dims_of(found.programs["1"], "table")[0] == 300
    )


def test_regions_in_which_devices_have_their_own_parts() -> None:
    """Where `shard_map` begins and ends."""
    text = """HloModule m, num_partitions=4
    ENTRY main {
      x = f32[96,320] parameter(0), sharding={devices=[4,1]<=[4]}
      in = f32[24,320] custom-call(x), custom_call_target="SPMDFullToShardShape", sharding={manual}
      t = f32[24,320] tanh(in)
      ROOT r = f32[96,320] custom-call(t), custom_call_target="SPMDShardToFullShape",
        sharding={devices=[4,1]<=[4]}
    }"""
    found = plan(text, sizes="24=5").programs["0"]
    assert [dims_of(found, name) for name in ("x", "in", "r")] == [(20, 320), (5, 320), (20, 320)]


def test_numbers_of_devices() -> None:
    module = parse_module("""HloModule m, replica_count=2, num_partitions=3
    shifted { p = s32[] parameter(0) q = s32[] parameter(1) ROOT s = s32[] add(p, q) }
    ENTRY main {
      x = s32[] parameter(0)
      i = u32[] partition-id()
      r = u32[] replica-id()
      table = s32[3] constant({5,7,11})
      e = s32[1] dynamic-slice(table, i), dynamic_slice_sizes={1}
      at = s32[] reshape(e)
      n = s32[] convert(r)
      f = s32[] fusion(at, n), kind=kLoop, calls=shifted
      big = pred[] compare(f, n), direction=GT
      ROOT out = s32[] add(f, x)
    }""")
    spread = Spread(module)
    numbers = {i.name: spread.of(i) for i in module.instructions()}
    assert numbers["at"] == (5, 7, 11, 5, 7, 11)
    assert numbers["f"] == (5, 7, 11, 6, 8, 12)
    assert numbers["big"] == (1,) * 6
    assert numbers["x"] is None
    assert numbers["out"] is None
    assert [(i.name, n) for i, n in spread.readers()] == [("out", 0)]


@pytest.mark.xla
def test_what_a_compiler_makes_of_it(tmp_path: Path) -> None:
    """Split along several dimensions and compiled by XLA, in bf16 and f32, with a table in parts."""
    devices = 4
    text = f"""HloModule m, num_partitions={devices}
    {SUM}
    ENTRY main {{
      table = f32[640,288] parameter(0), sharding={{devices=[{devices},1]<=[{devices}]}}
      ids = s32[40] parameter(1), sharding={{replicated}}
      w = f32[288,896] parameter(2), sharding={{devices=[1,{devices}]<=[{devices}]}}
      column = s32[40,1] reshape(ids)
      rows = f32[40,288] gather(table, column), offset_dims={{1}}, collapsed_slice_dims={{0}},
        start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,288}}
      half = bf16[40,288] convert(rows)
      whole = f32[40,288] convert(half)
      h = f32[40,896] dot(whole, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      t = f32[40,896] tanh(h)
      turned = f32[40,896] copy(t), sharding={{devices=[{devices},1]<=[{devices}]}}
      zero = f32[] constant(0)
      ROOT total = f32[40] reduce(turned, zero), dimensions={{1}}, to_apply=sum
    }}"""
    module = parse_module(text)
    after = optimised(module, "xla")
    assert any(i.opcode == "partition-id" for i in after.instructions())
    [row] = replayed(dump_of(tmp_path / "d", text, after.to_text()), scale="256K")
    assert row.scaled is not None
    assert {size.old for size in row.scaled.sizes} >= {640 // devices, 288, 896 // devices}
    assert row.verdict in (Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING), row.reason
    assert all(size.new > 1 for size in row.scaled.sizes)


def _of_columns(devices: int, stated: str) -> tuple[str, str]:
    """A lookup by two columns in rows that devices share, and what XLA makes of it."""
    before = f"""HloModule m, num_partitions={devices}
    ENTRY main {{
      table = f32[{devices * 24},40] parameter(0), sharding={{devices=[{devices},1]<=[{devices}]}}
      ids = s32[30,2] parameter(1), sharding={{replicated}}
      ROOT found = f32[30] gather(table, ids), offset_dims={{}}, collapsed_slice_dims={{0,1}},
        start_index_map={{{stated}}}, index_vector_dim=1, slice_sizes={{1,1}}
    }}"""
    return before, optimised(parse_module(before), "xla").to_text()


@pytest.mark.xla
@pytest.mark.parametrize("stated", ["0,1", "1,0"])
def test_lookups_by_several_columns(stated: str, tmp_path: Path) -> None:
    """Rows follow as first, last and last of all do, also for indices that are beyond."""
    before, after = _of_columns(4, stated)
    assert "concatenate" in after
    found = plan(before, after, sizes="24=5")
    assert dims_of(found.programs["0"], "table") == (20, 40)
    column = [int(n) for n in stated.split(",")].index(0)
    tables = [value_of(found.programs["1"], i.name) for i in found.original("1").instructions()
              if i.opcode == "constant" and i.dims == (2,)]  # fmt: skip
    assert [table[column] for table in tables if len(table) == 2] == [19]
    inputs = tmp_path / "inputs.npz"
    ids = np.array([[n * 7 - 60, n * 3 - 20] for n in range(30)], np.int32)
    np.savez(inputs, table=np.arange(96 * 40, dtype=np.float32).reshape(96, 40), ids=ids)
    folder = dump_of(tmp_path / "d", before, after)
    [row] = replayed(folder, scale="24=5", inputs=str(inputs))
    assert row.verdict is Verdict.IDENTICAL, row.reason


@pytest.mark.xla
def test_a_limit_of_several_columns_that_is_no_number_of_shards_keeps_the_rows() -> None:
    before, after = _of_columns(4, "0,1")
    assert "{95, 39}" in after
    found = plan(before, after.replace("{95, 39}", "{94, 39}"), sizes="30=7")
    assert dims_of(found.programs["0"], "table") == (96, 40)
    with pytest.raises(Unsupported, match="24"):
        plan(before, after.replace("{95, 39}", "{94, 39}"), sizes="24=5")
