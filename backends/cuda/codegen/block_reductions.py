"""Reductions in blocks of threads: accumulators, what goes into them, results; argmax and its kin in
order.

A reduction that chooses between elements keeps their order and the bracketing of the numpy backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hlotool.backends.cuda.codegen.elements import array_shape, computed, element_type
from hlotool.backends.cuda.codegen.emit import Emitter, Run
from hlotool.backends.cuda.codegen.indices import Digit, Expr, Variable, split, variable
from hlotool.backends.cuda.codegen.reductions import Accumulator, Combiner, combiner
from hlotool.backends.cuda.codegen.schedules import (
    THREADS,
    WARP,
    Buffer,
    Kernel,
    Part,
    assemble,
    pointers_of,
    run_along,
    run_body,
    run_length,
    vector_width,
    write_outputs,
)
from hlotool.ir.module import Instruction
from hlotool.rewrite.passes.fusion_facts import Geometry


def geometry(reduction: Instruction) -> Geometry:
    """What a reduce instruction sums over, and what it keeps."""
    return Geometry(array_shape(reduction.operands[0]).dims, tuple(sorted(reduction.integers("dimensions"))))


def input_index(shape: Geometry, result: Expr, element: Expr) -> list[Expr]:
    """The input's index of an element of a result; both are positions."""
    parts = dict(zip(shape.kept, split(result, [shape.dims[d] for d in shape.kept])))
    parts.update(zip(shape.reduced, split(element, [shape.dims[d] for d in shape.reduced])))
    return [parts[d] for d in range(len(shape.dims))]


@dataclass(frozen=True)
class State:
    """The accumulator of one reduction: a number, or a structure of several.

    Attributes:
        number: of the reduction in its kernel.
        reduction: the instruction.
        parts: what stands for its results.
        slots: memory between two passes, one for each result; none before the second pass.
    """

    number: int
    reduction: Instruction
    parts: tuple[Instruction, ...]
    slots: tuple[Part, ...] = ()

    @cached_property
    def combine(self) -> Combiner:
        """The computation."""
        return combiner(self.reduction)

    @cached_property
    def accumulator(self) -> Accumulator:
        """How it is held."""
        return Accumulator(self.number, self.combine)

    @property
    def ctype(self) -> str:
        """The C++ type of the accumulator."""
        return self.accumulator.ctype

    @property
    def name(self) -> str:
        """What the accumulators of all threads are called."""
        return f"acc{self.number}"

    @property
    def inputs(self) -> tuple[Instruction, ...]:
        """Arrays that it reduces."""
        return self.reduction.operands[: len(self.parts)]

    @property
    def inits(self) -> tuple[Instruction, ...]:
        """Its initial values."""
        return self.reduction.operands[len(self.parts) :]

    def packed(self, values: Sequence[str]) -> str:
        """An accumulator made of its parts."""
        return self.accumulator.packed(values)

    def unpacked(self, accumulator: str) -> list[str]:
        """The parts of an accumulator."""
        return self.accumulator.unpacked(accumulator)

    def declarations(self, emitter: Emitter, width: int) -> Iterator[str]:
        """The type of the accumulator, what combines two, and one for each thread and lane.

        Args:
            emitter: computes what they start with.
            width: how many lanes there are.
        """
        yield from self.accumulator.definitions()
        before = len(emitter.statements)
        start = self.combine.identities() or tuple(emitter.value(init, ()) for init in self.inits)
        yield from emitter.statements[before:]
        yield f"Private<{self.ctype}, {width}> {self.name};"
        yield f"{self.name}.fill({self.packed(start)});"

    def accumulate(self, emitter: Emitter, result: Expr, element: Expr, shape: Geometry) -> None:
        """Combine an element with what the thread has."""
        emitter.add(self.joined(self.element(emitter, result, element, shape)))

    def element(self, emitter: Emitter, result: Expr, element: Expr, shape: Geometry) -> str:
        """An element of a result, as an accumulator."""
        index = input_index(shape, result, element)
        return self.packed([emitter.value(x, index) for x in self.inputs])

    def joined(self, new: str) -> str:
        """The statement that combines `new` with what the thread has."""
        mine = f"{self.name}(t, lane)"
        return f"{mine} = combine{self.number}({mine}, {new});"

    def finish(self, emitter: Emitter, accumulator: str, place: Expr) -> list[str]:
        """Join the initial values, and make the results, in their declared types, known at `place`.

        Returns:
            the names of the results.
        """
        held = self.combine.held
        totals = [emitter.define(computed(k), a) for k, a in zip(held, self.unpacked(accumulator))]
        inits = [emitter.value(init, ()) for init in self.inits]
        joined = self.combine.combined(emitter, inits, totals)
        results = self.combine.results([emitter.define(computed(k), j) for k, j in zip(held, joined)])
        names = [emitter.define(computed(element_type(p)), r) for p, r in zip(self.parts, results)]
        emitter.totals.update((part, (name, place)) for part, name in zip(self.parts, names))
        return names


