"""Programs compiled by XLA, as the backend hands them out."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from hlotool.backends.base import TOKEN, Probe, Value
from hlotool.backends.xla.process import XlaProcess
from hlotool.backends.xla.programs import dynamic_dimensions, gather, parse_sharding, spread
from hlotool.backends.xla.protocol import ArrayData, Compiled, CompileRequest, Execution
from hlotool.errors import InputDataError, Unsupported
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.attributes import Sharding
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, leaves

_REPLICATED = Sharding("replicated")


class Loaded:
    """A program in the process that holds XLA; compiled once more when that process was replaced.

    Args:
        program: what to compile.
        process: where.
        notes: what was done to the program before.
    """

    def __init__(self, program: CompileRequest, process: XlaProcess, notes: tuple[str, ...] = ()) -> None:
        self._program = program
        self._process = process
        self.compiled = self._compile()
        self.notes = (*notes, *self.compiled.notes)

    def _compile(self) -> Compiled:
        compiled = self._process.compile(self._program)
        weakref.finalize(self, self._process.release, compiled.executable)
        return compiled

    def run(self, rows: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Per device, what goes in and what comes out, one array each."""
        data = [[ArrayData.of(array) for array in row] for row in rows]
        results = self._process.run(Execution(self.compiled.executable, data))
        if not results.known:
            self.compiled = self._compile()
            results = self._process.run(Execution(self.compiled.executable, data))
        return [[data.to_array() for data in row] for row in results.devices]


class _Executable:
    """A compiled program, with what was done to it before."""

    def __init__(self, module: Module, loaded: Loaded) -> None:
        self.module = module
        self.notes = loaded.notes
        self._loaded = loaded


class XlaExecutable(_Executable):
    """A program for one device."""

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. XLA cannot be observed on the way, so `probe` must be None."""
        refuse_probes([probe])
        [row] = self._loaded.run([flat_arguments(self.module, arguments)])
        return value_of(self.module, row)


class XlaDevicesExecutable(_Executable):
    """A program for several devices, each with arguments of its own."""

    def __init__(self, module: Module, loaded: Loaded, count: int) -> None:
        super().__init__(module, loaded)
        self._count = count

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable.run_devices`. `probes` must be None."""
        refuse_probes(probes or ())
        if len(arguments) != self._count:
            raise InputDataError(
                f"{self._count} devices take as many lists of arguments, got {len(arguments)}"
            )
        rows = self._loaded.run([flat_arguments(self.module, row) for row in arguments])
        return [value_of(self.module, row) for row in rows]


class XlaPartitionedExecutable(_Executable):
    """A program on global arrays that XLA has spread over several partitions.

    Args:
        module: the program.
        loaded: compiled, with a flat signature.
        count: number of partitions.
        results: shapes of what that returns.
    """

    def __init__(self, module: Module, loaded: Loaded, count: int, results: Sequence[ArrayShape]) -> None:
        super().__init__(module, loaded)
        self._count = count
        self._results = results

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. `probe` must be None."""
        refuse_probes([probe])
        arrays = flat_arguments(self.module, arguments)
        compiled = self._loaded.compiled
        rows = spread(arrays, _shardings(compiled.parameters, len(arrays)), self._count)
        shardings = _shardings(compiled.results, len(self._results))
        return value_of(self.module, gather(self._loaded.run(rows), self._results, shardings))


def refuse_probes(probes: Sequence[Probe | None]) -> None:
    """Raises Unsupported where somebody wants to watch: other instructions run than those of the program."""
    if any(probe is not None for probe in probes):
        raise Unsupported("XLA does not show the values of single instructions")


def _shardings(stated: Sequence[bytes] | None, count: int) -> list[Sharding]:
    """One per array; what XLA says nothing of, every device holds as a whole."""
    return [_REPLICATED] * count if stated is None else [parse_sharding(one) for one in stated]


def flat_arguments(module: Module, arguments: Sequence[Value]) -> list[Array]:
    """What the program with the flat signature takes."""
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(arguments)}")
    return [
        array
        for parameter, argument in zip(parameters, arguments)
        for _, shape, leaf in flatten(parameter.shape, argument)
        if isinstance(shape, ArrayShape)
        for array in _static(shape, np.asarray(leaf, dtype_of(shape.element_type)))
    ]


def _static(shape: ArrayShape, array: Array) -> Iterator[Array]:
    """The array at its bound, and its size in each dynamic dimension."""
    dimensions = dynamic_dimensions(shape)
    padding = [(0, bound - size) for bound, size in zip(shape.dims, array.shape)]
    yield np.pad(array, padding) if dimensions else array
    for dimension in dimensions:
        yield np.array(array.shape[dimension], np.int32)


def value_of(module: Module, arrays: Sequence[Array]) -> Value:
    """The result that the flat signature's results make up."""
    remaining = iter(arrays)
    shape = module.entry.root.shape
    parts = [_leaf(leaf, remaining) if isinstance(leaf, ArrayShape) else TOKEN for _, leaf in leaves(shape)]
    return cast(Value, unflatten(shape, parts))


def _leaf(shape: ArrayShape, arrays: Iterator[Array]) -> Any:
    array = next(arrays)
    sizes = list(array.shape)
    for dimension in dynamic_dimensions(shape):
        sizes[dimension] = int(next(arrays))
    return array[tuple(map(slice, sizes))] if shape.is_dynamic else array
