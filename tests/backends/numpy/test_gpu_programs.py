"""Fusions of optimised GPU and CPU programs, whatever their kind, and calls that belong to no library."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import assert_close, parse, run
from support.library_modules import gpu_config, operands_of

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import BackendFailed

GEMM_DIMENSIONS = (
    '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}'
)


def test_triton_product() -> None:
    """The operand converts inside the fusion."""
    config = gpu_config(
        fusion_backend_config='{"kind":"__triton_gemm","triton_gemm_config":{"block_m":"32","block_n":"32",'
        '"block_k":"32","split_k":"1","num_stages":"4","num_warps":"4","num_ctas":"1"}}'
    )
    text = f"""HloModule jit_f, is_scheduled=true

%gemm_fusion_dot.1_computation (parameter_0.1: s8[4,6], parameter_1.1: bf16[6,5]) -> bf16[4,5] {{
  %parameter_0.1 = s8[4,6]{{1,0}} parameter(0)
  %convert.1 = bf16[4,6]{{1,0}} convert(%parameter_0.1)
  %parameter_1.1 = bf16[6,5]{{1,0}} parameter(1)
  ROOT %dot.1 = bf16[4,5]{{1,0}} dot(%convert.1, %parameter_1.1), lhs_contracting_dims={{1}},
    rhs_contracting_dims={{0}}
}}

ENTRY %main.2 (a: s8[4,6], b: bf16[6,5]) -> bf16[4,5] {{
  %a = s8[4,6]{{1,0}} parameter(0)
  %b = bf16[6,5]{{1,0}} parameter(1)
  ROOT %gemm_fusion_dot.1 = bf16[4,5]{{1,0}} fusion(%a, %b), kind=kCustom,
    calls=%gemm_fusion_dot.1_computation, backend_config={config}
}}"""
    a, b = operands_of(["s8[4,6]", "bf16[6,5]"], limit=100)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert_close(run(text, [a, b])[0], expected.astype(b.dtype), steps=1)


def test_nested_triton_fusions() -> None:
    tiles = '{"output_tiles":[{"sizes":["16","64"]}],"num_warps":"1"}'
    config = gpu_config(
        fusion_backend_config=f'{{"kind":"__triton_nested_gemm_fusion","block_level_fusion_config":{tiles}}}'
    )
    text = f"""HloModule jit_f
