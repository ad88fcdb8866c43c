"""Programs whose products a library computes, after optimisation, beside what they mean; with faults planted.

Each case is a program in plain HLO, the same one with a library call in the form of its pipeline, and edits
of the latter that make it another program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.lab.conformance.generators.cases import random_array
from support.library_modules import gpu_config

#: What is replaced, and by what.
Edit = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """A program before and after a compiler rewrote it, as for a library or a TPU.

    Attributes:
        before: in plain HLO.
        after: in the form of its pipeline.
        faults: edits of `after`, by name.
    """

    before: str
    after: str
    faults: dict[str, tuple[Edit, ...]]

    def faulty(self, name: str) -> str:
        """`after` with one fault."""
        text = self.after
        for old, new in self.faults[name]:
            assert old in text, f"{name}: {old!r} is not in the text"
            text = text.replace(old, new)
        return text


def arguments_of(module: Module, seed: int) -> list[Any]:
    """Random arguments around 0; what is named like a scale is positive."""
    rng = np.random.default_rng(seed)
    found = []
    for parameter in module.entry.parameters:
        shape = parameter.shape
        assert isinstance(shape, ArrayShape)
        value = random_array(rng, str(shape.element_type), shape.dims, 4)
        found.append(abs(value) + value.dtype.type(0.5) if "scale" in parameter.name else value)
    return found


def gemm_config(alpha: float, beta: float, epilogue: str, contracting: tuple[int, int] = (1, 0)) -> str:
    """The `backend_config` of a product by cuBLAS."""
    return gpu_config(
        gemm_backend_config=f'{{"alpha_real":{alpha},"alpha_imag":0,"beta":{beta},"dot_dimension_numbers":'
        f'{{"lhs_contracting_dimensions":["{contracting[0]}"],"rhs_contracting_dimensions":["{contracting[1]}"],'
        '"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]},"precision_config":{"operand_precision":'
        f'["DEFAULT","DEFAULT"],"algorithm":"ALG_UNSET"}},"epilogue":"{epilogue}"}}'
    )


def _linear(kind: str) -> ProgramCase:
    """max(a w + c, 0)."""
    return ProgramCase(
        f"""ENTRY e {{
  a = {kind}[16,16] parameter(0)
  w = {kind}[16,16] parameter(1)
  c = {kind}[16] parameter(2)
  m = {kind}[16,16] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = {kind}[16,16] broadcast(c), dimensions={{1}}
  s = {kind}[16,16] add(m, b)
  z = {kind}[] constant(0)
  zs = {kind}[16,16] broadcast(z), dimensions={{}}
  ROOT r = {kind}[16,16] maximum(s, zs)
}}""",
        f"""ENTRY e {{
  a = {kind}[16,16]{{1,0}} parameter(0)
  w = {kind}[16,16]{{1,0}} parameter(1)
  c = {kind}[16]{{0}} parameter(2)
  m = ({kind}[16,16]{{1,0}}, s8[64]{{0}}) custom-call(a, w, c), custom_call_target="__cublas$lt$matmul",
    backend_config={gemm_config(1, 0, "BIAS_RELU")}
  ROOT r = {kind}[16,16]{{1,0}} get-tuple-element(m), index=0
}}""",
        {
            "dropped bias": (("(a, w, c)", "(a, w)"), ("BIAS_RELU", "RELU")),
            "dropped activation": (("BIAS_RELU", "BIAS"),),
            "wrong activation": (("BIAS_RELU", "BIAS_GELU"),),
            "alpha": (('"alpha_real":1', '"alpha_real":1.02'),),
            "alpha, less than an ulp": (('"alpha_real":1', '"alpha_real":1.001'),),
            "transposed left": (
                ('"lhs_contracting_dimensions":["1"]', '"lhs_contracting_dimensions":["0"]'),
            ),
            "transposed right": (
                ('"rhs_contracting_dimensions":["0"]', '"rhs_contracting_dimensions":["1"]'),
            ),
            "exchanged operands": (("(a, w, c)", "(w, a, c)"),),
            "bias along rows": (
                (
                    f"({kind}[16,16]{{1,0}}, s8[64]{{0}}) custom-call",
                    f"({kind}[16,16]{{0,1}}, s8[64]{{0}}) custom-call",
                ),
            ),
        },
    )


def _residual(kind: str) -> ProgramCase:
    """(a w) / 2 + 3 x / 4 in f32, rounded once."""
    return ProgramCase(
        f"""ENTRY e {{
  a = {kind}[16,16] parameter(0)
  w = {kind}[16,16] parameter(1)
  x = {kind}[16,16] parameter(2)
  m = f32[16,16] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  h = f32[] constant(0.5)
  hs = f32[16,16] broadcast(h), dimensions={{}}
  p = f32[16,16] multiply(m, hs)
  xf = f32[16,16] convert(x)
  q = f32[] constant(0.75)
  qs = f32[16,16] broadcast(q), dimensions={{}}
  y = f32[16,16] multiply(xf, qs)
  s = f32[16,16] add(p, y)
  ROOT r = {kind}[16,16] convert(s)
}}""",
        f"""ENTRY e {{
  a = {kind}[16,16]{{1,0}} parameter(0)
  w = {kind}[16,16]{{1,0}} parameter(1)
  x = {kind}[16,16]{{1,0}} parameter(2)
  m = ({kind}[16,16]{{1,0}}, s8[64]{{0}}) custom-call(a, w, x), custom_call_target="__cublas$gemm",
    backend_config={gemm_config(0.5, 0.75, "DEFAULT")}
  ROOT r = {kind}[16,16]{{1,0}} get-tuple-element(m), index=0
}}""",
        {
            "alpha": (('"alpha_real":0.5', '"alpha_real":1'),),
            "beta": (('"beta":0.75', '"beta":1'),),
            "beta lost": (("(a, w, x), custom_call_target", "(a, w, a), custom_call_target"),),
            "transposed": (('"lhs_contracting_dimensions":["1"]', '"lhs_contracting_dimensions":["0"]'),),
        },
    )


def _mixed() -> ProgramCase:
    """A product of bf16 whose result is f32."""
    return ProgramCase(
        """ENTRY e {
  a = bf16[16,16] parameter(0)
  w = bf16[16,16] parameter(1)
  ROOT m = f32[16,16] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
        f"""ENTRY e {{
  a = bf16[16,16]{{1,0}} parameter(0)
  w = bf16[16,16]{{1,0}} parameter(1)
  m = (f32[16,16]{{1,0}}, s8[64]{{0}}) custom-call(a, w), custom_call_target="__cublas$gemm",
    backend_config={gemm_config(1, 0, "DEFAULT")}
  ROOT r = f32[16,16]{{1,0}} get-tuple-element(m), index=0
}}""",
        {
            "result in bf16": (
                ("(f32[16,16]{1,0}, s8", "(bf16[16,16]{1,0}, s8"),
                (
                    "ROOT r = f32[16,16]{1,0} get-tuple-element(m), index=0",
                    "n = bf16[16,16]{1,0} get-tuple-element(m), index=0\n"
                    "  ROOT r = f32[16,16]{1,0} convert(n)",
                ),
            ),
            "exchanged operands": (("(a, w)", "(w, a)"),),
        },
    )


