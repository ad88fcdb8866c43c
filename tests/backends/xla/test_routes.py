"""Which way a program takes into the compiler is read off the program."""

from __future__ import annotations

import pytest

from hlotool.backends.xla.programs import is_optimised, logical_module, route_for
from hlotool.backends.xla.protocol import Route
from hlotool.facts.platforms import compiled_for
from hlotool.parser.reader import parse_module

FRONTEND = """HloModule m
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  t = f32[3,2]{0,1} transpose(x), dimensions={1,0}
  ROOT c = f32[3,2]{1,0} copy(t)
}
"""

FUSED = """HloModule m{header}
double {{
  p = f32[4]{{0}} parameter(0)
  ROOT s = f32[4]{{0}} add(p, p)
}}
ENTRY e {{
  x = f32[2,2]{{0,1}} parameter(0)
  b = f32[4]{{0}} bitcast(x)
  ROOT f = f32[4]{{0}} fusion(b), kind={kind}, calls=double{config}
}}
"""

CPU = ', backend_config={"outer_dimension_partitions":["2"]}'
GPU = ', backend_config={"operation_queue_id":"0","fusion_backend_config":{"kind":"__triton"}}'
TPU = ', backend_config={"flag_configs":[],"scoped_memory_configs":[]}'


def fused(scheduled: bool = False, kind: str = "kLoop", config: str = "") -> str:
    return FUSED.format(header=", is_scheduled=true" if scheduled else "", kind=kind, config=config)


@pytest.mark.parametrize(
    ("text", "platform", "lets_in", "route"),
    [
        (FRONTEND, "cpu", True, Route.MLIR),
        (fused(), "cpu", True, Route.MLIR),
        (fused(scheduled=True), "cpu", True, Route.POST_SCHEDULER),
        (fused(scheduled=True, config=CPU), "cpu", True, Route.POST_SCHEDULER),
        (fused(scheduled=True, config=CPU), "cpu", False, Route.MLIR),
        (fused(scheduled=True, config=CPU), "gpu", True, Route.MLIR),
        (fused(scheduled=True, config=GPU), "gpu", True, Route.POST_SCHEDULER),
        (fused(scheduled=True, config=GPU), "cpu", True, Route.MLIR),
        (fused(scheduled=True, config=TPU), "cpu", True, Route.MLIR),
    ],
)
def test_the_route_suits_the_program(text: str, platform: str, lets_in: bool, route: Route) -> None:
    assert route_for(parse_module(text), platform, lets_in) is route


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        (FRONTEND, None),
        (fused(), None),
        (fused(config=CPU), "cpu"),
        (fused(config=GPU), "gpu"),
        (fused(kind="kInput"), "gpu"),
        (fused(config=TPU), "tpu"),
        (FRONTEND.replace("{1,0} copy", "{1,0:T(8,128)} copy"), "tpu"),
    ],
)
def test_the_compiler_is_recognised(text: str, platform: str | None) -> None:
    assert compiled_for(parse_module(text)) == platform


def test_layouts_alone_are_no_optimisation() -> None:
    assert not is_optimised(parse_module(FRONTEND))
    assert is_optimised(parse_module(fused()))


def test_a_logical_program_holds_nothing_that_stablehlo_cannot_say() -> None:
    module = parse_module(fused(scheduled=True, config=GPU))
    before = module.to_text()
    logical = logical_module(module)
    assert not is_optimised(logical)
    assert [i.opcode for i in logical.entry.instructions] == ["parameter", "transpose", "reshape", "add"]
    assert "backend_config" not in logical.to_text()
    assert module.to_text() == before
