"""Programs in other float types: valid HLO that computes the same, but for roundings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import computes_wide
from hlotool.facts.retyping import (
    Retyped,
    declared_types,
    is_retyped,
    retyped_value,
    widened,
    without_narrow_floats,
)
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, leaves
from hlotool.ir.verifier import verify_or_raise
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
PROGRAMS = [
    "associative_scans",
    "converts",
    "cumulative",
    "dropout",
    "float8_dot",
    "fourier",
    "lu_qr_solve",
    "random_threefry",
    "sorts",
    "top_k",
    "train_mnist_cnn",
    "transformer_bf16",
]


def _run(retyped: Retyped, arguments: Any) -> Any:
    parameters = retyped.module.entry.parameters
    values = [retyped_value(a, p.shape) for a, p in zip(arguments, parameters)]
    return NumpyBackend().compile(retyped.module).run(values)


def _types(module: Module) -> set[ElementType]:
    parts = (part for i in module.instructions() for _, part in leaves(i.shape))
    return {part.element_type for part in parts if isinstance(part, ArrayShape)}


@pytest.mark.parametrize("stage", ["before_optimizations", "cpu_after_optimizations"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_in_other_types_are_valid_and_run(name: str, stage: str) -> None:
    path = sorted((CORPUS / "jax" / name).glob(f"*.{stage}.txt"))[0]
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    arguments = generate_inputs(module).values
    wide = widened(module, computes_wide=computes_wide)
    for retyped in (widened(module), wide, without_narrow_floats(module)):
        verify_or_raise(retyped.module)
        _run(retyped, arguments)
        assert set(retyped.origins.values()) <= set(module.instructions())


def test_wide_programs_know_no_other_float() -> None:
    module = parse_module(
        """ENTRY e {
          x = bf16[4] parameter(0)
          z = c64[4] parameter(1)
          y = f32[4] convert(x)
          r = f32[4] reduce-precision(y), exponent_bits=5, mantissa_bits=2
          m = f32[4] real(z)
          ROOT s = f8e4m3fn[4] convert(r)
        }"""
    )
    kinds = _types(widened(module).module)
    assert {k for k in kinds if k.is_inexact} == {ElementType.F64, ElementType.C128}
    x = np.array([1.17, 2.31, -3.3, 0.01])
    result = _run(widened(module), [x.astype(ml_dtypes.bfloat16), x.astype(np.complex64)])
    np.testing.assert_array_equal(result, x.astype(ml_dtypes.bfloat16).astype(np.float64))


BITS = """ENTRY e {
  u = u32[3] parameter(0)
  nine = u32[] constant(9)
  shift = u32[3] broadcast(nine), dimensions={}
  mantissa = u32[3] shift-right-logical(u, shift)
  one = u32[] constant(0x3f800000)
  ones = u32[3] broadcast(one), dimensions={}
  bits = u32[3] or(mantissa, ones)
  f = f32[3] bitcast-convert(bits)
  minus = f32[] constant(-1)
  offset = f32[3] broadcast(minus), dimensions={}
  uniform = f32[3] add(f, offset)
  ROOT back = u32[3] bitcast-convert(uniform)
}"""


def test_bits_are_those_of_the_declared_type() -> None:
    module = parse_module(BITS.replace("0x3f800000", str(0x3F800000)))
    u = np.uint32([1 << 31, 12345678, 0xFFFFFFFF])
    expected = NumpyBackend().compile(module).run([u])
    wide = widened(module)
    verify_or_raise(wide.module)
    np.testing.assert_array_equal(_run(wide, [u]), expected)
    assert sum(i.opcode == "convert" for i in wide.module.instructions()) == 2


def test_custom_calls_keep_their_types() -> None:
    options = "api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}"
    module = parse_module(
        f"""ENTRY e {{
          x = f32[3,3] parameter(0)
          c = (f32[3,3], s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi", {options}
          ROOT l = f32[3,3] get-tuple-element(c), index=0
        }}"""
    )
    x = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
    wide = widened(module)
    verify_or_raise(wide.module)
    call = next(i for i in wide.module.instructions() if i.opcode == "custom-call")
    assert str(call.shape).startswith("(f32")
    result = _run(wide, [x])
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, NumpyBackend().compile(module).run([x]))


def test_sharding_annotations_are_no_boundary() -> None:
    module = parse_module(
        """ENTRY e {
          x = f32[2] parameter(0)
          ROOT s = f32[2] custom-call(x), custom_call_target="Sharding"
        }"""
    )
    assert not any(i.opcode == "convert" for i in widened(module).module.instructions())


def test_comparators_of_bits_order_the_wider_floats() -> None:
    """Numbers that are the same in bf16 are none in f64, and go before and behind each other as such."""
    text = """HloModule m
    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      zero = s16[] constant(0)
      most = s16[] constant(32767)
      ha = bf16[] convert(a)
      hb = bf16[] convert(b)
      ba = s16[] bitcast-convert(ha)
      bb = s16[] bitcast-convert(hb)
      na = s16[] xor(most, ba)
      nb = s16[] xor(most, bb)
      ma = pred[] compare(ba, zero), direction=LT
      mb = pred[] compare(bb, zero), direction=LT
      oa = s16[] select(ma, na, ba)
      ob = s16[] select(mb, nb, bb)
      ROOT l = pred[] compare(oa, ob), direction=LT
    }
    ENTRY e {
      p = f32[6] parameter(0)
      ROOT s = f32[6] sort(p), dimensions={0}, is_stable=true, to_apply=less
    }"""
    module = parse_module(text)
    values = np.array([1.0001, -1.0, 1.0, -1.0001, 0.0, -2.0], np.float32)
    as_it_is = NumpyBackend().compile(module).run([values])
    assert as_it_is.tolist() == values[[5, 1, 3, 4, 0, 2]].tolist()
    wide = widened(module)
    verify_or_raise(wide.module)
    assert _run(wide, [values]).tolist() == sorted(values.tolist())


def test_other_work_on_bits_keeps_its_types() -> None:
    text = """HloModule m
    ENTRY e {
      p = bf16[] parameter(0)
      b = s16[] bitcast-convert(p)
      one = s16[] constant(1)
      ROOT n = s16[] add(b, one)
    }"""
    wide = widened(parse_module(text))
    verify_or_raise(wide.module)
    assert _run(wide, [np.array(1.0, ml_dtypes.bfloat16)]).tolist() == 0x3F81


LIBRARY_CALL = """ENTRY e {
  a = f8e4m3fn[4,4] parameter(0)
  s = f32[] parameter(1)
  v = bf16[4] parameter(2)
  m = (f8e4m3fn[4,4], f32[], s8[64]) custom-call(a, a, s, s, s), custom_call_target="known",
    operand_layout_constraints={f8e4m3fn[4,4]{1,0}, f8e4m3fn[4,4]{1,0}, f32[], f32[], f32[]},
    frontend_attributes={note="kept"}
  r = f8e4m3fn[4,4] get-tuple-element(m), index=0
  u = bf16[4] custom-call(v), custom_call_target="unknown"
  ROOT t = (f8e4m3fn[4,4], bf16[4]) tuple(r, u)
}"""


def test_calls_with_a_wide_model_are_wide_and_say_what_they_were_declared_in() -> None:
    module = parse_module(LIBRARY_CALL)
    copy = widened(module, computes_wide=lambda call: call.custom_call_target == "known").module
    verify_or_raise(copy)
    calls = {i.custom_call_target: i for i in copy.instructions() if i.opcode == "custom-call"}
    assert str(calls["known"].shape) == "(f64[4,4], f64[], s8[64])"
    operands, results = declared_types(calls["known"])
    assert list(map(str, operands)) == ["f8e4m3fn", "f8e4m3fn", "f32", "f32", "f32"]
    assert list(map(str, results)) == ["f8e4m3fn", "f32", "s8"]
    assert is_retyped(calls["known"])
    assert calls["known"].frontend_attribute("note") == "kept"
    assert str(calls["unknown"].shape) == "bf16[4]"
    assert not is_retyped(calls["unknown"])
    assert list(map(str, declared_types(calls["unknown"])[1])) == ["bf16"]


def test_without_a_word_about_them_calls_keep_their_types() -> None:
    module = parse_module(LIBRARY_CALL)
    for copy in (widened(module).module, without_narrow_floats(module).module):
        shapes = {
            i.custom_call_target: str(i.shape) for i in copy.instructions() if i.opcode == "custom-call"
        }
        assert shapes == {"known": "(f8e4m3fn[4,4], f32[], s8[64])", "unknown": "bf16[4]"}
