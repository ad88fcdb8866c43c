"""Kernels of long reductions: a tree over each block, and a second pass where one block is not enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from hlotool.backends.cuda.codegen.elements import (
    NotGenerated,
    array_shape,
    computed,
    element_type,
    load,
    store,
)
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import split
from hlotool.backends.cuda.codegen.movement import ints
from hlotool.backends.cuda.codegen.reductions import Combiner, combiner
from hlotool.backends.cuda.codegen.schedules import (
    MAX_GRID,
    THREADS,
    Buffer,
    Kernel,
    Part,
    assemble,
    pointers_of,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Fewer elements are reduced by one thread.
SERIAL = 32
#: Elements of one row, or rows of one column, that one block reduces; more are reduced in two passes.
_ROW_CHUNK, _COLUMN_CHUNK = 1 << 16, 1 << 12


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
    emitter = Emitter(pointers_of(inputs))
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
        "each_thread([&](int t) { " + " ".join(f"{a.name}(t) = {a.identity};" for a in accumulators) + " });",
        *(_by_row(emitter) if by_row else _by_column(emitter, shape.results)),
    ]
    if by_row:
        body += [_tree(a) for a in accumulators]
    body += _write_out(shape, accumulators, inputs, chunks, finish)
    groups = shape.results if by_row else -(-shape.results // THREADS)
    schedule = f"{'row' if by_row else 'column'} reduction{', first pass' if finish is None else ''}"
    return assemble(inputs, outputs, body, groups * chunks, schedule=schedule)


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
    emitter = Emitter(pointers_of(inputs))
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
    return [f"each_thread([&](int t) {{ {head}", *emitter.statements, "} });"]


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
    grid = min(-(-shape.results // THREADS), MAX_GRID)
    return assemble([*parts, *inputs], finish.outputs, body, grid, schedule="reduction, second pass")
