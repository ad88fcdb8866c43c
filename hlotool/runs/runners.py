"""What programs, for one device or several, take and return as seen from outside.

A program that was partitioned is compared with the one on global arrays that it was made from: it takes the
global arguments apart, by the shardings of its parameters, and puts the parts of the result together. Where
there is nothing global to compare with (replicas, two partitioned stages), arguments and results stay one
per device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from hlotool.backends.base import TOKEN, DevicesExecutable, Executable, Value, notes_of
from hlotool.facts.sharding import Disagreement, assemble, local_dims, split
from hlotool.facts.work import once
from hlotool.inputs.infer_sharding import infer_sharding, part_counts
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.attributes import Mesh, Sharding
from hlotool.ir.module import Module
from hlotool.ir.printed_annotations import sharding_text
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape, leaves, strip_layouts
from hlotool.judge.records import output_name
from hlotool.system.resources import spend, work_done

#: Units of work of a run in another process, or on another device, beside what the program does.
_ELSEWHERE: Final = 2_000_000

T = TypeVar("T")


class Outcome(Struct, frozen=True, eq=False):
    """What a run returned.

    Attributes:
        value: of the runner's result shape.
        faults: what is wrong with a leaf, apart from its values.
        notes: what was assumed to put the value together.
    """

    value: Any
    faults: Mapping[ShapeIndex, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Runner(Protocol):
    """A compiled program, as a replay runs it.

    Attributes:
        parameters: shapes of the arguments.
        result: shape of the result.
        copies: how many results of the module make up the result: one, or one per device.
    """

    parameters: tuple[Shape, ...]
    result: Shape
    copies: int

    def run(self, arguments: Sequence[Value], expected: Value | None = None) -> Outcome:
        """Execute once; `expected` is another program's result, which helps to put this one's together."""

    def on_devices(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What each device gets of the arguments: one value per entry parameter of the module."""


