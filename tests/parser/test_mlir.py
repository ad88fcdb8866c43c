"""Our reader of StableHLO text: beside XLA's importer, on what that refuses, and on damaged texts."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from hlotool.backends.numpy import create
from hlotool.errors import HloSyntaxError, HlotoolError, Unsupported, UsageError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.attributes import ConvolutionDimensions, Sharding
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parser.mlir.reader import parse_mlir

LOOP = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<4xf32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.sine %arg0 : tensor<4xf32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %c_1 = stablehlo.constant dense<5> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = func.call @inner(%iterArg_0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      stablehlo.return %3, %2 : tensor<i32>, tensor<4xf32>
    }
    return %0#1, %0#0 : tensor<4xf32>, tensor<i32>
  }
  func.func private @inner(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
BRANCHES = """func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1]
    : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = "stablehlo.case"(%arg1) ({
    %3 = stablehlo.negate %0 : tensor<3xf32>
    stablehlo.return %3 : tensor<3xf32>
  }, {
    %4 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 3, 1>, start_indices = array<i64: 0, 0>,
      strides = array<i64: 1, 1>}> : (tensor<3x4xf32>) -> tensor<3x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<3x1xf32>) -> tensor<3xf32>
    %6 = stablehlo.add %5, %0 : tensor<3xf32>
    stablehlo.return %6 : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""
INDEXING = """func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<4x1xi32>)
    -> (tensor<5x3xf32>, tensor<4x3xf32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
    slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<4x1xi32>) -> tensor<4x3xf32>
  %1 = "stablehlo.scatter"(%arg0, %arg1, %0) <{indices_are_sorted = false, scatter_dimension_numbers =
    #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<5x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return %1, %0 : tensor<5x3xf32>, tensor<4x3xf32>
}
"""
CONTRACTIONS = """func.func @main(%x: tensor<1x6x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x6x6x6xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x6x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1, 3, 2] : (tensor<1x6x6x4xf32>) -> tensor<1x6x4x6xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2],
    precision = [DEFAULT, DEFAULT] : (tensor<1x6x6x4xf32>, tensor<1x6x4x6xf32>) -> tensor<1x6x6x6xf32>
  return %2 : tensor<1x6x6x6xf32>
}
"""
OF_ONE_TENSOR = """func.func @main(%a: tensor<f32>) -> tensor<2x3xf32> {
  %s = shape.const_shape [2, 3] : tensor<2xindex>
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) {broadcast_dimensions = array<i64>}
    : (tensor<f32>, tensor<2xindex>) -> tensor<2x3xf32>
  %1 = tensor.cast %0 : tensor<2x3xf32> to tensor<?x3xf32>
  %2 = tensor.cast %1 : tensor<?x3xf32> to tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
"""
BUFFERS = """func.func @main(%a: tensor<2xf32>, %t: !stablehlo.token) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "Pin", api_version = 4 : i32}
    : (tensor<2xf32>) -> memref<2xf32>
  %1 = "stablehlo.custom_call"(%0) {call_target_name = "Unpin", api_version = 4 : i32}
    : (memref<2xf32>) -> tensor<2xf32>
  %2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3,>,
    is_host_transfer = true} : (!stablehlo.token) -> !stablehlo.token
  return %1 : tensor<2xf32>
}
"""
SCAN = """func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  %0, %1 = chlo.scan (%a) inits (%b) dimension = 0 attributes {is_reverse = true} {
  ^bb0(%input: tensor<3xf32>, %carry: tensor<3xf32>):
    %2 = stablehlo.subtract %input, %carry : tensor<3xf32>
    stablehlo.return %2, %2 : tensor<3xf32>, tensor<3xf32>
  } : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return %0, %1 : tensor<2x3xf32>, tensor<3xf32>
}
"""
SCALARS = """func.func @main(%a: tensor<4xf32>) -> (tensor<1x4xf32>, tensor<2x2xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %yes = arith.constant true
  %half = arith.constant 5.0e-1 : f32
  %size = tensor.dim %a, %zero : tensor<4xf32>
  %cast = arith.index_cast %size : index to i64
  %sizes = tensor.from_elements %one, %cast : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %a, %sizes : (tensor<4xf32>, tensor<2xi64>) -> tensor<1x4xf32>
  %1 = tensor.splat %half : tensor<4xf32>
  %2 = stablehlo.multiply %a, %1 : tensor<4xf32>
  %shape = shape.shape_of %a : tensor<4xf32> -> tensor<1xindex>
  %3 = stablehlo.dynamic_reshape %2, %shape : (tensor<4xf32>, tensor<1xindex>) -> tensor<4xf32>
  %4 = stablehlo.reshape %3 : (tensor<4xf32>) -> tensor<2x2xf32>
  return %0, %4 : tensor<1x4xf32>, tensor<2x2xf32>
}
"""


