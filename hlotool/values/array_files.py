"""Files of arrays that other programs wrote: `.npy` and `.npz`.

NumPy's readers do not say what they raise on a damaged file: besides `ValueError` and `OSError` that is what
zip, zlib, Python's tokenizer and its parser raise, and `MemoryError` where a header declares more than there
is memory.
Nothing is unpickled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hlotool.errors import DumpError, InputDataError
from hlotool.stores.paths import here, open_bytes
from hlotool.stores.urls import is_url

# Who holds a large value: whoever made it, in memory, or somebody who puts it elsewhere.

#: Takes a value and returns one of the same structure and bits, which may lie elsewhere.
Keep: TypeAlias = Callable[[Any], Any]


def as_it_is(value: Any) -> Any:
    """The value itself, in memory."""
    return value


@contextmanager
def _readable(path: Path | str) -> Iterator[None]:
    """Whatever goes wrong while `path` is read becomes an InputDataError that names it."""
    try:
        with warnings.catch_warnings():
            # NumPy asks to write headers of Python 2 again; whoever reads cannot.
            warnings.filterwarnings(
                "ignore", "Reading `.npy` or `.npz` file required additional header parsing"
            )
            yield
    except DumpError as error:
        raise InputDataError(str(error)) from error
    except FileNotFoundError:
        raise InputDataError(f"{path}: no such file") from None
    except MemoryError as error:
        raise InputDataError(f"{path}: more than fits into memory: {error}") from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputDataError(f"{path}: cannot be read as .npz or .npy: {reason}") from error


def read_all(path: str, keep: Keep = as_it_is) -> dict[str, Any]:
    """All arrays of a file, or of a URL, by key; the array of an `.npy` has the key `0`.

    Each goes through `keep` before the next one is read.

    Raises:
        InputDataError: there is no such file, or nothing that NumPy can read.
    """
    if not is_url(path) and os.path.exists(path) and not os.path.isfile(path):
        raise InputDataError(f"{path}: not a file")
    with _readable(path), open_bytes(path) as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"0": keep(loaded)}
        return {key: keep(loaded[key]) for key in loaded.files}


def read_keys(path: Path) -> list[str]:
    """The keys of an `.npz`, in the order of the file; raises InputDataError."""
    with _readable(path), np.load(path, allow_pickle=False) as archive:
        return list(archive.files)


def read_one(path: Path, key: str) -> Any:
    """The array `key` of an `.npz`, or that of an `.npy` where `key` is empty; raises InputDataError."""
    with _readable(path):
        found = np.load(path, allow_pickle=False)
        return np.asarray(found[key] if key else found)


def mapped(path: str) -> Any:
    """The array of an `.npy`, read from the file as its elements are asked for; raises InputDataError.

    That of a URL is downloaded first.
    """
    with _readable(path):
        path = here(path)
        return np.load(path, mmap_mode="r", allow_pickle=False)
