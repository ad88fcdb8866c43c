"""Custom calls that annotate or allocate, the refusal of unknown ones, and transfers."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import parse, run

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import CUSTOM_CALLS, targets
from hlotool.errors import Unsupported


def module(result: str, *parameters: str) -> str:
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {result}", "}"])


@pytest.mark.parametrize(
    "target",
    [
        "Sharding",
        "SetBound",
        "MoveToHost",
        "MoveToDevice",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
    ],
)
def test_annotations_are_identities(target: str) -> None:
    text = module(f'f32[2] custom-call(p0), custom_call_target="{target}"', "f32[2]")
    assert run(text, [np.array([1, 2], np.float32)])[0].tolist() == [1, 2]


@pytest.mark.parametrize("shape", ["f32[3]", "bf16[3]", "c64[3]", "f8e4m3fn[3]"])
def test_allocated_floats_are_nan(shape: str) -> None:
    result = run(module(f'{shape} custom-call(), custom_call_target="AllocateBuffer"'), [])[0]
    assert np.isnan(result.astype(np.complex128)).all()


@pytest.mark.parametrize(
    ("shape", "pattern"), [("s32[2]", 0xA5A5A5A5 - 2**32), ("u8[2]", 0xA5), ("pred[2]", 1)]
)
def test_allocated_integers_are_a_pattern(shape: str, pattern: int) -> None:
    result = run(module(f'{shape} custom-call(), custom_call_target="AllocateBuffer"'), [])[0]
    assert result.astype(int).tolist() == [pattern] * 2


def test_every_run_allocates_anew() -> None:
    text = """HloModule m
ENTRY e {
  buffer = f32[2] custom-call(), custom_call_target="AllocateBuffer"
  one = f32[1] constant({1})
  zero = s32[] constant(0)
  ROOT r = f32[2] dynamic-update-slice(buffer, one, zero)
}"""
    executable = NumpyBackend().compile(parse(text))
    for _ in range(2):
        result = executable.run([])
        assert isinstance(result, np.ndarray)
        assert result[0] == 1
        assert np.isnan(result[1])


def test_halves_of_64_bit_integers() -> None:
    numbers = np.array([0x0123456789ABCDEF, 2**64 - 1], np.uint64)
    low = run(module('u32[2] custom-call(p0), custom_call_target="X64SplitLow"', "u64[2]"), [numbers])[0]
    high = run(module('u32[2] custom-call(p0), custom_call_target="X64SplitHigh"', "u64[2]"), [numbers])[0]
    assert low.tolist() == [0x89ABCDEF, 2**32 - 1]
    assert high.tolist() == [0x01234567, 2**32 - 1]
    combine = module('s64[2] custom-call(p0, p1), custom_call_target="X64Combine"', "u32[2]", "u32[2]")
    assert run(combine, [low, high])[0].tolist() == [0x0123456789ABCDEF, -1]


def test_parts_of_complex_numbers() -> None:
    """As libtpu takes them apart; an infinity stays in its own part."""
    numbers = np.array([1 + 2j, complex(0, np.inf)], np.complex64)
    real = run(module('f32[2] custom-call(p0), custom_call_target="X64SplitLow"', "c64[2]"), [numbers])[0]
    high = 'f32[2] custom-call(p0), custom_call_target="X64SplitHigh"'
    imaginary = run(module(high, "c64[2]"), [numbers])[0]
    assert real.tolist() == [1, 0]
    assert imaginary.tolist() == [2, np.inf]
    combine = module('c64[2] custom-call(p0, p1), custom_call_target="X64Combine"', "f32[2]", "f32[2]")
    np.testing.assert_array_equal(run(combine, [real, imaginary])[0], numbers)


def test_unknown_calls_that_nothing_needs() -> None:
    """XLA drops them too, unless they have side effects."""
    text = """f32[2] negate(p0)
  c = (f32[2], f32[2]) custom-call(p0), custom_call_target="my_kernel"
  e = f32[2] get-tuple-element(c), index=1
  d = f32[2] add(e, p0)"""
    assert run(module(text, "f32[2]"), [np.float32([1, 2])])[0].tolist() == [-1, -2]
    acting = text.replace("my_kernel", 'my_kernel", custom_call_has_side_effect=true, backend_config="')
    assert "my_kernel" in refusal(module(acting, "f32[2]")).reason


def refusal(text: str) -> Unsupported:
    with pytest.raises(Unsupported) as caught:
        NumpyBackend().compile(parse(text))
    return caught.value


def test_unknown_targets_are_named() -> None:
    error = refusal(module('f32[2] custom-call(p0), custom_call_target="my_kernel"', "f32[2]"))
    assert error.reason == "custom calls without a model: 'my_kernel' (line 4)"
    assert error.instruction == "r"
    assert error.location.line == 4


def test_all_unknown_targets_are_listed() -> None:
    calls = "\n".join(
        f'  c{i} = f32[2] custom-call(p), custom_call_target="{target}"'
        for i, target in enumerate(["a", "Sharding", "b", "a", "tpu_custom_call", *["c"] * 5])
    )
    text = f"""HloModule m