def einsum(letters: str, left: str, right: str, result: str) -> str:
    a, b, c = (f"tensor<{sizes}f32>" for sizes in (left, right, result))
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %0 = "stablehlo.einsum"(%a, %b) {{einsum_config = "{letters}"}} : ({a}, {b}) -> {c}
  return %0 : {c}
}}
"""


def index_select(given: str, index: str, result: str, dim: int, batches: int) -> str:
    a, b, c = f"tensor<{given}xf32>", f"tensor<{index}i32>", f"tensor<{result}xf32>"
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %0 = "stablehlo.torch_index_select"(%a, %b) {{dim = {dim} : i64, batch_dims = {batches} : i64}}
    : ({a}, {b}) -> {c}
  return %0 : {c}
}}
"""


PROGRAMS = {
    "loop": LOOP,
    "branches": BRANCHES,
    "indexing": INDEXING,
    "contractions": CONTRACTIONS,
    "one tensor": OF_ONE_TENSOR,
    "einsum": einsum("bij,bjk->bki", "2x3x4x", "2x4x5x", "2x5x3x"),
    "einsum that sums": einsum("ij,k->ik", "3x4x", "5x", "3x5x"),
    "einsum of any rank": einsum("...ij,...jk->...ik", "2x3x4x", "4x5x", "2x3x5x"),
    "einsum of a diagonal": einsum("bii,bij->jb", "2x3x3x", "2x3x4x", "4x2x"),
    "einsum to a diagonal": einsum("ij,jk->iik", "3x4x", "4x5x", "3x3x5x"),
    "einsum that broadcasts": einsum("bij,bjk->bik", "1x3x4x", "2x4x5x", "2x3x5x"),
    "einsum of two ranks": einsum("i...j,...jk->k...i", "3x7x1x4x", "2x4x5x", "5x7x2x3x"),
    "einsum without a result": einsum("...ij,jk", "2x3x4x", "4x5x", "2x3x5x"),
    "index select": index_select("5x7x4", "2x3x", "5x2x3x4", 1, 0),
    "index select of batches": index_select("5x7x4x6", "5x7x2x", "5x7x4x2", 3, 2),
    "numbers that are no tensors": SCALARS,
    "scan": SCAN,
    "index select by a scalar": index_select("5x7", "", "7", 0, 0),
}


def results(module: Module, values: tuple[object, ...]) -> list[bytes]:
    value = create().compile(module).run(values)  # type: ignore[arg-type]
    parts = value if isinstance(value, tuple) else (value,)
    return [np.ascontiguousarray(part).tobytes() for part in parts]


@pytest.mark.xla
@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_to_what_xla_reads(name: str) -> None:
    from hlotool.parser.proto.module import parse_module_proto
    from hlotool.sources.mlir import hlo_proto

    theirs = parse_module_proto(hlo_proto(PROGRAMS[name].encode(), name), name)
    ours = parse_mlir(PROGRAMS[name], name)
    assert not verify(ours)
    values = generate_inputs(theirs, 3).values
    assert results(ours, values) == results(theirs, values)


def test_buffers_are_pinned_and_tokens_come_alone() -> None:
    module = parse_mlir(BUFFERS)
    assert verify(module) == []
    assert [str(i.shape) for i in module.instructions() if i.opcode == "custom-call"] == [
        "b(f32[2])",
        "f32[2]",
    ]
    assert [str(i.shape) for i in module.instructions() if i.opcode == "recv"] == ["((), u32[], token[])"]


def test_a_sharding_may_be_the_bytes_of_a_proto() -> None:
    text = ONE.format('stablehlo.abs %arg0 {mhlo.sharding = "SHARDING"} : tensor<2xf32>')
    bytes_of_two = r"\08\03\1A\01\02\22\02\00\01"
    root = parse_mlir(text.replace("SHARDING", bytes_of_two)).entry.root
    assert root.attributes["sharding"] == Sharding("tiled", tile_dims=(2,), devices=(0, 1))
    with pytest.raises(HloSyntaxError, match="unreadable sharding"):
        parse_mlir(text.replace("SHARDING", bytes_of_two[:-4]))


