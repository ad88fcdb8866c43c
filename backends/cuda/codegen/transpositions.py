"""Results whose neighbours lie far apart in what they are computed from: tiles that go through shared memory.

Every load and store then touches neighbours. Other operands of the same fusion are read as in any loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlotool.backends.cuda.codegen.elements import array_shape, computed
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Digit, Expr, Variable, variable
from hlotool.backends.cuda.codegen.schedules import Kernel, assemble, pointers_of, run_along, write_outputs
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Rows and columns of a tile, and elements between its rows: an odd number spreads them over memory banks.
_SIDE, _STEP = 32, 33
#: Shorter axes are not worth tiles.
_SHORTEST = 16
#: Tiles that one kernel keeps, and their bytes: a block has at most 48 KB of shared memory.
_MOST_TILES, _MOST_BYTES = 4, 40 << 10

#: A load: pointer, position, element type.
_Load = tuple[str, Expr, ElementType]


@dataclass(frozen=True, slots=True)
class _Axes:
    """Two axes of the results: one along which they are neighbours, one along which operands are.

    Attributes:
        size: elements of each result.
        columns: length of the innermost axis.
        step: elements between neighbours of the results along the other axis.
        rows: length of the other axis.
    """

    size: int
    columns: int
    step: int
    rows: int

    @property
    def middle(self) -> int:
        """Positions between the two axes."""
        return self.step // self.columns

    @property
    def outer(self) -> int:
        """Positions outside of both."""
        return self.size // (self.step * self.rows)

    @property
    def place(self) -> Expr:
        """A position in the results."""
        outer, middle = variable("outer", self.outer), variable("middle", self.middle)
        inner = middle * self.columns + variable("column", self.columns)
        return outer * (self.step * self.rows) + variable("row", self.rows) * self.step + inner


def transposition(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel | None:
    """A kernel of tiles; None where no operand is transposed.

    Raises:
        NotGenerated: something cannot be written.
    """
    sizes = {array_shape(output).size for output in outputs}
    if len(sizes) != 1:
        return None
    (size,) = sizes
    numbered = dict(enumerate(outputs))
    trial = Emitter(pointers_of(inputs))
    write_outputs(numbered, trial, variable("place", size))
    axes = _axes(trial.loads, size)
    if axes is None:
        return None
    again = Emitter(pointers_of(inputs))
    write_outputs(numbered, again, axes.place)
    loads = [load for load in dict.fromkeys(again.loads) if _is_transposed(load[1], axes)]
    fits = sum(_tile_bytes(kind) for _, _, kind in loads) <= _MOST_BYTES
    return _kernel(outputs, inputs, axes, loads) if fits and 0 < len(loads) <= _MOST_TILES else None


def _tile_bytes(kind: ElementType) -> int:
    """Shared memory for a tile of elements as they are computed."""
    return _SIDE * _STEP * (4 if kind.is_narrow_float else max(1, kind.bits // 8))


def _axes(loads: Iterable[_Load], size: int) -> _Axes | None:
    """Those of the first load that is transposed."""
    place = variable("place", size)
    for _, position, _ in loads:
        digits = [(a, f) for a, f in position.terms if isinstance(a, Digit) and a.of == place]
        near = [a for a, factor in digits if factor == 1 and a.step > 1]
        inner = [a for a, factor in digits if factor > 1 and a.step == 1]
        if len(near) == len(inner) == 1:
            rows, columns = near[0].high + 1, inner[0].high + 1
            fits = near[0].step % columns == 0 and size % (near[0].step * rows) == 0
            if fits and min(rows, columns) >= _SHORTEST:
                return _Axes(size, columns, near[0].step, rows)
    return None


def _is_transposed(position: Expr, axes: _Axes) -> bool:
    """Whether neighbours in memory lie along the rows' axis."""
    row, column = (Variable(n, 0, size - 1) for n, size in (("row", axes.rows), ("column", axes.columns)))
    rest = position - Expr(((row, position.factor(row)), (column, position.factor(column))))
    # Positions that depend on data are not known where the tile is filled.
    is_plain = {v.name for v in rest.variables()} <= {"outer", "middle"}
    return is_plain and position.factor(row) == 1 and position.factor(column) > 1


def _kernel(
    outputs: Sequence[Instruction], inputs: Sequence[Instruction], axes: _Axes, loads: Sequence[_Load]
) -> Kernel:
    across, down = -(-axes.columns // _SIDE), -(-axes.rows // _SIDE)
    filling = Emitter(pointers_of(inputs), run_along("row", axes.rows, 1))
    tiles: dict[tuple[str, Expr], str] = {}
    for number, (pointer, position, kind) in enumerate(loads):
        filling.move(pointer, position, f"tile{number}[near * {_STEP} + row - top]", kind)
        tiles[pointer, position] = f"tile{number}[(column - left) * {_STEP} + near]"
    emptying = Emitter(pointers_of(inputs), run_along("column", axes.columns, 1), tiles=tiles)
    write_outputs(dict(enumerate(outputs)), emptying, axes.place)
    body = [
        f"const Index across = block_id() % {across}, rest = block_id() / {across};",
        f"const Index down = rest % {down}, other = rest / {down};",
        f"const Index middle = other % {axes.middle}, outer = other / {axes.middle};",
        f"const Index left = across * {_SIDE}, top = down * {_SIDE};",
        f"const int width = {axes.columns} - left < {_SIDE} ? {axes.columns} - left : {_SIDE};",
        f"const int height = {axes.rows} - top < {_SIDE} ? {axes.rows} - top : {_SIDE};",
        *(f"SHARED({computed(k)}, tile{n}, {_SIDE * _STEP});" for n, (_, _, k) in enumerate(loads)),
        *_each("width", "top", "height", "column = left", "row", filling),
        "barrier();",
        *_each("height", "left", "width", "row = top", "column", emptying),
    ]
    grid = across * down * axes.middle * axes.outer
    emitters = [filling, emptying]
    return assemble(inputs, outputs, body, grid, emitters, axes.size, "tiles of a transposition")


def _each(rows: str, left: str, count: str, near: str, along: str, emitter: Emitter) -> list[str]:
    """A loop over a tile, in whose rows neighbours are taken together."""
    return [
        f"each_in_tile<Index>({rows}, {left}, {count}, [&](int near, Index first, auto lanes) INLINE {{",
        f"const Index {near} + near;",
        *emitter.head,
        "EACH_LANE {",
        f"const Index {along} = first + lane;",
        *emitter.statements,
        "} });",
    ]
