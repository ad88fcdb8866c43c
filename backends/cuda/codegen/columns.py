"""Reductions whose results are neighbours in memory: blocks of 32 runs of columns, 8 rows at a time.

Tall columns are reduced in two passes: chunks of rows first, then the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hlotool.backends.cuda.codegen.emit import Emitter
from hlotool.backends.cuda.codegen.indices import Expr, variable
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
from hlotool.backends.cuda.codegen.trees import State
from hlotool.ir.module import Instruction
from hlotool.passes.fusion_facts import Geometry

#: Blocks that the first of two passes should have, and the fewest rows of a chunk.
_BLOCKS, _SHORTEST_CHUNK = 1024, 128
#: Shorter runs of columns are not worth a tile of their own.
_SHORTEST_RUN = 32

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
        chunk = max(_SHORTEST_CHUNK, -(-length * tiles // _BLOCKS))
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
        return found if found >= _SHORTEST_RUN else results

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
