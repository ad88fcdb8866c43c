"""Further sets of inputs for programs whose devices have arguments of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from hlotool.backends.base import Value
from hlotool.directed.plan import directed_sets
from hlotool.directed.sets import InputSet
from hlotool.ir.module import Module
from hlotool.replay.devices.arguments import device_arguments
from hlotool.values.generate import generate_inputs

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