def _f8() -> ProgramCase:
    """A product of scaled f8 arrays and its largest magnitude; the result is scaled, limited and f8."""
    return ProgramCase(
        """ENTRY e {
  a = f8e4m3fn[16,16] parameter(0)
  w = f8e4m3fn[16,16] parameter(1)
  a_scale = f32[] parameter(2)
  w_scale = f32[] parameter(3)
  d_scale = f32[] parameter(4)
  af = f32[16,16] convert(a)
  as = f32[16,16] broadcast(a_scale), dimensions={}
  ax = f32[16,16] multiply(af, as)
  wf = f32[16,16] convert(w)
  ws = f32[16,16] broadcast(w_scale), dimensions={}
  wx = f32[16,16] multiply(wf, ws)
  m = f32[16,16] dot(ax, wx), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ds = f32[16,16] broadcast(d_scale), dimensions={}
  s = f32[16,16] multiply(m, ds)
  lo = f32[] constant(-448)
  los = f32[16,16] broadcast(lo), dimensions={}
  hi = f32[] constant(448)
  his = f32[16,16] broadcast(hi), dimensions={}
  c = f32[16,16] clamp(los, s, his)
  ROOT r = f8e4m3fn[16,16] convert(c)
}""",
        f"""ENTRY e {{
  a = f8e4m3fn[16,16]{{1,0}} parameter(0)
  w = f8e4m3fn[16,16]{{1,0}} parameter(1)
  a_scale = f32[] parameter(2)
  w_scale = f32[] parameter(3)
  d_scale = f32[] parameter(4)
  one = f32[] constant(1)
  m = (f8e4m3fn[16,16]{{1,0}}, s8[64]{{0}}) custom-call(a, w, a_scale, w_scale, d_scale),
    custom_call_target="__cublas$lt$matmul$f8", backend_config={gemm_config(1, 0, "DEFAULT", (1, 1))}
  ROOT r = f8e4m3fn[16,16]{{1,0}} get-tuple-element(m), index=0
}}""",
        {
            "lost scale of an operand": (("a_scale, w_scale, d_scale)", "one, w_scale, d_scale)"),),
            "lost scale of the result": (("w_scale, d_scale)", "w_scale, one)"),),
            "scale taken twice": (("a_scale, w_scale, d", "a_scale, a_scale, d"),),
            "transposed": (('"rhs_contracting_dimensions":["1"]', '"rhs_contracting_dimensions":["0"]'),),
            "activation": (('"DEFAULT"}', '"RELU"}'),),
        },
    )


