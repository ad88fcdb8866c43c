"""Whether every kernel compiles: by each NVRTC and nvcc that is installed, for several GPUs.

No GPU is needed.

    python -m benchmarks.gpu.compiles --seed 7 --json compiles.json
    python -m benchmarks.gpu.compiles --fusions 0 --compiler nvcc --architectures sm_90

The kernels are those of the GPU suite's programs at full and at small size, of the programs of
`benchmarks.kernels`, and of random fusions. Many of them share a compilation; of one that is refused, the
kernels are compiled one by one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from support.gpu_kernels import kernels_of
from support.kernel_fuzz import KINDS, fuzz_program

from benchmarks.gpu.cases import all_cases
from benchmarks.kernels.cases import cases
from hlotool.backends.cuda.backend import Resources, compile_kernels
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.toolchain import Compiler, installed_compilers
from hlotool.errors import BackendFailed
from hlotool.parser.reader import parse_module

#: Kernels of one compilation: so many share the time that the common headers take.
_BATCH = 60

#: Fusions of one program.
_FUSIONS = 12

#: Scale of the small programs.
_SMALL = 1 / 4096


@dataclass(frozen=True, slots=True)
class Row:
    """What one compiler made of the kernels for one architecture.

    Attributes:
        compiler: with its version.
        architecture: that it compiled for.
        kernels: how many.
        refused: those that it does not compile, by name, with the reason.
        spilling: those that spill more than the few registers around calls of library functions.
        registers: of the kernel that takes most.
        seconds: of all compilations.
    """

    compiler: str
    architecture: str
    kernels: int
    refused: Mapping[str, str]
    spilling: int
    registers: int
    seconds: float

    def __str__(self) -> str:
        counts = f"{self.kernels:8}{len(self.refused):9}{self.spilling:9}{self.registers:10}"
        return f"{self.compiler:14}{self.architecture:10}{counts}{self.seconds:9.1f}"


#: Bytes that ptxas may spill around calls of library functions.
_AROUND_CALLS = 64


def all_kernels(seed: int, fusions: int) -> dict[str, Kernel]:
    """By name.

    Args:
        seed: of the first random fusion.
        fusions: how many of these, of all kinds together.
    """
    programs = [*all_cases(1), *all_cases(_SMALL), *cases(0.02)]
    found = {k.name: k for case in programs for k in kernels_of(parse_module(case.text))}
    for start in range(0, fusions, _FUSIONS):
        kind = KINDS[start // _FUSIONS % len(KINDS)]
        count = min(_FUSIONS, fusions - start)
        found |= {k.name: k for k in kernels_of(fuzz_program(kind, seed + start, count)[0])}
    return found


def compiled(kernels: Sequence[Kernel], compiler: Compiler, architecture: str) -> Row:
    """All kernels, in batches."""
    begin = time.perf_counter()
    refused: dict[str, str] = {}
    used: list[Resources] = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(kernels), _BATCH):
            used += _batch(kernels[start : start + _BATCH], compiler, architecture, Path(folder), refused)
    spilling = sum(max(r.spill_stores, r.spill_loads) > _AROUND_CALLS for r in used)
    most = max((r.registers for r in used), default=0)
    seconds = time.perf_counter() - begin
    return Row(compiler.version, architecture, len(kernels), refused, spilling, most, seconds)


def _batch(
    kernels: Sequence[Kernel], compiler: Compiler, architecture: str, folder: Path, refused: dict[str, str]
) -> list[Resources]:
    try:
        made = compile_kernels(kernels, architecture, compiler, folder)
        return [c.resources for c in made.values()]
    except BackendFailed as error:
        if len(kernels) > 1:
            return [r for k in kernels for r in _batch([k], compiler, architecture, folder, refused)]
        refused[kernels[0].name] = str(error)
        return []


def rows(kernels: Sequence[Kernel], compiler: str, architectures: Sequence[str]) -> Iterator[Row]:
    """One for each compiler and each architecture that it knows."""
    for found in installed_compilers(compiler):
        for architecture in architectures:
            if architecture in found.architectures:
                yield compiled(kernels, found, architecture)
            else:
                print(f"{found.version:14}{architecture:10}unknown to it", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the first random fusion")
    parser.add_argument("--fusions", type=int, default=2000, help="how many random ones")
    parser.add_argument("--compiler", default="", help="nvrtc or nvcc; all that are here otherwise")
    parser.add_argument("--architectures", nargs="+", default=["sm_80", "sm_90", "sm_100"])
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    kernels = list(all_kernels(options.seed, options.fusions).values())
    print(f"{'compiler':14}{'for':10}{'kernels':>8}{'refused':>9}{'spill':>9}{'registers':>10}{'seconds':>9}")
    found = []
    for row in rows(kernels, options.compiler, options.architectures):
        print(row, flush=True)
        found.append(asdict(row))
        for name, reason in row.refused.items():
            print(f"  {name}: {reason}", flush=True)
        if options.json:
            about = {"seed": options.seed, "fusions": options.fusions, "rows": found}
            options.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
