"""Two programs that should compute the same, on several devices: as programs that run alone.

What no device exchanges values in is a program for one of them. A program that was partitioned is compared
with what the partitioner was given, on global arrays, or with another partitioned one, device by device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hlotool.ir.attributes import Sharding
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.partitioning import own_arguments
from hlotool.locate.cut import Spot
from hlotool.replay.program import Program
from hlotool.search.reduction.case import for_one_device
from hlotool.values.npz import arrays_in


def on_its_own(spot: Spot) -> Iterator[Spot]:
    """A spot as programs that can be run alone; several where it is not known on which device they differ.

    None where only the wrong one exchanges values: what the right one does there is not one program for all.
    """
    counts = own_arguments(spot.before), own_arguments(spot.after)
    if spot.copies == 1 or counts[0] > 1:
        yield spot
    elif counts == (1, 1):
        known: set[tuple[bytes, ...]] = set()
        for row in spot.arguments:
            key = tuple(array.tobytes() for array in arrays_in(row))
            if key not in known:
                known.add(key)
                yield Spot(for_one_device(spot.before), for_one_device(spot.after), row)


def whole_stages(
    before: Program, after: Program, arguments: Sequence[Any], sharding: Sharding | None = None
) -> Spot:
    """Two stages and the arguments of a replay, or where both are partitioned the parts of each device.

    Args:
        before: the right one.
        after: the wrong one.
        arguments: of the replay.
        sharding: of the result of `after`, where the dump tells.
    """
    copies = own_arguments(before.module)
    rows = before.runner.on_devices(arguments)
    stated = clone_module(after.module).module
    if sharding is not None and copies == 1:
        root = stated.entry.root
        root.attributes = {**root.attributes, "sharding": sharding}
    return Spot(before.module, stated, tuple(rows) if copies > 1 else tuple(arguments), copies)