def _convolution(kind: str) -> ProgramCase:
    """max(convolution + side / 2 + c, 0), features last."""
    config = gpu_config(
        cudnn_conv_backend_config='{"activation_mode":"kRelu","conv_result_scale":1,"side_input_scale":0.5,'
        '"algorithm":{"algo_id":"-1"},"leakyrelu_alpha":0}'
    )
    return ProgramCase(
        f"""ENTRY e {{
  x = {kind}[2,6,6,4] parameter(0)
  k = {kind}[4,3,3,4] parameter(1)
  c = {kind}[4] parameter(2)
  side = {kind}[2,6,6,4] parameter(3)
  m = {kind}[2,6,6,4] convolution(x, k), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f
  mf = f32[2,6,6,4] convert(m)
  sf = f32[2,6,6,4] convert(side)
  h = f32[] constant(0.5)
  hs = f32[2,6,6,4] broadcast(h), dimensions={{}}
  y = f32[2,6,6,4] multiply(sf, hs)
  cf = f32[4] convert(c)
  b = f32[2,6,6,4] broadcast(cf), dimensions={{3}}
  t = f32[2,6,6,4] add(mf, y)
  s = f32[2,6,6,4] add(t, b)
  z = f32[] constant(0)
  zs = f32[2,6,6,4] broadcast(z), dimensions={{}}
  u = f32[2,6,6,4] maximum(s, zs)
  ROOT r = {kind}[2,6,6,4] convert(u)
}}""",
        f"""ENTRY e {{
  x = {kind}[2,6,6,4]{{3,2,1,0}} parameter(0)
  k = {kind}[4,3,3,4]{{3,2,1,0}} parameter(1)
  c = {kind}[4]{{0}} parameter(2)
  side = {kind}[2,6,6,4]{{3,2,1,0}} parameter(3)
  zero = {kind}[] constant(0)
  zeros = {kind}[4]{{0}} broadcast(zero), dimensions={{}}
  m = ({kind}[2,6,6,4]{{3,2,1,0}}, u8[0]{{0}}) custom-call(x, k, c, side), window={{size=3x3 pad=1_1x1_1}},
    dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBiasActivationForward",
    backend_config={config}
  ROOT r = {kind}[2,6,6,4]{{3,2,1,0}} get-tuple-element(m), index=0
}}""",
        {
            "dropped bias": (("(x, k, c, side)", "(x, k, zeros, side)"),),
            "dropped activation": (('"kRelu"', '"kNone"'),),
            "wrong activation": (('"kRelu"', '"kRelu6"'),),
            "scale of the result": (('"conv_result_scale":1', '"conv_result_scale":1.02'),),
            "scale of the side input": (('"side_input_scale":0.5', '"side_input_scale":1'),),
            "padding": (("pad=1_1x1_1", "pad=2_0x1_1"),),
            "labels of the kernel": (("b01f_o01i->b01f", "b01f_i01o->b01f"),),
            "window reversed": (("pad=1_1x1_1", "pad=1_1x1_1 rhs_reversal=1x1"),),
        },
    )


