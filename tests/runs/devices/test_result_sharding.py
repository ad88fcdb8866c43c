"""The sharding of a partitioned program's result, which its text does not tell."""

from __future__ import annotations

from pathlib import Path

from support.programs import AFTER, BEFORE

from hlotool.ir.attributes import Sharding
from hlotool.ir.printed_annotations import sharding_text
from hlotool.judge.verdicts import Verdict
from hlotool.parser.proto.module import parse_output_sharding
from hlotool.parser.proto.schema import message_class
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import declared_shardings, result_shardings
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump


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
    Path(f"{title}.{BEFORE}.txt").write_text(before, encoding="utf-8")
    Path(f"{title}.{AFTER}.txt").write_text(before.replace("[4]", "[2]"), encoding="utf-8")

    def verdict() -> Verdict:
        [module] = open_dump(str(tmp_path)).modules
        [row] = replay_module(Task(module, ReplayOptions()))
        return row.verdict

    assert verdict() is Verdict.IDENTICAL
    Path(f"{title}.{AFTER}.hlo.pb").write_bytes(proto(sharded=True))
    assert verdict() is Verdict.WRONG


def test_parameters_of_a_partitioned_program_that_states_no_shardings(tmp_path: Path) -> None:
    """As since jaxlib 0.12: the program that it was made from says which device holds what."""
    before = """HloModule jit_f, num_partitions=4
ENTRY main {
  x = f32[4,2] parameter(0), sharding={mesh['a'=2,'b'=2], [{'b'}, {}]}
  w = f32[2] parameter(1), sharding={replicated}
  i = s32[4] iota(), iota_dimension=0
  f = f32[4] convert(i)
  b = f32[4,2] broadcast(f), dimensions={0}
  c = f32[4,2] broadcast(w), dimensions={1}
  s = f32[4,2] multiply(x, b)
  ROOT y = f32[4,2] multiply(s, c), sharding={mesh['a'=2,'b'=2], [{'b'}, {}]}
}
"""
    after = """HloModule jit_f, num_partitions=4
ENTRY main {
  x = f32[2,2] parameter(0)
  w = f32[2] parameter(1)
  p = u32[] partition-id()
  two = u32[] constant(2)
  m = u32[] remainder(p, two)
  o = u32[] multiply(m, two)
  i = u32[2] iota(), iota_dimension=0
  ob = u32[2] broadcast(o), dimensions={}
  n = u32[2] add(i, ob)
  f = f32[2] convert(n)
  b = f32[2,2] broadcast(f), dimensions={0}
  c = f32[2,2] broadcast(w), dimensions={1}
  s = f32[2,2] multiply(x, b)
  ROOT y = f32[2,2] multiply(s, c), sharding={mesh['a'=2,'b'=2], [{'b'}, {}]}
}
"""
    title = tmp_path / "module_0000.jit_f"
    Path(f"{title}.{BEFORE}.txt").write_text(before, encoding="utf-8")

    def verdict(text: str) -> Verdict:
        Path(f"{title}.{AFTER}.txt").write_text(text, encoding="utf-8")
        [module] = open_dump(str(tmp_path)).modules
        [row] = replay_module(Task(module, ReplayOptions()))
        return row.verdict

    assert verdict(after) is Verdict.IDENTICAL
    # The devices along the other axis would hold what these do.
    assert verdict(after.replace("remainder(p, two)", "divide(p, two)")) is Verdict.WRONG


def test_what_the_partitioner_was_given_tells_the_order(tmp_path: Path) -> None:
    """Its dumps come before and after it; the result of the second device stands in front here."""
    given = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[4] add(x, x), sharding={devices=[2]<=[2]}
}
"""
    made = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[2] parameter(0), sharding={devices=[2]<=[2]}
  s = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  ROOT y = f32[2] add(s, s)
}
"""
    title = f"{tmp_path}/module_0000.jit_f"
    Path(f"{title}.{BEFORE}.txt").write_text(
        given.replace(", sharding={devices=[2]<=[2]}\n}", "\n}"), "utf-8"
    )
    Path(f"{title}.{AFTER}.txt").write_text(made, "utf-8")

    def verdict() -> Verdict:
        [module] = open_dump(str(tmp_path)).modules
        [row] = replay_module(Task(module, ReplayOptions()))
        return row.verdict

    # Without these dumps the order may be any.
    assert verdict() is Verdict.IDENTICAL
    Path(f"{title}.0001.p.after_shardy.before_spmd-partitioning.txt").write_text(given, "utf-8")
    Path(f"{title}.0002.p.after_spmd-partitioning.before_x.txt").write_text(made, "utf-8")
    assert verdict() is Verdict.WRONG


MESH = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}'
X = "x = f32[4] parameter(0)"


def declared(*lines: str) -> list[str | None]:
    """What the program says of its result."""
    body = "\n ".join(lines)
    text = f"HloModule m, num_partitions=4, {MESH}\nENTRY e {{\n {body}\n}}"
    found = declared_shardings(parse_module(text))
    return [None if sharding is None else sharding_text(sharding) for sharding in found]


