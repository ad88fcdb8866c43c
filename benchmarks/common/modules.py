"""The modules that benchmarks run: single operations on much data, JAX programs, and dumped modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT

_SUM = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
_LESS = (
    "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
)

#: What an interpreter written per element is slowest at.
_BULK = {
    "add_1M": "ENTRY e { a = f32[1000000] parameter(0)\n ROOT r = f32[1000000] add(a, a) }",
    "tanh_1M": "ENTRY e { a = f32[1000000] parameter(0)\n ROOT r = f32[1000000] tanh(a) }",
    "reduce_1M": _SUM + "ENTRY e { a = f32[1000,1000] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[1000] reduce(a, z), dimensions={1}, to_apply=s }",
    "transpose_1M": "ENTRY e { a = f32[1000,1000] parameter(0)\n"
    " ROOT r = f32[1000,1000] transpose(a), dimensions={1,0} }",
    "dot_128": "ENTRY e { a = f32[128,128] parameter(0)\n ROOT r = f32[128,128] dot(a, a),"
    " lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "dot_256": "ENTRY e { a = f32[256,256] parameter(0)\n ROOT r = f32[256,256] dot(a, a),"
    " lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "conv_8x16x16x8": "ENTRY e { a = f32[8,16,16,8] parameter(0)\n k = f32[3,3,8,16] parameter(1)\n"
    " ROOT r = f32[8,16,16,16] convolution(a, k), window={size=3x3 pad=1_1x1_1},"
    " dim_labels=b01f_01io->b01f }",
    "sort_100k": _LESS + "ENTRY e { a = f32[100000] parameter(0)\n"
    " ROOT r = f32[100000] sort(a), dimensions={0}, is_stable=true, to_apply=s }",
    "cumsum_10k": _SUM + "ENTRY e { a = f32[10000] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[10000] reduce-window(a, z), window={size=10000 pad=9999_0}, to_apply=s }",
    "gather_10k": "ENTRY e { a = f32[1000,16] parameter(0)\n i = s32[10000,1] parameter(1)\n"
    " ROOT r = f32[10000,16] gather(a, i), offset_dims={1}, collapsed_slice_dims={0},"
    " start_index_map={0}, index_vector_dim=1, slice_sizes={1,16} }",
    "bf16_multiply_1M": "ENTRY e { a = bf16[1000000] parameter(0)\n ROOT r = bf16[1000000] multiply(a, a) }",
    "f8_dot_128": "ENTRY e { a = f8e4m3fn[128,128] parameter(0)\n ROOT r = f32[128,128] dot(a, a),"
    " lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
}


@dataclass(frozen=True, slots=True)
class BenchmarkModule:
    """A module to measure.

    Attributes:
        group: `bulk`, `program` (of `programs`), `untuned`, `fresh` or `dump`.
        name: for the table.
        text: HLO.
    """

    group: str
    name: str
    text: str


def benchmark_modules(paths: list[str], only: str = "") -> Iterator[BenchmarkModule]:
    """Those of the given files and dump directories, or all: bulk, programs, and the corpus.

    Args:
        paths: HLO files, and directories whose before_optimizations stages count.
        only: regular expression that names must match.
    """
    if not paths:
        for name, text in _BULK.items():
            if re.search(only, name):
                yield BenchmarkModule("bulk", name, f"HloModule {name}\n{text}")
        from benchmarks.common.fresh import fresh_programs
        from benchmarks.common.programs import program_texts
        from benchmarks.common.untuned import untuned_programs

        for name, text in program_texts(only):
            yield BenchmarkModule("program", name, text)
        for name, text in program_texts(only, untuned_programs):
            yield BenchmarkModule("untuned", name, text)
        for name, text in program_texts(only, fresh_programs):
            yield BenchmarkModule("fresh", name, text)
    for path in map(Path, paths or [ROOT / "corpus" / "jax", ROOT / "corpus" / "tf"]):
        for file in sorted(path.rglob("*before_optimizations.txt")) if path.is_dir() else [path]:
            name = f"{file.parent.name}/{file.name.removesuffix('.before_optimizations.txt')}"
            if re.search(only, name):
                yield BenchmarkModule("dump", name, file.read_text(encoding="utf-8"))
