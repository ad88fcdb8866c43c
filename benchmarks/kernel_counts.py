"""Kernels that a program launches beside those that XLA launches for it, on programs optimised for GPUs.

    python -m benchmarks.kernel_counts FOLDER …

Folders are searched for HLO text with fusions as XLA forms them for GPUs, and for the inputs of the tests of
XLA's emitters, each of which is one kernel. XLA launches one kernel for a fusion and one, or a call of a
library, for every other instruction that computes. Two passes of one reduction count as one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.xla_side import count_kernels
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.partition import of_fusion
from hlotool.backends.cuda.codegen.schedules import Kernel, Part
from hlotool.backends.cuda.fusing import fused
from hlotool.backends.cuda.lowering import KernelLowering
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module

#: Where every file is one kernel.
_EMITTERS = "emitters/tests"
_FUSION = re.compile(r"\bfusion\(.*kind=k(Input|Custom|Loop)")


@dataclass(frozen=True, slots=True)
class Row:
    """One program.

    Attributes:
        name: of its file.
        ours: kernels that are launched.
        passes: second passes, not counted.
        host: instructions that the host executes.
        xla: kernels and library calls of XLA.
    """

    name: str
    ours: int
    passes: int
    host: int
    xla: int

    @property
    def exceeds(self) -> bool:
        """Whether XLA launches fewer."""
        return self.ours + self.host > self.xla

    def __str__(self) -> str:
        mark = "  MORE" if self.exceeds else ""
        return f"{self.name:70}{self.ours:6}{self.passes:6}{self.host:6}{self.xla:6}{mark}"


def programs(folders: Sequence[Path]) -> Iterator[tuple[str, Module, bool]]:
    """Names, programs, and whether each is a test of an emitter."""
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".hlo", ".txt")):
            text = path.read_text(encoding="utf-8", errors="replace")
            is_emitter = _EMITTERS in str(path)
            is_gpu = "gpu" in str(path) and _FUSION.search(text)
            if not is_emitter and not is_gpu:
                continue
            try:
                module = parse_module(text, path=str(path))
            except HlotoolError:
                continue  # tests of XLA's tools hold several programs, or none
            yield str(path.relative_to(folder)), module, is_emitter


def count(name: str, module: Module, is_emitter: bool) -> Row:
    """What generated kernels do for one program.

    Raises:
        HlotoolError: neither a kernel nor the host executes it.
        NotGenerated: a fusion of the emitters' tests has no kernel.
    """
    xla = count_kernels(module)
    if is_emitter and not xla.fusions:  # the test has the whole program emitted as one fusion
        kernels: Sequence[Kernel] = of_fusion(module.entry).kernels
        return _row(name, kernels, 0, 1)
    lowering = KernelLowering(fused(module), EmulatorBackend().loading())
    lowering.plan(lowering.module.entry)
    return _row(name, lowering.kernels, sum(lowering.fallbacks.values()), xla.launches)


def _row(name: str, kernels: Sequence[Kernel], host: int, xla: int) -> Row:
    passes = sum(1 for kernel in kernels if is_second_pass(kernel))
    return Row(name, len(kernels) - passes, passes, host, xla)


def is_second_pass(kernel: Kernel) -> bool:
    """Whether it goes on with what another kernel began."""
    return any(isinstance(buffer, Part) for buffer in kernel.inputs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    rows, refused = [], []
    print(f"{'program':70}{'ours':>6}{'pass2':>6}{'host':>6}{'xla':>6}")
    for name, module, is_emitter in programs(parser.parse_args().folders):
        try:
            rows.append(count(name, module, is_emitter))
        except (HlotoolError, NotGenerated) as error:
            refused.append(f"{name}: {str(error).splitlines()[0]}")
            continue
        print(rows[-1], flush=True)
    more = [row for row in rows if row.exceeds]
    total, theirs = sum(r.ours + r.host for r in rows), sum(r.xla for r in rows)
    print(f"{len(rows)} programs, {len(more)} with more launches than XLA; in all {total} against {theirs}")
    for line in refused:
        print("not executed:", line)


if __name__ == "__main__":
    main()