def states_of(
    members: Sequence[Instruction], parts: Mapping[Instruction, Sequence[Instruction]]
) -> list[State]:
    """The accumulators of the reductions of one kernel."""
    return [State(number, member, tuple(parts[member])) for number, member in enumerate(members)]


def reads_rows(shape: Geometry, states: Sequence[State], inputs: Sequence[Instruction]) -> bool:
    """Whether most of what goes into the same result lies together in memory."""
    trial = Emitter(pointers_of(inputs))
    result, element = (Variable(n, 0, max(0, s - 1)) for n, s in (("r", shape.results), ("e", shape.length)))
    for state in states:
        state.accumulate(trial, Expr(((result, 1),)), Expr(((element, 1),)), shape)
    found = [[p for p in trial.positions if _is_along(p, v)] for v in (element, result)]
    return len(found[0]) > len(found[1]) or (len(found[0]) == len(found[1]) and shape.is_by_row)


def _is_along(position: Expr, variable: Variable) -> bool:
    """Whether neighbours in memory differ in this variable."""
    innermost = [atom for atom, factor in position.terms if abs(factor) == 1]
    return any(
        a == variable or (isinstance(a, Digit) and a.step == 1 and variable in a.of.variables())
        for a in innermost
    )


#: Vectors that a thread loads at once, neighbours of each other, and elements where they are not aligned.
_VECTORS, _UNALIGNED = 4, 8
#: Tiles of a block: so many totals lie in shared memory, and fewer rows get a block for several of them.
_MOST_TILES, _TILES = 512, 16
#: Bytes of the totals.
_SHARED = 32 << 10
#: Blocks that the first of two passes should have, and the shortest chunk.
_BLOCKS, _SHORTEST_CHUNK = 1024, 1 << 13
#: In reductions of columns: elements of a thread, rows of threads, and 4-byte words that a thread holds.
_DEPTH, _DEEP, _MOST_WORDS = 16, THREADS // WARP, 128


