"""Programs for several devices: what XLA's partitioner has to be told, and what it tells.

XLA compiles a program for several partitions only through its partitioner. That leaves alone what is marked
as manual: written for each device already.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.errors import BackendFailed, Unsupported
from hlotool.ir.attributes import Sharding
from hlotool.ir.dtypes import Array
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.parse.proto.placement import read_sharding
from hlotool.parse.proto.schema import message_class
from hlotool.values.sharding import assemble, split

MANUAL = Sharding("manual")


def manual_module(module: Module) -> Module:
    """A copy that the partitioner leaves alone: each device runs it on its own arguments."""
    copy = clone_module(module).module
    for instruction in copy.entry.instructions:
        instruction.attributes = {**instruction.attributes, "sharding": MANUAL}
    return copy


def parse_sharding(content: bytes) -> Sharding:
    """The sharding in a serialized OpSharding."""
    message = message_class("OpSharding")()
    message.ParseFromString(content)
    return read_sharding(message)


def spread(arrays: Sequence[Array], shardings: Sequence[Sharding], count: int) -> list[list[Array]]:
    """What each of `count` devices gets of the global `arrays`.

    Raises:
        Unsupported: an array cannot be spread so.
    """
    try:
        columns = [split(array, sharding, count) for array, sharding in zip(arrays, shardings)]
    except ValueError as error:
        raise Unsupported(
            f"an argument cannot be spread over the devices as XLA wants it: {error}"
        ) from error
    return [[column[device] for column in columns] for device in range(count)]


def gather(
    rows: Sequence[Sequence[Array]], shapes: Sequence[ArrayShape], shardings: Sequence[Sharding]
) -> list[Array]:
    """The global arrays of which the devices hold the parts.

    Raises:
        BackendFailed: copies that devices hold of one array differ.
        Unsupported: the parts make no global array.
    """
    arrays: list[Array] = []
    for number, (column, shape, sharding) in enumerate(zip(zip(*rows), shapes, shardings)):
        try:
            array, disagreement = assemble(column, shape.dims, sharding)
        except ValueError as error:
            raise Unsupported(f"result {number} is no part of a global array: {error}") from error
        if disagreement is not None:
            raise BackendFailed("xla", f"result {number}: {disagreement}")
        arrays.append(array)
    return arrays
