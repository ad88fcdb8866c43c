"""Numeric differences of files of arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes

from hlotool.blame.diff_records import ResultDiffRecord
from hlotool.errors import InputDataError
from hlotool.inputs import safetensors
from hlotool.inputs.given import read_keys, read_one
from hlotool.ir.arrays import Array, element_type_of
from hlotool.ir.types import ArrayShape
from hlotool.judge.comparison import LeafComparison, compare_values
from hlotool.judge.tolerance import chosen_by_user, derive
from hlotool.runs.leaves import comparison_record
from hlotool.system.paths import here
from hlotool.system.urls import is_url, name_of

_SUFFIXES = (".npy", ".npz", safetensors.SUFFIX)


@dataclass(frozen=True, slots=True)
class Results:
    """Arrays by name.

    Attributes:
        path: where they were read.
        arrays: read as they are asked for; the value is the file, and the name in it where it holds several.
    """

    path: str
    arrays: Mapping[str, tuple[Path, str]]

    def load(self, name: str) -> Array:
        """The array `name`; raises InputDataError."""
        path, key = self.arrays[name]
        if path.suffix == safetensors.SUFFIX:
            return safetensors.read_array(path, key)
        return _typed(read_one(path, key), name, path)


def results_here(path: str) -> str:
    """The path of a copy on this machine, where `path` is a URL of results; other paths as they are."""
    if not is_url(path):
        return path
    from hlotool.system.store_objects import look, objects_below

    found = look(path)
    files = objects_below(path) if found.is_folder else [found]
    is_all = files and all(name_of(file.url).endswith(_SUFFIXES) for file in files)
    return here(path) if is_all else path


def are_results(path: str) -> bool:
    """Whether `path` is a file of arrays, or a folder that holds such files and no HLO."""
    where = Path(path)
    if not where.is_dir():
        return where.suffix in _SUFFIXES
    return any(_files(where)) and not any(map(_is_program, where.rglob("*")))


def _is_program(file: Path) -> bool:
    """Whether a file is one of a dump; modules of `--save-outputs` are folders."""
    named = file.name.startswith("module_") and file.suffix not in _SUFFIXES
    return (named or file.suffix == ".hlo") and file.is_file()


def read_results(path: str) -> Results:
    """The arrays under `path`; raises InputDataError when there are none."""
    where = Path(path)
    files = list(_files(where)) if where.is_dir() else [where]
    found: dict[str, tuple[Path, str]] = {}
    for file in files:
        stem = str(file.relative_to(where).with_suffix("")) if where.is_dir() else file.stem
        for name, key in _keys(file, stem if where.is_dir() or file.suffix == ".npy" else ""):
            found[name] = file, key
    if not found:
        raise InputDataError(f"{path}: no arrays ({', '.join(_SUFFIXES)})")
    return Results(path, found)


def diff_results(
    left: Results, right: Results, rtol: float | None = None, atol: float | None = None
) -> Iterator[ResultDiffRecord]:
    """Compare arrays of equal names, in natural order; two single arrays are compared whatever their names.

    Args:
        left: the expected ones.
        right: those in question.
        rtol: relative tolerance, together with `atol` in place of one that follows from the element type.
        atol: absolute tolerance.

    Raises:
        InputDataError: an array cannot be read, or NumPy's file does not say its type.
    """
    for name, other in common_names(left, right):
        expected, actual = left.load(name), right.load(other)
        yield ResultDiffRecord(
            name=name,
            left=str(left.arrays[name][0]),
            right=str(right.arrays[other][0]),
            comparison=comparison_record(_compare(expected, actual, rtol, atol)),
        )


def common_names(left: Results, right: Results) -> list[tuple[str, str]]:
    """Names of arrays to compare."""
    if len(left.arrays) == len(right.arrays) == 1:
        return [(next(iter(left.arrays)), next(iter(right.arrays)))]
    return [(name, name) for name in sorted(left.arrays, key=natural) if name in right.arrays]


def _compare(expected: Array, actual: Array, rtol: float | None, atol: float | None) -> LeafComparison:
    shapes = [_shape(array) for array in (expected, actual)]
    tolerance = chosen_by_user(rtol, atol) or derive
    return compare_values(shapes[0], expected, actual, actual_shape=shapes[1], tolerance=tolerance).leaves[0]


def _shape(array: Array) -> ArrayShape:
    element_type = element_type_of(array.dtype)
    if element_type is None:
        raise InputDataError(f"HLO has no element type for dtype {array.dtype}")
    return ArrayShape(element_type, array.shape)


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(file for suffix in _SUFFIXES for file in folder.rglob(f"*{suffix}"))


def _keys(file: Path, stem: str) -> Iterator[tuple[str, str]]:
    """Names of the arrays of a file, and their keys in it."""
    if file.suffix == ".npy":
        yield stem, ""
        return
    keys = safetensors.read_names(file) if file.suffix == safetensors.SUFFIX else read_keys(file)
    yield from ((f"{stem}/{key}" if stem else key, key) for key in keys)


def _typed(array: Array, name: str, path: Path) -> Array:
    """The array in a type with numbers: NumPy writes bf16 as two nameless bytes."""
    if array.dtype.kind != "V":
        return array
    if array.dtype.itemsize == 2:
        return array.view(ml_dtypes.bfloat16)
    raise InputDataError(f"{path}: {name} has dtype {array.dtype}: NumPy's file does not tell its type")


def natural(name: str) -> list[tuple[int, str]]:
    """`out_2` before `out_10`."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