@dataclass
class Choices:
    """The kernels of one reduction that chooses.

    Attributes:
        shape: of the reduction.
        state: its accumulator.
        inputs: memory that it may read.
        outputs: what it writes, of one element for each result.
    """

    shape: Geometry
    state: State
    inputs: Sequence[Instruction]
    outputs: Sequence[Instruction]
    _emitters: list[Emitter] = field(default_factory=list)

    def kernels(self) -> list[Kernel]:
        """The kernels in the order of execution.

        Raises:
            NotGenerated: something cannot be written.
        """
        write = self._rows if reads_rows(self.shape, [self.state], self.inputs) else self._columns
        made: list[Kernel] = []
        parts: list[Part] = []
        length = self.shape.length
        while not made or length > 1:
            self._emitters = []
            kernel, parts, length = write(parts, length)
            made.append(kernel)
        return made

    def _rows(self, parts: list[Part], length: int) -> tuple[Kernel, list[Part], int]:
        """Neighbours in memory go into the same result.

        Args:
            parts: what the pass before has left; nothing for the first one.
            length: elements of a row.

        Returns:
            the kernel, what it leaves, and how much of each row; 1 if it writes the outputs.
        """
        rows = self.shape.results
        inputs: list[Buffer] = [*parts, *self.inputs]
        run = length if parts else self._run("element", length)
        width = vector_width(parts or self.inputs, run, rows * length)
        size = min(_neighbours(length, width if run == length else 1), self._most(1))
        chunk = self._chunk(length, WARP * size)
        chunks, tiles = -(-length // chunk), -(-min(chunk, length) // (WARP * size))
        per_block = max(1, min(rows, _TILES // tiles)) if chunks == 1 else 1
        along = None
        if run == length:
            along = run_along("column", length, size if length % size == 0 else 1)
        loading = self._emitter(inputs, along)
        row, column = variable("row", rows), variable("column", length)
        value = self._element(loading, parts, row * length + column, row, column)
        kept, body = self._results(inputs, chunks, row * chunks + variable("chunk", chunks), row)
        lines = [
            f"const Index group = block_id() / {chunks} * {per_block}, chunk = block_id() % {chunks};",
            f"const int rows = {rows} - group < {per_block} ? {rows} - group : {per_block};",
            f"const Index begin = chunk * {chunk};",
            f"const Index length = {length} - begin < {chunk} ? {length} - begin : {chunk};",
            *self.state.accumulator.definitions(),
            f"SHARED({self.state.ctype}, totals, {per_block * tiles});",
            f"tiles_reduce<{size}, {tiles}, Index>(totals, rows, length, "
            f"[&](int place, Index ahead, int count, {self.state.ctype}* values, auto lanes) INLINE {{",
            "const Index row = group + place, first = begin + ahead;",
            *loading.head,
            # Rows may end in the middle of what a thread takes.
            "EACH_LANE if (lane < count) {" if length % size else "EACH_LANE {",
            "const Index column = first + lane;",
            *loading.statements,
            f"values[lane] = {value};",
            f"}} }}, {self.state.accumulator.joins});",
            f"totals_reduce<{tiles}>(totals, rows, (int)((length - 1) / {WARP * size}) + 1, "
            f"{self.state.accumulator.joins});",
            "each_thread([&](int t) INLINE {",
            f"const Index row = group + t; const {self.state.ctype} total = totals[t * {tiles}];",
            *body,
            "}, rows);",
        ]
        grid = -(-rows // per_block) * chunks
        schedule = "choices of rows" + (", further pass" if parts else "")
        made = assemble(inputs, kept or self.outputs, lines, grid, self._emitters, rows * length, schedule)
        return made, kept, chunks

    def _columns(self, parts: list[Part], length: int) -> tuple[Kernel, list[Part], int]:
        """Results are neighbours in memory; arguments and result are those of `_rows`."""
        results = self.shape.results
        inputs: list[Buffer] = [*parts, *self.inputs]
        run = results if parts else self._run("result", results)
        width = min(vector_width(parts or self.inputs, run, results * length), self._most(_DEPTH))
        tiles, outer = -(-run // (WARP * width)), results // run
        depth = min(_DEPTH, _power_above(-(-length // _DEEP)))
        chunk = depth * _DEEP
        chunks, deep = -(-length // chunk), -(-min(chunk, length) // depth)
        loading = self._emitter(inputs, run_along("column", run, width))
        result, element = variable("row", outer) * run + variable("column", run), variable("element", length)
        value = self._element(loading, parts, element * results + result, result, element)
        writing = run_along("column", run, width)
        kept, body = self._results(
            inputs, chunks, variable("chunk", chunks) * results + result, result, writing
        )
        ctype, joins = self.state.ctype, self.state.accumulator.joins
        lines = [
            f"const Index tile = block_id() % {tiles}, other = block_id() / {tiles};",
            f"const Index chunk = other % {chunks}, row = other / {chunks};",
            f"const Index left = tile * {WARP * width}, begin = chunk * {chunk};",
            f"const int length = {length} - begin < {chunk} ? {length} - begin : {chunk};",
            *self.state.accumulator.definitions(),
            f"SHARED({ctype}, totals, {THREADS * width});",
            f"columns_reduce<{depth}, {width}, {deep}, Index>(totals, length, left, (Index){run}, "
            f"[&](int ahead, int count, Index first, {ctype}* values, auto lanes) INLINE {{",
            f"EACH_OF({depth}, count) {{",
            "const Index element = begin + ahead + term;",
            *run_body(loading)[:-1],
            f"values[term * {width} + lane] = {value};",
            f"}} }} }}, {joins});",
            f"each_column<{width}, Index>(left, {run}, [&](int t, Index first, auto lanes) INLINE {{",
            *body,
            "});",
        ]
        schedule = "choices of columns" + (", further pass" if parts else "")
        made = assemble(
            inputs,
            kept or self.outputs,
            lines,
            outer * tiles * chunks,
            self._emitters,
            results * length,
            schedule,
        )
        return made, kept, chunks

    def _emitter(self, inputs: Sequence[Buffer], along: Run | None) -> Emitter:
        self._emitters.append(Emitter(pointers_of(inputs), along))
        return self._emitters[-1]

    def _run(self, name: str, size: int) -> int:
        """How many elements of a row, or how many results, are neighbours in all arrays."""
        trial = Emitter(pointers_of(self.inputs))
        sizes = {"result": self.shape.results, "element": self.shape.length}
        result, element = (variable(n, s) for n, s in sizes.items())
        self.state.element(trial, result, element, self.shape)
        return max(1, run_length(trial.positions, name, size))

    def _chunk(self, length: int, tile: int) -> int:
        """How many elements of a row a block reduces: a power of two, as trees of neighbours are cut."""
        held = sum(max(8, kind.bits) // 8 for kind in self.state.combine.held)
        most = min(_MOST_TILES, _power_above(_SHARED // held + 1) // 2) * tile
        rows = self.shape.results
        if self.shape.has_few_long_rows:
            wanted = max(_SHORTEST_CHUNK, -(-length * rows // _BLOCKS))
            most = min(most, _power_above(wanted))
        return max(tile, min(most, _power_above(length)))

    def _most(self, each: int) -> int:
        """How many times `each` elements a thread can hold, a power of two."""
        words = sum(-(-kind.bits // 32) for kind in self.state.combine.held)
        return max(1, _power_above(_MOST_WORDS // (each * words) + 1) // 2)

    def _element(
        self, emitter: Emitter, parts: Sequence[Part], place: Expr, result: Expr, element: Expr
    ) -> str:
        """One element as an accumulator: of the operands, or at a place of what an earlier pass has left."""
        if not parts:
            return self.state.element(emitter, result, element, self.shape)
        return self.state.packed([emitter.load(f"p{n}", place, part.kind) for n, part in enumerate(parts)])

    def _results(
        self, inputs: Sequence[Buffer], chunks: int, place: Expr, result: Expr, along: Run | None = None
    ) -> tuple[list[Part], list[str]]:
        """What the kernel leaves for another pass, if anything, and the statements that write what it has."""
        emitter = self._emitter(inputs, along)
        total = "total" if along is None else f"totals[t * {along.width} + lane]"
        if chunks == 1:
            self.state.finish(emitter, total, result)
            write_outputs(dict(enumerate(self.outputs)), emitter, result)
            kept = []
        else:
            kinds = self.state.combine.held
            for number, (value, kind) in enumerate(zip(self.state.unpacked(total), kinds)):
                emitter.store(f"out{number}", place, value, kind)
            kept = [Part(kind, self.shape.results * chunks) for kind in kinds]
        return kept, run_body(emitter) if along is not None else [*emitter.head, *emitter.statements]


def _power_above(number: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


def _neighbours(length: int, width: int) -> int:
    """How many neighbours of a row a thread takes: whole vectors, if rows begin and end with one."""
    wanted = _power_above(-(-length // WARP))
    size = min(wanted, _VECTORS * width)
    while size > width and length % size:
        size //= 2
    aligned = width > 1 and length % size == 0
    return size if aligned else min(wanted, _UNALIGNED)
