"""Programs on generated kernels and on the numpy reference."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest

from hlotool.backends.cuda_emu.backend import Builder, EmulatorBackend
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from support.differential import leaves

#: Of tests that compile kernels.
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

#: Further options of g++ for all emulators: `support.sanitized` runs tests with its own.
flags: tuple[str, ...] = ()


@cache
def emulator(backward: bool = False, fuses: bool = True) -> EmulatorBackend:
    """The backend that runs kernels on the CPU."""
    return EmulatorBackend(fuses=fuses, builder=Builder(backward, flags))


def on_kernels(module: Module, arguments: list[Any], backward: bool = False) -> list[Any]:
    """Leaves of the result."""
    return leaves(emulator(backward).compile(module).run(arguments))


def on_numpy(module: Module, arguments: list[Any]) -> list[Any]:
    """Leaves of the reference's result."""
    return leaves(NumpyBackend().compile(module).run(arguments))


def differing(a: Any, b: Any) -> int:
    """Number of elements that are not equal to the bit; any NaN equals any NaN."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    bits = [np.ascontiguousarray(x).reshape(-1) for x in (a, b)]
    raw = [x.view(np.uint8).reshape(x.size, -1) for x in bits]
    with np.errstate(all="ignore"):
        nan = [x != x for x in bits]
    unlike = (raw[0] != raw[1]).any(axis=1) & ~(nan[0] & nan[1])
    return int(unlike.sum())
