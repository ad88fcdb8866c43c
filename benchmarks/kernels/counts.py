"""Kernels that a program launches beside those that XLA launches for it.

    python -m benchmarks.kernels.counts FOLDER …
    python -m benchmarks.kernels.counts --dumps FOLDER …

Folders are searched for HLO text with fusions as XLA forms them for GPUs, and for the inputs of the tests of
XLA's emitters, each of which is one kernel. With --dumps they are dumps of XLA:GPU
(`benchmarks.gpu.dump_programs` makes some): programs are fused here from what XLA was given, and its count
is its own listing (`benchmarks.gpu.thunks`).

Ours are all kernels, second passes of reductions included, calls of cuBLAS with the transpositions that they
need, and instructions that the host executes. What control flow leads to counts once on either side.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.gpu.thunks import read_thunks
from benchmarks.gpu.xla_side import count_kernels
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_fusion
from hlotool.backends.cuda.codegen.schedules import Kernel, Part
from hlotool.backends.cuda.cublas import product_of
from hlotool.backends.cuda.kernel_backend import fused
from hlotool.checks.inspect.kernels import listed
from hlotool.errors import HlotoolError
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module

#: Where every file is one kernel.
_EMITTERS = "emitters/tests"
_FUSION = re.compile(r"\bfusion\(.*kind=k(Input|Custom|Loop)")
#: Of programs in a dump, by name: fusion was looked at on the others, every third is summed by itself.
_APART = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One program.

    Attributes:
        name: of its file, or module.
        ours: kernels and library calls that are launched.
        passes: those among them that are second passes.
        host: instructions that the host executes.
        xla: launches of XLA.
        copies: those among them that are copies or memsets; unknown outside of dumps.
    """

    name: str
    ours: int
    passes: int
    host: int
    xla: int
    copies: int = 0

    @property
    def exceeds(self) -> bool:
        """Whether XLA launches fewer."""
        return self.ours + self.host > self.xla

    def __str__(self) -> str:
        mark = "  MORE" if self.exceeds else ""
        return f"{self.name:70}{self.ours:6}{self.passes:6}{self.host:6}{self.xla:6}{self.copies:7}{mark}"


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
        kernels = of_fusion(module.entry).kernels
        return Row(name, len(kernels), _second_passes(kernels), 0, 1)
    return Row(name, *_ours(module), xla.launches)


def count_dump(listing: Path) -> Row:
    """One program of a dump of XLA:GPU.

    Args:
        listing: its `….thunk_sequence.txt`.

    Raises:
        HlotoolError: neither a kernel nor the host executes it.
    """
    stem = listing.name.removesuffix("thunk_sequence.txt")
    before = listing.with_name(f"{stem}before_optimizations.txt")
    module = parse_module(before.read_text(encoding="utf-8"), path=str(before))
    theirs = read_thunks(listing.read_text(encoding="utf-8"))
    return Row(module.name, *_ours(module), theirs.total, theirs.copies)


def _ours(module: Module) -> tuple[int, int, int]:
    """Launches, second passes among them, and what the host executes."""
    found = listed(fused(module))
    launches = sum(_launches(*launched) for launched in found.launched)
    passes = sum(_second_passes(made.kernels) for _, made in found.launched)
    return launches, passes, sum(found.fallbacks.values())


def _launches(instruction: Instruction, made: KernelProgram) -> int:
    """The kernels of one instruction; or cuBLAS, and kernels for operands that it cannot take as they lie."""
    product = product_of(instruction)
    if product is None:
        return len(made.kernels)
    return 1 + sum(stack.order is not None for stack in (product.left, product.right))


def _second_passes(kernels: Sequence[Kernel]) -> int:
    """How many go on with what another kernel began."""
    return sum(any(isinstance(buffer, Part) for buffer in kernel.inputs) for kernel in kernels)


def _listings(folders: Sequence[Path]) -> list[Path]:
    found = (path for folder in folders for path in folder.rglob("*thunk_sequence.txt"))
    return sorted(found, key=lambda path: path.name.partition(".")[2])


def _subjects(folders: Sequence[Path], are_dumps: bool) -> Iterator[tuple[str, Callable[[], Row]]]:
    if are_dumps:
        for path in _listings(folders):
            yield path.name, partial(count_dump, path)
    else:
        for name, module, is_emitter in programs(folders):
            yield name, partial(count, name, module, is_emitter)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--dumps", action="store_true", help="the folders are dumps of XLA:GPU")
    options = parser.parse_args()
    rows, refused = [], []
    print(f"{'program':70}{'ours':>6}{'pass2':>6}{'host':>6}{'xla':>6}{'copies':>7}")
    for name, counted in _subjects(options.folders, options.dumps):
        try:
            rows.append(counted())
        except (HlotoolError, NotGenerated) as error:
            refused.append(f"{name}: {str(error).splitlines()[0]}")
            continue
        print(rows[-1], flush=True)
    if options.dumps:
        _print_sum("looked at", [row for n, row in enumerate(rows) if n % _APART != _APART - 1])
        _print_sum("apart", rows[_APART - 1 :: _APART])
    _print_sum("all", rows)
    for line in refused:
        print("not executed:", line)


def _print_sum(title: str, rows: Sequence[Row]) -> None:
    more = sum(row.exceeds for row in rows)
    total, theirs = sum(r.ours + r.host for r in rows), sum(r.xla for r in rows)
    copies = sum(r.copies for r in rows)
    without = f"; {theirs - copies} without copies and memsets" if copies else ""
    print(
        f"{title}: {len(rows)} programs, {more} with more launches than XLA; "
        f"in all {total} against {theirs}{without}"
    )


if __name__ == "__main__":
    main()
