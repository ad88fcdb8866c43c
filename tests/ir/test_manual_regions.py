"""Manual regions cut out of programs on global arrays."""

from __future__ import annotations

import pytest

from hlotool.ir.module import Computation, Module
from hlotool.ir.partitioning import REGION_TARGET, NotSeparable, RegionFinder
from hlotool.parser.reader import parse_module

ENTER = (
    'custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.manual_axes="#sdy<%s>"}'
)
LEAVE = ENTER.replace("GlobalToLocal", "LocalToGlobal")
XY, X = 'manual_axes{\\"x\\", \\"y\\"}', 'manual_axes{\\"x\\"}'


def module(*lines: str, called: str = "") -> Module:
    body = "\n ".join(lines)
    return parse_module(f"HloModule m, num_partitions=4\n{called}\nENTRY e {{\n {body}\n}}")


def outlined(program: Module) -> Computation:
    return RegionFinder().outlined(program.entry)


def opcodes(computation: Computation) -> list[str]:
    return [i.opcode for i in computation.instructions]


SIMPLE = (
    "x = f32[4] parameter(0)",
    "y = f32[4] add(x, x)",
    f"l = f32[1] custom-call(y), {ENTER % XY}",
    "c = f32[1] negate(l)",
    f"g = f32[4] custom-call(c), {LEAVE % XY}",
    "ROOT r = f32[4] multiply(g, y)",
)


def test_a_region_becomes_one_call() -> None:
    result = outlined(module(*SIMPLE))
    assert opcodes(result) == ["parameter", "add", "custom-call", "get-tuple-element", "multiply"]
    call = result.instructions[2]
    assert call.attributes["custom_call_target"] == REGION_TARGET
    assert [operand.name for operand in call.operands] == ["y"]
    (region,) = call.called
    assert opcodes(region) == ["parameter", "custom-call", "negate", "custom-call", "tuple"]
    assert [i.name for i in region.instructions[1:4]] == ["l", "c", "g"]
    assert result.root.name == "r"
    assert [operand.name for operand in result.root.operands] == ["g", "y"]


def test_a_program_without_regions_stays_itself() -> None:
    program = module("x = f32[4] parameter(0)", "ROOT y = f32[4] add(x, x)")
    assert outlined(program) is program.entry


def test_independent_regions_stay_apart() -> None:
    program = module(
        "x = f32[4] parameter(0)",
        f"a = f32[1] custom-call(x), {ENTER % XY}",
        f"b = f32[4] custom-call(a), {LEAVE % XY}",
        f"c = f32[1] custom-call(b), {ENTER % X}",
        f"d = f32[1] custom-call(x), {ENTER % X}",
        "s = f32[1] add(c, d)",
        f"ROOT f = f32[4] custom-call(s), {LEAVE % X}",
    )
    regions = RegionFinder().regions(program.entry)
    assert [[i.name for i in region.instructions] for region in regions] == [["a", "b"], ["c", "d", "s", "f"]]
    assert [[i.name for i in region.inputs] for region in regions] == [["x"], ["b", "x"]]
    assert opcodes(outlined(program)) == ["parameter"] + ["custom-call", "get-tuple-element"] * 2


def test_a_region_waits_for_inputs_that_come_later_in_the_text() -> None:
    program = module(
        "x = f32[4] parameter(0)",
        f"a = f32[1] custom-call(x), {ENTER % XY}",
        "n = f32[1] negate(a)",
        f"b = f32[4] custom-call(n), {LEAVE % XY}",
        "z = f32[4] add(x, x)",
        f"c = f32[1] custom-call(z), {ENTER % XY}",
        "s = f32[1] add(n, c)",
        f"d = f32[4] custom-call(s), {LEAVE % XY}",
        "ROOT t = (f32[4], f32[4]) tuple(b, d)",
    )
    result = outlined(program)
    assert opcodes(result) == ["parameter", "add", "custom-call", *["get-tuple-element"] * 2, "tuple"]


def test_callees_that_know_their_device_belong_to_the_region() -> None:
    """A region without inputs: what it computes is made of the device's number."""
    called = "number {\n i = u32[] partition-id()\n ROOT f = f32[] convert(i)\n}"
    program = module(
        "x = f32[4] parameter(0)",
        "c = f32[] call(), to_apply=number",
        "b = f32[1] reshape(c)",
        f"g = f32[4] custom-call(b), {LEAVE % XY}",
        "ROOT r = f32[4] add(g, x)",
        called=called,
    )
    (region,) = RegionFinder().regions(program.entry)
    assert [i.name for i in region.instructions] == ["c", "b", "g"]
    assert region.inputs == ()


def test_callees_with_regions_of_their_own_stay_global() -> None:
    called = "inner {\n p = f32[4] parameter(0)\n " + "\n ".join(
        [f"l = f32[1] custom-call(p), {ENTER % XY}", f"ROOT g = f32[4] custom-call(l), {LEAVE % XY}\n}}"]
    )
    program = module("x = f32[4] parameter(0)", "ROOT c = f32[4] call(x), to_apply=inner", called=called)
    finder = RegionFinder()
    assert finder.regions(program.entry) == []
    assert opcodes(finder.outlined(program.computations[0])) == [
        "parameter",
        "custom-call",
        "get-tuple-element",
    ]


def test_the_sharding_of_an_input_goes_along() -> None:
    """SPMDFullToShardShape reads it off its operand."""
    program = parse_module("""HloModule m, num_partitions=4
ENTRY e {
  x = f32[4] parameter(0)
  k = f32[4] copy(x), sharding={devices=[4]<=[4]}
  l = f32[1] custom-call(k), custom_call_target="SPMDFullToShardShape", sharding={manual}
  ROOT g = f32[4] custom-call(l), custom_call_target="SPMDShardToFullShape", sharding={devices=[4]<=[4]}
}""")
    (region,) = outlined(program).instructions[2].called
    assert region.parameters[0].sharding == program.entry.instructions[1].sharding


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((*SIMPLE[:3], "ROOT c = f32[1] negate(l)"), "the result of e differs from device to device"),
        ((*SIMPLE[:4], f"g = f32[4] custom-call(c), {LEAVE % X}", SIMPLE[5]), "left along other axes"),
        (
            (
                *SIMPLE[:5],
                "q = f32[4] negate(g)",
                f"m = f32[1] custom-call(q), {ENTER % XY}",
                "s = f32[1] add(m, c)",
                f"h = f32[4] custom-call(s), {LEAVE % XY}",
                "ROOT r = f32[4] multiply(g, h)",
            ),
            "needs what is made of its results",
        ),
    ],
)
def test_what_cannot_be_cut(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(NotSeparable, match=message):
        outlined(module(*lines))


def test_long_chains_do_not_recurse() -> None:
    chain = [f"y{i} = f32[4] negate({f'y{i - 1}' if i else 'x'})" for i in range(5000)]
    program = module(
        "x = f32[4] parameter(0)",
        f"a = f32[1] custom-call(x), {ENTER % XY}",
        "n = f32[1] negate(a)",
        f"b = f32[4] custom-call(n), {LEAVE % XY}",
        *chain,
        f"c = f32[1] custom-call(y4999), {ENTER % XY}",
        "s = f32[1] add(n, c)",
        f"ROOT d = f32[4] custom-call(s), {LEAVE % XY}",
    )
    assert len(outlined(program).instructions) == 5004