def test_forms_of_2020() -> None:
    text = """func @main(%p: tensor<i1>, %a: tensor<4xf32>, %n: tensor<i64>) -> tensor<2xf32> {
  %0 = "mhlo.if"(%p, %a, %a) ({
  ^bb0(%x: tensor<4xf32>):
    %1 = "mhlo.log"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "mhlo.return"(%1) : (tensor<4xf32>) -> ()
  }, {
  ^bb0(%x: tensor<4xf32>):
    "mhlo.return"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "mhlo.dynamic-slice"(%0, %n) {slice_sizes = dense<2> : tensor<1xi64>}
    : (tensor<4xf32>, tensor<i64>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
"""
    module = parse_mlir(text)
    assert verify(module) == []
    value = create().compile(module).run((np.array(False), np.arange(4, dtype=np.float32), np.array(1)))
    assert np.asarray(value).tolist() == [1, 2]
    with pytest.raises(HloSyntaxError, match="needs branches"):
        parse_mlir(text.replace("(%p, %a, %a)", "(%p, %a)").replace("i1>, tensor<4xf32>,", "i1>,"))


def test_a_loop_computes_what_it_says() -> None:
    x = np.array([0.5, -1, 2, 3], np.float32)
    value = create().compile(parse_mlir(LOOP)).run((x,))
    assert isinstance(value, tuple)
    expected = x
    for _ in range(5):
        expected = (expected * np.sin(x)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(value[0]), expected, rtol=1e-6)
    assert int(np.asarray(value[1])) == 5


def test_foreign_attributes_and_resources_have_no_effect() -> None:
    text = """#map = affine_map<(d0) -> (d0)>
module @m attributes {iree.target = #iree.x<"a", {b = [1]}>, dlti.spec = #dlti<y>} {
  func.func @main(%arg0: tensor<2xf32> {tt.shard = #tt.mesh<"x", 2 -> 3>}) -> tensor<2xf32> {
    %c = stablehlo.constant dense_resource<blob> : tensor<2xf32>
    %0 = stablehlo.add %arg0, %c {foreign.note = #foreign<z>} : tensor<2xf32> loc("here"("a.py":1:2))
    return %0 : tensor<2xf32>
  }
}
{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}
"""
    module = parse_mlir(text)
    assert results(module, (np.zeros(2, np.float32),)) == [np.array([1, 2], np.float32).tobytes()]
    assert [i.metadata.op_name for i in module.instructions() if i.metadata] == ["here"]


ONE = (
    "func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{\n  %0 = {}\n  return %0 : tensor<2xf32>\n}}\n"
)


