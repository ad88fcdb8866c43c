"""`--save-outputs`: results as .npy files that plain NumPy can load."""

from __future__ import annotations

import io
import os
import re
from functools import reduce

import numpy as np

from hlotool.backends.base import Value
from hlotool.findings.files import write_file, writing
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType, Shape
from hlotool.replay.leaf_records import array_leaves
from hlotool.stores.paths import inside
from hlotool.stores.urls import is_url

#: A file's path by the shape index of the leaf it holds.
Files = dict[tuple[int, ...], str]

#: Types that NumPy itself lacks, and a type of its own that holds all their values.
_WIDER: dict[ElementType, type[np.generic]] = {
    **{t: np.float32 for t in ElementType if t.is_narrow_float and t is not ElementType.F16},
    ElementType.S2: np.int8,
    ElementType.S4: np.int8,
    ElementType.U2: np.uint8,
    ElementType.U4: np.uint8,
}


def output_folder(root: str, *names: str) -> str:
    """A folder below `root`, a folder or a URL, made of names that may hold any character; created.

    Raises:
        UsageError: it cannot be created.
    """
    parts = [part for name in names for part in name.split("/")]
    legal = (re.sub(r"[^\w.+=-]|^\.+", "_", part) for part in parts if part)
    folder = reduce(inside, legal, root)
    if not is_url(folder):
        with writing(folder):
            os.makedirs(folder, exist_ok=True)
    return folder


def save_leaves(folder: str, side: str, shape: Shape, value: Value) -> Files:
    """Write every array of `value` as `out.INDEX.SIDE.npy`.

    Narrow types that NumPy lacks (bf16, f8, int4, …) are widened, which changes no value.

    Raises:
        UsageError: a file cannot be written.
        DumpError: nor can the store's.
    """
    files: Files = {}
    for index, part, array in array_leaves(shape, value):
        path = inside(folder, ".".join(["out", *map(str, index), side, "npy"]))
        save_array(path, array, part.element_type)
        files[index] = path
    return files


def same_bits(shape: Shape, expected: Value, actual: Value) -> bool:
    """Whether two values of one shape hold the same bits."""
    pairs = zip(array_leaves(shape, expected), array_leaves(shape, actual))
    return all(
        one.shape == other.shape and one.tobytes() == other.tobytes() for (_, _, one), (_, _, other) in pairs
    )


def save_array(path: str, array: Array, element_type: ElementType) -> None:
    """Write an array, widened where NumPy lacks its type; raises as `save_leaves`."""
    plain = _plain(array, element_type)
    if is_url(path):
        content = io.BytesIO()
        np.save(content, plain)
        write_file(path, [content.getvalue()])
        return
    with writing(path):
        np.save(path, plain)


def _plain(array: Array, element_type: ElementType) -> Array:
    wider = _WIDER.get(element_type)
    return array if wider is None else array.astype(wider)
