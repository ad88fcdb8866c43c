"""Loops over the elements of results: each by itself, neighbours together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Expr, Variable, linear, split, variable
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


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal size share the loop."""
    groups: dict[int, list[int]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).size, []).append(number)
    body: list[str] = []
    emitters, blocks = [], 1
    for size, numbers in groups.items():
        emitter, columns, width = _loop_over(size, {n: outputs[n] for n in numbers}, pointers_of(inputs))
        body += _each_run(size // max(1, columns), columns, width, emitter)
        emitters.append(emitter)
        blocks = max(blocks, -(-size // width // THREADS))
    wide = is_wide(emitters, max(groups))
    return assemble(inputs, outputs, body, min(blocks, MAX_GRID), is_wide=wide)


def _each_run(rows: int, columns: int, width: int, emitter: Emitter) -> list[str]:
    head = f"each_run<Index, {rows}, {columns}, {width}>([&](Index row, Index first, auto lanes) INLINE {{"
    return [head, *run_body(emitter), "});"]


def _loop_over(
    size: int, outputs: Mapping[int, Instruction], pointers: Mapping[Instruction, str]
) -> tuple[Emitter, int, int]:
    """Statements, length and width of the runs."""
    place = variable("place", size)
    trial = Emitter(pointers)
    _write(trial, outputs, place)
    columns = run_length(trial.positions, Variable("place", 0, max(0, size - 1)), size)
    width = vector_width([*pointers, *outputs.values()], columns, size)
    emitter = Emitter(pointers, run_along("column", columns, width))
    _write(emitter, outputs, _position(size // max(1, columns), columns))
    return emitter, columns, width


def _position(rows: int, columns: int) -> Expr:
    return variable("row", rows) * columns + variable("column", columns)


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
    columns = run_length(trial.positions, Variable("place", 0, max(0, size - 1)), size)
    width = vector_width([*inputs, root], columns, size)
    emitter = Emitter(pointers_of(inputs), run_along("column", columns, width))
    write(emitter, _position(size // max(1, columns), columns))
    body = _each_run(size // max(1, columns), columns, width, emitter)
    grid = min(-(-size // width // THREADS), MAX_GRID)
    wide = is_wide([emitter], array_shape(root).size)
    return assemble(inputs, (root,), body, grid, operand, "update in place", wide)
