"""Values as .npz files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def npz_bytes(values: Sequence[Any], copies: int = 1) -> bytes:
    """An .npz file of the arrays in `values`, in order, tuples depth first, as `--inputs` reads it.

    Args:
        values: arrays, or tuples of them.
        copies: number of devices that have values of their own; `values` are then those of each device.
    """
    arrays = {
        f"arg_{n}{on}": _readable(array) for on, row in _rows(values, copies) for n, array in enumerate(row)
    }
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _readable(array: Any) -> Any:
    """The array with a type that a file can name: of f8e5m2 NumPy writes a name that it does not read.

    Its bytes are kept without a type, as those of other types that NumPy lacks; the parameter has the type.
    """
    return array.view("V1") if array.dtype.str[1:] == "f1" else array


def as_values(result: Any, copies: int = 1) -> Sequence[Any]:
    """A result as values to write: where several devices return their own, it is a tuple of them."""
    return tuple(result) if copies > 1 else [result]


def _rows(values: Sequence[Any], copies: int) -> Iterator[tuple[str, Iterator[Any]]]:
    """What each device has, under what follows the names of its arrays."""
    if copies == 1:
        yield "", arrays_in(tuple(values))
        return
    for device, row in enumerate(values):
        yield f"@{device}", arrays_in(row)


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays in nested tuples, depth first; tokens are left out."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, np.ndarray | np.generic):
        yield np.asarray(value)


def npz_arrays(content: bytes) -> dict[str, Any]:
    """The arrays of an .npz file, by key."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}
