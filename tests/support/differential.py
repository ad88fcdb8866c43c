"""The numpy backend against real XLA on small modules given as text.

check(text, arguments)                      # every leaf equal to the bit (NaN equals NaN, -0 is not +0)
check(text, arguments, steps=100)           # floats within 100 roundings of the leaf's largest magnitude
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from support.xla import oracle

Array = npt.NDArray[Any]


def slow(*values: Any) -> list[Any]:
    """Values of a parametrised test that only the long run needs."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def parse(text: str) -> Module:
    """The module that `text` describes."""
    from hlotool.parser.reader import parse_module

    return parse_module(text)


def run(text: str, arguments: list[Any]) -> list[Array]:
    """Leaves of the result on the numpy backend."""
    executable = NumpyBackend().compile(parse(text))
    return leaves(executable.run([np.asarray(a) for a in arguments]))


def leaves(value: Any) -> list[Array]:
    """Arrays of a possibly nested tuple."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in leaves(element)]
    return [np.asarray(value)]


def check(
    text: str, arguments: list[Any], *, steps: float = 0, scale: float | None = None, **options: Any
) -> list[Array]:
    """Run on both sides and compare.

    Args:
        text: the module.
        arguments: its arguments.
        steps: floats may differ by so many roundings (of the leaf's type) of `scale`; 0 asks for equality.
        scale: magnitude that is rounded; the leaf's own largest finite magnitude when None.
        options: XLA debug options.

    Returns:
        The leaves that the numpy backend computed.
    """
    arguments = [np.asarray(a) for a in arguments]
    before = [a.copy() for a in arguments]
    # Less work for LLVM; the HLO passes and so the meaning stay the same.
    expected = oracle().run(text, arguments, xla_backend_optimization_level=0, **options)
    actual = run(text, arguments)
    for argument, copy in zip(arguments, before):
        assert argument.tobytes() == copy.tobytes(), "the backend changed an argument"
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        assert_close(ours, theirs, steps, scale)
    return actual


def assert_close(ours: Array, theirs: Array, steps: float, scale: float | None = None) -> None:
    """See `check`."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype.kind == "c":
        assert_close(ours.real, theirs.real, steps, scale)
        assert_close(ours.imag, theirs.imag, steps, scale)
        return
    if not _is_float(ours.dtype) or not steps:
        np.testing.assert_array_equal(_comparable(ours), _comparable(theirs))
        return
    wide_ours, wide_theirs = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.abs(wide_theirs[np.isfinite(wide_theirs)])
    magnitude = scale if scale is not None else finite.max(initial=0)
    bound = steps * float(ml_dtypes.finfo(ours.dtype).eps) * magnitude
    np.testing.assert_allclose(wide_ours, wide_theirs, rtol=0, atol=bound)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _comparable(array: Array) -> Array:
    """Floats such that NaN equals NaN and the zeros differ; integers as they are."""
    if not _is_float(array.dtype):
        return array.astype(np.int64) if array.dtype.kind == "V" else array
    wide = array.astype(np.float64)
    return np.where(wide == 0, np.copysign(5e-324, wide), wide)
