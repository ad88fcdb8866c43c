"""Kernels that go through shared memory in tiles: larger sums of products, and transposed results.

A thread of a product has 16 sums. Results are transposed where their neighbours lie far apart in what they
are computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlotool.backends.cuda.codegen.contractions import (
    Contraction,
    Factor,
    index_of,
    sum_of_terms,
    zero_of,
)
from hlotool.backends.cuda.codegen.elements import (
    array_shape,
    computed,
    element_type,
    load,
    store,
    stored,
)
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import (
    Digit,
    Expr,
    Index,
    Variable,
    constant,
    linear,
    split,
    variable,
)
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

#: As in `prelude/tiles.h`: rows and columns of a tile, its threads in each direction, sums of a thread.
SIDE, _ACROSS, _SUMS = 64, 16, 4

_LOAD = """each_thread([&](int t) {
for (int i = t; i < SIDE * DEPTH; i += NT) {
const i64 term = first + i %% DEPTH, place = %(tile)s * SIDE + i / DEPTH;
%(type)s element = %(zero)s;
if (term < %(terms)sll && place < %(places)sll) {
%(body)s
}
%(shared)s[i %% DEPTH * SIDE + i / DEPTH] = element;
}
});"""


def product(contraction: Contraction, inputs: Sequence[Instruction]) -> Kernel:
    """One block for each tile of the result, and each part of the batch.

    Args:
        contraction: what is computed; it has rows and columns.
        inputs: memory that the factors may read.

    Raises:
        NotGenerated: a factor cannot be written.
    """
    batch, rows, columns = contraction.counts
    row_tiles, column_tiles = -(-rows // SIDE), -(-columns // SIDE)
    ctype = computed(contraction.kind)
    sums = [f"sum{i}{j}" for i in range(_SUMS) for j in range(_SUMS)]
    left, right, out = (Emitter(pointers_of(inputs)) for _ in range(3))
    part, place, nowhere = variable("batch", batch), "place", constant(0)
    left_index = index_of(contraction, part, variable(place, rows), nowhere)
    right_index = index_of(contraction, part, nowhere, variable(place, columns))
    body = [
        f"const i64 across = block_id() % {column_tiles}ll;",
        f"const i64 down = block_id() / {column_tiles}ll % {row_tiles}ll;",
        f"const i64 batch = block_id() / {column_tiles * row_tiles}ll;",
        f"SHARED({ctype}, left, SIDE * DEPTH);",
        f"SHARED({ctype}, right, SIDE * DEPTH);",
        *(f"Private<{ctype}> {name};" for name in sums),
        "each_thread([&](int t) {",
        *(f"{name}(t) = {zero_of(contraction.kind)};" for name in sums),
        "});",
        f"for (i64 first = 0; first < {contraction.length}ll; first += DEPTH) {{",
        _load(contraction, left, contraction.left, left_index, "left", "down", rows),
        _load(contraction, right, contraction.right, right_index, "right", "across", columns),
        "barrier();",
        *_accumulate(contraction),
        "barrier();",
        "}",
        *_write_out(contraction, out, part, rows, columns),
    ]
    grid = batch * row_tiles * column_tiles
    result = contraction.instruction
    size = array_shape(result).size
    return assemble(inputs, (result,), body, grid, (left, right, out), size, "tiles of a product")


def _load(
    contraction: Contraction,
    emitter: Emitter,
    factor: Factor,
    index: Index,
    shared: str,
    tile: str,
    places: int,
) -> str:
    """What brings a tile of one factor to shared memory; 0 lies beyond its edges."""
    value = factor(emitter, index, split(variable("term", contraction.length), contraction.terms))
    emitter.add(f"element = {value};")
    return _LOAD % {
        "tile": tile,
        "type": computed(contraction.kind),
        "zero": zero_of(contraction.kind),
        "terms": contraction.length,
        "places": places,
        "body": "\n".join(emitter.statements),
        "shared": shared,
    }


def _accumulate(contraction: Contraction) -> list[str]:
    ctype, numbers = computed(contraction.kind), range(_SUMS)
    lines = ["each_term([&](int t, int row, int column, int k) {"]
    for i in numbers:
        lines.append(f"const {ctype} a{i} = left[k * SIDE + row + {i * _ACROSS}];")
        lines.append(f"const {ctype} b{i} = right[k * SIDE + column + {i * _ACROSS}];")
    for i in numbers:
        for j in numbers:
            total = f"sum{i}{j}(t)"
            lines.append(f"{total} = {contraction.accumulated(total, f'a{i}', f'b{j}')};")
    return [*lines, "});"]


def _write_out(contraction: Contraction, emitter: Emitter, batch: Expr, rows: int, columns: int) -> list[str]:
    """Store the sums; what is NaN is summed again where terms may have to be left out."""
    kind, dims = element_type(contraction.instruction), array_shape(contraction.instruction).dims
    for i in range(_SUMS):
        for j in range(_SUMS):
            row, column = f"row{i}{j}", f"column{i}{j}"
            emitter.add(f"const i64 {row} = down * SIDE + t / {_ACROSS} + {i * _ACROSS};")
            emitter.add(f"const i64 {column} = across * SIDE + t % {_ACROSS} + {j * _ACROSS};")
            with emitter.block(f"if ({row} < {rows}ll && {column} < {columns}ll)"):
                index = index_of(contraction, batch, variable(row, rows), variable(column, columns))
                total = f"sum{i}{j}(t)"
                if contraction.present is not None:
                    with emitter.block(f"if ({total} != {total})"):
                        emitter.add(f"{total} = {sum_of_terms(emitter, contraction, index)};")
                result = emitter.define(computed(kind), contraction.result(total))
                emitter.add(store("out0", emitter.index(linear(index, dims)), result, kind))
    return ["each_thread([&](int t) {", *emitter.statements, "});"]


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