@pytest.mark.parametrize(
    ("operation", "error", "column", "words"),
    [
        ("stablehlo.add %arg0, %arg1 : tensor<2xf32>", HloSyntaxError, 29, "no value %arg1"),
        ("foo.bar %arg0 : tensor<2xf32>", Unsupported, 8, "foo.bar is no operation"),
        ('foo.bar "name"() %arg0 : tensor<2xf32>', Unsupported, 8, "foo.bar is no operation"),
        ("foo.bar %arg0 : i32 into tensor<2xf32>", Unsupported, 8, "foo.bar is no operation"),
        ("arith.constant 0 : index", HloSyntaxError, 0, "does not return"),
        ("shape.shape_of %arg0 : tensor<2xf32> -> tensor<2xindex>", HloSyntaxError, 8, "has 1 numbers for"),
        (
            'stablehlo.abs %arg0 : tensor<2xf32>\n"stablehlo.infeed"() : () -> ()',
            HloSyntaxError,
            0,
            "returns a token at least",
        ),
        ("sdy.data_flow_edge %arg0 : tensor<2xf32>", Unsupported, 8, "partitioning began"),
        ("foo.bar %arg0 to ^bb1 step [% : tensor<2xf32>", Unsupported, 8, "foo.bar is no operation"),
        ("stablehlo.add %arg0, %arg0 : tensor<2xi32>", HloSyntaxError, 0, "does not return"),
        ("stablehlo.add %arg0 : tensor<2xf32>", HloSyntaxError, 8, "takes 2 operands"),
        ("stablehlo.convert %arg0 : (tensor<3xf32>) -> tensor<2xf32>", HloSyntaxError, 26, "says otherwise"),
        (
            "stablehlo.convert %arg0 : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.1>>",
            Unsupported,
            53,
            "quant",
        ),
        ("stablehlo.abs %arg0 ? tensor<2xf32>", HloSyntaxError, 0, "expected"),
    ],
)
def test_errors_say_where(operation: str, error: type[HlotoolError], column: int, words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        parse_mlir(ONE.format(operation), "f.mlir")
    location = raised.value.location  # type: ignore[attr-defined]
    assert min(location.line, location.column) >= 1
    if column:
        assert (location.line, location.column) == (2, column)


def test_a_convolution_whose_padding_is_a_constant() -> None:
    """XLA reads it only after StableHLO's passes have made it static; StableHLO's interpreter runs it."""
    whole = """func.func @main(%x: tensor<1x6x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32> {
  %p = stablehlo.constant dense<1> : tensor<2x2xi64>
  %0 = "stablehlo.NAME"(%x, %wPADDING) {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->
    [b, 0, 1, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x6x6x2xf32>, tensor<3x3x2x4xf32>TYPE) -> tensor<1x6x6x4xf32>
  return %0 : tensor<1x6x6x4xf32>
}
"""
    dynamic = whole.replace("NAME", "dynamic_conv").replace("PADDING", ", %p")
    static = whole.replace("NAME", "convolution").replace("PADDING", "").replace("TYPE", "")
    static = static.replace(" {dimension", " {padding = dense<1> : tensor<2x2xi64>, dimension")
    ours = parse_mlir(dynamic.replace("TYPE", ", tensor<2x2xi64>"))
    values = generate_inputs(ours, 3).values
    assert results(ours, values) == results(parse_mlir(static), values)


def in_words(number: str) -> str:
    """A convolution whose second spatial dimension is a number that a damaged file gives."""
    words = f"""#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3,
      input_spatial_dimensions = [1, {number}], kernel_input_feature_dimension = 2,
      kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0,
      output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>"""
    return f"""func.func @main(%x: tensor<1x6x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32> {{
  %0 = "stablehlo.convolution"(%x, %w) <{{dimension_numbers = {words}, batch_group_count = 1 : i64,
    feature_group_count = 1 : i64}}> : (tensor<1x6x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (einsum("ij->j", "3x4x", "4x", "4x"), "needs two operands as einsum_config"),
        (einsum("ijk,jk->ik", "3x4x", "4x5x", "3x5x"), "has 2 dimensions, and 'ijk'"),
        (einsum("0ij,0jk->0ik", "2x3x4x", "2x4x5x", "2x3x5x"), "'0ij' as their letters"),
        (einsum("ij,jk->iz", "3x4x", "4x5x", "3x5x"), "has a result of dimensions iz"),
        (index_select("5x7", "2x", "5x2", 2, 0), "has no dimension 2"),
        (in_words("9223372036854775807"), "has no 4 dimensions"),
        (OF_ONE_TENSOR.replace("[2, 3]", "[2]"), "has 1 numbers for"),
        (OF_ONE_TENSOR.replace("to tensor<?x3xf32>", "to tensor<?x4xf32>"), "makes"),
    ],
)  # fmt: skip
def test_what_older_operations_must_not_be(text: str, words: str) -> None:
    with pytest.raises(HloSyntaxError, match=words):
        parse_mlir(text)


def test_a_name_is_given_once() -> None:
    """As in MLIR: redefinition of symbol named 'f'; a module in a module has names of its own."""
    text = ONE.format("stablehlo.abs %arg0 : tensor<2xf32>")
    with pytest.raises(HloSyntaxError, match="a second function @") as raised:
        parse_mlir(text + text)
    assert raised.value.location is not None
    assert raised.value.location.line == text.count("\n") + 1
    assert parse_mlir(f"{text}module @inner {{\n{text}}}\n").entry.root.opcode == "abs"


def test_the_entry() -> None:
    one = "func.func {}@{}(%a: tensor<f32>) -> tensor<f32> {{\n  return %a : tensor<f32>\n}}\n"
    assert parse_mlir(one.format("", "forward")).entry.name == "forward"
    several = one.format("", "f") + one.format("public ", "g") + one.format("private ", "h")
    with pytest.raises(UsageError, match=r"--entry NAME: @f \(line 1\), @g \(line 4\)"):
        parse_mlir(several)
    assert parse_mlir(several, entry="h").entry.name == "h"
    with pytest.raises(UsageError, match="no function @x"):
        parse_mlir(several, entry="x")


def test_a_target_that_is_written_as_a_symbol_is_a_text() -> None:
    module = parse_mlir(ONE.format("stablehlo.custom_call @foo(%arg0) : (tensor<2xf32>) -> tensor<2xf32>"))
    assert type(module.entry.root.attributes["custom_call_target"]) is str


def test_what_is_called_by_others_is_no_entry() -> None:
    one = "func.func @{}(%a: tensor<f32>) -> tensor<f32> {{\n  {}\n  return %b : tensor<f32>\n}}\n"
    called = one.format("g", "%b = stablehlo.abs %a : tensor<f32>")
    calling = one.format("f", "%b = call @g(%a) : (tensor<f32>) -> tensor<f32>")
    assert parse_mlir(called + calling).entry.name == "f"


def test_a_module_of_another_dialect_may_hold_functions() -> None:
    inner = ONE.format("stablehlo.abs %arg0 : tensor<2xf32>")
    assert (
        parse_mlir(f"module {{\nfoo.device_module {{\nbuiltin.module {{\n{inner}}}\n}}\n}}").entry.root.opcode
        == "abs"
    )


WORDS = """input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = {0},
kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = {1},
output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = {0}"""


@pytest.mark.parametrize(
    "numbers",
    [
        "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        f"#stablehlo.conv<raw {WORDS.format('[1, 2]', '[0, 1]')}>",
        "{" + WORDS.format("dense<[1, 2]> : tensor<2xi64>", "dense<[0, 1]> : tensor<2xi64>") + "}",
    ],
)
def test_dimension_numbers_of_convolutions(numbers: str) -> None:
    types = ("tensor<1x8x8x3xf32>", "tensor<1x1x3x4xf32>", "tensor<1x8x8x4xf32>")
    text = f"""func.func @main(%x: {types[0]}, %w: {types[1]}) -> {types[2]} {{
  %0 = "stablehlo.convolution"(%x, %w) {{dimension_numbers = {numbers}, feature_group_count = 1 : i64,
    batch_group_count = 1 : i64}} : ({types[0]}, {types[1]}) -> {types[2]}
  return %0 : {types[2]}
}}"""
    module = parse_mlir(text)
    verify(module)
    spelled = module.entry.root.attributes["dim_labels"]
    assert spelled == ConvolutionDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


@pytest.mark.parametrize(
    "name", ["arith.constant", "std.constant", "sdy.constant", "util.unfoldable_constant"]
)
def test_constants_of_other_dialects(name: str) -> None:
    module = parse_mlir(ONE.format(f"{name} dense<[1.0, 2.0]> : tensor<2xf32>"))
    literal = module.entry.root.literal
    assert literal is not None
    assert np.asarray(literal.value).tolist() == [1, 2]


@pytest.mark.parametrize("value", ["dense_resource<__elided__>", "dense<...>"])
def test_elided_values_are_elided(value: str) -> None:
    module = parse_mlir(ONE.format(f"stablehlo.constant {value} : tensor<2xf32>"))
    assert [i.literal.elided for i in module.instructions() if i.literal] == [True]


def test_damaged_texts_give_a_module_or_a_typed_error() -> None:
    draw = random.Random(11)
    pieces = [
        *'{}()<>[]"%:=,',
        "->",
        "tensor<",
        "%arg0",
        "-1",
        "99999999999",
        "stablehlo.add",
        "\0",
        "!",
        "#loc",
    ]
    for _ in range(400):
        text = draw.choice(list(PROGRAMS.values()))
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(text) + 1)
            cut = draw.choice((0, 0, 1, 5, 40))
            text = text[:at] + draw.choice(["", draw.choice(pieces)]) + text[at + cut :]
        try:
            parse_mlir(text)
        except HlotoolError as error:
            location = getattr(error, "location", None)
            assert location is None or (location.line and location.column), text


def test_long_texts_take_little_time() -> None:
    line = "  %{} = stablehlo.add %arg0, %arg0 : tensor<2xf32>\n"
    body = "".join(line.format(number) for number in range(2000))
    text = (
        f"func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{\n{body}  return %0 : tensor<2xf32>\n}}\n"
    )
    begun = time.process_time()
    parse_mlir(text)
    assert (time.process_time() - begun) / (len(text) / 100_000) < 2


def test_text_is_read_without_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlotool.sources.mlir.find_spec", lambda name: None)
    from hlotool.sources.mlir import read_program

    assert [i.opcode for i in read_program(BRANCHES.encode(), "f.mlir").entry.instructions][
        -1
    ] == "conditional"
    with pytest.raises(HlotoolError, match="is read by jaxlib"):
        read_program(b"ML\xefR\x01\0", "f.mlirbc")


def test_what_hlo_lacks_costs_only_the_function_that_has_it() -> None:
    text = """func.func @narrow(%x: tensor<2xf128>) -> tensor<2xf128> {
  return %x : tensor<2xf128>
}
func.func @wide() -> tensor<2xi1> {
  %0 = stablehlo.constant dense<[0, 1]> : tensor<2xi1>
  return %0 : tensor<2xi1>
}
"""
    found = create().compile(parse_mlir(text, entry="wide")).run([])
    np.testing.assert_array_equal(np.asarray(found), [False, True])
    with pytest.raises(Unsupported, match="f128"):
        parse_mlir(text, entry="narrow")
