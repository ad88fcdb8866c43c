"""`--inputs` and `--outputs` of programs that run on several devices with arguments of their own.

Files are those of `captured`, with either

- a key for each device: `x@0`, `x@1`, …; or
- arrays with one more dimension in front, as long as there are devices.

Both may stand in one file. A script returns a list of arguments for each device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlotool.errors import InputDataError
from hlotool.ir.module import Module
from hlotool.values.captured import (
    call_script,
    fit_arguments,
    read_arguments,
    read_arrays,
    read_result,
    split_script,
)
from hlotool.values.flatten import Value


def load_device_inputs(source: str, module: Module, count: int) -> tuple[tuple[Value, ...], ...]:
    """For each of `count` devices, one value per entry parameter.

    Raises:
        InputDataError: nothing there, or it does not fit the parameters or the devices.
    """
    if (script := split_script(source)) is not None:
        path, function = script
        label = f"{path}:{function}"
        made = call_script(path, function, module)
        if len(made) != count:
            raise InputDataError(f"{label} returned {len(made)} lists of arguments for {count} devices")
        return tuple(fit_arguments(row, module, f"{label}: device {n}") for n, row in enumerate(made))
    return read_device_arguments(read_arrays(source, module), module, count, source)


def read_device_arguments(
    given: Mapping[str, Any], module: Module, count: int, source: str
) -> tuple[tuple[Value, ...], ...]:
    """The arguments of each device, of arrays by the keys of such a file; raises as `load_device_inputs`."""
    rows = _by_device(given, count, source)
    return tuple(read_arguments(row, module, _on(source, n)) for n, row in enumerate(rows))


def load_device_outputs(source: str, module: Module, count: int) -> tuple[Value, ...]:
    """What each of `count` devices returned; raises as `load_device_inputs`."""
    rows = _by_device(read_arrays(source, module), count, source)
    return tuple(read_result(row, module, _on(source, n)) for n, row in enumerate(rows))


def _on(source: str, device: int) -> str:
    return f"{source}: device {device}"


def _by_device(given: Mapping[str, Any], count: int, source: str) -> list[dict[str, Any]]:
    """The arrays of each device by key, without the number of the device."""
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for key, array in given.items():
        name, at, device = key.rpartition("@")
        if at and device.isdecimal():
            if int(device) >= count:
                raise InputDataError(f"{source}: {key}: the program is for {count} devices")
            rows[int(device)][name] = array
        elif array.ndim and array.shape[0] == count:
            for number, row in enumerate(rows):
                row[key] = array[number]
        else:
            dims = ",".join(map(str, array.shape))
            raise InputDataError(
                f"{source}: {key} has dimensions [{dims}]: the program is for {count} devices; give each its "
                f"own as {key}@0, {key}@1, …, or an array with a first dimension of {count}"
            )
    return rows
