"""Fused attention by cuDNN and Transformer Engine: against softmax in f64; gradients against differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, gpu_config, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, FEATURES = 2, 4, 2, 6, 8, 5


@dataclass
class Case:
    """What a call is about; arrays are [batch, length, heads, features], as JAX programs hold them."""

    mask: str = "NO_MASK"
    bias: tuple[int, ...] | None = None
    window: int = 0
    scale: float = 0.5

    @property
    def lengths(self) -> list[Array]:
        """Numbers of queries and of keys."""
        padded = self.mask.startswith("PADDING")
        return [np.array([4, 6], np.int32), np.array([8, 5], np.int32)] if padded else []

    def kept(self) -> Array:
        row, column = np.arange(QUERIES)[:, None], np.arange(KEYS)
        kept = np.ones((BATCH, 1, QUERIES, KEYS), np.bool_)
        if self.mask.endswith("CAUSAL"):
            kept &= column <= row
        if self.window:
            kept &= row - column < self.window
        if self.lengths:
            queries, keys = (n.reshape(-1, 1, 1, 1) for n in self.lengths)
            kept &= (row < queries) & (column < keys)
        return kept

    def forward(self, query: Array, key: Array, value: Array, bias: Array | None) -> tuple[Array, Array]:
        """Output [batch, heads, length, features] and logarithms of sums, in f64."""
        q, k, v = (x.astype(np.float64).swapaxes(1, 2) for x in (query, key, value))
        k, v = (np.repeat(x, HEADS // KEY_HEADS, axis=1) for x in (k, v))
        scores = self.scale * q @ k.swapaxes(2, 3)
        if bias is not None:
            scores = scores + bias.astype(np.float64)
        powers = np.where(self.kept(), np.exp(scores), 0)
        total = powers.sum(-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(powers / total, nan=0.0) @ v, np.log(total)[..., 0]


CASES = [
    Case(),
    Case("CAUSAL"),
    Case("CAUSAL", window=3),
    Case("PADDING"),
    Case("PADDING_CAUSAL", bias=(1, HEADS)),
    Case(bias=(BATCH, HEADS)),
    Case(bias=(1, 1)),
]


def shapes(kind: str, case: Case) -> list[str]:
    q = f"{kind}[{BATCH},{QUERIES},{HEADS},{FEATURES}]"
    kv = f"{kind}[{BATCH},{KEYS},{KEY_HEADS},{FEATURES}]"
    bias = [f"{kind}[{case.bias[0]},{case.bias[1]},{QUERIES},{KEYS}]"] if case.bias else []
    return [q, kv, kv, *bias]


def dimension_numbers(lhs: int, rhs: int, lhs_batch: str, rhs_batch: str) -> str:
    return (
        f'{{"lhs_contracting_dimensions":["{lhs}"],"rhs_contracting_dimensions":["{rhs}"],'
        f'"lhs_batch_dimensions":{lhs_batch},"rhs_batch_dimensions":{rhs_batch}}}'
    )


def products(*named: tuple[str, int, int, str, str]) -> str:
    return "".join(f'"{name}_dot_dimension_numbers":{dimension_numbers(*rest)},' for name, *rest in named)


#: Batch dimensions of [batch, length, heads, features] and of probabilities [batch, heads, …].
BLHF, BH = '["0","2"]', '["0","1"]'
FORWARD = products(("bmm1", 3, 3, BLHF, BLHF), ("bmm2", 3, 1, BH, BLHF))
BACKWARD = products(
    ("bmm1_grad_gemm1", 2, 1, BH, BLHF),
    ("bmm1_grad_gemm2", 3, 1, BH, BLHF),
    ("bmm2_grad_gemm1", 2, 1, BH, BLHF),
    ("bmm2_grad_gemm2", 3, 3, BLHF, BLHF),
)


def fmha_config(case: Case, numbers: str, more: str = "") -> str:
    return gpu_config(
        cudnn_fmha_backend_config=f'{{"algorithm":{{"algo_id":"0"}},"fmha_scale":{case.scale},"dropout_rate":0,'
        f'{numbers}"seed":"42","is_flash_attention":true,"mask_type":"{case.mask}",'
        f'"sliding_window_length":{case.window},"max_seg_per_batch":1,"is_paged_attention":false{more}}}'
    )


def fmha(case: Case, kind: str, training: bool = True) -> str:
    """The module of a forward call; lengths come last."""
    operands = [*shapes(kind, case), *(["s32[2]"] * len(case.lengths))]
    output = f"{kind}[{BATCH},{HEADS},{QUERIES},{FEATURES}]{{3,1,2,0}}"
    statistics = f"f32[{BATCH},{HEADS},{QUERIES}], " if training else ""
    target = "__cudnn$fmhaScaleBiasSoftmax" if case.bias else "__cudnn$fmhaSoftmax"
    return call_module(target, f"({output}, {statistics}u8[16])", operands, fmha_config(case, FORWARD))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_forward(case: Case, kind: str) -> None:
    values = operands_of(shapes(kind, case))
    output, statistics, _ = run(fmha(case, kind), [*values, *case.lengths])
    expected, logs = case.forward(*values[:3], values[3] if case.bias else None)
    assert_close(output, rounded_to(kind, expected), steps=1)
    assert_close(statistics, logs.astype(np.float32), steps=8)
    inference = run(fmha(case, kind, training=False), [*values, *case.lengths])
    assert len(inference) == 2
    np.testing.assert_array_equal(inference[0].astype(np.float32), output.astype(np.float32))


def differences(case: Case, values: list[Array], gradient: Array, which: int, at: tuple[int, ...]) -> float:
    """Derivative of <gradient, output> by one element, in f64."""
    total = 0.0
    bias = values[3] if case.bias else None
    for step in (1e-5, -1e-5):
        values[which][at] += step
        total += (gradient * case.forward(*values[:3], bias)[0]).sum() * np.sign(step)
        values[which][at] -= step
    return total / 2e-5


def check_gradients(case: Case, values: list[Array], gradient: Array, gradients: list[Array]) -> None:
    """Against differences at a few elements; f32 computes the gradients."""
    wide = [v.astype(np.float64) for v in values]
    upstream = gradient.astype(np.float64).swapaxes(1, 2)
    rng = np.random.default_rng(0)
    for which, found in enumerate(gradients):
        largest = float(np.abs(found).max())
        for _ in range(4):
            at = tuple(int(rng.integers(n)) for n in found.shape)
            exact = differences(case, wide, upstream, which, at)
            assert float(found[at]) == pytest.approx(exact, abs=1e-4 * largest)


@pytest.mark.parametrize("case", CASES)
def test_backward(case: Case) -> None:
    operands = shapes("f32", case)
    values = operands_of(operands)
    gradient = operands_of(operands[:1], seed=11)[0]
    bias = values[3:]
    output, statistics = case.forward(*values[:3], bias[0] if bias else None)
    statistics = np.where(np.isneginf(statistics), 0, statistics).astype(np.float32)
    rows = f"f32[{BATCH},{HEADS},{QUERIES}]"
    lengths = ["s32[2]"] * len(case.lengths)
    listed = [*operands[:3], rows, operands[0], *operands[3:], operands[0], *lengths]
    q = f"f32[{BATCH},{HEADS},{QUERIES},{FEATURES}]"
    kv = f"f32[{BATCH},{KEY_HEADS},{KEYS},{FEATURES}]"
    suffix = "ScaleBiasSoftmaxBackward" if case.bias else "SoftmaxBackward"
    text = call_module(
        f"__cudnn$fmha{suffix}",
        f"({', '.join([q, kv, kv, *operands[3:], 'u8[16]'])})",
        listed,
        fmha_config(case, BACKWARD),
    )
    heads_later = output.astype(np.float32).swapaxes(1, 2)
    *results, _ = run(text, [*values[:3], statistics, gradient, *bias, heads_later, *case.lengths])
    # Gradients of queries, keys and values come as [batch, heads, length, features].
    found = [r.swapaxes(1, 2) for r in results[:3]] + results[3:]
    check_gradients(case, values, gradient, found)


def test_pages() -> None:
    """Keys and values in pages give the same output as in one piece."""
    case = Case("PADDING")
    q, k, v = operands_of(shapes("f32", case))
    pages = [x.swapaxes(1, 2).reshape(BATCH, KEY_HEADS, 2, KEYS // 2, FEATURES) for x in (k, v)]
    order = np.array([[3, 1], [0, 2]], np.int32)
    scattered = [np.empty((4, KEY_HEADS, KEYS // 2, FEATURES), np.float32) for _ in pages]
    for target, page in zip(scattered, pages):
        for batch in range(BATCH):
            for block in range(2):
                target[order[batch, block]] = page[batch, :, block]
    table = order.reshape(2, 1, 2, 1)
    paged = products(("bmm1", 3, 3, BLHF, BH), ("bmm2", 3, 2, BH, BH))
    block = f"f32[4,{KEY_HEADS},{KEYS // 2},{FEATURES}]"
    operands = [shapes("f32", case)[0], block, block, "s32[2]", "s32[2]", "s32[2,1,2,1]", "s32[2,1,2,1]"]
    config = fmha_config(case, paged).replace('"is_paged_attention":false', '"is_paged_attention":true')
    result = f"(f32[{BATCH},{HEADS},{QUERIES},{FEATURES}], u8[16])"
    text = call_module("__cudnn$fmhaSoftmax", result, operands, config)
    output = run(text, [q, *scattered, *case.lengths, table, table])[0]
    np.testing.assert_array_equal(output, run(fmha(case, "f32"), [q, k, v, *case.lengths])[0])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"dropout_rate":0', '"dropout_rate":0.1', "dropout"),
        ('"mask_type":"NO_MASK"', '"mask_type":"ALIBI"', "ALiBi"),
        ('"max_seg_per_batch":1', '"max_seg_per_batch":3', "packed"),
        ('"mask_type":"NO_MASK"', '"mask_type":"PADDING"', "3 operands"),
        ('"bmm1_dot', '"other_dot', "no dot dimensions"),
        (f"f32[{BATCH},{HEADS},{QUERIES}],", f"bf16[{BATCH},{HEADS},{QUERIES},{KEYS}],", "that keeps bf16"),
    ],
)
def test_refusals(old: str, new: str, reason: str) -> None:
    text = fmha(Case(), "bf16")
    assert old in text
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text.replace(old, new)))


#: `NVTE_Mask_Type`.
def test_causal_masks_as_configs_had_them_until_2024() -> None:
    # Then the enum mask_type took the place of the flag is_causal_mask (XLA's change 11449).
    case = Case(mask="CAUSAL")
    listed = shapes("f32", case)
    text, values = fmha(case, "f32", training=False), operands_of(listed)
    early = text.replace('"mask_type":"CAUSAL"', '"is_causal_mask":true')
    assert early != text
    np.testing.assert_array_equal(run(early, values)[0], run(text, values)[0])


NUMBERS = {"NO_MASK": 0, "PADDING": 1, "CAUSAL": 2, "PADDING_CAUSAL": 3}


def te_config(case: Case) -> str:
    left = case.window - 1
    return (
        f"{{attn_heads = {HEADS} : i64, bias_batch = 0 : i64, bias_heads = 0 : i64, "
        f"bias_type = {2 if case.bias else 0} : i64, deterministic = false, "
        f"dropout_probability = 0.000000e+00 : f64, input_batch = {BATCH} : i64, is_training = true, "
        f"kv_max_seqlen = {KEYS} : i64, mask_type = {NUMBERS[case.mask]} : i64, "
        f"max_segments_per_seq = 1 : i64, num_gqa_groups = {KEY_HEADS} : i64, "
        f"q_max_seqlen = {QUERIES} : i64, qk_head_dim = {FEATURES} : i64, qkv_layout = 9 : i64, "
        f"scaling_factor = {case.scale:e} : f64, v_head_dim = {FEATURES} : i64, "
        f"window_size_left = {left} : i64, window_size_right = {-1 if left < 0 else 0} : i64}}"
    )


def te_module(target: str, results: list[str], operands: list[str], case: Case) -> str:
    more = ", api_version=API_VERSION_TYPED_FFI"
    return call_module(target, f"({', '.join(results)})", operands, te_config(case), more)


def sums(case: Case) -> list[Array]:
    """Running sums of lengths; without padding they are not read."""
    lengths = case.lengths or [np.zeros(BATCH, np.int32)] * 2
    return [np.concatenate([[0], np.cumsum(n)]).astype(np.int32) for n in lengths]


def te_operands(case: Case, kind: str) -> tuple[list[str], list[Array]]:
    """Shapes and values of query, key, value and bias."""
    listed = shapes(kind, case)
    values = operands_of(listed)
    return (
        (listed, values)
        if case.bias
        else ([*listed, f"{kind}[0]"], [*values, operands_of([f"{kind}[0]"])[0]])
    )


EMPTY = np.zeros(0, np.float32)


@pytest.mark.parametrize("case", CASES)
def test_transformer_engine(case: Case) -> None:
    listed, values = te_operands(case, "f32")
    query = listed[0]
    statistics = f"f32[{BATCH},{HEADS},{QUERIES},1]"
    operands = [*listed, "u32[2]", *["s32[3]"] * 2, *["f32[0]"] * 6]
    seed = np.zeros(2, np.uint32)
    text = te_module("te_fused_attn_forward_ffi", [query, statistics, "u32[2,4]", "u8[48]"], operands, case)
    output, logs, state, _ = run(text, [*values, seed, *sums(case), *[EMPTY] * 6])
    expected, exact_logs = case.forward(*values[:3], values[3] if case.bias else None)
    assert_close(output, expected.swapaxes(1, 2).astype(np.float32), steps=8)
    assert_close(logs[..., 0], exact_logs.astype(np.float32), steps=8)

    gradient = operands_of(listed[:1], seed=11)[0]
    operands = [*listed, statistics, "u32[2,4]", query, query, *["s32[3]"] * 2, *["f32[0]"] * 6]
    text = te_module("te_fused_attn_backward_ffi", [*listed, "u8[48]"], operands, case)
    arguments = [*values, logs, state, output, gradient, *sums(case), *[EMPTY] * 6]
    gradients = run(text, arguments)[: 4 if case.bias else 3]
    check_gradients(case, values, gradient, gradients)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("dropout_probability = 0.0", "dropout_probability = 0.1", "dropout"),
        ("qkv_layout = 9", "qkv_layout = 14", "packed"),
        ("mask_type = 0", "mask_type = 5", "mask_type 5"),
        ("bias_type = 0", "bias_type = 3", "ALiBi"),
        ("window_size_left = -1", "window_size_left = 7", "window"),
        ("window_size_left = -1 : i64, ", "", "no window_size_left"),
        ("deterministic = false", "bottom_right_diagonal = true", "aligned to the last key"),
        (f"f32[{BATCH},{HEADS},{QUERIES},1]", f"f32[{BATCH},{HEADS},{QUERIES},{KEYS}]", "that keeps f32"),
    ],
)
def test_what_transformer_engine_is_refused(old: str, new: str, reason: str) -> None:
    listed, _ = te_operands(Case(), "bf16")
    results = [listed[0], f"f32[{BATCH},{HEADS},{QUERIES},1]", "u32[2,4]", "u8[48]"]
    operands = [*listed, "u32[2]", *["s32[3]"] * 2, *["f32[0]"] * 6]
    text = te_module("te_fused_attn_forward_ffi", results, operands, Case())
    assert old in text
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text.replace(old, new)))


def test_another_version_of_transformer_engine_is_refused() -> None:
    listed, _ = te_operands(Case(), "bf16")
    results = [listed[0], f"f32[{BATCH},{HEADS},{QUERIES},1]", "u32[2,4]", "u8[48]"]
    text = te_module("te_fused_attn_forward_ffi", results, [*listed, "u32[2]", "s32[3]", "s32[3]"], Case())
    with pytest.raises(Unsupported, match="another version"):
        NumpyBackend().compile(parse(text))
