"""Launching a kernel: grids into runs of as many blocks as are executed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.backends.gpu_ptx.block_races import BlockRaces
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.model import Kernel
from hlotool.errors import KernelFault, Location

#: Threads that are executed together, at most, unless a block has more.
TOGETHER = 1 << 15
#: Bytes of shared memory of all blocks that are executed together, at most, unless one block has more.
SHARED_TOGETHER = 1 << 22
#: Limits of every GPU since compute capability 3.0 (CUDA programming guide, "Compute capabilities").
BLOCK_LIMITS = (1024, 1024, 64)
THREADS_LIMIT = 1024
GRID_LIMITS = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True, slots=True)
class Checks:
    """What is checked that hardware does not check.

    Attributes:
        uninitialised: reads of shared and local memory that was never written (global memory knows by
            itself).
        races: accesses of shared memory by two threads that no barrier orders, and of global memory by two
            blocks.
        lanes: a shuffle that reads a lane that takes no part is a fault; else its result is some value,
            drawn by
            the seed, and the reads are counted.
    """

    uninitialised: bool = True
    races: bool = True
    lanes: bool = False


@dataclass
class LaunchStatistics:
    """What a launch did.

    Attributes:
        thread_instructions: instructions, each counted for each thread that executed it.
        steps: instructions, each counted once for each group of threads.
        absent_lane_reads: values that shuffles took from lanes without a thread.
    """

    thread_instructions: int = 0
    steps: int = 0
    absent_lane_reads: int = 0


def launch(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[bytes],
    memory: Memory,
    *,
    dynamic_shared: int = 0,
    seed: int = 0,
    checks: Checks = Checks(),
    limit: int = 10**11,
    written: tuple[int, int] | None = None,
) -> LaunchStatistics:
    """Execute a kernel.

    Args:
        arguments: the bytes of each parameter.
        memory: what its pointers point to.
        dynamic_shared: bytes of dynamic shared memory.
        seed: chooses among the executions that are correct: the order of warps, the errors of approximate
            functions, values that are undefined. 0: warps in step, results as near as possible.
        limit: thread instructions at most.
        written: addresses between which it may write, for the check of races between blocks. None: anywhere.

    Raises:
        Unsupported: an instruction is not known; its location is the line of the text.
        KernelFault: the kernel, or its launch, does what is not allowed.
        BackendTimeout: more than `limit` instructions.
    """
    from hlotool.backends.gpu_ptx.machine import Machine

    _check_launch(kernel, grid, block, arguments)
    statistics = LaunchStatistics()
    threads = block[0] * block[1] * block[2]
    blocks = grid[0] * grid[1] * grid[2]
    shared = kernel.shared_bytes + dynamic_shared
    together = max(1, min(TOGETHER // threads, SHARED_TOGETHER // max(1, shared)))
    parameters = bytearray(kernel.parameter_bytes)
    for parameter, argument in zip(kernel.parameters, arguments):
        parameters[parameter.offset : parameter.offset + parameter.size] = argument
    block_races = None
    if checks.races and blocks > 1:
        block_races = BlockRaces(kernel, *(written or memory.span))
    for begin in range(0, blocks, together):
        end = min(blocks, begin + together)
        Machine(
            kernel,
            grid,
            block,
            range(begin, end),
            bytes(parameters),
            memory,
            dynamic_shared,
            seed,
            checks,
            statistics,
            limit,
            block_races,
        ).run()
    return statistics


def _check_launch(
    kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: Sequence[bytes]
) -> None:
    """Refuse what the driver refuses."""
    threads = block[0] * block[1] * block[2]
    wrong = None
    if len(arguments) != len(kernel.parameters):
        wrong = f"{len(kernel.parameters)} parameters are given {len(arguments)} arguments"
    for parameter, argument in zip(kernel.parameters, arguments):
        if len(argument) != parameter.size:
            wrong = f"parameter {parameter.name} of {parameter.size} bytes is given {len(argument)}"
    if not all(1 <= extent <= most for extent, most in zip(block, BLOCK_LIMITS)) or threads > THREADS_LIMIT:
        wrong = f"a block of {block} threads is not possible"
    elif not all(1 <= extent <= most for extent, most in zip(grid, GRID_LIMITS)):
        wrong = f"a grid of {grid} blocks is not possible"
    elif kernel.required_block is not None and block != kernel.required_block:
        wrong = f"it is compiled for blocks of {kernel.required_block}, and launched with {block}"
    elif kernel.max_threads is not None and threads > kernel.max_threads:
        wrong = f"it is compiled for {kernel.max_threads} threads at most, and launched with {threads}"
    if wrong is not None:
        raise KernelFault("launch", wrong, kernel.name, Location(kernel.program, kernel.line))