unused {{
  p = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(p), custom_call_target="in_no_program"
}}
called {{
  p = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(p), custom_call_target="b"
}}
ENTRY e {{
  p = f32[2] parameter(0)
{calls}
  d = f32[2] call(p), to_apply=called
  ROOT r = ({", ".join(["f32[2]"] * 11)}) tuple(d, {", ".join(f"c{i}" for i in range(10))})
}}"""
    error = refusal(text)
    assert error.reason == (
        "custom calls without a model: 'b' ×2 (lines 8, 14); 'a' ×2 (lines 12, 15); 'tpu_custom_call' "
        "(line 16), which runs a kernel in another language than HLO; 'c' ×5 (lines 17, 18, 19, 20, …)"
    )
    assert error.instruction == "c0"
    assert error.location.line == 12


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback"])
def test_callbacks_cannot_be_replayed(target: str) -> None:
    error = refusal(module(f'f32[2] custom-call(p0), custom_call_target="{target}"', "f32[2]"))
    assert "Python function" in error.reason


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("__cudnn$fmhaSoftmaxF8", "not public"),
        ("cusparse_csr_matvec_ffi", "C structure"),
        ("cudnn_rnn_ffi", "recurrent network"),
        ("mosaic_gpu_v2", "another language"),
        ("tridiagonal_solve_perturbed_ffi", "perturbing"),
    ],
)
def test_why_a_known_target_has_no_model(target: str, reason: str) -> None:
    error = refusal(module(f'f32[2] custom-call(p0), custom_call_target="{target}"', "f32[2]"))
    assert reason in error.reason


EXPANDED = """HloModule m
expansion {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  ROOT d = f32[2] subtract(x, y)
}
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  ROOT r = f32[2] custom-call(p, q), custom_call_target="TARGET", called_computations={expansion}
}"""


@pytest.mark.parametrize("target", ["xla_builder.math.Difference", "__triton"])
def test_calls_that_carry_their_expansion(target: str) -> None:
    text = EXPANDED.replace("TARGET", target)
    x, y = np.array([5, 6], np.float32), np.array([1, 4], np.float32)
    assert run(text, [x, y])[0].tolist() == [4, 2]


def test_other_called_computations_are_no_expansion() -> None:
    assert "'my_kernel'" in refusal(EXPANDED.replace("TARGET", "my_kernel")).reason


def test_every_target_has_a_meaning_and_a_source() -> None:
    listed = targets()
    assert [t.name for t in listed] == sorted(CUSTOM_CALLS)
    for target in listed:
        assert target.meaning, target.name
        assert "\n" not in target.meaning
        assert target.source, target.name
    gemm = next(t for t in listed if t.name == "__cublas$gemm")
    assert gemm.meaning.startswith("D = activation(")
    assert gemm.source.startswith("service/gpu/transforms/gemm_rewriter.cc")


def test_infeed_is_refused() -> None:
    text = """HloModule m
ENTRY e {
  t = token[] after-all()
  i = (f32[2], token[]) infeed(t)
  ROOT r = f32[2] get-tuple-element(i), index=0
}"""
    assert "from the host" in refusal(text).reason


def test_outfeed_gives_a_token() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  o = token[] outfeed(x, t), outfeed_shape=f32[2]
  ROOT y = f32[2] add-dependency(x, o)
}"""
    assert run(text, [np.array([1, 2], np.float32)])[0].tolist() == [1, 2]
