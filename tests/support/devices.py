"""Programs for several devices on the numpy backend, and on real XLA."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.devices import DeviceGrid
from support.differential import Array, assert_close, leaves, parse
from support.xla import oracle

Grid = tuple[int, int]


def run_devices(text: str, arguments: list[list[Any]], grid: Grid) -> list[list[Array]]:
    """Per device, the leaves of the result on the numpy backend."""
    executable = NumpyBackend().compile_devices(parse(text), DeviceGrid(*grid))
    given = [[np.asarray(a) for a in device] for device in arguments]
    return [leaves(result) for result in executable.run_devices(given)]


def check_devices(text: str, arguments: list[list[Any]], grid: Grid, steps: float = 0) -> None:
    """The same on XLA and on the numpy backend; floats may differ by `steps` roundings."""
    theirs = oracle(8).run_devices(manual(text) if grid[1] > 1 else text, arguments, *grid)
    ours = run_devices(text, arguments, grid)
    assert len(ours) == len(theirs)
    for our_leaves, their_leaves in zip(ours, theirs):
        assert len(our_leaves) == len(their_leaves)
        for a, b in zip(our_leaves, their_leaves):
            assert_close(a, b, steps)


def manual(text: str) -> str:
    """`text` with `sharding={manual}` on the entry's instructions, one of which stands on each line."""
    head, _, entry = text.partition("ENTRY")
    lines = [line + ", sharding={manual}" if " = " in line else line for line in entry.split("\n")]
    return head + "ENTRY" + "\n".join(lines)


def header(grid: Grid) -> str:
    """First line of a module for the devices of `grid`."""
    return f"HloModule m, replica_count={grid[0]}, num_partitions={grid[1]}"
