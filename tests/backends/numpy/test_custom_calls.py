"""Custom calls that annotate or allocate, the refusal of unknown ones, and transfers."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import parse, run

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported


def module(result: str, *parameters: str) -> str:
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {result}", "}"])


@pytest.mark.parametrize(
    "target",
    ["Sharding", "MoveToHost", "MoveToDevice", "annotate_device_placement", "xla.sdy.FuncResultSharding"],
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


def refusal(text: str) -> Unsupported:
    with pytest.raises(Unsupported) as caught:
        NumpyBackend().compile(parse(text))
    return caught.value


def test_unknown_targets_are_named() -> None:
    error = refusal(module('f32[2] custom-call(p0), custom_call_target="my_kernel"', "f32[2]"))
    assert "'my_kernel'" in error.reason
    assert error.instruction == "r"
    assert error.location.line == 4


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback"])
def test_callbacks_cannot_be_replayed(target: str) -> None:
    error = refusal(module(f'f32[2] custom-call(p0), custom_call_target="{target}"', "f32[2]"))
    assert "Python function" in error.reason


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
