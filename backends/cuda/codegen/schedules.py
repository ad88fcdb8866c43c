"""Kernels: the loops, phases and trees around what the emitter writes.

Grids, chunks and trees follow from shapes alone, and nothing is combined by atomic operations: results repeat
to the bit, from run to run and from machine to machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from hlotool.backends.cuda.codegen.elements import (
    array_shape,
    element_type,
    store,
    stored,
)
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import Emitter, without_comments
from hlotool.backends.cuda.codegen.indices import linear, split
from hlotool.backends.cuda.codegen.movement import is_row_major_copy, starts
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Threads of a block, as in `prelude/phases.h`.
THREADS = 256
#: Blocks of a loop are at most so many; each thread then computes several elements.
MAX_GRID = 2112
#: Elements of the trailing dimensions whose index is split in the inner loop.
_INNER = 64


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Memory between two passes of a reduction.

    Attributes:
        kind: of the elements.
        size: number of elements.
    """

    kind: ElementType
    size: int


Buffer: TypeAlias = Instruction | Part


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One generated kernel.

    Attributes:
        name: made from the source; equal kernels have equal names.
        source: of the function, to be compiled behind the prelude.
        listing: the same with comments that name the instructions, for people.
        schedule: what its threads share out, in a few words.
        launcher: of a C function that runs the kernel on a CPU, given its pointers and the number of blocks.
        inputs: memory it reads.
        outputs: memory it writes.
        grid: number of blocks.
        in_place: the first output starts as a copy of this value, or is its memory.
    """

    name: str
    source: str
    listing: str
    schedule: str
    launcher: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    grid: int
    in_place: Instruction | None = None


def kind_of(buffer: Buffer) -> ElementType:
    """The element type of what lies in a buffer."""
    return buffer.kind if isinstance(buffer, Part) else element_type(buffer)


def assemble(
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    body: Iterable[str],
    grid: int,
    in_place: Instruction | None = None,
    schedule: str = "loop",
) -> Kernel:
    """A kernel of that body, in which the buffers are called p0, p1, … and out0, out1, …

    What the comments in it say is no part of the source and of the name that is made from it.
    """
    types = [f"const {stored(kind_of(b))}*" for b in inputs] + [f"{stored(kind_of(b))}*" for b in outputs]
    names = [f"p{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
    parameters = ", ".join(f"{t} RESTRICT {n}" for t, n in zip(types, names))
    commented = "\n".join(body)
    text = without_comments(commented)
    name = "k" + hashlib.sha256(f"{parameters}\n{text}".encode()).hexdigest()[:20]
    source, listing = (f"KERNEL({name}, {parameters}) {{\n{t}\n}}\n" for t in (text, commented))
    arguments = ", ".join(f"({t})pointers[{i}]" for i, t in enumerate(types))
    launcher = (
        f'extern "C" void run_{name}(void** pointers, i64 grid) {{\n  current_grid = grid;\n'
        f"  EACH(i64, block, 0, grid) {{ current_block = block; {name}({arguments}); }}\n}}\n"
    )
    return Kernel(
        name, source, listing, schedule, launcher, tuple(inputs), tuple(outputs), max(1, grid), in_place
    )


def pointers_of(inputs: Sequence[Instruction]) -> dict[Instruction, str]:
    """What the inputs of a kernel are called in it."""
    return {instruction: f"p{i}" for i, instruction in enumerate(inputs)}


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal dimensions share the loop."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).dims, []).append(number)
    body: list[str] = []
    for dims, numbers in groups.items():
        body += _loop_over(dims, {n: outputs[n] for n in numbers}, pointers_of(inputs))
    largest = max(array_shape(output).size for output in outputs)
    return assemble(inputs, outputs, body, min(-(-largest // THREADS), MAX_GRID))


def _loop_over(
    dims: tuple[int, ...], outputs: Mapping[int, Instruction], pointers: Mapping[Instruction, str]
) -> list[str]:
    flat = all(_is_flat(output, dims, pointers) for output in outputs.values())
    emitter = Emitter(pointers, flat)
    if flat:
        rows, columns, position = 1, prod(dims), "column"
        index: tuple[str, ...] = ("column",)
    else:
        inner = _inner_rank(dims)
        outer_dims, inner_dims = dims[: len(dims) - inner], dims[len(dims) - inner :]
        rows, columns = prod(outer_dims), prod(inner_dims)
        index = (*split("row", outer_dims), *split("column", inner_dims))
        position = f"row * {columns}ll + column"
    for number, output in outputs.items():
        value = emitter.value(output, index if dims else ())
        emitter.add(store(f"out{number}", emitter.index(position), value, element_type(output)))
    return [f"each_element({rows}ll, {columns}ll, [&](i64 row, i64 column) {{", *emitter.statements, "});"]


def _inner_rank(dims: Sequence[int]) -> int:
    """How many trailing dimensions make a loop long enough."""
    size, rank = 1, 0
    while rank < len(dims) and (rank == 0 or size < _INNER):
        rank += 1
        size *= dims[-rank]
    return rank


def _is_flat(root: Instruction, dims: tuple[int, ...], inputs: Mapping[Instruction, str]) -> bool:
    """Whether everything that the root needs has its elements in the same places (or is a scalar)."""
    pending, seen = [root], {root}
    while pending:
        instruction = pending.pop()
        shape = array_shape(instruction)
        if shape.rank and shape.size != prod(dims):
            return False
        if instruction in inputs or instruction.opcode == "constant":
            continue
        spreads_scalar = instruction.opcode == "broadcast" and array_shape(instruction.operands[0]).rank == 0
        if not (spreads_scalar or is_row_major_copy(instruction) or instruction.opcode in ELEMENTWISE):
            return False
        if is_row_major_copy(instruction) and bool(shape.rank) != bool(
            array_shape(instruction.operands[0]).rank
        ):
            return False
        pending += [operand for operand in instruction.operands if operand not in seen]
        seen.update(instruction.operands)
    return True


def update(root: Instruction, inputs: Sequence[Instruction]) -> Kernel:
    """A dynamic-update-slice that writes its window into the memory of its first operand."""
    operand, changed, *indices = root.operands
    emitter = Emitter(pointers_of(inputs))
    dims, sizes = array_shape(root).dims, array_shape(changed).dims
    inner = _inner_rank(sizes)
    outer_sizes, inner_sizes = sizes[: len(sizes) - inner], sizes[len(sizes) - inner :]
    begin = starts(emitter, indices, dims, sizes)
    index = [emitter.index(p) for p in (*split("row", outer_sizes), *split("column", inner_sizes))]
    value = emitter.value(changed, index)
    place = emitter.index(linear([emitter.index(f"{b} + {p}") for b, p in zip(begin, index)], dims))
    emitter.add(store("out0", place, value, element_type(root)))
    rows, columns = prod(outer_sizes), prod(inner_sizes)
    body = [f"each_element({rows}ll, {columns}ll, [&](i64 row, i64 column) {{", *emitter.statements, "});"]
    grid = min(-(-rows * columns // THREADS), MAX_GRID)
    return assemble(inputs, (root,), body, grid, operand, schedule="update in place")
