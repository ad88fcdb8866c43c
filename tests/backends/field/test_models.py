"""Library calls of optimised programs against plain HLO that means the same, or nearly."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.library_modules import gpu_config

import hlotool
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import compare_modules

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }"


@dataclass(frozen=True)
class Pair:
    """A call, and what it means.

    Attributes:
        operands: shapes.
        result: shape of the first result.
        call: the custom call's attributes.
        plain: instructions on p0, p1, … separated by `;`, the last of which is the result.
        wrong: what to replace in `plain`, and by what, for it to mean something else.
        has_memory: a second result is memory that the library works in.
    """

    operands: tuple[str, ...]
    result: str
    call: str
    plain: str
    wrong: tuple[str, str]
    has_memory: bool = True


def proved(pair: Pair, plain: str) -> ExactResult:
    parameters = "\n".join(f"p{n} = {shape} parameter({n})" for n, shape in enumerate(pair.operands))
    names = ", ".join(f"p{n}" for n in range(len(pair.operands)))
    *lines, last = plain.split(";")
    root = f"ROOT r = {pair.result} custom-call({names}), {pair.call}"
    if pair.has_memory:
        call = f"c = ({pair.result}, u8[64]) custom-call({names}), {pair.call}"
        root = f"{call}\nROOT r = {pair.result} get-tuple-element(c), index=0"
    bodies = "\n".join([*lines, f"ROOT {last.strip()}"]), root
    texts = [f"HloModule m\n{SUM}\nENTRY e {{\n{parameters}\n{body}\n}}\n" for body in bodies]
    return compare_modules(*map(hlotool.parse, texts))


def scalar(name: str, value: str, shape: str) -> str:
    return f"{name}c = f32[] constant({value}); {name} = {shape} broadcast({name}c), dimensions={{}};"


def gemm(epilogue: str, alpha: float = 1, beta: float = 0) -> str:
    dimensions = '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}'
    config = gpu_config(
        gemm_backend_config=f'{{"alpha_real":{alpha},"alpha_imag":0,"beta":{beta},'
        f'"dot_dimension_numbers":{dimensions},"epilogue":"{epilogue}"}}'
    )
    return f'custom_call_target="__cublas$lt$matmul", backend_config={config}'


def convolution(target: str, **config: object) -> str:
    sections = ",".join(f'"{key}":{value}' for key, value in {"conv_result_scale": 1, **config}.items())
    attributes = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f"
    text = gpu_config(cudnn_conv_backend_config=f"{{{sections}}}")
    return f'{attributes}, custom_call_target="__cudnn${target}", backend_config={text}'


T = "f32[4,5]"
IMAGE, KERNEL, OUTPUT = "f32[2,6,5,4]", "f32[3,3,3,4]", "f32[2,6,5,3]"
PRODUCT = f"d = {T} dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}};"

PAIRS = {
    "product with addend": Pair(
        ("f32[4,6]", "f32[6,5]", T),
        T,
        gemm("DEFAULT", alpha=2, beta=0.5),
        f"{PRODUCT} {scalar('two', '2', T)} {scalar('half', '0.5', T)} a = {T} multiply(d, two);"
        f" b = {T} multiply(p2, half); r = {T} add(a, b)",
        ("multiply(p2, half)", "multiply(p2, two)"),
    ),
    "product with bias and relu": Pair(
        ("f32[4,6]", "f32[6,5]", "f32[5]"),
        T,
        gemm("BIAS_RELU"),
        f"{PRODUCT} b = {T} broadcast(p2), dimensions={{1}}; s = {T} add(d, b); {scalar('zero', '0', T)}"
        f" r = {T} maximum(s, zero)",
        ("maximum", "minimum"),
    ),
    "product with gelu": Pair(
        ("f32[4,6]", "f32[6,5]"),
        T,
        gemm("GELU"),
        f"{PRODUCT} {scalar('k', '0.044715', T)} {scalar('f', '0.797884583', T)} {scalar('h', '0.5', T)}"
        f" {scalar('one', '1', T)} s = {T} multiply(d, d); q = {T} multiply(s, d); u = {T} multiply(q, k);"
        f" v = {T} add(d, u); w = {T} multiply(v, f); t = {T} tanh(w); o = {T} add(t, one);"
        f" x = {T} multiply(o, h); r = {T} multiply(d, x)",
        ("0.044715", "0.044716"),
    ),
    "convolution": Pair(
        (IMAGE, KERNEL),
        OUTPUT,
        convolution("convForward"),
        f"r = {OUTPUT} convolution(p0, p1), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f",
        ("o01i", "o10i"),
    ),
    "gradient of the input": Pair(
        (OUTPUT, KERNEL),
        IMAGE,
        convolution("convBackwardInput"),
        f"r = {IMAGE} convolution(p0, p1), window={{size=3x3 pad=1_1x1_1 rhs_reversal=1x1}},"
        " dim_labels=b01f_i01o->b01f",
        (" rhs_reversal=1x1", ""),
    ),
    "gradient of the kernel": Pair(
        (IMAGE, OUTPUT),
        KERNEL,
        convolution("convBackwardFilter"),
        f"r = {KERNEL} convolution(p0, p1), window={{size=6x5 pad=1_1x1_1}}, dim_labels=f01b_i01o->f01b",
        ("pad=1_1x1_1", "pad=1_1x1_1 rhs_reversal=1x1"),
    ),
    "convolution with bias, side input and activation": Pair(
        (IMAGE, KERNEL, "f32[3]", OUTPUT),
        OUTPUT,
        convolution("convBiasActivationForward", side_input_scale=0.25, activation_mode='"kTanh"'),
        f"c = {OUTPUT} convolution(p0, p1), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f;"
        f" {scalar('q', '0.25', OUTPUT)} s = {OUTPUT} multiply(p3, q);"
        f" b = {OUTPUT} broadcast(p2), dimensions={{3}};"
        f" t = {OUTPUT} add(c, s); u = {OUTPUT} add(t, b); r = {OUTPUT} tanh(u)",
        ("tanh(u)", "tanh(t)"),
    ),
    "softmax": Pair(
        (T,),
        T,
        'custom_call_target="__onednn$softmax", backend_config={"onednn_softmax_config":{"softmax_axis":1}}',
        f"e = {T} exponential(p0); z = f32[] constant(0);"
        f" s = f32[4] reduce(e, z), dimensions={{1}}, to_apply=sum;"
        f" b = {T} broadcast(s), dimensions={{0}}; r = {T} divide(e, b)",
        ("divide(e, b)", "multiply(e, b)"),
        has_memory=False,
    ),
    "layer normalisation": Pair(
        (T, "f32[1,5]", "f32[1,5]"),
        T,
        'custom_call_target="__cudnn$norm", backend_config='
        + gpu_config(cudnn_norm_backend_config='{"epsilon":0.001,"kind":"LAYER_FWD_INFER"}'),
        f"z = f32[] constant(0); s = f32[4] reduce(p0, z), dimensions={{1}}, to_apply=sum;"
        f" fc = f32[] constant(0.2); f = f32[4] broadcast(fc), dimensions={{}}; m = f32[4] multiply(s, f);"
        f" mb = {T} broadcast(m), dimensions={{0}}; x = {T} subtract(p0, mb); xx = {T} multiply(x, x);"
        f" v = f32[4] reduce(xx, z), dimensions={{1}}, to_apply=sum; va = f32[4] multiply(v, f);"
        f" {scalar('e', '0.001', 'f32[4]')} ve = f32[4] add(va, e); q = f32[4] rsqrt(ve);"
        f" qb = {T} broadcast(q), dimensions={{0}}; y = {T} multiply(x, qb);"
        f" g = f32[5] reshape(p1); gb = {T} broadcast(g), dimensions={{1}}; o = {T} multiply(y, gb);"
        f" h = f32[5] reshape(p2); hb = {T} broadcast(h), dimensions={{1}}; r = {T} add(o, hb)",
        ("0.001", "0.002"),
    ),
}


@pytest.mark.parametrize("title", PAIRS)
def test_a_call_is_what_it_means(title: str) -> None:
    pair = PAIRS[title]
    result = proved(pair, pair.plain)
    assert (result.refused or result.structural, result.relation) == ("", Relation.EQUAL)
    assert not result.boxes[1]


@pytest.mark.parametrize("title", PAIRS)
def test_a_call_is_nothing_else(title: str) -> None:
    pair = PAIRS[title]
    assert pair.wrong[0] in pair.plain
    result = proved(pair, pair.plain.replace(*pair.wrong))
    assert result.relation is Relation.UNEQUAL
