"""Reductions along rows, with what is computed from their results, and along columns, whose results are
neighbours.

Columns are reduced in blocks of 32 runs, 8 rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hlotool.backends.cuda.codegen.block_reductions import State
from hlotool.backends.cuda.codegen.elements import array_shape, computed, element_type
from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Expr, split, variable
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

#: Rows of up to so many runs are reduced by a warp, longer ones by a block.
_LONGEST_OF_WARP = 1024
#: So many rows keep a GPU busy with a warp each.
_MANY_ROWS = 1 << 11
#: No chunk is shorter.
_SHORTEST_CHUNK = 1 << 13
#: Blocks that the first of two passes should have.
_BLOCKS = 1024
#: Runs shorter than this are not worth a loop of their own.
_SHORTEST_RUN = 64


@dataclass
class Rows:
    """One kernel over whole rows, or two for few long ones.

    Attributes:
        shape: of all reductions in it.
        stages: reductions; each stage reads results of earlier ones.
        inputs: memory that it may read.
        outputs: what it writes; results of rows, or elements of them.
    """

    shape: Geometry
    stages: Sequence[Sequence[State]]
    inputs: Sequence[Instruction]
    outputs: Sequence[Instruction]
    _emitters: list[Emitter] = field(default_factory=list)

    def kernels(self) -> list[Kernel]:
        """The kernels in the order of execution.

        Raises:
            NotGenerated: something reads results of other rows, or cannot be written.
        """
        chunk = self._chunk()
        if chunk >= self.shape.length:
            return [self._whole()]
        return self._two_passes(chunk)

    @property
    def _states(self) -> list[State]:
        return [state for stage in self.stages for state in stage]

    def _along_rows(self) -> dict[int, Instruction]:
        return {n: o for n, o in enumerate(self.outputs) if array_shape(o).size != self.shape.results}

    def _chunk(self) -> int:
        """How many elements of a row one block reduces."""
        rows, length = self.shape.results, self.shape.length
        is_alone = len(self.stages) == 1 and not self._along_rows()
        if not (self.shape.has_few_long_rows and is_alone and self._run() >= length):
            return max(1, length)
        wanted = -(-length * rows // _BLOCKS)
        return max(_SHORTEST_CHUNK, -(-wanted // THREADS) * THREADS)

    def _run(self) -> int:
        """How many elements of a row are neighbours in all arrays."""
        rows, length = self.shape.results, self.shape.length
        row, element = variable("row", rows), variable("element", length)
        known = {part: ("0", row) for state in self._states for part in state.parts}
        trial = Emitter(pointers_of(self.inputs), totals=known)
        for state in self._states:
            state.accumulate(trial, row, element, self.shape)
        for output in self._along_rows().values():
            trial.value(output, split(row * length + element, array_shape(output).dims))
        found = run_length(trial.positions, "element", length)
        return found if found >= _SHORTEST_RUN else length

    def _totals(self, ready: Iterable[State]) -> dict[Instruction, tuple[str, Expr]]:
        """Where the results of earlier stages are."""
        row = variable("row", self.shape.results)
        parts = [part for state in ready for part in state.parts]
        return {part: (f"{_shared(part, self._states)}[t / {self._team}]", row) for part in parts}

    @cached_property
    def _team(self) -> int:
        """How many threads reduce a row.

        A warp has no barriers, and loads vectors enough to wait for them only now and then; but what a stage
        reads once more should still be near, so that several stages are left to more threads.
        """
        length = self.shape.length
        if self.shape.results >= _MANY_ROWS and len(self.stages) == 1 and not self._along_rows():
            run = self._run()
            length //= vector_width(self.inputs, run, self.shape.results * length)
        return _team_of(length)

    def _emitter(
        self, totals: Mapping[Instruction, tuple[str, Expr]], run: int = 0, width: int = 1
    ) -> Emitter:
        along = run_along("column", run, width) if run else None
        self._emitters.append(Emitter(pointers_of(self.inputs), along, totals))
        return self._emitters[-1]

    def _whole(self) -> Kernel:
        rows, length, run, team = self.shape.results, self.shape.length, self._run(), self._team
        elements = rows * length
        width = vector_width([*self.inputs, *self._along_rows().values()], run, elements)
        body = _teams_of(rows, team)
        done: list[State] = []
        loops = []
        for stage in self.stages:
            loops.append(self._reduce(stage, done, run, width))
            done += stage
        after = self._write_rows(run, width) if self._along_rows() else []
        shared = {part for emitter in self._emitters for part in emitter.used}
        for number, (stage, loop) in enumerate(zip(self.stages, loops)):
            for state in stage:
                body += state.declarations(self._emitter({}), width)
            body += loop
            body += [f"team_reduce<{team}>({s.name}, teams, combine{s.number});" for s in stage]
            body += self._finish(stage, self.stages[:number], shared)
        body += after
        schedule = "row reduction" + (", then its rows" if self._along_rows() else "")
        grid, size = -(-rows * team // THREADS), max(elements, rows)
        return assemble(self.inputs, self.outputs, body, grid, self._emitters, size, schedule)

    def _reduce(self, stage: Sequence[State], done: Sequence[State], run: int, width: int) -> list[str]:
        emitter = self._emitter(self._totals(done), run, width)
        for state in stage:
            state.accumulate(emitter, variable("row", self.shape.results), self._element(run), self.shape)
        return self._over_rows(emitter, run, width)

    def _element(self, run: int) -> Expr:
        return variable("outer", self.shape.length // max(1, run)) * run + variable("column", run)

    def _over_rows(self, emitter: Emitter, run: int, width: int) -> list[str]:
        outer, team = self.shape.length // max(1, run), self._team
        loop = "" if outer == 1 else f"for (Index outer = 0; outer < {outer}; ++outer)"
        head = _in_team(team, width, f"teams, 0, {run}")
        return [loop, head, f"const Index row = group + t / {team};", *run_body(emitter), "});"]

    def _finish(
        self, stage: Sequence[State], before: Sequence[Sequence[State]], shared: set[Instruction]
    ) -> list[str]:
        """The first thread of each team has the totals: it shares them, and computes what they are for."""
        row, per_block = variable("row", self.shape.results), THREADS // self._team
        emitter = self._emitter(self._totals([state for earlier in before for state in earlier]))
        is_last = len(before) == len(self.stages) - 1
        declared = []
        for state in stage:
            for part, result in zip(state.parts, state.finish(emitter, f"{state.name}(t)", row)):
                if part in shared or not is_last:
                    name = _shared(part, self._states)
                    declared.append(f"SHARED({computed(element_type(part))}, {name}, {per_block});")
                    emitter.add(f"{name}[t / {self._team}] = {result};")
        if is_last:
            along = self._along_rows()
            write_outputs({n: o for n, o in enumerate(self.outputs) if n not in along}, emitter, row)
        head = [*declared, f"each_team<{self._team}>(teams, [&](int t) INLINE {{"]
        after = ["barrier();"] if shared.intersection(p for s in stage for p in s.parts) else []
        return [*head, f"const Index row = group + t / {self._team};", *emitter.statements, "});", *after]

    def _write_rows(self, run: int, width: int) -> list[str]:
        emitter = self._emitter(self._totals(self._states), run, width)
        place = variable("row", self.shape.results) * self.shape.length + self._element(run)
        write_outputs(self._along_rows(), emitter, place)
        return self._over_rows(emitter, run, width)

    def _two_passes(self, chunk: int) -> list[Kernel]:
        rows, length = self.shape.results, self.shape.length
        chunks = -(-length // chunk)
        states = self._states
        parts = [Part(kind, rows * chunks) for state in states for kind in state.combine.held]
        width = vector_width(self.inputs, length if length % chunk == 0 else chunk, rows * length)
        width = width if length % width == 0 else 1
        emitter = self._emitter({}, length, width)
        for state in states:
            state.accumulate(emitter, variable("row", rows), variable("column", length), self.shape)
        body = [
            f"const Index row = block_id() / {chunks}, chunk = block_id() % {chunks};",
            f"const Index begin = chunk * {chunk};",
            f"const Index end = {length} - begin < {chunk} ? {length} : begin + {chunk};",
        ]
        for state in states:
            body += state.declarations(self._emitter({}), width)
        head = _in_team(THREADS, width, "1, begin, end")
        body += [head, *run_body(emitter), "});"]
        body += [f"team_reduce<{THREADS}>({s.name}, 1, combine{s.number});" for s in states]
        totals = [total for s in states for total in s.unpacked(f"{s.name}(t)")]
        writes = [f"out{n}[row * {chunks} + chunk] = {total};" for n, total in enumerate(totals)]
        body += [f"each_team<{THREADS}>(1, [&](int t) INLINE {{", *writes, "});"]
        grid, schedule = rows * chunks, "row reduction, first pass"
        first = assemble(self.inputs, parts, body, grid, self._emitters, rows * length, schedule)
        return [first, self._second_pass(parts, chunks)]

    def _second_pass(self, parts: Sequence[Part], chunks: int) -> Kernel:
        """A warp or block for each row, over its chunks."""
        rows, states, row = self.shape.results, self._states, variable("row", self.shape.results)
        team = _team_of(chunks)
        inputs: list[Buffer] = [*parts, *self.inputs]
        pointers = pointers_of(inputs)
        left = iter(range(len(parts)))
        body = _teams_of(rows, team)
        loads = []
        for state in states:
            body += state.declarations(Emitter(pointers), 1)
            new = state.packed([f"p{next(left)}[row * {chunks} + first + lane]" for _ in state.parts])
            loads.append(state.joined(new))
        here = f"const Index row = group + t / {team};"
        body += [
            _in_team(team, 1, f"teams, 0, {chunks}"),
            *(here, "EACH_LANE {", *loads, "} });"),
            *(f"team_reduce<{team}>({s.name}, teams, combine{s.number});" for s in states),
        ]
        emitter = Emitter(pointers)
        for state in states:
            state.finish(emitter, f"{state.name}(t)", row)
        write_outputs(dict(enumerate(self.outputs)), emitter, row)
        body += [f"each_team<{team}>(teams, [&](int t) INLINE {{", here, *emitter.statements, "});"]
        grid, schedule = -(-rows * team // THREADS), "reduction, second pass"
        return assemble(inputs, self.outputs, body, grid, [emitter], rows * chunks, schedule)


def _team_of(length: int) -> int:
    """How many threads reduce a row."""
    return WARP if length <= _LONGEST_OF_WARP else THREADS


def _teams_of(rows: int, team: int) -> list[str]:
    """Which rows a block has, one for each of its teams."""
    per_block = THREADS // team
    return [
        f"const Index group = block_id() * {per_block};",
        f"const int teams = {rows} - group < {per_block} ? {rows} - group : {per_block};",
    ]


def _in_team(team: int, width: int, arguments: str) -> str:
    """The head of a loop over a row."""
    function = f"each_in_team<{team}, {width}, Index>"
    return f"{function}({arguments}, [&](int t, Index first, auto lanes) INLINE {{"


def _shared(part: Instruction, states: Sequence[State]) -> str:
    """The name of a result in shared memory."""
    parts = [p for state in states for p in state.parts]
    return f"total{parts.index(part)}"


#: Blocks that the first of two passes should have, and the fewest rows of a chunk.
_COLUMNS_BLOCKS, _COLUMNS_SHORTEST_CHUNK = 1024, 128
#: Shorter runs of columns are not worth a tile of their own.
_COLUMNS_SHORTEST_RUN = 32

#: Writes what a thread does with one element of every input, at a result and an element of it.
Accumulate = Callable[[Emitter, Expr, Expr], None]


@dataclass
class Columns:
    """One kernel, or two for tall columns.

    Attributes:
        shape: of all reductions in it.
        states: the reductions; none reads another's result.
        inputs: memory that it may read.
        outputs: what it writes, of one element for each result.
    """

    shape: Geometry
    states: Sequence[State]
    inputs: Sequence[Instruction]
    outputs: Sequence[Instruction]
    _emitters: list[Emitter] = field(default_factory=list)

    def kernels(self) -> list[Kernel]:
        """The kernels in the order of execution.

        Raises:
            NotGenerated: something cannot be written.
        """
        results, length = self.shape.results, self.shape.length
        run = self._run()
        width = vector_width(self.inputs, run, results * length)
        tiles = results // max(1, run) * -(-run // (WARP * width))
        chunk = max(_COLUMNS_SHORTEST_CHUNK, -(-length * tiles // _COLUMNS_BLOCKS))
        chunks = -(-length // chunk)
        if chunks <= THREADS // WARP:
            return [self._single(self.inputs, self.shape.length, run, width, self._first)]
        parts = [Part(kind, results * chunks) for s in self.states for kind in s.combine.held]
        first = self._kernel(self.inputs, parts, length, chunk, run, width, self._first, self._keep)
        names = [f"p{i}" for i in range(len(parts))]

        def again(emitter: Emitter, result: Expr, element: Expr) -> None:
            left = iter(names)
            for state in self.states:
                place = element * results + result
                loads = [emitter.load(next(left), place, kind) for kind in state.combine.held]
                emitter.add(state.joined(state.packed(loads)))

        return [first, self._single([*parts, *self.inputs], chunks, results, 1, again)]

    def _single(
        self, inputs: Sequence[Buffer], length: int, run: int, width: int, accumulate: Accumulate
    ) -> Kernel:
        return self._kernel(
            inputs, self.outputs, length, max(1, length), run, width, accumulate, self._finish
        )

    def _run(self) -> int:
        """How many results are neighbours in all arrays."""
        results = self.shape.results
        trial = Emitter(pointers_of(self.inputs))
        self._first(trial, variable("result", results), variable("element", self.shape.length))
        found = run_length(trial.positions, "result", results)
        return found if found >= _COLUMNS_SHORTEST_RUN else results

    def _first(self, emitter: Emitter, result: Expr, element: Expr) -> None:
        for state in self.states:
            state.accumulate(emitter, result, element, self.shape)

    def _keep(self, emitter: Emitter, result: Expr, chunk: Expr) -> None:
        """Totals of a chunk, for the second pass."""
        totals = [t for s in self.states for t in s.unpacked(f"{s.name}(t, lane)")]
        kinds = [kind for s in self.states for kind in s.combine.held]
        for number, (total, kind) in enumerate(zip(totals, kinds)):
            emitter.store(f"out{number}", chunk * self.shape.results + result, total, kind)

    def _finish(self, emitter: Emitter, result: Expr, chunk: Expr) -> None:
        """Results, and what is computed from them."""
        for state in self.states:
            state.finish(emitter, f"{state.name}(t, lane)", result)
        write_outputs(dict(enumerate(self.outputs)), emitter, result)

    def _kernel(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        length: int,
        chunk: int,
        run: int,
        width: int,
        accumulate: Accumulate,
        finish: Accumulate,
    ) -> Kernel:
        """A block for each chunk of rows and each tile of columns; tiles beside each other are neighbours."""
        tiles, chunks = -(-run // (WARP * width)), -(-length // chunk)
        outer = self.shape.results // max(1, run)
        emitters = [Emitter(pointers_of(inputs), run_along("column", run, width)) for _ in range(2)]
        result = variable("row", outer) * run + variable("column", run)
        accumulate(emitters[0], result, variable("element", length))
        finish(emitters[1], result, variable("chunk", chunks))
        starting = Emitter(pointers_of(inputs))
        body = [
            f"const Index tile = block_id() % {tiles}, other = block_id() / {tiles};",
            f"const Index chunk = other % {chunks}, row = other / {chunks};",
            f"const Index left = tile * {WARP * width}, begin = chunk * {chunk};",
            f"const Index end = {length} - begin < {chunk} ? {length} : begin + {chunk};",
        ]
        for state in self.states:
            body += state.declarations(starting, width)
        head = f"each_in_columns<{width}, Index>(begin, end, left, {run}, "
        body += [
            head + "[&](int t, Index element, Index first, auto lanes) INLINE {",
            *run_body(emitters[0]),
            "});",
        ]
        body += [f"rows_reduce({s.name}, combine{s.number});" for s in self.states]
        head = f"each_column<{width}, Index>(left, {run}, [&](int t, Index first, auto lanes) INLINE {{"
        body += [head, *run_body(emitters[1]), "});"]
        is_first = any(isinstance(output, Part) for output in outputs)
        schedule = "column reduction" + (", first pass" if is_first else "")
        size, grid = self.shape.results * self.shape.length, outer * tiles * chunks
        return assemble(inputs, outputs, body, grid, [*emitters, starting], size, schedule)
