"""Random fusions on a backend and on the CPU emulation of the same kernels: equal to the bit.

    python -m benchmarks.gpu.fuzz --backend cuda BATCH …

Prints lines of JSON, see `lines`. Batch N holds the fusions of a dozen seeds.
"""

from __future__ import annotations

import argparse

from support.kernels import differing
from support.random_fusions import arguments_of, module_of, random_fusion

from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.measure import leaves
from hlotool.backends.base import Backend
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.parse.reader import parse_module

#: Fusions of one program: so many kernels share the time of a compilation.
BATCH = 12


def compare(batch: int, backend: Backend, emulator: Backend) -> dict[int, int]:
    """Elements that differ, by seed of the fusion; fusions without any are left out."""
    first = batch * BATCH
    fusions = [random_fusion(seed) for seed in range(first, first + BATCH)]
    text, arguments = module_of(fusions), arguments_of(fusions, first)
    ours, theirs = (leaves(b.compile(parse_module(text)).run(arguments)) for b in (backend, emulator))
    counts = {seed: differing(a, b) for seed, (a, b) in enumerate(zip(ours, theirs), first)}
    return {seed: count for seed, count in counts.items() if count}


def main() -> None:
    """Compare the batches named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("batches", nargs="+", type=int)
    options = parser.parse_args()
    report = Reporter()
    # The emulation against itself: with the threads of a block in the other order.
    other = "cuda-emu:backward" if options.backend == "cuda-emu" else "cuda-emu"
    backend, emulator = get_backend(options.backend), get_backend(other)
    for batch in options.batches:
        item = str(batch)
        report.begin(item)
        try:
            report.add(item, fusions=BATCH, differing=compare(batch, backend, emulator))
        except HlotoolError as error:
            report.add(item, failed=f"{type(error).__name__}: {error}")
        report.done(item)


if __name__ == "__main__":
    main()
