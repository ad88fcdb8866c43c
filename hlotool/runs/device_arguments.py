"""Arguments of programs whose devices have their own: generated, captured, and further sets of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from hlotool.backends.base import TOKEN, Value
from hlotool.errors import InputDataError, Location, Unsupported
from hlotool.facts.sharding import assemble, leaf_shardings, placement
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.sets import InputSet
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.attributes import Sharding
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, leaves

_REPLICATED = Sharding("replicated")


def device_arguments(module: Module, make: Callable[[int], Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    """Arguments for each device of a program that is written for one of several.

    Partitions that hold the same part of a parameter get the same value; replicas and other parts differ.

    Args:
        module: the program; its parameters' shardings say which partitions hold the same part.
        make: arguments of one device, different for every number.
    """
    variant = cache(make)
    return arguments_by_part(module, lambda _, number: variant(number))


def arguments_by_part(
    module: Module, make: Callable[[int, int], Sequence[Any]]
) -> tuple[tuple[Any, ...], ...]:
    """Arguments for each device, of which each leaf comes from those made for its device and part.

    Args:
        module: see `device_arguments`.
        make: arguments of one device, and those of one number, as `device_arguments` numbers them: devices
            that hold the same part of a parameter have the same number there.
    """
    grid = DeviceGrid(module.replica_count, module.num_partitions)
    made = cache(make)

    def argument(parameter: Instruction, device: int) -> Any:
        replica, partition = grid.position(device)
        number = parameter.parameter_number or 0
        parts = []
        for leaf, tile in enumerate(_tiles(parameter, partition, grid.partitions)):
            value = made(device, replica * grid.partitions + tile)[number]
            parts.append(list(flatten(parameter.shape, value))[leaf][2])
        return unflatten(parameter.shape, parts)

    return tuple(tuple(argument(p, device) for p in module.entry.parameters) for device in range(len(grid)))


def _tiles(parameter: Instruction, partition: int, count: int) -> list[int]:
    """Which part of each leaf of a parameter a partition holds."""
    shardings = leaf_shardings(parameter.shape, parameter.sharding)
    return [
        _tile(shape, sharding, partition, count)
        for (_, shape), sharding in zip(leaves(parameter.shape), shardings)
    ]


def _tile(shape: Shape, sharding: Sharding | None, partition: int, count: int) -> int:
    if count == 1 or sharding is None or not isinstance(shape, ArrayShape):
        return 0
    placed = placement(sharding, shape.rank, count)
    index = placed.tile_indices().get(partition)
    return int(np.ravel_multi_index(index, placed.tiles)) if index else 0


def global_arguments(module: Module, devices: Sequence[Sequence[Any]], location: Location) -> tuple[Any, ...]:
    """The arguments of a program on global arrays, from what each partition was given.

    Args:
        module: the program; its parameters' shardings say how the devices held the arguments.
        devices: the captured arguments of each device.
        location: of the capture.

    Raises:
        InputDataError: copies contradict each other.
        Unsupported: the shardings do not fit what was captured.
    """
    if len(devices) != module.num_partitions:
        reason = f"captured on {len(devices)} devices, the program has {module.num_partitions} partitions"
        raise Unsupported(reason, location=location)
    columns = list(zip(*devices))
    return tuple(
        _global_argument(parameter, column, location)
        for parameter, column in zip(module.entry.parameters, columns)
    )


def _global_argument(parameter: Instruction, values: Sequence[Any], location: Location) -> Any:
    rows = [[part for _, _, part in flatten(parameter.shape, value)] for value in values]
    parts: list[Any] = []
    shardings = leaf_shardings(parameter.shape, parameter.sharding)
    for (_, shape), sharding, column in zip(leaves(parameter.shape), shardings, zip(*rows)):
        if not isinstance(shape, ArrayShape):
            parts.append(TOKEN)
            continue
        try:
            array, disagreement = assemble(column, shape.dims, sharding or _REPLICATED)
        except ValueError as error:
            reason = f"argument {parameter.name}: {error}"
            raise Unsupported(reason, location=location) from error
        if disagreement is not None:
            raise InputDataError(f"{location}: argument {parameter.name}: {disagreement}")
        parts.append(array)
    return unflatten(parameter.shape, parts)


#: Sets of a device that are made to find the one that another device has: what is drawn may leave some out.
_AHEAD: Final = 4


def further_sets(
    module: Module,
    arguments: Sequence[Any],
    seed: int,
    value_range: tuple[float, float] | None = None,
    copies: int = 1,
    tested: Module | None = None,
) -> Iterator[InputSet]:
    """Every set but the plain one; see `directed_sets`.

    Args:
        module: the program; for one device, on global arrays, or for one of several.
        arguments: the plain ones; one tuple for each device where `copies` have their own.
        seed: of what is drawn.
        value_range: bounds of floats that no use bounds.
        copies: devices with arguments of their own. On all of them a set is of the same kind, and drawn for
            each anew, as the plain arguments are.
        tested: the program that `module` is compared with, where both take the same arguments on one device.
    """
    if copies == 1:
        yield from directed_sets(module, arguments, seed, value_range, tested)
        return
    devices = [_OfDevice(module, seed + number, value_range) for number in range(copies)]
    for one in directed_sets(module, devices[0].plain, seed, value_range):

        def made(number: int, one: InputSet = one) -> Sequence[Value]:
            return devices[number].values(one.name) if number else one.values

        yield replace(one, values=device_arguments(module, made))


class _OfDevice:
    """The sets of one device, by name.

    Attributes:
        plain: its plain arguments.
    """

    def __init__(self, module: Module, seed: int, value_range: tuple[float, float] | None) -> None:
        plain: tuple[Any, ...] = generate_inputs(module, seed, value_range).values
        self.plain = plain
        self._sets = directed_sets(module, plain, seed, value_range)
        self._passed: dict[str, InputSet] = {}

    def values(self, name: str) -> Sequence[Any]:
        """Those of a set; the plain ones where this device has none of that name among its next ones."""
        for one in islice(self._sets, 0 if name in self._passed else _AHEAD):
            self._passed[one.name] = one
            if one.name == name:
                break
        found = self._passed.pop(name, None)
        return self.plain if found is None else found.values
