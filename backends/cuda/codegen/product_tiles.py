"""Kernels of larger sums of products: tiles of both factors in shared memory, 16 sums to a thread.

The terms of a sum are added in their order, as one thread by itself adds them, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.cuda.codegen.contractions import Contraction, Factor, index_of, sum_of_terms, zero_of
from hlotool.backends.cuda.codegen.elements import array_shape, computed, element_type, store
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Expr, Index, constant, linear, split, variable
from hlotool.backends.cuda.codegen.schedules import Kernel, assemble, pointers_of
from hlotool.ir.module import Instruction

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