def _normalisation(kind: str) -> ProgramCase:
    """Layer normalisation of rows, in f32."""
    config = gpu_config(
        cudnn_norm_backend_config='{"epsilon":0.0625,"algorithm":{},"kind":"LAYER_FWD_INFER"}'
    )
    return ProgramCase(
        f"""add {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}}
ENTRY e {{
  x = {kind}[8,16,1,1] parameter(0)
  g = {kind}[1,16,1,1] parameter(1)
  c = {kind}[1,16,1,1] parameter(2)
  xf = f32[8,16,1,1] convert(x)
  z = f32[] constant(0)
  t = f32[8] reduce(xf, z), dimensions={{1,2,3}}, to_apply=add
  n = f32[] constant(0.0625)
  ns = f32[8] broadcast(n), dimensions={{}}
  mean = f32[8] multiply(t, ns)
  means = f32[8,16,1,1] broadcast(mean), dimensions={{0}}
  d = f32[8,16,1,1] subtract(xf, means)
  dd = f32[8,16,1,1] multiply(d, d)
  v = f32[8] reduce(dd, z), dimensions={{1,2,3}}, to_apply=add
  var = f32[8] multiply(v, ns)
  w = f32[8] add(var, ns)
  f = f32[8] rsqrt(w)
  fs = f32[8,16,1,1] broadcast(f), dimensions={{0}}
  y = f32[8,16,1,1] multiply(d, fs)
  gf = f32[1,16,1,1] convert(g)
  gr = f32[16] reshape(gf)
  gs = f32[8,16,1,1] broadcast(gr), dimensions={{1}}
  yg = f32[8,16,1,1] multiply(y, gs)
  cf = f32[1,16,1,1] convert(c)
  cr = f32[16] reshape(cf)
  cs = f32[8,16,1,1] broadcast(cr), dimensions={{1}}
  yc = f32[8,16,1,1] add(yg, cs)
  ROOT r = {kind}[8,16,1,1] convert(yc)
}}""",
        f"""ENTRY e {{
  x = {kind}[8,16,1,1]{{3,2,1,0}} parameter(0)
  g = {kind}[1,16,1,1]{{3,2,1,0}} parameter(1)
  c = {kind}[1,16,1,1]{{3,2,1,0}} parameter(2)
  m = ({kind}[8,16,1,1]{{3,2,1,0}}, u8[0]{{0}}) custom-call(x, g, c), custom_call_target="__cudnn$norm",
    backend_config={config}
  ROOT r = {kind}[8,16,1,1]{{3,2,1,0}} get-tuple-element(m), index=0
}}""",
        {
            "epsilon": (('"epsilon":0.0625', '"epsilon":0.05'),),
            "exchanged scale and shift": (("(x, g, c)", "(x, c, g)"),),
            "dropped shift": (("(x, g, c)", "(x, g, g)"),),
        },
    )


