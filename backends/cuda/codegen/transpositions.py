"""Results whose neighbours lie far apart in what they are computed from: tiles that go through shared memory.

Every load and store then touches neighbours. Other operands of the same fusion are read as in any loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlotool.backends.cuda.codegen.elements import array_shape, element_type, load, stored
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Digit, Expr, Variable, variable
from hlotool.backends.cuda.codegen.schedules import (
    WARP,
    Kernel,
    assemble,
    pointers_of,
    run_along,
    run_body,
    write_outputs,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Units of a row of a tile, and between its rows: an odd number spreads them over memory banks. A unit is one
#: access to memory by readers and by writers, of so many elements by their bytes.
_SIDE, _STEP = WARP, WARP + 1
_MOST_OF_UNIT = {1: 4, 2: 2, 4: 2}
#: Fewer tiles than this do not keep a GPU busy: smaller ones are taken.
_ENOUGH_TILES = 256
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
    loads = [found for found in dict.fromkeys(again.loads) if _is_transposed(found[1], axes)]
    if not 0 < len(loads) <= _MOST_TILES:
        return None
    unit = _unit(axes, loads, [element_type(output) for output in outputs])
    while unit > 1 and _tile_bytes(loads, unit) > _MOST_BYTES:
        unit //= 2
    fits = _tile_bytes(loads, unit) <= _MOST_BYTES
    return _kernel(outputs, inputs, axes, loads, unit) if fits else None


def _unit(axes: _Axes, loads: Sequence[_Load], results: Iterable[ElementType]) -> int:
    """How many elements a thread reads and writes at once: both begin at multiples of it, or it is one."""
    size = max(_bytes(kind) for kind in (*results, *(kind for _, _, kind in loads)))
    unit = _MOST_OF_UNIT.get(size, 1)
    row = Expr(((Variable("row", 0, axes.rows - 1), 1),))
    others = [position - row for _, position, _ in loads]
    while unit > 1 and not (
        axes.size >= _ENOUGH_TILES * (_SIDE * unit) ** 2
        and axes.rows % unit == axes.columns % unit == 0
        and all(position.is_multiple(unit) for position in others)
    ):
        unit //= 2
    return unit


def _bytes(kind: ElementType) -> int:
    return max(1, kind.bits // 8)


def _tile_bytes(loads: Iterable[_Load], unit: int) -> int:
    """Shared memory for the tiles, of elements as they lie in memory."""
    return _SIDE * _STEP * unit**2 * sum(_bytes(kind) for _, _, kind in loads)


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
    outputs: Sequence[Instruction],
    inputs: Sequence[Instruction],
    axes: _Axes,
    loads: Sequence[_Load],
    unit: int,
) -> Kernel:
    side = _SIDE * unit
    across, down = -(-axes.columns // side), -(-axes.rows // side)
    filling = Emitter(pointers_of(inputs))
    tiles: dict[tuple[str, Expr], str] = {}
    declared, filled, read = [], [], []
    row = Expr(((Variable("row", 0, axes.rows - 1), 1),))
    for number, (pointer, position, kind) in enumerate(loads):
        tiles[pointer, position] = load(f"near{number}", "lane", kind)
        declared.append(f"SHARED(Cell<{stored(kind)}>::type, tile{number}, {side * _STEP * unit});")
        begin = len(filling.statements)
        with filling.block(
            f"turn_tile<{stored(kind)}, {unit}>(tile{number}, height, width, [&](int near) INLINE"
        ):
            filling.add("const Index column = left + near;")
            filling.add(f"return {pointer} + {filling.index(position - row)} + top;")
        filled += [*filling.statements[begin:], ");"]
        read.append(f"const Turned<{stored(kind)}, {unit}> near{number}(tile{number}, near, first - left);")
    emptying = Emitter(pointers_of(inputs), run_along("column", axes.columns, unit), tiles=tiles)
    write_outputs(dict(enumerate(outputs)), emptying, axes.place)
    body = [
        f"const Index across = block_id() % {across}, rest = block_id() / {across};",
        f"const Index down = rest % {down}, other = rest / {down};",
        f"const Index middle = other % {axes.middle}, outer = other / {axes.middle};",
        f"const Index left = across * {side}, top = down * {side};",
        f"const int width = {axes.columns} - left < {side} ? {axes.columns} - left : {side};",
        f"const int height = {axes.rows} - top < {side} ? {axes.rows} - top : {side};",
        *declared,
        *filled,
        "barrier();",
        f"each_in_tile<{unit}, Index>(height, left, width, [&](int near, Index first, auto lanes) INLINE {{",
        "const Index row = top + near;",
        *read,
        *run_body(emptying),
        "});",
    ]
    grid = across * down * axes.middle * axes.outer
    emitters = [filling, emptying]
    return assemble(inputs, outputs, body, grid, emitters, axes.size, "tiles of a transposition")
