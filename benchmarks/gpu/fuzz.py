"""Random fusions on a backend and on the CPU emulation of the same kernels: equal to the bit.

    python -m benchmarks.gpu.fuzz --backend cuda BATCH …

Prints lines of JSON, see `lines`. Batch N holds the fusions of a dozen seeds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

from support.kernels import differing
from support.random_fusions import arguments_of, module_of, random_fusion

from benchmarks.gpu.accuracy import leaves
from benchmarks.gpu.lines import Reporter
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed, BackendUnavailable, HlotoolError
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

#: Fusions of one program: so many kernels share the time of a compilation.
BATCH = 12


def _program(batch: int) -> tuple[Module, list[Any]]:
    """Fusions of a batch, and their arguments."""
    first = batch * BATCH
    fusions = [random_fusion(seed) for seed in range(first, first + BATCH)]
    return parse_module(module_of(fusions)), arguments_of(fusions, first)


def results(batch: int, backend: str) -> list[Array]:
    """What a backend makes of a batch: one array per fusion, or several."""
    module, arguments = _program(batch)
    return leaves(get_backend(backend).compile(module).run(arguments))


def compare(ours: list[Array], theirs: list[Array]) -> dict[str, int]:
    """Elements that differ, by number of the result; results without any are left out."""
    counts = {str(n): differing(a, b) for n, (a, b) in enumerate(zip(ours, theirs, strict=True))}
    return {result: count for result, count in counts.items() if count}


def main() -> None:
    """Compare the batches named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("batches", nargs="+", type=int)
    options = parser.parse_args()
    try:
        get_backend(options.backend)
    except BackendUnavailable as error:
        sys.exit(str(error))
    # The emulation against itself: with the threads of a block in the other order.
    other = "cuda-emu:backward" if options.backend == "cuda-emu" else "cuda-emu"
    workers = max(1, (os.cpu_count() or 1) - 1)
    # Processes of their own, and not forked: they must not share the device's context.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        emulated = {batch: pool.submit(results, batch, other) for batch in options.batches}
        _compare_all(options.backend, emulated, Reporter())
    finally:
        pool.shutdown(cancel_futures=True)


def _compare_all(backend: str, emulated: Mapping[int, Future[list[Array]]], report: Reporter) -> None:
    for batch, theirs in emulated.items():
        item = str(batch)
        report.begin(item)
        try:
            wrong = compare(results(batch, backend), theirs.result())
            report.add(item, fusions=BATCH, differing=wrong)
        except HlotoolError as error:
            report.fail(item, f"{type(error).__name__}: {error}")
            if isinstance(error, BackendFailed) and error.here:
                # The device is of no more use to this process.
                report.done(item)
                sys.exit(str(error))
        report.done(item)


if __name__ == "__main__":
    main()
