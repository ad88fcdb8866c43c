"""Kernels for a CPU that has AVX2 and no AVX-512: the same bits, and vectors, too."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from support.differential import leaves
from support.gpu_kernels import kernels_of
from support.kernels import differing, needs_compiler, on_kernels, on_numpy

from benchmarks.kernels.cases import cases
from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda_emu.backend import FLAGS, compiler
from hlotool.backends.registry import get_backend
from hlotool.parser.reader import parse_module

_MARCH = "x86-64-v3"


def _has_avx2() -> bool:
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


pytestmark = [
    needs_compiler,
    pytest.mark.skipif(platform.machine() != "x86_64", reason=f"g++ knows {_MARCH} on x86-64 only"),
]
needs_avx2 = pytest.mark.skipif(not _has_avx2(), reason="this CPU has no AVX2")


def _results(operations: Sequence[str], shapes: Mapping[str, str], arguments: list[Any]) -> list[list[Any]]:
    """Of HLO expressions on the parameters, each by its own: natively, backward, for AVX2, and by numpy."""
    lines = [f"  {name} = {shape} parameter({n})" for n, (name, shape) in enumerate(shapes.items())]
    lines += [f"  r{n} = {text}" for n, text in enumerate(operations)]
    types = ", ".join(text.split()[0] for text in operations)
    root = f"  ROOT t = ({types}) tuple({', '.join(f'r{n}' for n in range(len(operations)))})"
    module = parse_module("\n".join(["HloModule several\nENTRY main {", *lines, root, "}\n"]))
    narrower = get_backend(f"cuda-emu:march={_MARCH}").compile(module)
    on_emulators = (on_kernels(module, arguments, backward) for backward in (False, True))
    return [*on_emulators, leaves(narrower.run(arguments)), on_numpy(module, arguments)]


#: Operations that the numpy backend rounds in the same way, and others: it has other approximations of them.
_EXACT = ("add(x, y)", "subtract(x, y)", "multiply(x, y)", "divide(x, y)", "maximum(x, y)", "sqrt(x)")
_APPROXIMATE = ("exponential(x)", "log(x)", "tanh(x)", "erf(x)", "logistic(x)")


@needs_avx2
def test_all_bf16_numbers() -> None:
    # NaN of every payload is among them: rounding by addition alone would make infinity or zero of some.
    x = np.arange(1 << 16, dtype=np.uint16).view(bfloat16)
    y = np.random.default_rng(0).permutation(x)
    shape = "bf16[65536]"
    operations = [f"{shape} {text}" for text in (*_EXACT, *_APPROXIMATE)]
    forward, *others, reference = _results(operations, {"x": shape, "y": shape}, [x, y])
    for number, operation in enumerate(operations):
        assert [differing(forward[number], other[number]) for other in others] == [0, 0], operation
        nan = [(r[number].view(np.uint16) & 0x7FFF) > 0x7F80 for r in (forward, reference)]
        assert np.array_equal(*nan), operation
        if number < len(_EXACT):
            assert differing(forward[number], reference[number]) == 0, operation


@needs_avx2
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_integers_have_no_negative_zero(source: str) -> None:
    # XLA: operation_semantics.md#convertelementtype: truncated; an integer 0 is +0 as a float.
    small = np.array([-0.0, -0.3, -0.99, 0.3, -1.0, -1.5, 127.9, -128.0, -129.0, np.nan, np.inf, -np.inf])
    x = np.resize(small, 64).astype({"f32": np.float32, "f64": np.float64}[source])
    shape, kinds = f"{source}[64]", ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    operations = [f"{kind}[64] convert(x)" for kind in kinds]
    operations += [f"{shape} convert(r{n})" for n in range(len(kinds))]
    forward, *others = _results(operations, {"x": shape}, [x])
    assert not any(np.signbit(result[:3]).any() for result in forward[len(kinds) :])
    for number, operation in enumerate(operations):
        assert [differing(forward[number], other[number]) for other in others] == [0, 0, 0], operation


def test_functions_become_vectors() -> None:
    measured = [
        case for case in cases(0.02) if case.name.startswith(("gelu", "log", "power", "gauss", "silu"))
    ]
    assert len(measured) == 10  # five functions of f32 and of bf16
    lines, ends = prelude().splitlines(), {}
    for case in measured:
        for kernel in kernels_of(parse_module(case.text)):
            lines += (kernel.source + kernel.launcher).splitlines()
        ends[len(lines)] = case.name
    command = [compiler()[0], *FLAGS, f"-march={_MARCH}", "-fopt-info-vec-optimized", "-o", "/dev/null", "-"]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=300, check=True
    )
    vectorized = [int(n) for n in re.findall(r"<stdin>:(\d+):.*loop vectorized", done.stderr)]
    start = len(prelude().splitlines())
    for end, name in ends.items():
        assert any(start < line <= end for line in vectorized), name
        start = end
