"""Arrays in files of the user, functions in scripts, and both made to fit declared shapes.

NumPy's readers do not say what they raise on a damaged file: besides `ValueError` and `OSError` that is
what zip, zlib, Python's tokenizer and its parser raise, and `MemoryError` where a header declares more than
there is memory. Nothing is unpickled. Functions are `SCRIPT.py:FUNCTION`.

Given arrays fit without changing a single value. Accepted for an element type are:

- arrays of its dtype;
- raw bits: NumPy loads bf16, f8, f4 and int4 arrays from .npy and .npz files as untyped bytes (`|V2`,
  `|V1`), and people save bf16 and f8 as unsigned integers of the same width: both are reinterpreted;
- arrays of another dtype whose every value the element type holds exactly (float64 that came from f32,
  int64 that came from s32, 0/1 for pred); floats never become integers;
- Python numbers and lists of them, rounded to the element type, as JAX treats them.

Everything else is an error: rounding inputs in silence would change the program's results.
"""

from __future__ import annotations

import importlib.util
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from hlotool.errors import DumpError, InputDataError
from hlotool.ir.arrays import Array, Value, dtype_of, element_type_of, flatten, unflatten
from hlotool.ir.types import ArrayShape, ElementType, Shape
from hlotool.system.paths import here, open_bytes
from hlotool.system.urls import is_url

# A large value stays in the memory of the code that made it, or is moved elsewhere by a function given here.

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
            # NumPy asks to write headers of Python 2 again; the reader cannot.
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


def npz_bytes(values: Sequence[Any], copies: int = 1) -> bytes:
    """An .npz file of the arrays in `values`, in order, tuples depth first, as `--inputs` reads it.

    Args:
        values: arrays, or tuples of them.
        copies: number of devices that have values of their own; `values` are then those of each device.
    """
    arrays = {
        f"arg_{n}{on}": _no_pickle(array) for on, row in _rows(values, copies) for n, array in enumerate(row)
    }
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _no_pickle(array: Any) -> Any:
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


def load_function(path: Path, function: str) -> Callable[..., Any]:
    """The function of a file, which is executed for that.

    Raises:
        InputDataError: no such file or function, or an exception while the file is loaded.
    """
    found = getattr(_load(path), function, None)
    if not callable(found):
        raise InputDataError(f"{path}: no function {function}")
    loaded: Callable[..., Any] = found
    return loaded


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputDataError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"hlotool_inputs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(script)
    except Exception as error:
        raise InputDataError(f"{path}: {type(error).__name__} while loading: {error}") from error
    return script


def fit(value: Any, shape: ArrayShape, label: str) -> Array:
    """`value` as an array of the dtype and dimensions of `shape`; those of dynamic dimensions may be smaller.

    Raises:
        InputDataError: it does not fit; the message starts with `label`.
    """
    array = np.asarray(value)
    if not shape.admits(array.shape):
        dims = ",".join(map(str, array.shape))
        raise InputDataError(f"{label}: expected {shape.logical_text()}, got dimensions [{dims}]")
    dtype = dtype_of(shape.element_type)
    if array.dtype == dtype:
        return array
    if _is_raw(array.dtype, shape.element_type):
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    weak = not hasattr(value, "dtype")
    return _cast(array, shape.element_type, label, weak)


def fit_value(shape: Shape, value: Any, label: str) -> Value:
    """`value` with every array in it fitted to its part of `shape`; None for what is no array.

    Raises:
        InputDataError: it does not fit; the message starts with `label`.
    """
    try:
        parts = list(flatten(shape, value))
    except TypeError as error:
        raise InputDataError(f"{label}: {error}") from error
    arrays = []
    for index, part, array in parts:
        where = label + "".join(f".{i}" for i in index)
        arrays.append(fit(array, part, where) if isinstance(part, ArrayShape) else None)
    return unflatten(shape, arrays)


def _is_raw(dtype: np.dtype[Any], element_type: ElementType) -> bool:
    """Untyped bytes, or the bits of a narrow float as unsigned integers."""
    if dtype.itemsize != dtype_of(element_type).itemsize:
        return False
    if dtype.kind == "V" and element_type_of(dtype) is None:
        return True
    return dtype.kind == "u" and element_type.is_narrow_float and element_type is not ElementType.F16


def _cast(array: Array, element_type: ElementType, label: str, weak: bool) -> Array:
    source, dtype = element_type_of(array.dtype), dtype_of(element_type)
    if source is None:
        raise InputDataError(f"{label}: expected {element_type}, got dtype {array.dtype}")
    if not _is_wider_kind(source, element_type):
        raise InputDataError(
            f"{label}: expected {element_type}, got {source}; convert it yourself if that is meant"
        )
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        changed = ~_equal(_back(result, array), array) | _flips_sign(result, array)
    if changed.any() and not (weak and element_type.is_inexact):
        raise _inexact(array, changed, source, element_type, label)
    return result


def _is_wider_kind(source: ElementType, target: ElementType) -> bool:
    """Integers may become floats and floats complex, never back."""

    def rank(element_type: ElementType) -> int:
        return 2 if element_type.is_complex else int(element_type.is_floating)

    return rank(source) <= rank(target)


def _back(result: Array, array: Array) -> Array:
    """The converted values in the dtype that they came from."""
    real = result.real if result.dtype.kind == "c" and array.dtype.kind != "c" else result
    return np.asarray(real.astype(array.dtype))


def _equal(a: Array, b: Array) -> Array:
    """Equal or both NaN."""
    return np.asarray((a == b) | ((a != a) & (b != b)), np.bool_)


def _flips_sign(result: Array, array: Array) -> Array:
    """A signed integer came out of an unsigned one of the same width, or the other way round."""
    if array.dtype.kind in "iu" and result.dtype.kind in "iu":
        return np.asarray((result < 0) != (array < 0), np.bool_)
    return np.zeros(array.shape, np.bool_)


def _inexact(
    array: Array, changed: Array, source: ElementType, element_type: ElementType, label: str
) -> InputDataError:
    index = tuple(int(i) for i in np.unravel_index(int(changed.argmax()), array.shape))
    where = f" at [{','.join(map(str, index))}]" if index else ""
    count = int(changed.sum())
    return InputDataError(
        f"{label}: {count} of {array.size} values of type {source} are not exact in {element_type}"
        f" (first: {array[index]}{where}); convert the array yourself if rounding it is meant"
    )
