"""Inputs and outputs that the user captured: `--inputs` and `--outputs`.

- `FILE.npz`: one array per leaf of the parameters (or of the result). Keys are names, or numbers, or
  anything in natural order (`arg_2` before `arg_10`), tried in this order;
- `FILE.npy`: the only leaf;
- a directory: `MODULE.npz` or `MODULE.npy`, where MODULE is the title that reports print
  (`module_0006.jit_f`), the name of its file, or the module's name if no other module has the same;
- `SCRIPT.py:FUNCTION`: called with the module, returns one value per parameter (inputs only).

A parameter's names are its HLO name, that name without the trailing number, and the frontend's name for it
(`metadata op_name`, such as `state['w']`). Leaves of tuples append their shape index: `0.1`, `state.1.0`.

Programs that run on several devices with arguments of their own take the same files, with either

- a key for each device: `x@0`, `x@1`, …; or
- arrays with one more dimension in front, as long as there are devices.

Both may stand in one file. A script returns a list of arguments for each device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from hlotool.errors import InputDataError
from hlotool.inputs.given import Keep, as_it_is, fit, fit_value, load_function, read_all
from hlotool.ir.arrays import Value, unflatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TokenShape, leaves
from hlotool.system.paths import inside, is_file, is_folder


def load_inputs(source: str, module: Module, keep: Keep = as_it_is) -> tuple[Value, ...]:
    """One value per entry parameter.

    Args:
        source: what `--inputs` was given; see the module's description.
        module: the program to run.
        keep: see `inputs.given.read_all`.

    Raises:
        InputDataError: nothing there, or it does not fit the parameters.
    """
    if (script := split_script(source)) is not None:
        path, function = script
        return fit_arguments(call_script(path, function, module), module, f"{path}:{function}")
    return read_arguments(read_arrays(source, module, keep), module, source)


def read_arguments(given: Mapping[str, Any], module: Module, source: str) -> tuple[Value, ...]:
    """One value per entry parameter, from arrays by key; `source` names them in errors, see `load_inputs`."""
    slots = [slot for p in module.entry.parameters for slot in _parameter_slots(p.parameter_number or 0, p)]
    arrays = _assign(given, slots, source)
    values = []
    for parameter in module.entry.parameters:
        count = sum(1 for _ in leaves(parameter.shape))
        values.append(unflatten(parameter.shape, arrays[:count]))
        del arrays[:count]
    return tuple(values)


def load_outputs(source: str, module: Module, keep: Keep = as_it_is) -> Value:
    """The result that the real program returned, nested as the result's shape.

    Raises:
        InputDataError: as `load_inputs`.
    """
    return read_result(read_arrays(source, module, keep), module, source)


def read_result(given: Mapping[str, Any], module: Module, source: str) -> Value:
    """The result, from arrays by key; `source` names them in errors, see `load_outputs`."""
    shape = module.entry.root.shape
    return unflatten(shape, _assign(given, list(_result_slots(shape)), source))


class _Slot(Struct, frozen=True):
    """A leaf that needs an array: its names, the best one first; none for a token, which needs no array."""

    shape: Shape
    label: str
    names: tuple[str, ...]
    number: str


def _parameter_slots(number: int, parameter: Any) -> Iterator[_Slot]:
    base = [parameter.name, re.sub(r"\.\d+$", "", parameter.name)]
    if parameter.metadata is not None and parameter.metadata.op_name:
        base.append(parameter.metadata.op_name)
    for index, shape in leaves(parameter.shape):
        suffix = "".join(f".{i}" for i in index)
        names = tuple(dict.fromkeys(name + suffix for name in base))
        yield _Slot(shape, f"parameter {number} (%{parameter.name}){suffix}", names, f"{number}{suffix}")


def _result_slots(shape: Shape) -> Iterator[_Slot]:
    for index, part in leaves(shape):
        number = ".".join(map(str, index)) or "0"
        yield _Slot(
            part, f"output {number}", (f"output.{number}", f"out_{number}", f"output_{number}"), number
        )


def _assign(given: Mapping[str, Any], slots: Sequence[_Slot], source: str) -> list[Any]:
    """One array per slot (None for tokens)."""
    needed = [slot for slot in slots if not isinstance(slot.shape, TokenShape)]
    keys = _match(list(given), needed, source)
    arrays = {id(slot): _fitted(given[key], slot, key, source) for slot, key in zip(needed, keys)}
    return [arrays.get(id(slot)) for slot in slots]


def _fitted(value: Any, slot: _Slot, key: str, source: str) -> Any:
    if not isinstance(slot.shape, ArrayShape):
        raise InputDataError(f"{source}: {slot.label} is of shape {slot.shape}: no array can be given for it")
    return fit(value, slot.shape, f"{source}: {key} for {slot.label}")


def _match(keys: list[str], slots: Sequence[_Slot], source: str) -> list[str]:
    """The key of every slot: by name, by number, by natural order."""
    for table in (_by_name(slots), {slot.number: i for i, slot in enumerate(slots)}):
        found = {table[key]: key for key in keys if key in table}
        if len(found) == len(slots) == len(keys):
            return [found[i] for i in range(len(slots))]
        if found and len(found) == len(keys):
            missing = ", ".join(slot.label for i, slot in enumerate(slots) if i not in found)
            raise InputDataError(f"{source}: nothing for {missing}")
    if len(keys) != len(slots):
        raise InputDataError(
            f"{source}: {len(slots)} arrays are needed ({_first(s.label for s in slots)}), "
            f"{len(keys)} are there ({_first(keys)})"
        )
    return sorted(keys, key=_natural)


def _by_name(slots: Sequence[_Slot]) -> dict[str, int]:
    """Slots by those of their names that belong to one slot only."""
    table: dict[str, int] = {}
    ambiguous: set[str] = set()
    for number, slot in enumerate(slots):
        for name in slot.names:
            if name in table:
                ambiguous.add(name)
            table[name] = number
    return {name: number for name, number in table.items() if name not in ambiguous}


def _first(names: Any, count: int = 4) -> str:
    listed = list(names)
    return ", ".join(listed[:count]) + (", …" if len(listed) > count else "") if listed else "none"


def _natural(key: str) -> list[tuple[bool, int, str]]:
    """Digits compare as numbers."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", key)]


