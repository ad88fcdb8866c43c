"""Loops over the elements of results: each by itself, neighbours together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod

from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.backends.cuda.codegen.emit import Emitter, Run
from hlotool.backends.cuda.codegen.indices import Expr, Variable, constant, linear, split, variable
from hlotool.backends.cuda.codegen.movement import starts
from hlotool.backends.cuda.codegen.schedules import (
    MAX_GRID,
    THREADS,
    Kernel,
    assemble,
    is_wide,
    pointers_of,
    run_along,
    run_body,
    run_length,
    vector_width,
)
from hlotool.ir.module import Instruction

#: So many parts of a row may be computed each in its own way.
_MOST_PARTS = 6


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal size share the loop."""
    groups: dict[int, list[int]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).size, []).append(number)
    body: list[str] = []
    emitters, blocks = [], 1
    for size, numbers in groups.items():
        for part in _loops_over(size, {n: outputs[n] for n in numbers}, pointers_of(inputs)):
            body += part.statements(size)
            emitters.append(part.emitter)
            blocks = max(blocks, -(-size // part.width // THREADS))
    wide = is_wide(emitters, max(groups))
    return assemble(inputs, outputs, body, min(blocks, MAX_GRID), is_wide=wide)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Some columns of all rows, computed alike.

    Attributes:
        begin: the first of them.
        end: the first that is none of them.
        of: number of columns of a row.
        width: see `Run`.
        emitter: statements for one of them.
    """

    begin: int
    end: int
    of: int
    width: int
    emitter: Emitter

    def statements(self, size: int) -> list[str]:
        """The loop over them in results of `size` elements."""
        rows, columns = size // max(1, self.of), self.end - self.begin
        start = f"start + {self.begin}" if self.begin else "start"
        function = f"each_run<Index, {rows}, {columns}, {self.width}>"
        head = f"{function}([&](Index row, Index start, auto lanes) INLINE {{"
        return [head, f"const Index first = {start};", *run_body(self.emitter), "});"]


def _loops_over(
    size: int, outputs: Mapping[int, Instruction], pointers: Mapping[Instruction, str]
) -> list[_Columns]:
    """One loop, or one for each part of the rows in which other operands are read."""
    trial = Emitter(pointers)
    _write(trial, outputs, variable("place", size))
    columns = run_length(trial.positions, "place", size)
    buffers = [*pointers, *outputs.values()]
    whole = _columns(outputs, pointers, buffers, (0, max(1, columns), max(1, columns)), size)
    edges = sorted({0, columns, *(e for e in whole.emitter.edges if 0 < e < columns)})
    if not 2 < len(edges) <= _MOST_PARTS + 1:
        return [whole]
    return [_columns(outputs, pointers, buffers, (a, b, columns), size) for a, b in pairwise(edges)]


def _columns(
    outputs: Mapping[int, Instruction],
    pointers: Mapping[Instruction, str],
    buffers: Sequence[Instruction],
    extent: tuple[int, int, int],
    size: int,
) -> _Columns:
    begin, end, columns = extent
    width = vector_width(buffers, gcd(begin, end, columns), size)
    column = Variable("column", begin, end - 1)
    emitter = Emitter(pointers, Run(column, width))
    rows = variable("row", size // columns)
    index = Expr(((column, 1),)) if columns > 1 else constant(0)
    _write(emitter, outputs, rows * columns + index)
    return _Columns(begin, end, columns, width, emitter)


def _write(emitter: Emitter, outputs: Mapping[int, Instruction], place: Expr) -> None:
    for number, output in outputs.items():
        value = emitter.value(output, split(place, array_shape(output).dims))
        emitter.store(f"out{number}", place, value, element_type(output))


def update(root: Instruction, inputs: Sequence[Instruction]) -> Kernel:
    """A dynamic-update-slice that writes its window into the memory of its first operand."""
    operand, changed, *indices = root.operands
    dims, sizes = array_shape(root).dims, array_shape(changed).dims
    size = prod(sizes)

    def write(emitter: Emitter, place: Expr) -> None:
        index = split(place, sizes)
        value = emitter.value(changed, index)
        begin = starts(emitter, indices, dims, sizes)
        target = linear([b + p for b, p in zip(begin, index)], dims)
        emitter.store("out0", target, value, element_type(root))

    trial = Emitter(pointers_of(inputs))
    write(trial, variable("place", size))
    columns = run_length(trial.positions, "place", size)
    columns = max(1, columns)
    width = vector_width([*inputs, root], columns, size)
    emitter = Emitter(pointers_of(inputs), run_along("column", columns, width))
    write(emitter, variable("row", size // columns) * columns + variable("column", columns))
    body = _Columns(0, columns, columns, width, emitter).statements(size)
    grid = min(-(-size // width // THREADS), MAX_GRID)
    wide = is_wide([emitter], array_shape(root).size)
    return assemble(inputs, (root,), body, grid, operand, "update in place", wide)
