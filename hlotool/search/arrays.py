"""Values as .npz files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def npz_bytes(values: Sequence[Any]) -> bytes:
    """An .npz file of the arrays in `values`, in order, tuples depth first, as `--inputs` reads it."""
    stream = io.BytesIO()
    np.savez(stream, **{f"arg_{number}": array for number, array in enumerate(arrays_in(tuple(values)))})
    return stream.getvalue()


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