# Files and scripts


def split_script(source: str) -> tuple[Path, str] | None:
    """Path and function of `SCRIPT.py:FUNCTION`, None for anything else."""
    path, colon, function = source.rpartition(":")
    return (Path(path), function) if colon and path.endswith(".py") else None


def fit_arguments(made: Sequence[Any], module: Module, label: str) -> tuple[Value, ...]:
    """What a script returned, as one value per entry parameter.

    Raises:
        InputDataError: it does not fit the parameters; the message starts with `label`.
    """
    parameters = module.entry.parameters
    if len(made) != len(parameters):
        raise InputDataError(f"{label} returned {len(made)} values, {module.name} takes {len(parameters)}")
    return tuple(
        fit_value(p.shape, value, f"{label}: parameter {n} (%{p.name})")
        for n, (p, value) in enumerate(zip(parameters, made))
    )


def read_arrays(path: str, module: Module, keep: Keep = as_it_is) -> dict[str, Any]:
    """The arrays of a file, or of the module's file in a directory, by key.

    Raises:
        InputDataError: nothing there that NumPy can read.
    """
    return read_all(_in_directory(path, module) if is_folder(path) else path, keep)


def _in_directory(directory: str, module: Module) -> str:
    """`MODULE.npz`, by the module's name or by the name of the file it was read from."""
    stems = [module.name]
    if module.path is not None:
        stems.append(Path(module.path).name)
        stems.append(Path(module.path).stem)
    for stem in stems:
        if (found := values_file(directory, stem)) is not None:
            return found
    raise InputDataError(f"{directory}: no {module.name}.npz for module {module.name}")


def values_file(directory: str, stem: str) -> str | None:
    """`STEM.npz` or `STEM.npy` in a directory, if it is there."""
    paths = (inside(directory, f"{stem}{suffix}") for suffix in (".npz", ".npy"))
    return next(filter(is_file, paths), None)


# Inputs made by the user's own Python function.


def call_script(path: Path, function: str, module: Module) -> Sequence[Any]:
    """What `function` of the Python file `path` returns for `module`: one value per entry parameter.

    Raises:
        InputDataError: no such file or function, an exception in it, or no sequence returned.
    """
    made = load_function(path, function)
    try:
        values = made(module)
    except Exception as error:
        raise InputDataError(f"{path}:{function} raised {type(error).__name__}: {error}") from error
    if not isinstance(values, Sequence):
        raise InputDataError(f"{path}:{function} returned {type(values).__name__}, not a list of arrays")
    return values


# `--inputs` and `--outputs` of programs that run on several devices with arguments of their own.
#
# Files are those of `captured`, with either
#
# - a key for each device: `x@0`, `x@1`, …; or - arrays with one more dimension in front, as long as there
# are devices.
#
# Both may stand in one file. A script returns a list of arguments for each device.


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
