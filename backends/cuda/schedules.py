"""Kernels: the loops, phases and trees around what the emitter writes.

Grids, chunks and trees follow from shapes alone, and nothing is combined by atomic operations: results repeat
to the bit, from run to run and from machine to machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from hlotool.backends.cuda.elements import (
    NotGenerated,
    array_shape,
    computed,
    element_type,
    load,
    store,
    stored,
)
from hlotool.backends.cuda.elementwise import ELEMENTWISE
from hlotool.backends.cuda.emit import Emitter
from hlotool.backends.cuda.indices import linear, split
from hlotool.backends.cuda.movement import ints, is_row_major_copy, starts
from hlotool.backends.cuda.reductions import Combiner, combiner
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Threads of a block, as in `prelude.h`.
THREADS = 256
#: Blocks of a loop are at most so many; each thread then computes several elements.
_MAX_GRID = 2112
#: Fewer elements are reduced by one thread.
SERIAL = 32
#: Elements of one row, or rows of one column, that one block reduces; more are reduced in two passes.
_ROW_CHUNK, _COLUMN_CHUNK = 1 << 16, 1 << 12
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
        launcher: of a C function that runs the kernel on a CPU, given its pointers and the number of blocks.
        inputs: memory it reads.
        outputs: memory it writes.
        grid: number of blocks.
        in_place: the first output starts as a copy of this value, or is its memory.
    """

    name: str
    source: str
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
) -> Kernel:
    """A kernel of that body, in which the buffers are called p0, p1, … and out0, out1, …"""
    types = [f"const {stored(kind_of(b))}*" for b in inputs] + [f"{stored(kind_of(b))}*" for b in outputs]
    names = [f"p{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
    parameters = ", ".join(f"{t} RESTRICT {n}" for t, n in zip(types, names))
    text = "\n".join(body)
    name = "k" + hashlib.sha256(f"{parameters}\n{text}".encode()).hexdigest()[:20]
    source = f"KERNEL({name}, {parameters}) {{\n{text}\n}}\n"
    arguments = ", ".join(f"({t})pointers[{i}]" for i, t in enumerate(types))
    launcher = (
        f'extern "C" void run_{name}(void** pointers, i64 grid) {{\n  current_grid = grid;\n'
        f"  EACH(i64, block, 0, grid) {{ current_block = block; {name}({arguments}); }}\n}}\n"
    )
    return Kernel(name, source, launcher, tuple(inputs), tuple(outputs), max(1, grid), in_place)


def _pointers(inputs: Sequence[Instruction]) -> dict[Instruction, str]:
    return {instruction: f"p{i}" for i, instruction in enumerate(inputs)}


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal dimensions share the loop."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).dims, []).append(number)
    body: list[str] = []
    for dims, numbers in groups.items():
        body += _loop_over(dims, {n: outputs[n] for n in numbers}, _pointers(inputs))
    largest = max(array_shape(output).size for output in outputs)
    return assemble(inputs, outputs, body, min(-(-largest // THREADS), _MAX_GRID))


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
    emitter = Emitter(_pointers(inputs))
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
    return assemble(inputs, (root,), body, min(-(-rows * columns // THREADS), _MAX_GRID), operand)


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the reductions of one kernel have in common.

    Attributes:
        dims: of the inputs.
        reduced: dimensions that go away.
    """

    dims: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The other dimensions."""
        return tuple(d for d in range(len(self.dims)) if d not in self.reduced)

    @property
    def results(self) -> int:
        """Number of elements of a result."""
        return prod(self.dims[d] for d in self.kept)

    @property
    def length(self) -> int:
        """Number of elements that one result combines."""
        return prod(self.dims[d] for d in self.reduced)

    @property
    def is_by_row(self) -> bool:
        """Whether neighbours in memory go into the same result."""
        return len(self.dims) - 1 in self.reduced

    def index(self, result: str, element: str) -> list[str]:
        """The input's index of an element of a result; both are positions."""
        parts = dict(zip(self.kept, split(result, [self.dims[d] for d in self.kept])))
        parts.update(zip(self.reduced, split(element, [self.dims[d] for d in self.reduced])))
        return [parts[d] for d in range(len(self.dims))]


def geometry(reduction: Instruction) -> Geometry:
    """Of a reduce instruction."""
    return Geometry(array_shape(reduction.operands[0]).dims, tuple(sorted(ints(reduction, "dimensions"))))


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """One result of one reduction inside a kernel."""

    name: str
    held: ElementType
    identity: str
    merged: Callable[[str, str], str]


def _accumulators(combiners: Sequence[Combiner]) -> list[_Accumulator]:
    found: list[_Accumulator] = []
    for combine in combiners:
        for part, (held, identity) in enumerate(zip(combine.held, combine.identities())):
            found.append(_Accumulator(f"acc{len(found)}", held, identity, combine.merger(part)))
    return found


def reduction(
    outputs: Sequence[Instruction], reductions: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    """Reductions of equal geometry whose computations are monoids: one pass, or two for long ones.

    Args:
        outputs: the reductions' results, those of one after those of another.
        reductions: the instructions themselves.
        inputs: memory that they may read.

    Raises:
        NotGenerated: a computation is not a monoid.
    """
    shape = geometry(reductions[0])
    combiners = [combiner(r) for r in reductions]
    for instruction, combine in zip(reductions, combiners):
        if combine.monoids is None:
            raise NotGenerated("no tree without a neutral element", instruction)
    accumulators = _accumulators(combiners)
    chunk = _ROW_CHUNK if shape.is_by_row else _COLUMN_CHUNK
    chunks = max(1, -(-shape.length // chunk))
    finish = _Finish(outputs, reductions, combiners)
    if chunks == 1:
        return [_first_pass(shape, reductions, accumulators, inputs, outputs, chunk, 1, finish)]
    parts = [Part(a.held, shape.results * chunks) for a in accumulators]
    first = _first_pass(shape, reductions, accumulators, inputs, parts, chunk, chunks, None)
    return [first, _second_pass(shape, accumulators, inputs, parts, chunks, finish)]


@dataclass(frozen=True, slots=True)
class _Finish:
    """Writes results: the initial values joined, rounded to the declared types."""

    outputs: Sequence[Instruction]
    reductions: Sequence[Instruction]
    combiners: Sequence[Combiner]

    def statements(self, emitter: Emitter, totals: Sequence[str], place: str) -> None:
        """Append them; `totals` are names."""
        left, outputs = list(totals), list(enumerate(self.outputs))
        for instruction, combine in zip(self.reductions, self.combiners):
            count = len(combine.kinds)
            inits = [emitter.value(init, ()) for init in instruction.operands[count:]]
            joined = combine.combined(emitter, inits, left[:count])
            results = combine.results([emitter.define(computed(k), j) for k, j in zip(combine.held, joined)])
            for (number, output), result in zip(outputs[:count], results):
                name = emitter.define(computed(element_type(output)), result)
                emitter.add(store(f"out{number}", place, name, element_type(output)))
            del left[:count], outputs[:count]


def _first_pass(
    shape: Geometry,
    reductions: Sequence[Instruction],
    accumulators: Sequence[_Accumulator],
    inputs: Sequence[Instruction],
    outputs: Sequence[Buffer],
    chunk: int,
    chunks: int,
    finish: _Finish | None,
) -> Kernel:
    """A block for each row, or for THREADS columns, and chunk of elements."""
    emitter = Emitter(_pointers(inputs))
    index = shape.index("result", "element")
    values = [emitter.value(x, index) for r in reductions for x in r.operands[: len(r.operands) // 2]]
    for accumulator, value in zip(accumulators, values):
        emitter.add(f"{accumulator.name}(t) = {accumulator.merged(f'{accumulator.name}(t)', value)};")
    by_row = shape.is_by_row
    body = [
        f"const i64 chunk = block_id() % {chunks}ll, group = block_id() / {chunks}ll;",
        f"const i64 begin = chunk * {chunk}ll;",
        f"const i64 end = begin + {chunk}ll < {shape.length}ll ? begin + {chunk}ll : {shape.length}ll;",
        *(f"Private<{computed(a.held)}> {a.name};" for a in accumulators),
        "phase([&](int t) { " + " ".join(f"{a.name}(t) = {a.identity};" for a in accumulators) + " });",
        *(_by_row(emitter) if by_row else _by_column(emitter, shape.results)),
    ]
    if by_row:
        body += [_tree(a) for a in accumulators]
    body += _write_out(shape, accumulators, inputs, chunks, finish)
    groups = shape.results if by_row else -(-shape.results // THREADS)
    return assemble(inputs, outputs, body, groups * chunks)


def _by_row(emitter: Emitter) -> list[str]:
    return [
        "const i64 result = group;",
        "strided(begin, end, [&](int t, i64 element) {",
        *emitter.statements,
        "});",
    ]


def _by_column(emitter: Emitter, results: int) -> list[str]:
    return [
        f"stepwise(begin, end, {results}ll - group * NT, [&](int t, i64 element) {{",
        "const i64 result = group * NT + t;",
        *emitter.statements,
        "});",
    ]


def _tree(accumulator: _Accumulator) -> str:
    ctype = computed(accumulator.held)
    combined = f"[]({ctype} a, {ctype} b) -> {ctype} {{ return {accumulator.merged('a', 'b')}; }}"
    return f"block_reduce({accumulator.name}, {combined});"


def _write_out(
    shape: Geometry,
    accumulators: Sequence[_Accumulator],
    inputs: Sequence[Instruction],
    chunks: int,
    finish: _Finish | None,
) -> list[str]:
    emitter = Emitter(_pointers(inputs))
    totals = [emitter.define(computed(a.held), f"{a.name}(t)") for a in accumulators]
    if finish is not None:
        finish.statements(emitter, totals, "result")
    else:
        for number, (accumulator, total) in enumerate(zip(accumulators, totals)):
            emitter.add(store(f"out{number}", f"chunk * {shape.results}ll + result", total, accumulator.held))
    if shape.is_by_row:
        head = "if (t == 0) {"
    else:
        head = f"const i64 result = group * NT + t; if (result < {shape.results}ll) {{"
    return [f"phase([&](int t) {{ {head}", *emitter.statements, "} });"]


def _second_pass(
    shape: Geometry,
    accumulators: Sequence[_Accumulator],
    inputs: Sequence[Instruction],
    parts: Sequence[Part],
    chunks: int,
    finish: _Finish,
) -> Kernel:
    """Chunks joined in their order, one thread for each result."""
    emitter = Emitter({i: f"p{n + len(parts)}" for n, i in enumerate(inputs)})
    totals = [emitter.variable(a.held, a.identity) for a in accumulators]
    with emitter.block(f"for (i64 chunk = 0; chunk < {chunks}; ++chunk)"):
        for number, (accumulator, total) in enumerate(zip(accumulators, totals)):
            part = load(f"p{number}", f"chunk * {shape.results}ll + column", accumulator.held)
            name = emitter.define(computed(accumulator.held), part)
            emitter.add(f"{total} = {accumulator.merged(total, name)};")
    finish.statements(emitter, totals, "column")
    body = [f"each_element(1, {shape.results}ll, [&](i64 row, i64 column) {{", *emitter.statements, "});"]
    grid = min(-(-shape.results // THREADS), _MAX_GRID)
    return assemble([*parts, *inputs], finish.outputs, body, grid)
