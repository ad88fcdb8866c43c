"""The two sides: what `--save-values` wrote of a run, or arrays that hooks of another framework wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from hlotool.blame.diff_results import Results, natural, read_results
from hlotool.errors import InputDataError, UsageError
from hlotool.inputs.given import read_one
from hlotool.ir.arrays import Array, element_type_of, flatten
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.reader import parse_shape
from hlotool.runs.saved_values import ARGUMENTS, INDEX, ValuesRecord, read_index, read_program
from hlotool.system.paths import open_bytes
from hlotool.system.records import SourceRecord


@dataclass(frozen=True, eq=False)
class LayerValue:
    """An array of one side.

    Attributes:
        name: of the array.
        shape: its type and dimensions.
        read: gives the array.
        layers: whose result it is, the innermost first.
        unfinished: the layer that goes on to apply something to it; empty where that is not known.
        source: where it comes from, where that is known.
    """

    name: str
    shape: ArrayShape
    read: Callable[[], Array] = field(repr=False)
    layers: Sequence[str] = ()
    unfinished: str = ""
    source: SourceRecord | None = None

    @property
    def array(self) -> Array:
        """In f64, or c128; other types as they are. Read each time: all values of a model may be many."""
        array = self.read()
        if not self.shape.element_type.is_inexact:
            return array
        with np.errstate(all="ignore"):
            return array.astype(np.complex128 if self.shape.element_type.is_complex else np.float64)

    def __str__(self) -> str:
        return self.shape.logical_text()


@dataclass(frozen=True, slots=True)
class LayerSide:
    """One execution.

    Attributes:
        path: as given.
        values: in the order in which they were computed.
        arguments: of the program; none where no program is known.
        folder: of the program and its arguments; empty likewise.
    """

    path: str
    values: list[LayerValue]
    arguments: list[LayerValue] = field(default_factory=list)
    folder: str = ""


def read_side(path: str) -> LayerSide:
    """One side.

    Raises:
        UsageError: there are values of several programs.
        HlotoolError: something cannot be read.
    """
    folder = _run_folder(Path(path))
    return _arrays(path) if folder is None else _run(path, folder)


def _run_folder(path: Path) -> Path | None:
    """The folder of a program that `--save-values` wrote: of several those of references count."""
    found = sorted(index.parent for index in path.rglob(INDEX)) if path.is_dir() else []
    if len(found) > 1:
        found = [folder for folder in found if read_index(str(folder)).reference]
    if len(found) > 1:
        names = ", ".join(str(folder) for folder in found[:4])
        raise UsageError(f"{path}: values of {len(found)} programs; give one folder: {names}")
    return found[0] if found else None


def _run(path: str, folder: Path) -> LayerSide:
    index = read_index(str(folder))
    return LayerSide(path, list(_values(index, folder)), list(_arguments(folder)), str(folder))


def _values(index: ValuesRecord, folder: Path) -> Iterator[LayerValue]:
    for value in index.values:
        shape = parse_shape(value.shape)
        if not isinstance(shape, ArrayShape):
            raise InputDataError(f"{folder / INDEX}: {value.file} is no array")
        call = f"[{value.call}]" if value.call else ""
        file = folder / value.file
        yield LayerValue(
            name=value.file.removesuffix(".npy"),
            shape=shape,
            read=partial(read_one, file, ""),
            layers=[f"{layer}{call}" for layer in value.ends],
            unfinished=f"{value.unfinished}{call}" if value.unfinished else "",
            source=value.source,
        )


def _arguments(folder: Path) -> Iterator[LayerValue]:
    module, arguments = read_program(str(folder))
    for parameter, argument in zip(module.entry.parameters, arguments):
        name = parameter.metadata.op_name if parameter.metadata else ""
        for index, shape, array in flatten(parameter.shape, argument):
            if isinstance(shape, ArrayShape):
                whole = ".".join([name or parameter.name, *map(str, index)])
                yield LayerValue(whole, shape, partial(np.asarray, array))


def _arrays(path: str) -> LayerSide:
    results = read_results(path)
    names = [
        name for name in sorted(results.arrays, key=natural) if results.arrays[name][0].name != ARGUMENTS
    ]
    return LayerSide(path, [_given(results, name) for name in names])


def _given(results: Results, name: str) -> LayerValue:
    array = results.load(name)
    kind = element_type_of(array.dtype)
    if kind is None:
        raise InputDataError(f"{name}: HLO has no element type for dtype {array.dtype}")
    return LayerValue(name, ArrayShape(kind, array.shape), lambda: results.load(name))


def words_of(name: str) -> frozenset[str]:
    """What a name says: `0012.layers.0.mlp` and `Model/Layers_0/Mlp` say the same."""
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", re.sub(r"^\d+[._-]", "", name))
    found = re.findall(r"[a-z]+|\d+", split.lower())
    return frozenset(word.removesuffix("s") for word in found) - {"model", "module"}


def is_compared(kind: ElementType, other: ElementType) -> bool:
    """Whether values of two types may be those of one layer."""
    return kind.is_inexact == other.is_inexact and kind.is_complex == other.is_complex


def read_map(path: str) -> list[tuple[str, str]]:
    """The lines of a file of two names each; what follows a `#` is no name.

    Raises:
        UsageError: a line holds something else.
    """
    found: list[tuple[str, str]] = []
    with open_bytes(path) as file:
        text = file.read().decode("utf-8", "surrogateescape")
    for number, line in enumerate(text.splitlines(), start=1):
        names = line.partition("#")[0].split()
        if len(names) == 2:
            found.append((names[0], names[1]))
        elif names:
            raise UsageError(f"{path}:{number}: two names are needed, {len(names)} are there")
    return found