class _Counted:
    """Makes sure that runs count as work: an executable that is no part of this process counts nothing."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def __call__(self, run: Callable[[], T], copies: int = 1) -> T:
        """What `run` returns; where it counted nothing itself, what the program is, on so many devices."""
        before = work_done()
        result = run()
        if work_done() == before:
            spend(self._elsewhere * copies)
        return result

    @cached_property
    def _elsewhere(self) -> int:
        return _ELSEWHERE + once(self._module.entry)


class OneDevice:
    """A program that runs on one device."""

    copies = 1

    def __init__(self, module: Module, executable: Executable) -> None:
        self.parameters = tuple(p.shape for p in module.entry.parameters)
        self.result = module.entry.root.shape
        self.executable = executable
        self._counted = _Counted(module)

    def run(self, arguments: Sequence[Value], expected: Value | None = None) -> Outcome:
        """See `Runner`."""
        value = self._counted(lambda: self.executable.run(arguments))
        return Outcome(value, notes=notes_of(self.executable))

    def on_devices(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """See `Runner`."""
        return [tuple(arguments)]


class EachDevice:
    """A program for several devices that takes the arguments of each and returns the result of each."""

    def __init__(self, module: Module, executable: DevicesExecutable, count: int) -> None:
        one: Shape = TupleShape(tuple(p.shape for p in module.entry.parameters))
        self.parameters = (one,) * count
        self.result: Shape = TupleShape((module.entry.root.shape,) * count)
        self.copies = count
        self._executable = executable
        self._counted = _Counted(module)

    def run(self, arguments: Sequence[Any], expected: Value | None = None) -> Outcome:
        """See `Runner`; one tuple of arguments per device."""
        values = self._counted(lambda: self._executable.run_devices(arguments), self.copies)
        return Outcome(tuple(values), notes=notes_of(self._executable))

    def on_devices(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """See `Runner`."""
        return [tuple(row) for row in arguments]


class Partitioned:
    """A partitioned program that takes and returns the global arrays of the program it was made from.

    Where its parameters or results do not fit those of the other program, its own shapes show.

    Args:
        module: the partitioned program.
        executable: runs it on all partitions.
        origin: the program on global arrays.
        given: shardings of the leaves of each parameter.
        shardings: of its result, None where it is not known.
        meshes: that the program speaks of.
    """

    copies = 1

    def __init__(
        self,
        module: Module,
        executable: DevicesExecutable,
        origin: Runner,
        given: Sequence[Sequence[Sharding | None]],
        shardings: Sequence[Sharding | None],
        meshes: Sequence[Mesh],
    ) -> None:
        count = module.num_partitions
        wholes = [*origin.parameters, *(p.shape for p in module.entry.parameters[len(origin.parameters) :])]
        self._arguments = [
            _Spread(p.shape, whole, of_leaves, count)
            for p, whole, of_leaves in zip(module.entry.parameters, wholes, given)
        ]
        self._result = _Spread(module.entry.root.shape, origin.result, shardings, count)
        self.parameters = tuple(spread.shape for spread in self._arguments)
        self.result = self._result.shape
        self._executable = executable
        self._counted = _Counted(module)
        self._count = count
        self._meshes = meshes

    def run(self, arguments: Sequence[Value], expected: Value | None = None) -> Outcome:
        """See `Runner`."""
        devices = self.on_devices(arguments)
        results = self._counted(lambda: self._executable.run_devices(devices), self._count)
        outcome = self._result.assemble(results, expected, self._meshes)
        return replace(outcome, notes=(*notes_of(self._executable), *outcome.notes))

    def on_devices(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """See `Runner`."""
        columns = [spread.split(value) for spread, value in zip(self._arguments, arguments)]
        return [tuple(column[device] for column in columns) for device in range(self._count)]


class _Spread:
    """A value over several devices.

    Args:
        local: shape of what each device holds.
        whole: shape of the global value that it should be.
        shardings: of the leaves, None where they are not known.
        count: number of devices.

    Attributes:
        shape: of the global value; leaves that cannot be part of `whole` are as on the devices.
    """

    def __init__(self, local: Shape, whole: Shape, shardings: Sequence[Sharding | None], count: int) -> None:
        self._local = local
        self._whole = whole
        self._count = count
        dims = {index: part.dims for index, part in leaves(whole) if isinstance(part, ArrayShape)}
        self._leaves = {
            index: _Leaf.of(part, dims.get(index), one, count)
            for (index, part), one in zip(leaves(local), shardings)
        }
        self.shape = _rebuilt(local, iter(leaf.shape for leaf in self._leaves.values()))

    def split(self, value: Any) -> list[Any]:
        """What each device holds of a global value."""
        parts = flatten(self.shape, value)
        columns = [self._leaves[index].split(part, self._count) for index, _, part in parts]
        return [unflatten(self._local, [column[d] for column in columns]) for d in range(self._count)]

    def assemble(self, values: Sequence[Value], expected: Value | None, meshes: Sequence[Mesh]) -> Outcome:
        """The global value of which the devices hold the parts."""
        rows = [[part for _, _, part in flatten(self._local, value)] for value in values]
        wanted = {} if expected is None else {i: part for i, _, part in flatten(self._whole, expected)}
        parts: list[Any] = []
        faults: dict[ShapeIndex, str] = {}
        found: dict[str, list[ShapeIndex]] = {}
        for (index, leaf), column in zip(self._leaves.items(), zip(*rows)):
            sharding = leaf.sharding
            if leaf.is_spread and sharding is None:
                arrays = [np.asarray(part) for part in column]
                sharding = infer_sharding(arrays, np.asarray(wanted[index]), meshes)
                found.setdefault(sharding_text(sharding), []).append(index)
            part, disagreement = leaf.assemble(column, sharding)
            parts.append(part)
            if disagreement is not None:
                faults[index] = str(disagreement)
        notes = tuple(f"{_names(indices)}: {text}, found from the values" for text, indices in found.items())
        return Outcome(unflatten(self.shape, parts), faults, notes)


def _names(indices: Sequence[ShapeIndex]) -> str:
    return ", ".join(map(output_name, indices))


class _Leaf(Struct, frozen=True):
    """One leaf of a value over several devices.

    Attributes:
        shape: of the global array, or of what a device holds where that is no part of one.
        sharding: None where it is not known.
        is_spread: the devices hold parts (or copies) of one array.
    """

    shape: Shape
    sharding: Sharding | None
    is_spread: bool

    @classmethod
    def of(cls, local: Shape, dims: tuple[int, ...] | None, sharding: Sharding | None, count: int) -> _Leaf:
        """The leaf of which devices hold `local`, and which should be of `dims` as a whole."""
        if not isinstance(local, ArrayShape) or dims is None or not _is_part(local, dims, sharding, count):
            return cls(local, sharding, False)
        return cls(replace(local, dims=dims, layout=None), sharding, True)

    def split(self, value: Any, count: int) -> list[Any]:
        """What each device holds of `value`."""
        if not self.is_spread or self.sharding is None:
            return [value] * count
        return list(split(np.asarray(value), self.sharding, count))

    def assemble(self, parts: Sequence[Any], sharding: Sharding | None) -> tuple[Any, Disagreement | None]:
        """The array of which the devices hold `parts`; what the first holds where it is none."""
        if not isinstance(self.shape, ArrayShape):
            return TOKEN, None
        if not self.is_spread or sharding is None:
            return parts[0], None
        return assemble([np.asarray(part) for part in parts], self.shape.dims, sharding)


def _is_part(local: ArrayShape, dims: tuple[int, ...], sharding: Sharding | None, count: int) -> bool:
    if sharding is None:
        return any(True for _ in part_counts(local.dims, dims, count))
    try:
        return local_dims(dims, sharding, count) == local.dims
    except ValueError:
        return False


def _rebuilt(like: Shape, parts: Iterator[Shape]) -> Shape:
    """The shape of the structure of `like` whose leaves are `parts`."""
    if isinstance(like, TupleShape):
        return TupleShape(tuple(_rebuilt(element, parts) for element in like.elements))
    return next(parts)


# Do two programs take the same arguments?


def parameter_difference(expected: Runner, actual: Runner) -> str:
    """How the parameters of two programs differ, layouts and dynamic sizes apart; empty when they do not."""
    left, right = expected.parameters, actual.parameters
    if len(left) != len(right):
        return f"{len(left)} parameters are expected, the program has {len(right)}"
    for number, (one, other) in enumerate(zip(left, right)):
        if _at_bounds(one) != _at_bounds(other):
            return f"parameter {number}: expected {strip_layouts(one)}, got {strip_layouts(other)}"
    return ""


def _at_bounds(shape: Shape) -> list[object]:
    """What must be equal for one value to suit two shapes."""
    parts = ((index, strip_layouts(part)) for index, part in leaves(shape))
    return [
        (index, part.element_type, part.dims) if isinstance(part, ArrayShape) else (index, part)
        for index, part in parts
    ]