%lhs (p.0: f32[4,6]) -> f32[4,6] {{
  %p.0 = f32[4,6]{{1,0}} parameter(0)
  ROOT %negate.1 = f32[4,6]{{1,0}} negate(%p.0)
}}
%rhs (p.1: f32[6,5]) -> f32[6,5] {{
  ROOT %p.1 = f32[6,5]{{1,0}} parameter(0)
}}
%dot_computation (p.2: f32[4,6], p.3: f32[6,5]) -> f32[4,5] {{
  %p.2 = f32[4,6]{{1,0}} parameter(0)
  %p.3 = f32[6,5]{{1,0}} parameter(1)
  %block.1 = f32[4,6]{{1,0}} fusion(%p.2), kind=kCustom, calls=%lhs, backend_config={config}
  %block.2 = f32[6,5]{{1,0}} fusion(%p.3), kind=kCustom, calls=%rhs, backend_config={config}
  ROOT %dot.1 = f32[4,5]{{1,0}} dot(%block.1, %block.2), lhs_contracting_dims={{1}},
    rhs_contracting_dims={{0}}
}}
ENTRY %main (a: f32[4,6], b: f32[6,5]) -> f32[4,5] {{
  %a = f32[4,6]{{1,0}} parameter(0)
  %b = f32[6,5]{{1,0}} parameter(1)
  ROOT %fusion.1 = f32[4,5]{{1,0}} fusion(%a, %b), kind=kCustom, calls=%dot_computation,
    backend_config={config}
}}"""
    a, b = operands_of(["f32[4,6]", "f32[6,5]"])
    assert_close(run(text, [a, b])[0], -(a @ b), steps=4)


SOFTMAX = """HloModule softmax
%maximum (m.0: f32[], m.1: f32[]) -> f32[] {
  %m.0 = f32[] parameter(0)
  %m.1 = f32[] parameter(1)
  ROOT %m = f32[] maximum(%m.0, %m.1)
}
%add (a.0: f32[], a.1: f32[]) -> f32[] {
  %a.0 = f32[] parameter(0)
  %a.1 = f32[] parameter(1)
  ROOT %a = f32[] add(%a.0, %a.1)
}
%softmax (p: f32[7,9]) -> f32[7,9] {
  %p = f32[7,9]{1,0} parameter(0)
  %lowest = f32[] constant(-inf)
  %largest = f32[7]{0} reduce(%p, %lowest), dimensions={1}, to_apply=%maximum
  %spread = f32[7,9]{1,0} broadcast(%largest), dimensions={0}
  %shifted = f32[7,9]{1,0} subtract(%p, %spread)
  %powers = f32[7,9]{1,0} exponential(%shifted)
  %zero = f32[] constant(0)
  %total = f32[7]{0} reduce(%powers, %zero), dimensions={1}, to_apply=%add
  %totals = f32[7,9]{1,0} broadcast(%total), dimensions={0}
  ROOT %result = f32[7,9]{1,0} divide(%powers, %totals)
}
ENTRY %main (x: f32[7,9]) -> f32[7,9] {
  %x = f32[7,9]{1,0} parameter(0)
  ROOT %fusion = f32[7,9]{1,0} fusion(%x), kind=kCustom, calls=%softmax, backend_config=CONFIG
}"""


@pytest.mark.parametrize("kind", ["__triton", "__triton_softmax", "__ynn_fusion", "__xnn_fusion"])
def test_fusions_are_their_computations(kind: str) -> None:
    tiles = '"block_level_fusion_config":{"output_tiles":[{"sizes":["1","9"]}],"num_warps":"1"}'
    config = gpu_config(fusion_backend_config=f'{{"kind":"{kind}",{tiles}}}')
    if kind.endswith("_fusion"):
        config = f'{{"outer_dimension_partitions":[],"fusion_config":{{"kind":"{kind}"}}}}'
    (x,) = operands_of(["f32[7,9]"])
    powers = np.exp(x.astype(np.float64))
    expected = powers / powers.sum(1, keepdims=True)
    assert_close(run(SOFTMAX.replace("CONFIG", config), [x])[0], expected.astype(np.float32), steps=2)


def test_library_call_on_a_slice() -> None:
    """A dynamic-slice fusion: slices are read and written by the library in place."""
    gemm = gpu_config(
        gemm_backend_config=f'{{"alpha_real":1,"beta":0,{GEMM_DIMENSIONS},"epilogue":"DEFAULT"}}'
    )
    fusion = gpu_config(
        fusion_backend_config='{"kind":"__custom_fusion","custom_fusion_config":{"name":"dynamic_address_computation"}}'
    )
    text = f"""HloModule jit_f, is_scheduled=true
%address-computation (p0: f32[3,4,4], p1: f32[4,4], p2: f32[3,4,4], p3: s32[], p4: s32[])
    -> (f32[3,4,4], s8[1024]) {{
  %p0 = f32[3,4,4]{{2,1,0}} parameter(0)
  %p1 = f32[4,4]{{1,0}} parameter(1)
  %p2 = f32[3,4,4]{{2,1,0}} parameter(2)
  %p3 = s32[] parameter(3)
  %p4 = s32[] parameter(4)
  %slice = f32[1,4,4]{{2,1,0}} dynamic-slice(%p0, %p3, %p4, %p4), dynamic_slice_sizes={{1,4,4}}
  %bitcast.1 = f32[4,4]{{1,0}} bitcast(%slice)
  %custom-call.1 = (f32[4,4]{{1,0}}, s8[1024]{{0}}) custom-call(%bitcast.1, %p1),
    custom_call_target="__cublas$gemm", backend_config={gemm}
  %get-tuple-element.0 = f32[4,4]{{1,0}} get-tuple-element(%custom-call.1), index=0
  %bitcast.2 = f32[1,4,4]{{2,1,0}} bitcast(%get-tuple-element.0)
  %dynamic-update-slice.1 = f32[3,4,4]{{2,1,0}} dynamic-update-slice(%p2, %bitcast.2, %p3, %p4, %p4)
  %get-tuple-element.1 = s8[1024]{{0}} get-tuple-element(%custom-call.1), index=1
  ROOT %tuple = (f32[3,4,4]{{2,1,0}}, s8[1024]{{0}}) tuple(%dynamic-update-slice.1, %get-tuple-element.1)
}}

