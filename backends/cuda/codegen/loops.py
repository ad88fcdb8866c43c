"""Loops over the elements of results: each by itself, neighbours together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import gcd, prod
from typing import TypeAlias

from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.backends.cuda.codegen.emit import Emitter, Run
from hlotool.backends.cuda.codegen.indices import Expr, Variable, constant, linear, split, variable
from hlotool.backends.cuda.codegen.movement import starts
from hlotool.backends.cuda.codegen.schedules import (
    MAX_GRID,
    THREADS,
    Kernel,
    assemble,
    pointers_of,
    run_body,
    run_length,
    vector_width,
    write_outputs,
)
from hlotool.ir.module import Instruction

#: So many parts of a row may be computed each in its own way.
_MOST_PARTS = 6

#: Bytes that a thread of a simple loop has on their way from memory, in so many runs: 2048 threads with 16
#: bytes each are what one of 132 multiprocessors gets in a microsecond at 4.3 TB/s; 64 bytes fit into the 32
#: registers that so many threads have, and leave time to wait for indices. Other loops have enough to do.
_IN_FLIGHT, _MOST_AHEAD, _FEW_STATEMENTS = 64, 4, 16

#: Writes what is done for the element at a position.
_Write: TypeAlias = Callable[[Emitter, Expr], None]


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal size share the loop."""
    groups: dict[int, dict[int, Instruction]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).size, {})[number] = output
    body: list[str] = []
    emitters, blocks = [], 1
    for size, members in groups.items():
        for part in _loops_over(size, members, inputs):
            body += part.statements(size)
            emitters.append(part.emitter)
            blocks = max(blocks, -(-size // part.width // THREADS))
    return assemble(inputs, outputs, body, min(blocks, MAX_GRID), emitters, max(groups), "loop")


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
        ahead = self._ahead(rows * columns)
        function = f"each_run<Index, {rows}, {columns}, {self.width}, {ahead}>"
        head = f"{function}([&](Index row, Index start, auto lanes) INLINE {{"
        return [head, f"const Index first = {start};", *run_body(self.emitter), "});"]

    def _ahead(self, elements: int) -> int:
        """How many runs a thread takes at once, so that enough of what it loads is on its way.

        Args:
            elements: of all runs.
        """
        run, most = Run(Variable("column", self.begin, self.end - 1), self.width), 1
        loads = [(p, kind) for _, p, kind in dict.fromkeys(self.emitter.loads) if run.base(p) is not None]
        loaded = self.width * sum(max(8, kind.bits) // 8 for _, kind in loads)
        if loaded and len(self.emitter.statements) <= _FEW_STATEMENTS:
            most = max(1, min(_MOST_AHEAD, _IN_FLIGHT // loaded))
        while most > 1 and (most & (most - 1) or elements < most * self.width * MAX_GRID * THREADS):
            most -= 1
        return most


def _loops_over(
    size: int, outputs: Mapping[int, Instruction], inputs: Sequence[Instruction]
) -> list[_Columns]:
    """One loop, or one for each part of the rows in which other operands are read."""
    write, buffers = partial(write_outputs, outputs), [*inputs, *outputs.values()]
    columns = _run(size, inputs, write)
    whole = _columns(size, inputs, buffers, write, (0, max(1, columns), max(1, columns)))
    edges = {e for e in whole.emitter.edges if 0 < e < columns}
    # Parts begin at vectors: where an edge is inside of one, its elements are computed each in its own way.
    width = vector_width(buffers, columns, size)
    parts = sorted({0, columns, *(e - e % width for e in edges), *(e + -e % width for e in edges)})
    if not 2 < len(parts) <= _MOST_PARTS + 1:
        parts = sorted({0, columns, *edges})
    if not 2 < len(parts) <= _MOST_PARTS + 1:
        return [whole]
    return [_columns(size, inputs, buffers, write, (a, b, columns)) for a, b in pairwise(parts)]


def _run(size: int, inputs: Sequence[Instruction], write: _Write) -> int:
    """How many elements are neighbours in all arrays."""
    trial = Emitter(pointers_of(inputs))
    write(trial, variable("place", size))
    return run_length(trial.positions, "place", size)


def _columns(
    size: int,
    inputs: Sequence[Instruction],
    buffers: Sequence[Instruction],
    write: _Write,
    extent: tuple[int, int, int],
) -> _Columns:
    begin, end, columns = extent
    width = vector_width(buffers, gcd(begin, end, columns), size)
    column = Variable("column", begin, end - 1)
    emitter = Emitter(pointers_of(inputs), Run(column, width))
    index = Expr(((column, 1),)) if columns > 1 else constant(0)
    write(emitter, variable("row", size // columns) * columns + index)
    return _Columns(begin, end, columns, width, emitter)


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

    columns = max(1, _run(size, inputs, write))
    part = _columns(size, inputs, [*inputs, root], write, (0, columns, columns))
    grid = min(-(-size // part.width // THREADS), MAX_GRID)
    target_size = array_shape(root).size
    return assemble(
        inputs, (root,), part.statements(size), grid, [part.emitter], target_size, "update in place", operand
    )
