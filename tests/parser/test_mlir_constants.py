"""Constants of MLIR text: values, shapes, users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import InputError
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.mlir_constants import (
    MlirConstant,
    MlirProgram,
    dense_values,
    read_mlir_constants,
    tensor_shape,
)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("64x3xf32", "f32[64,3]"),
        ("f32", "f32[]"),
        ("0x3xi1", "pred[0,3]"),
        ("30xcomplex<f32>", "c64[30]"),
        ("2xcomplex<f64>", "c128[2]"),
        ("4xui8", "u8[4]"),
        ("4xi4", "s4[4]"),
        ("4xf8E4M3B11FNUZ", "f8e4m3b11fnuz[4]"),
        ("4xf4E2M1FN", "f4e2m1fn[4]"),
        ("4xf6E3M2FN", "f6e3m2fn[4]"),
        ("3x4xbf16, #stablehlo.bounds<3, 4>", "bf16[3,4]"),
    ],
)
def test_types(text: str, shape: str) -> None:
    assert tensor_shape(text).logical_text() == shape


@pytest.mark.parametrize("text", ["?x3xf32", "3x!quant.uniform<i8:f32>", "index", "3xf32x"])
def test_types_that_hlo_has_not(text: str) -> None:
    with pytest.raises(InputError, match="MLIR"):
        tensor_shape(text)


def values(attribute: str, shape: str, **resources: str) -> Any:
    return dense_values(attribute, tensor_shape(shape), resources)


@pytest.mark.parametrize(
    ("attribute", "shape", "expected"),
    [
        ("dense<[[1, -2], [3, 4]]>", "2x2xi32", [[1, -2], [3, 4]]),
        ("dense<7>", "2x3xui8", [[7] * 3] * 2),
        ("dense<[true, false]>", "2xi1", [True, False]),
        ("dense<true>", "i1", True),
        ("dense<[1.500000e+00, 0x7F800000, -2.5]>", "3xf32", [1.5, np.inf, -2.5]),
        ("dense<0xFF80>", "2xbf16", [-np.inf, -np.inf]),
        ("dense<[0x7C00, 1.0]>", "2xf16", [np.inf, 1.0]),
        ("dense<[(0.0,1.0), (-2.5,3.0)]>", "2xcomplex<f32>", [1j, -2.5 + 3j]),
        ("dense<(1.0,2.0)>", "2xcomplex<f64>", [1 + 2j, 1 + 2j]),
        ('dense<"0x000080BF00000040">', "2xf32", [-1.0, 2.0]),
        ('dense<"0x0000803F0000004000000000000080BF">', "2xcomplex<f32>", [1 + 2j, -1j]),
        ('dense<"0x0000803F">', "3xf32", [1.0] * 3),
        ('dense<"0x05">', "4xi1", [True, False, True, False]),
        ('dense<"0x01000100">', "4xi1", [True, False, True, False]),
        ('dense<"0x07F9">', "2xi4", [7, -7]),
        ("dense<>", "0x3xf32", np.zeros((0, 3))),
        ("dense<-9223372036854775808>", "i64", -(2**63)),
    ],
)
def test_values(attribute: str, shape: str, expected: Any) -> None:
    found = values(attribute, shape)
    assert found.shape == tensor_shape(shape).dims
    assert np.array_equal(found.astype(np.result_type(np.asarray(expected))), np.asarray(expected))


def test_resources_begin_with_their_alignment() -> None:
    found = values("dense_resource<w_1>", "2xf32", w_1="04000000000080BF00000040")
    assert found.tolist() == [-1.0, 2.0]
    with pytest.raises(InputError, match="resource w_2 is not in the file"):
        values("dense_resource<w_2>", "2xf32")


@pytest.mark.parametrize(
    ("attribute", "shape"),
    [
        ("dense<[1, 2, 3]>", "2xi32"),
        ('dense<"0x0000">', "2xf32"),
        ("dense<[maybe, false]>", "2xi1"),
        ("dense<[1.0, x]>", "2xf32"),
        ("dense<[1.5, 2]>", "2xi32"),
    ],
)
def test_malformed_values_are_refused(attribute: str, shape: str) -> None:
    with pytest.raises(InputError, match="MLIR"):
        values(attribute, shape)


PROGRAM = """#loc = loc(unknown)
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc(#loc1)
    %c:2, %d = "stablehlo.case"(%cst) ({
      %cst_0 = stablehlo.constant dense<5.0> : tensor<4xf32> loc(#loc1)
      %0 = stablehlo.add %arg0, %cst_0 : tensor<4xf32> loc(#loc3)
      stablehlo.return %0 : tensor<4xf32> loc(#loc1)
    }, {
      %cst_0 = stablehlo.constant dense<6.0> : tensor<4xf32> loc(#loc1)
      %0 = stablehlo.multiply %cst, %cst_0 : tensor<4xf32> loc("in line")
      stablehlo.return %0 : tensor<4xf32> loc(#loc1)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc3)
    %sorted = "stablehlo.sort"(%cst) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32> loc(unknown), %b: tensor<f32> loc(unknown)):
      %0 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      stablehlo.return %0 : tensor<i1> loc(#loc1)
    }) : (tensor<4xf32>) -> tensor<4xbf16> loc(#loc1)
    %1 = stablehlo.convert %cst : (tensor<4xf32>) -> tensor<4xf16> loc(#loc1)
    %2 = stablehlo.convert %1 : (tensor<4xf16>) -> tensor<4xf64> loc(#loc1)
    %3 = stablehlo.add %arg0, %cst : tensor<4xf32> loc(#loc3)
    return %3 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("jit(f)"(#loc))
#loc2 = loc("f.py":3:4 to :9)
#loc3 = loc("jit(f)/add"(#loc2))
"""


def first(program: MlirProgram, constant: MlirConstant) -> float:
    value = program.values(constant)
    assert value is not None
    return float(value.ravel()[0])


def test_names_are_looked_up_in_the_regions_around_them() -> None:
    program = read_mlir_constants(PROGRAM)
    outer, five, six = [c for c in program.constants if c.operation == "stablehlo.constant"]
    assert [first(program, c) for c in (outer, five, six)] == [1.0, 5.0, 6.0]
    assert outer.shape == ArrayShape(ElementType.F32, (4,))
    assert outer.users == {
        ("stablehlo.case", ""),
        ("stablehlo.multiply", "in line"),
        ("stablehlo.convert", "jit(f)"),
        ("stablehlo.sort", ""),
        ("stablehlo.add", "jit(f)/add"),
    }
    assert five.users == {("stablehlo.add", "jit(f)/add")}
    assert six.users == {("stablehlo.multiply", "in line")}


def test_results_that_depend_on_constants_alone_are_computed() -> None:
    program = read_mlir_constants(PROGRAM)
    known = {c.name: program.values(c) for c in program.constants if c.operation != "stablehlo.constant"}
    assert {name: None if value is None else value.tolist() for name, value in known.items()} == {
        "%0": [6.0, 12.0, 18.0, 24.0],
        "%1": None,  # f32 to f16 rounds
        "%2": None,
    }
    assert {shape.logical_text() for shape in program.computed} == {"f32[4]", "bf16[4]"}


def test_text_that_is_no_mlir_has_no_constants() -> None:
    program = read_mlir_constants("HloModule x\n\nENTRY %main {\n  ROOT %c = f32[] constant(1)\n}\n")
    assert program.constants == []


_AUTHOR = """
import json, sys
import jax, jax.numpy as jnp, ml_dtypes, numpy as np
jax.config.update("jax_enable_x64", True)
found = {}
for name in json.loads(sys.argv[1]):
    dtype = jnp.dtype(name)
    for size in (13, 120):
        values = np.arange(size) % 7 - (0 if name in ("uint2", "uint4", "bool") or name[0] == "u" else 3)
        if name == "complex64" or name == "complex128":
            values = values + 1j * np.arange(size)
        array = values.astype(dtype)
        text = jax.jit(lambda array=array: jnp.asarray(array)).lower().as_text()
        found[f"{name} {size}"] = [text, array.tobytes().hex()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def written_by_jax() -> dict[str, tuple[str, str]]:
    """MLIR text and bytes of one array per type and way of writing."""
    types = (
        "bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
    )
    types += (
        " complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", _AUTHOR, json.dumps(types.split())]
    done = subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", check=True, timeout=120
    )
    return {key: (text, content) for key, (text, content) in json.loads(done.stdout).items()}


@pytest.mark.xla
def test_constants_as_jax_writes_them(written_by_jax: dict[str, tuple[str, str]]) -> None:
    for key, (text, content) in written_by_jax.items():
        program = read_mlir_constants(text)
        big = [c for c in program.constants if c.shape.size > 1]
        assert len(big) == 1, key
        value = program.values(big[0])
        assert value is not None
        assert value.tobytes().hex() == content, key


def test_the_program_of_the_corpus(corpus: Path) -> None:
    folder = corpus / "jax" / "table_lookup_elided"
    program = read_mlir_constants(
        (folder / "module_0000.jit_table_lookup" / "module.mlir").read_text(encoding="utf-8")
    )
    big = [c for c in program.constants if c.shape.size > 10]
    assert big
    for constant in big:
        value = program.values(constant)
        assert value is not None
        assert value.shape == constant.shape.dims