def _softmax(kind: str) -> ProgramCase:
    """Softmax of rows, in f32."""
    return ProgramCase(
        f"""add {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}}
max {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q)
}}
ENTRY e {{
  x = {kind}[16,16] parameter(0)
  xf = f32[16,16] convert(x)
  low = f32[] constant(-inf)
  m = f32[16] reduce(xf, low), dimensions={{1}}, to_apply=max
  ms = f32[16,16] broadcast(m), dimensions={{0}}
  d = f32[16,16] subtract(xf, ms)
  p = f32[16,16] exponential(d)
  z = f32[] constant(0)
  t = f32[16] reduce(p, z), dimensions={{1}}, to_apply=add
  ts = f32[16,16] broadcast(t), dimensions={{0}}
  y = f32[16,16] divide(p, ts)
  ROOT r = {kind}[16,16] convert(y)
}}""",
        f"""ENTRY e {{
  x = {kind}[16,16]{{1,0}} parameter(0)
  y = {kind}[16,16]{{1,0}} add(x, x)
  ROOT m = {kind}[16,16]{{1,0}} custom-call(x), custom_call_target="__onednn$softmax",
    backend_config={{"onednn_softmax_config":{{"softmax_axis":1}}}}
}}""",
        {
            "axis": (('"softmax_axis":1', '"softmax_axis":0'),),
            "another operand": (("custom-call(x)", "custom-call(y)"),),
        },
    )


def _onednn(kind: str) -> ProgramCase:
    """tanh(a wᵀ + c)."""
    return ProgramCase(
        f"""ENTRY e {{
  a = {kind}[16,16] parameter(0)
  w = {kind}[16,16] parameter(1)
  c = {kind}[16] parameter(2)
  m = {kind}[16,16] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  b = {kind}[16,16] broadcast(c), dimensions={{1}}
  s = {kind}[16,16] add(m, b)
  ROOT r = {kind}[16,16] tanh(s)
}}""",
        f"""ENTRY e {{
  a = {kind}[16,16]{{1,0}} parameter(0)
  w = {kind}[16,16]{{1,0}} parameter(1)
  c = {kind}[16]{{0}} parameter(2)
  ROOT m = {kind}[16,16]{{1,0}} custom-call(a, w, c), custom_call_target="__onednn$matmul",
    backend_config={{"onednn_matmul_config":{{"transpose_b":true,"fusions":{{"ops":["BIAS","TANH"]}}}}}}
}}""",
        {
            "dropped bias": (("(a, w, c)", "(a, w)"), ('["BIAS","TANH"]', '["TANH"]')),
            "dropped activation": (('["BIAS","TANH"]', '["BIAS"]'),),
            "wrong activation": (('"TANH"', '"SIGMOID"'),),
            "not transposed": (('"transpose_b":true', '"transpose_b":false'),),
        },
    )


#: By name: every library in the narrow types that it is called with, and in f32.
LIBRARY_CASES = {
    **{f"cublas-lt-{kind}": _linear(kind) for kind in ("bf16", "f16", "f32")},
    **{f"cublas-{kind}": _residual(kind) for kind in ("bf16", "f16")},
    "cublas-mixed": _mixed(),
    "cublas-f8": _f8(),
    **{f"cudnn-convolution-{kind}": _convolution(kind) for kind in ("bf16", "f16")},
    **{f"cudnn-norm-{kind}": _normalisation(kind) for kind in ("bf16", "f32")},
    **{f"onednn-softmax-{kind}": _softmax(kind) for kind in ("bf16",)},
    **{f"onednn-matmul-{kind}": _onednn(kind) for kind in ("bf16", "f32")},
}