ENTRY %main (a: f32[3,4,4], b: f32[4,4], c: f32[3,4,4], i: s32[]) -> f32[3,4,4] {{
  %a = f32[3,4,4]{{2,1,0}} parameter(0)
  %b = f32[4,4]{{1,0}} parameter(1)
  %c = f32[3,4,4]{{2,1,0}} parameter(2)
  %i = s32[] parameter(3)
  %zero = s32[] constant(0)
  %fusion = (f32[3,4,4]{{2,1,0}}, s8[1024]{{0}}) fusion(%a, %b, %c, %i, /*index=5*/%zero), kind=kCustom,
    calls=%address-computation, backend_config={fusion}
  ROOT %result = f32[3,4,4]{{2,1,0}} get-tuple-element(%fusion), index=0
}}"""
    a, b, c = operands_of(["f32[3,4,4]", "f32[4,4]", "f32[3,4,4]"])
    expected = c.copy()
    expected[1] = a[1] @ b
    assert_close(run(text, [a, b, c, np.int32(1)])[0], expected, steps=4)


def test_kernels_with_workspace() -> None:
    """Fusions for cuDNN and CUTLASS hand out memory that nobody reads."""
    text = """HloModule jit_f
%cudnn (p0: f32[4,4], p1: f32[4,4]) -> (f32[4,4], u8[64]) {
  %p0 = f32[4,4]{1,0} parameter(0)
  %p1 = f32[4,4]{1,0} parameter(1)
  %dot = f32[4,4]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %workspace = u8[64]{0} custom-call(), custom_call_target="TARGET"
  ROOT %tuple = (f32[4,4]{1,0}, u8[64]{0}) tuple(%dot, %workspace)
}
ENTRY %main (a: f32[4,4], b: f32[4,4]) -> (f32[4,4], u8[64]) {
  %a = f32[4,4]{1,0} parameter(0)
  %b = f32[4,4]{1,0} parameter(1)
  ROOT %fusion = (f32[4,4]{1,0}, u8[64]{0}) fusion(%a, %b), kind=kCustom, calls=%cudnn,
    backend_config={"fusion_backend_config":{"kind":"__cudnn$fusion","cudnn_fusion_config":{"plan_id":"0"}}}
}"""
    a, b = operands_of(["f32[4,4]", "f32[4,4]"])
    for target in ("__nop", "__custom_kernel_fusion$workspace"):
        product, workspace = run(text.replace("TARGET", target), [a, b])
        np.testing.assert_array_equal(product, a @ b)
        assert workspace.shape == (64,)


@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("target", ["TopK", "__gpu$TopK"])
def test_top_k(target: str, direction: str) -> None:
    text = f"""HloModule m
%compare (p.0: f32[], p.1: f32[], p.2: s32[], p.3: s32[]) -> pred[] {{
  %p.0 = f32[] parameter(0)
  %p.1 = f32[] parameter(1)
  %p.2 = s32[] parameter(2)
  %p.3 = s32[] parameter(3)
  ROOT %r = pred[] compare(%p.0, %p.1), direction={direction}
}}
ENTRY %main (x: f32[3,40]) -> (f32[3,5], s32[3,5]) {{
  %x = f32[3,40]{{1,0}} parameter(0)
  ROOT %top = (f32[3,5]{{1,0}}, s32[3,5]{{1,0}}) custom-call(%x), custom_call_target="{target}",
    called_computations={{%compare}}, api_version=API_VERSION_TYPED_FFI
}}"""
    (x,) = operands_of(["f32[3,40]"])
    values, places = run(text, [x])
    ascending = np.sort(x, axis=1)
    np.testing.assert_array_equal(
        values, ascending[:, ::-1][:, :5] if direction == "GT" else ascending[:, :5]
    )
    np.testing.assert_array_equal(np.take_along_axis(x, places, axis=1), values)


TOKENS = """HloModule m
ENTRY %main (holds: pred[], x: f32[2]) -> f32[2] {
  %holds = pred[] parameter(0)
  %x = f32[2]{0} parameter(1)
  %assert = token[] custom-call(%holds), custom_call_target="__xla_gpu_assert",
    custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI,
    backend_config={error_msg = "x must be small"}
  %print = token[] custom-call(%x), custom_call_target="__xla_gpu_debug_print",
    custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config={format = "x is $0"}
  %nop = token[] custom-call(%print), custom_call_target="NopReturnToken", custom_call_has_side_effect=true
  %after = token[] after-all(%assert, %nop)
  ROOT %y = f32[2]{0} add-dependency(%x, %after)
}"""


def test_assertions_of_the_program() -> None:
    executable = NumpyBackend().compile(parse(TOKENS))
    x = np.ones(2, np.float32)
    assert np.asarray(executable.run([np.array(True), x])).tolist() == [1, 1]
    with pytest.raises(BackendFailed, match="x must be small"):
        executable.run([np.array(False), x])
