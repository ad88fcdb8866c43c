"""What generated kernels become on a GPU: instructions, widths of loads, registers; no GPU is needed.

    python -m benchmarks.kernels.instructions [--only argmax] [--architecture sm_90] [--precision wide]

Compiles the kernels of the GPU suite's programs with nvcc and disassembles them with cuobjdump, which has to
be on the PATH (CUDA toolkit; package nvidia-cuda-cuobjdump). For each kernel: of the loop that moves most, or
of everything where there is none, the instructions of a thread for each 16 bytes that it moves from or to
global memory, and the loads that follow each other; of the whole kernel the widths of loads in bytes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.cases import all_cases
from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.kernel_backend import fused
from hlotool.backends.cuda.machine import KernelLowering
from hlotool.backends.cuda.toolchain import find_compiler
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.backends.registry import get_backend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction.

    Attributes:
        place: its address.
        name: with its suffixes, such as `LDG.E.128.CONSTANT`.
        target: of a branch.
    """

    place: int
    name: str
    target: int | None = None

    @property
    def width(self) -> int:
        """Bytes that it moves from or to global memory, for each thread."""
        opcode, *suffixes = self.name.split(".")
        if opcode not in ("LDG", "STG"):
            return 0
        return next((_WIDTHS[s] for s in suffixes if s in _WIDTHS), 4)


def read(listing: str) -> list[Line]:
    """The instructions of one function in what cuobjdump prints, without those that do nothing."""
    found = []
    for place, name, rest in _LINE.findall(listing):
        target = _TARGET.search(rest) if name.startswith("BRA") else None
        if name != "NOP":
            found.append(Line(int(place, 16), name, int(target[1], 16) if target else None))
    return found


def busiest_loop(lines: Sequence[Line]) -> list[Line]:
    """Of the loops without another one inside, that with most traffic; everything where none has any."""
    ends = [
        (line.target, line.place) for line in lines if line.target is not None and line.target < line.place
    ]
    bodies = [[line for line in lines if begin <= line.place <= end] for begin, end in ends]
    inner = [
        b for b in bodies if not any(line.target is not None and line.target < line.place for line in b[:-1])
    ]
    moving = [body for body in inner if any(line.width for line in body)]
    return max(moving, key=lambda body: sum(line.width for line in body), default=list(lines))


def loads_ahead(lines: Sequence[Line]) -> int:
    """The most loads from global memory that follow each other before anything is stored or waited for."""
    longest = current = 0
    for line in lines:
        opcode = line.name.partition(".")[0]
        if opcode == "LDG":
            current += 1
        elif opcode in ("STG", "STS", "BAR", "SHFL"):
            current = 0
        longest = max(longest, current)
    return longest


def kernels_of(module: Module, backend: EmulatorBackend) -> list[Kernel]:
    """Each once, with the operations fused as for a GPU."""
    lowering = KernelLowering(fused(module), backend.loading())
    lowering.plan(lowering.module.entry)
    return list({kernel.name: kernel for kernel in lowering.kernels}.values())


def rows(only: str, architecture: str, precision: str) -> Iterator[tuple[object, ...]]:
    """One row for each kernel of each program."""
    backend = get_backend(f"cuda-emu:precision={precision}")
    assert isinstance(backend, EmulatorBackend)
    for case in all_cases(1):
        if only not in case.name:
            continue
        kernels = kernels_of(parse_module(case.text), backend)
        with tempfile.TemporaryDirectory() as folder:
            compiled = compile_kernels(kernels, architecture, find_compiler("nvcc"), Path(folder))
            for kernel in kernels:
                made = compiled[kernel.name]
                command = ["cuobjdump", "-sass", "-fun", kernel.name, str(made.cubin)]
                listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                lines, resources = read(listing), made.resources
                body = busiest_loop(lines)
                moved = sum(line.width for line in body)
                widths = Counter(line.width for line in lines if line.name.startswith("LDG"))
                yield (
                    case.name, kernel.schedule, len(lines), f"{len(body) * 16 / moved:.1f}" if moved else "-",
                    loads_ahead(lines), " ".join(f"{w}x{n}" for w, n in sorted(widths.items())),
                    resources.registers, resources.spill_stores, resources.stack,
                )  # fmt: skip


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name holds it")
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument(
        "--precision", default="hlo", choices=("hlo", "wide"), help="of narrow floats in fusions"
    )
    options = parser.parse_args()
    if shutil.which("cuobjdump") is None:
        print("cuobjdump is not on the PATH: package nvidia-cuda-cuobjdump has it", file=sys.stderr)
        return 1
    columns = ("program", "kernel", "instructions", "for 16 bytes", "loads ahead", "loads", "registers")
    columns += ("spilled", "stack")
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for row in rows(options.only, options.architecture, options.precision):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
