"""Collectives of StableHLO that begin and end apart, and Shardy's on whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.numpy import create
from hlotool.errors import HloSyntaxError, HlotoolError, Unsupported
from hlotool.ir.module import Module
from hlotool.ir.types import strip_layouts
from hlotool.ir.verifier import verify
from hlotool.parser.mlir.reader import parse_mlir

SUM = """({
    ^bb1(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""
#: The operation, its attributes, the types of its operand and its result.
COLLECTIVES = {
    "all_reduce": (f"{SUM} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}", "4x4", "4x4"),
    "all_gather": (
        "{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}",
        "8x2",
        "8x4",
    ),
    "collective_permute": ("{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}", "8x2", "8x2"),
    "collective_broadcast": ("{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}", "8x2", "8x2"),
    "reduce_scatter": (
        f"{SUM} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64}}",
        "4x16",
        "4x8",
    ),
    "all_to_all": (
        "{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,"
        " replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}",
        "4x16",
        "8x8",
    ),
    "slice": (
        "{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>}",
        "4x4",
        "2x2",
    ),
}


def begun(name: str, is_ended: bool = True) -> str:
    attributes, given, made = COLLECTIVES[name]
    given, made = f"tensor<{given}xf32>", f"tensor<{made}xf32>"
    future = f"!stablehlo.future<{made}>"
    end = f'%1 = "stablehlo.async_done"(%0) : ({future}) -> {made}\n  return %1 : {made}'
    return f"""func.func @main(%a: {given}) -> {made if is_ended else future} {{
  %0 = "stablehlo.async_start"(%a) ({{
  ^bb0(%b: {given}):
    %c = "stablehlo.{name}"(%b) {attributes} : ({given}) -> {made}
    stablehlo.return %c : {made}
  }}) : ({given}) -> {future}
  {end if is_ended else f"return %0 : {future}"}
}}
"""


def forms(module: Module) -> list[tuple[str, str, list[str]]]:
    """Opcodes and shapes of the entry, with the opcodes of what is called; XLA leaves a constant unused."""
    return [
        (
            i.opcode,
            str(strip_layouts(i.shape)),
            [inner.opcode for c in i.called for inner in c.instructions if inner.opcode != "constant"],
        )
        for i in module.entry.instructions
    ]


@pytest.mark.xla
@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name != "slice"])
def test_what_begins_is_what_xla_reads(name: str, is_ended: bool) -> None:
    from hlotool.parser.proto.module import parse_module_proto
    from hlotool.sources.mlir import hlo_proto

    text = begun(name, is_ended)
    theirs = parse_module_proto(hlo_proto(text.encode(), name), name)
    assert forms(parse_mlir(text)) == forms(theirs)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (begun("slice"), Unsupported, "begins stablehlo.slice"),
        (begun("all_reduce").replace("stablehlo.return %c", "%d = stablehlo.abs %c : tensor<4x4xf32>\n"
         "    stablehlo.return %d"), HloSyntaxError, "a region of one operation"),
        (
            "func.func @main(%f: !stablehlo.future<tensor<2xf32>>) -> tensor<2xf32> {\n"
            '  %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>\n'
            "  return %0 : tensor<2xf32>\n}",
            HloSyntaxError,
            "says otherwise",
        ),
    ],
)  # fmt: skip
def test_what_cannot_begin_or_end(text: str, error: type[HlotoolError], words: str) -> None:
    with pytest.raises(error, match=words):
        parse_mlir(text)


def test_shardy_moves_parts_of_arrays_and_changes_none() -> None:
    """XLA exports these as copies, or as nothing: shardy/stablehlo_round_trip/export_ops.cc."""
    text = """sdy.mesh @mesh = #sdy.mesh<["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<8x8xf32>
  %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{}, {"x", "y"}]> : tensor<8x8xf32>
  %2 = sdy.all_gather [{}, {"y"}] %1 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %3 = sdy.all_slice [{"y"}, {}] %2 out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x8xf32>
  %4 = stablehlo.dot %3, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = sdy.all_reduce {"x"} %4 out_sharding=<@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  %6 = sdy.propagation_barrier %5 allowed_direction=NONE : tensor<8x8xf32>
  %7 = sdy.reduce_scatter [{}, {"x"}] %6 out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x8xf32>
  return %7 : tensor<8x8xf32>
}
"""
    module = parse_mlir(text)
    assert not verify(module)
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(create().compile(module).run([a, b])), a @ b)
    *_, last = (i.frontend_attribute("xla.sdy.sharding") for i in module.entry.instructions)
    assert str(last).replace("\\", "") == '#sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>'
