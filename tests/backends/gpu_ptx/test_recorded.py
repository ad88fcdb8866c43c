"""Kernels as XLA:GPU and Triton generate them (jaxlib 0.10.2, for an H100), against NumPy.

`recorded/` holds the PTX of small programs, with the number of the dump's file where a program has several
kernels; `wgmma_*` were compiled with `--xla_gpu_override_gemm_autotuner='block_m: 64 block_n: 128 block_k: 64
split_k: 1
num_stages: 3 num_warps: 4 num_ctas: 1'`. Launches are those of `thunk_sequence.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.program import parse_ptx
from hlotool.errors import KernelFault

RECORDED = Path(__file__).parent / "recorded"
BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
Dims = tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """A launch: PTX file, blocks, threads of each, dynamic shared memory, and which buffers are its
    arguments.
    """

    file: str
    grid: int
    block: int
    buffers: tuple[int, ...]
    shared: int = 0


@dataclass(frozen=True)
class Program:
    """Launches on buffers: first the inputs, then others, of which the result is the last (`result`: another
    one).

    Attributes:
        error: of the result at most, relative to its largest element. Zero: it is exact.
    """

    inputs: tuple[tuple[Dims, Any], ...]
    others: tuple[tuple[Dims, Any], ...]
    launches: tuple[Launch, ...]
    expected: Callable[..., Any]
    error: float = 0.0
    result: int = -1


def wide(array: Any) -> Any:
    return array.astype(np.float64)


def softmax(x: Any) -> Any:
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def normalised(x: Any) -> Any:
    x = wide(x)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def scattered(operate: Any) -> Callable[..., Any]:
    def expected(x: Any, updates: Any, indices: Any) -> Any:
        found = x.astype(np.float64)
        operate.at(found, indices[:, 0], updates)
        return found

    return expected


def product(a: Any, b: Any) -> Any:
    return wide(a) @ wide(b)


F32 = np.float32
PROGRAMS = {
    "row_sum": Program(
        (((300, 1000), F32),),
        (((300,), F32),),
        (Launch("row_sum", 75, 256, (0, 1)),),
        lambda x: wide(x).sum(1),
        1e-6,
    ),
    "column_sum": Program(
        (((1000, 300), F32),),
        (((300,), F32),),
        (Launch("column_sum", 5, 1024, (0, 1)),),
        lambda x: wide(x).sum(0),
        1e-6,
    ),
    "transpose": Program(
        (((300, 200), F32),),
        (((200, 300), F32),),
        (Launch("transpose", 70, 128, (0, 1)),),
        lambda x: x.T + F32(1),
    ),
    "softmax": Program(
        (((100, 500), F32),), (((100, 500), F32),), (Launch("softmax", 100, 64, (0, 1), 1024),), softmax, 1e-6
    ),
    "layernorm": Program(
        (((128, 256), F32),),
        (((128, 256), F32),),
        (Launch("layernorm", 128, 32, (0, 1), 512),),
        normalised,
        1e-6,
    ),
    "scatter_add": Program(
        (((100, 64), F32), ((37, 64), F32), ((37, 1), np.int32)),
        (),
        (Launch("scatter_add", 19, 128, (0, 1, 2, 0)),),
        scattered(np.add),
        1e-6,
        0,
    ),
    "scatter_max": Program(
        (((100, 64), F32), ((37, 64), F32), ((37, 1), np.int32)),
        (),
        (Launch("scatter_max", 19, 128, (0, 1, 2, 0)),),
        scattered(np.maximum),
        0.0,
        0,
    ),
    "matmul_f32": Program(
        (((64, 128), F32), ((128, 96), F32)),
        (((8, 64, 96), F32), ((64, 96), F32)),
        (Launch("matmul_f32.3", 384, 64, (0, 1, 2), 1024), Launch("matmul_f32.1", 48, 128, (2, 3))),
        product,
        1e-3,  # in TF32
    ),
    "matmul_bf16": Program(
        (((128, 256), BF16), ((256, 192), BF16), ((192,), BF16)),
        (((8, 128, 192), F32), ((128, 192), BF16)),
        (Launch("matmul_bf16.3", 1536, 64, (0, 1, 3), 768), Launch("matmul_bf16.1", 192, 128, (3, 2, 4))),
        lambda a, b, c: np.maximum(product(a, b) + wide(c), 0),
        2.0**-8,
    ),
    "matmul_fp8": Program(
        (((64, 256), F8), ((256, 64), F8)),
        (((8, 64, 64), F32), ((64, 64), F32)),
        (Launch("matmul_fp8.3", 256, 64, (0, 1, 2), 512), Launch("matmul_fp8.1", 32, 128, (2, 3))),
        product,
        1e-6,
    ),
    "matmul_f64": Program(
        (((64, 64), np.float64), ((64, 64), np.float64)),
        (((64, 64), np.float64),),
        (Launch("matmul_f64", 32, 64, (0, 1, 2), 3072),),
        product,
        1e-14,
    ),
    "wgmma_bf16": Program(
        (((512, 512), BF16), ((512, 512), BF16)),
        (((4, 512, 512), F32), ((512, 512), BF16)),
        (Launch("wgmma_bf16.3", 128, 128, (0, 1, 2), 73728), Launch("wgmma_bf16.1", 2048, 128, (2, 3))),
        product,
        2.0**-8,
    ),
    "wgmma_fp8": Program(
        (((256, 256), F8), ((256, 256), F8)),
        (((4, 256, 256), F32), ((256, 256), F32)),
        (Launch("wgmma_fp8.3", 32, 128, (0, 1, 2), 32768), Launch("wgmma_fp8.1", 512, 128, (2, 3))),
        product,
        1e-6,
    ),
}


def arguments(program: Program) -> list[Any]:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 90, dims).astype(kind)
        if kind == np.int32
        else random.standard_normal(dims).astype(kind)
        for dims, kind in program.inputs
    ]


def run_launches(
    program: Program,
    given: Sequence[Any],
    seed: int,
    edit: Callable[[str, str], str] = lambda name, text: text,
) -> tuple[Memory, list[int]]:
    """Memory and the addresses of all buffers after the launches; `edit` may change the PTX of each file."""
    memory = Memory()
    addresses = [memory.allocate(array.nbytes, initial=array.tobytes()) for array in given]
    sizes = [int(np.prod(dims)) * np.dtype(kind).itemsize for dims, kind in program.others]
    addresses += [memory.allocate(size) for size in sizes]
    for one in program.launches:
        text = edit(one.file, (RECORDED / f"{one.file}.ptx").read_text(encoding="utf-8"))
        (kernel,) = parse_ptx(text, f"{one.file}.ptx").kernels.values()
        values = [addresses[buffer].to_bytes(8, "little") for buffer in one.buffers]
        launch(
            kernel, (one.grid, 1, 1), (one.block, 1, 1), values, memory, dynamic_shared=one.shared, seed=seed
        )
    return memory, addresses


def execute(program: Program, given: Sequence[Any], seed: int) -> Any:
    """The result, all of which was written."""
    memory, addresses = run_launches(program, given, seed)
    dims, kind = (*program.inputs, *program.others)[program.result]
    size = int(np.prod(dims)) * np.dtype(kind).itemsize
    assert memory.written(addresses[program.result], size).all()
    return memory.read(addresses[program.result], size).view(kind).reshape(dims)


def wrong(program: Program, found: Any, expected: Any) -> bool:
    distance = np.abs(wide(found) - wide(expected)).max()
    return not distance <= program.error * np.abs(wide(expected)).max()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_programs(name: str, seed: int) -> None:
    program = PROGRAMS[name]
    given = arguments(program)
    assert not wrong(program, execute(program, given, seed), program.expected(*given))


#: What orders accesses.
SYNCHRONISES = re.compile(r"^\s*(?:bar\.sync|cp\.async\.wait_group|wgmma\.wait_group)[^;]*;", re.MULTILINE)
#: Those that order nothing: the first ones, before which no shared memory is used, or no stage of a pipeline
#: again; and one in a block of one warp, between shuffles.
REDUNDANT = {
    ("layernorm", 0),
    ("matmul_bf16.3", 0),
    ("matmul_fp8.3", 0),
    ("matmul_f64", 0),
    ("wgmma_bf16.3", 0),
}
_SITES = [
    (name, program.launches[0].file, number)
    for name, program in PROGRAMS.items()
    for number, _ in enumerate(
        SYNCHRONISES.finditer((RECORDED / f"{program.launches[0].file}.ptx").read_text(encoding="utf-8"))
    )
]


@pytest.mark.parametrize(("name", "file", "number"), _SITES)
def test_each_missing_barrier_is_seen(name: str, file: str, number: int) -> None:
    """Each barrier and wait of the first kernel removed in turn is a fault that names a line."""
    program = PROGRAMS[name]
    first = replace(program.launches[0], grid=min(program.launches[0].grid, 4))
    short = replace(program, launches=(first,))

    def without(own: str, text: str) -> str:
        found = list(SYNCHRONISES.finditer(text))[number]
        return text[: found.start()] + text[found.end() :]

    if (file, number) in REDUNDANT:
        run_launches(short, arguments(program), 0, without)
        return
    with pytest.raises(KernelFault) as caught:
        run_launches(short, arguments(program), 0, without)
    assert caught.value.kind in ("race", "in flight", "uninitialised")
    assert caught.value.location.line
