"""Programs on global arrays with regions written for each device (JAX's shard_map)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.differential import assert_close, leaves, parse, run
from support.xla import JAXLIB, NEWER_TEXT, oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.facts.sharding import assemble, split
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.attributes import Sharding
from hlotool.ir.module import Module
from hlotool.ir.partitioning import NotSeparable, RegionFinder, has_manual_regions, is_per_device

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }"
MESHES = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}'


def shardy(**attributes: str) -> str:
    entries = (f'xla.sdy.{key}="{value}"' for key, value in attributes.items())
    return f"frontend_attributes={{{','.join(entries)}}}".replace("'", '\\"')


SHARD_MAP = f"""HloModule m, num_partitions=4, {MESHES}
{ADD}
body {{
 p = f32[2,2] parameter(0)
 s = f32[2,2] all-reduce(p), channel_id=1, replica_groups={{{{0,1}},{{2,3}}}}, use_global_device_ids=true, to_apply=add
 ROOT t = (f32[2,2], f32[2,2]) tuple(s, p)
}}
ENTRY e {{
 x = f32[4,4] parameter(0)
 y = f32[4,4] add(x, x)
 l = f32[2,2] custom-call(y), custom_call_target="xla.sdy.GlobalToLocalShape", {
    shardy(
        in_shardings="#sdy.sharding_per_value<[<@mesh, [{'x'}, {'y'}]>]>",
        manual_axes="#sdy<manual_axes{'x', 'y'}>",
    )
}
 c = (f32[2,2], f32[2,2]) call(l), to_apply=body
 a = f32[2,2] get-tuple-element(c), index=0
 b = f32[2,2] get-tuple-element(c), index=1
 g = (f32[4,2], f32[4,4]) custom-call(a, b), custom_call_target="xla.sdy.LocalToGlobalShape", {
    shardy(
        out_shardings="#sdy.sharding_per_value<[<@mesh, [{'x'}, {}]>, <@mesh, [{'y'}, {'x'}]>]>",
        manual_axes="#sdy<manual_axes{'x', 'y'}>",
    )
}
 u = f32[4,2] get-tuple-element(g), index=0
 v = f32[4,4] get-tuple-element(g), index=1
 ROOT r = (f32[4,2], f32[4,4]) tuple(u, v)
}}"""  # noqa: E501 - one instruction per line


def test_shard_map() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    summed, turned = run(SHARD_MAP, [x])
    np.testing.assert_array_equal(summed, 2 * (x[:, :2] + x[:, 2:]))
    blocks = (2 * x).reshape(2, 2, 2, 2)
    np.testing.assert_array_equal(turned, blocks.transpose(2, 1, 0, 3).reshape(4, 4))


#: The same in the words of jaxlib 0.12: HLO's own shardings, and elements of tuples as operands.
NAMED = f"""HloModule m, num_partitions=4
{ADD}
xla.sdy.manual_computation_body.2 {{
 p = f32[2,2] parameter(0)
 s = f32[2,2] all-reduce(p), channel_id=1, replica_groups=mesh['x'=2,'y'=2] {{'y'}}, use_global_device_ids=true, to_apply=add
 ROOT t = (f32[2,2], f32[2,2]) tuple(s, p)
}}
ENTRY e {{
 x = f32[4,4] parameter(0)
 y = f32[4,4] add(x, x)
 k = f32[4,4] custom-call(y), custom_call_target="Sharding", sharding={{mesh['x'=2,'y'=2], [{{'x'}}, {{'y'}}]}}
 l = f32[2,2] custom-call(k), custom_call_target="xla.sdy.GlobalToLocalShape", sharding={{mesh['x'=2,'y'=2], manual}}
 c = (f32[2,2], f32[2,2]) call(l), to_apply=xla.sdy.manual_computation_body.2,
   sharding={{{{mesh['x'=2,'y'=2], manual}}, {{mesh['x'=2,'y'=2], manual}}}}
 g = (f32[4,2], f32[4,4]) custom-call(c#0, c#1), custom_call_target="xla.sdy.LocalToGlobalShape",
   sharding={{{{mesh['x'=2,'y'=2], [{{'x'}}, {{}}]}}, {{mesh['x'=2,'y'=2], [{{'y'}}, {{'x'}}]}}}}
 ROOT r = (f32[4,2], f32[4,4]) tuple(g#0, g#1)
}}"""  # noqa: E501 - one instruction per line

#: Manual along 'x' only: the other axis is left to the partitioner, and each device has all of it.
PARTIAL = f"""HloModule m, num_partitions=4
{ADD}
xla.sdy.manual_computation_body.2 {{
 p = f32[2,4] parameter(0)
 ROOT s = f32[2,4] all-reduce(p), channel_id=1, replica_groups=mesh['x'=2,'y'=2] {{'x'}},
   use_global_device_ids=true, to_apply=add
}}
ENTRY e {{
 x = f32[4,4] parameter(0)
 k = f32[4,4] custom-call(x), custom_call_target="Sharding",
   sharding={{mesh['x'=2,'y'=2], [{{'x', ?}}, {{'y', ?}}]}}
 l = f32[2,4] custom-call(k), custom_call_target="xla.sdy.GlobalToLocalShape",
   sharding={{mesh['x'=2,'y'=2], [{{?}}, {{?}}], manual={{'x'}}}}
 s = f32[2,4] call(l), to_apply=xla.sdy.manual_computation_body.2,
   sharding={{mesh['x'=2,'y'=2], [{{?}}, {{?}}], manual={{'x'}}}}
 ROOT g = f32[4,4] custom-call(s), custom_call_target="xla.sdy.LocalToGlobalShape",
   sharding={{mesh['x'=2,'y'=2], [{{'x', ?}}, {{?}}]}}
}}"""


def test_regions_in_hlos_own_words() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    for ours, theirs in zip(run(NAMED, [x]), run(SHARD_MAP, [x]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    [summed] = run(PARTIAL, [x])
    np.testing.assert_array_equal(summed, np.tile(x[:2] + x[2:], (2, 1)))


def test_regions_manual_along_different_axes_are_not_one() -> None:
    # What leaves the region is the call's.
    other = PARTIAL.replace("manual={'x'}}\n ROOT", "manual={'y'}}\n ROOT")
    assert other != PARTIAL
    entry = parse(other).entry
    with pytest.raises(NotSeparable, match="other axes"):
        RegionFinder().regions(entry)


@pytest.mark.xla
@pytest.mark.skipif(JAXLIB < NEWER_TEXT, reason="this XLA reads no elements as operands, nor such shardings")
@pytest.mark.parametrize("text", [NAMED, PARTIAL])
def test_regions_in_hlos_own_words_on_xla(text: str) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    theirs = get_backend("xla").compile(parse(text)).run([x])
    for ours, other in zip(run(text, [x]), leaves(theirs), strict=True):
        np.testing.assert_array_equal(ours, other)


#: As jaxlib 0.12 writes it: outside of the region shardings say how values lie, inside which axes are manual.
STATED = f"""HloModule m, num_partitions=4
{ADD}
body {{
 p = f32[2,MANUAL] parameter(0)
 q = f32[4,4] parameter(1)
 s = f32[2,MANUAL] all-reduce(p), channel_id=1, replica_groups={{{{0,2}},{{1,3}}}}, use_global_device_ids=true, to_apply=add
 ROOT t = (f32[2,MANUAL], f32[4,4]) tuple(s, q)
}}
ENTRY e {{
 x = f32[4,4] parameter(0)
 y = f32[4,4] custom-call(x), custom_call_target="Sharding", sharding={{mesh['x'=2,'y'=2], [{{'x'}}, {{'y'}}]}}
 w = f32[4,4] custom-call(x), custom_call_target="Sharding", sharding={{mesh['x'=2,'y'=2], [{{}}, {{}}]}}
 l = (f32[2,MANUAL], f32[4,4]) custom-call(y, w), custom_call_target="xla.sdy.GlobalToLocalShape", sharding={{INSIDE, INSIDE}}
 c = (f32[2,MANUAL], f32[4,4]) call(l#0, l#1), to_apply=body, sharding={{INSIDE, INSIDE}}
 g = (f32[2,4], f32[4,4]) custom-call(c#0, c#1), custom_call_target="xla.sdy.LocalToGlobalShape", sharding={{{{mesh['x'=2,'y'=2], [{{}}, {{'y'}}]}}, {{mesh['x'=2,'y'=2], [{{}}, {{}}]}}}}
 ROOT u = f32[2,4] get-tuple-element(g), index=0
}}"""  # noqa: E501 - one instruction per line


@pytest.mark.parametrize(
    ("manual", "inside"),
    [("2", "{mesh['x'=2,'y'=2], manual}"), ("4", "{mesh['x'=2,'y'=2], [{?}, {?}], manual={'x'}}")],
)
def test_shard_map_as_shardings_state_it(manual: str, inside: str) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    (summed,) = run(STATED.replace("MANUAL", manual).replace("INSIDE", inside), [x])
    np.testing.assert_array_equal(summed, x[:2] + x[2:])


def test_a_border_that_says_nothing() -> None:
    text = STATED.replace("MANUAL", "2").replace(", sharding={INSIDE, INSIDE}", "")
    with pytest.raises(Unsupported, match="says which axes are manual"):
        run(text, [np.zeros((4, 4), np.float32)])


GSPMD = f"""HloModule m, num_partitions=4
{ADD}
ENTRY e {{
 x = f32[4,3] parameter(0)
 k = f32[4,3] custom-call(x), custom_call_target="Sharding", sharding={{devices=[2,1,2]<=[4] last_tile_dim_replicate}}
 l = f32[2,3] custom-call(k), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
 s = f32[2,3] all-reduce(l), channel_id=1, replica_groups={{{{0,2}},{{1,3}}}}, use_global_device_ids=true, to_apply=add
 i = u32[] partition-id()
 f = f32[] convert(i)
 b = f32[2,3] broadcast(f), dimensions={{}}
 t = f32[2,3] add(s, b)
 m = f32[2,3] custom-call(t), custom_call_target="Sharding", sharding={{manual}}
 ROOT g = f32[2,12] custom-call(m), custom_call_target="SPMDShardToFullShape", sharding={{devices=[1,4]0,2,1,3}}
}}"""  # noqa: E501 - one instruction per line


def test_gspmd_form() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (result,) = run(GSPMD, [x])
    total = x[:2] + x[2:]
    np.testing.assert_array_equal(result, np.concatenate([total + d for d in (0, 2, 1, 3)], axis=1))


def test_the_program_is_known_for_what_it_is() -> None:
    assert has_manual_regions(parse(SHARD_MAP))
    assert not is_per_device(parse(SHARD_MAP))
    partitioned = "HloModule m, num_partitions=4\nENTRY e { ROOT p = u32[] partition-id() }"
    assert is_per_device(parse(partitioned))
    alone = "HloModule m\nENTRY e { ROOT p = u32[] partition-id() }"
    assert not is_per_device(parse(alone))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_partitions=4, ", "", "f32.2,2. is one of several shards"),
        (
            'sharding_per_value<[<@mesh, [{\\"x\\"}, {\\"y',
            'sharding_per_value<[<@m, [{\\"x\\"}, {\\"y',
            "in_shard",
        ),
        ('{\\"x\\"}, {\\"y\\"}]>]>', '{\\"x\\"}, {}]>]>', "tiles do not make up"),
    ],
)
def test_borders_that_do_not_fit(old: str, new: str, message: str) -> None:
    assert old in SHARD_MAP
    with pytest.raises(Unsupported, match=message):
        NumpyBackend().compile(parse(SHARD_MAP.replace(old, new)))


def test_a_border_without_a_sharding() -> None:
    with pytest.raises(Unsupported, match="without a sharding"):
        NumpyBackend().compile(parse(GSPMD.replace(", sharding={devices=[1,4]0,2,1,3}", "")))


def local_arguments(module: Module, arguments: Any) -> list[list[Any]]:
    """Per device, its parts of global arguments."""
    columns = [
        split(np.asarray(value), p.sharding or Sharding("replicated"), module.num_partitions)
        for p, value in zip(module.entry.parameters, arguments)
    ]
    return [list(row) for row in zip(*columns)]


def sharding(text: str) -> Sharding:
    found = parse(
        f"HloModule m\nENTRY e {{ ROOT x = f32[] parameter(0), sharding={text} }}"
    ).entry.root.sharding
    assert found is not None
    return found


@pytest.mark.xla
@pytest.mark.parametrize("name", ["collectives", "pmap_step", "sharded_mlp", "sharded_train_step"])
def test_programs_before_partitioning(corpus: Path, name: str) -> None:
    """XLA partitions the program and runs it on eight devices; put together, the results are ours."""
    (path,) = (corpus / "jax" / name).glob("*.before_optimizations.txt")
    text = path.read_text(encoding="utf-8")
    module = parse(text)
    arguments = generate_inputs(module, 0, None).values
    ours = leaves(NumpyBackend().compile(module).run(arguments))
    theirs, shardings = oracle(8).run_sharded(text, local_arguments(module, arguments), 1, 8)
    assert len(shardings) == len(ours)
    for number, leaf in enumerate(ours):
        parts = [device[number] for device in theirs]
        whole, disagreement = assemble(parts, leaf.shape, sharding(shardings[number]))
        assert disagreement is None
        assert_close(leaf, whole, steps=32)


INSEPARABLE = SHARD_MAP.replace(
    " ROOT r = (f32[4,2], f32[4,4]) tuple(u, v)",
    f""" q = f32[4,2] negate(u)
 m = f32[2,2] custom-call(q), custom_call_target="xla.sdy.GlobalToLocalShape", {
        shardy(
            in_shardings="#sdy.sharding_per_value<[<@mesh, [{'x'}, {}]>]>",
            manual_axes="#sdy<manual_axes{'x', 'y'}>",
        )
    }
 n = f32[2,2] add(m, a)
 h = f32[4,2] custom-call(n), custom_call_target="xla.sdy.LocalToGlobalShape", {
        shardy(
            out_shardings="#sdy.sharding_per_value<[<@mesh, [{'x'}, {}]>]>",
            manual_axes="#sdy<manual_axes{'x', 'y'}>",
        )
    }
 ROOT r = (f32[4,2], f32[4,4]) tuple(h, v)""",
)


def test_regions_that_cannot_be_cut_out() -> None:
    """Every device runs the whole program."""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    result, turned = run(INSEPARABLE, [x])
    np.testing.assert_array_equal(result, np.zeros((4, 2)))
    np.testing.assert_array_equal(turned, run(SHARD_MAP, [x])[1])


def test_a_probe_sees_the_program_as_it_is() -> None:
    module = parse(SHARD_MAP)
    seen: dict[str, Any] = {}
    executable = NumpyBackend().compile(module)
    executable.run(
        [np.ones((4, 4), np.float32)], lambda instruction, value: seen.update({instruction.name: value})
    )
    assert {i.name for i in module.entry.instructions if i.opcode != "parameter"} <= set(seen)
    assert seen["l"].shape == (2, 2)
    assert seen["s"].tolist() == [[4, 4], [4, 4]]