def shardy(key: str, shardings: str, axes: str = "") -> str:
    manual = f',xla.sdy.manual_axes="#sdy<manual_axes{{{axes}}}>"' if axes else ""
    entry = f'xla.sdy.{key}="#sdy.sharding_per_value<[{shardings}]>"'
    return f"frontend_attributes={{{entry}{manual}}}".replace("'", '\\"')


def call(target: str, attributes: str) -> str:
    return f'custom-call(x), custom_call_target="{target}", {attributes}'


BY_Y = "{mesh['x'=2,'y'=2], [{'y'}]}"


def test_the_root_says_it() -> None:
    assert declared(f"ROOT {X}") == [None]
    assert declared(f"ROOT {X}, sharding={{devices=[4]<=[4]}}") == ["{devices=[4]<=[4]}"]


def test_the_user_asked_for_it() -> None:
    asked = call("xla.sdy.FuncResultSharding", shardy("sharding", "<@mesh, [{'y'}]>"))
    assert declared(X, f"ROOT y = f32[4] {asked}") == [BY_Y]
    assert declared(
        X,
        f"y = f32[4] {asked}",
        "n = f32[4] negate(y)",
        "t = (f32[4], f32[4]) tuple(n, y)",
        "e = f32[4] get-tuple-element(t), index=1",
        "ROOT r = ((f32[4], f32[4]), f32[4]) tuple(t, e)",
    ) == [None, BY_Y, BY_Y]


def test_open_dimensions_are_left_to_the_partitioner() -> None:
    asked = shardy("sharding", "<@mesh, [{'y', ?}]>")
    assert declared(X, f"ROOT y = f32[4] {call('Sharding', asked)}") == [None]


def test_gspmd_annotations() -> None:
    fixed = "sharding={devices=[2,2]<=[4] last_tile_dim_replicate}"
    assert declared(X, f"ROOT y = f32[4] {call('Sharding', fixed)}") == [fixed.removeprefix("sharding=")]
    full = call("SPMDShardToFullShape", fixed)
    assert declared(X, f"ROOT y = f32[8] {full}") == [fixed.removeprefix("sharding=")]
    partly = call("SPMDShardToFullShape", "sharding={devices=[2,2]<=[4] last_tile_dims={manual}}")
    assert declared(X, f"ROOT y = f32[8] {partly}") == [None]


def test_results_of_manual_regions() -> None:
    both = shardy("out_shardings", "<@mesh, [{}]>, <@mesh, [{'y'}]>", "'x', 'y'")
    lines = (
        X,
        f"l = (f32[4], f32[8]) {call('xla.sdy.LocalToGlobalShape', both).replace('(x)', '(x, x)')}",
        "ROOT e = f32[8] get-tuple-element(l), index=1",
    )
    assert declared(*lines) == [BY_Y]
    assert declared(*(line.replace('{\\"x\\", \\"y\\"}>"', '{\\"y\\"}>"') for line in lines)) == [None]


def test_results_of_manual_regions_as_shardings_state_them() -> None:
    """jaxlib 0.12: which axes are manual stands inside of the region."""
    manual, by_y = "{mesh['x'=2,'y'=2], manual}", "{mesh['x'=2,'y'=2], [{'y'}]}"
    lines = (
        f"{X}, sharding={manual}",
        f"ROOT l = f32[8] {call('xla.sdy.LocalToGlobalShape', f'sharding={by_y}')}",
    )
    assert declared(*lines) == [BY_Y]
    several = call("xla.sdy.LocalToGlobalShape", f"sharding={{{by_y}, {{replicated}}}}").replace(
        "(x)", "(x, x)"
    )
    element = (f"l = (f32[8], f32[4]) {several}", "ROOT e = f32[8] get-tuple-element(l), index=0")
    assert declared(lines[0], *element) == [BY_Y]
    # Where an axis is left to the partitioner, it may divide further.
    partly = "{mesh['x'=2,'y'=2], [{?}], manual={'y'}}"
    assert declared(lines[0].replace(manual, partly), *element) == [None]


def test_declarations_that_do_not_fit_do_not_count() -> None:
    origin = parse_module("""HloModule m, num_partitions=4
ENTRY e {
  x = f32[8] parameter(0)
  ROOT t = (f32[8], f32[8]) tuple(x, x), sharding={{devices=[4]<=[4]}, {devices=[4]<=[4]}}
}""")
    local = parse_module("""HloModule m, num_partitions=4
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[4] parameter(1)
  ROOT t = (f32[2], f32[4]) tuple(x, y)
}""")
    assert [s is not None for s in result_shardings(local, None, origin)] == [True, False]
    assert result_shardings(origin, Sharding("replicated"), origin) == [Sharding("replicated")] * 2
    assert result_shardings(local, None, local) == [None, None]
