"""Kernels, the loops over the elements of their results, and what decides how they run over memory.

Grids, chunks and trees follow from shapes alone, and nothing is combined by atomic operations: results repeat
to the bit, from run to run and from machine to machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import gcd, prod
from typing import TypeAlias

from hlotool.backends.cuda.codegen.elements import array_shape, element_type, stored
from hlotool.backends.cuda.codegen.emit import Emitter, Run, without_comments
from hlotool.backends.cuda.codegen.indices import Expr, Variable, constant, linear, split, variable
from hlotool.backends.cuda.codegen.movement import starts
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Threads of a block, and those that go in step: as in `prelude/phases.h`.
THREADS, WARP = 256, 32
#: Blocks of a loop are at most so many; each thread then computes several elements.
MAX_GRID = 2112
#: Runs along an axis should be so long; neighbours farther apart are not looked for.
_SHORTEST = 16
#: Bytes that one instruction of a GPU loads, and the most elements that a thread takes at once.
_VECTOR, _WIDEST = 16, 8
#: Arrays with fewer elements keep more threads busy if each takes one.
_SMALL = 1 << 16
#: The largest position for which indices have 32 bits: a thread's next step beyond it does not overflow.
LARGEST_INT = (1 << 31) - (1 << 16)


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
        launcher: of a C function that runs blocks of the kernel on a CPU, given its pointers, the number of
            all blocks, and the first and the end of those to run.
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


def size_of(buffer: Buffer) -> int:
    """How many elements lie in a buffer."""
    return buffer.size if isinstance(buffer, Part) else array_shape(buffer).size


def assemble(
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    body: Iterable[str],
    grid: int,
    emitters: Iterable[Emitter],
    size: int,
    schedule: str,
    in_place: Instruction | None = None,
) -> Kernel:
    """A kernel of that body, in which the buffers are called p0, p1, … and out0, out1, …

    What the comments in it say is no part of the source and of the name that is made from it.

    Args:
        inputs: memory that it reads.
        outputs: memory that it writes.
        body: statements.
        grid: number of blocks.
        emitters: that wrote the body.
        size: number of elements that the threads share out.
        schedule: see `Kernel`.
        in_place: see `Kernel`.
    """
    types = [f"const {stored(kind_of(b))}*" for b in inputs] + [f"{stored(kind_of(b))}*" for b in outputs]
    names = [f"p{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
    parameters = ", ".join(f"{t} RESTRICT {n}" for t, n in zip(types, names))
    extents = [size, *map(size_of, (*inputs, *outputs))]
    extents += [p.extent for emitter in emitters for p in emitter.positions if p.is_known]
    is_wide = any(extent > LARGEST_INT for extent in extents)
    commented = "\n".join([f"typedef {'i64' if is_wide else 'int'} Index;", *body])
    text = without_comments(commented)
    name = "k" + hashlib.sha256(f"{parameters}\n{text}".encode()).hexdigest()[:20]
    source, listing = (f"KERNEL({name}, {parameters}) {{\n{t}\n}}\n" for t in (text, commented))
    arguments = ", ".join(f"({t})pointers[{i}]" for i, t in enumerate(types))
    launcher = (
        f'extern "C" void run_{name}(void** pointers, i64 grid, i64 begin, i64 end) {{\n'
        f"  current_grid = grid;\n"
        f"  EACH(i64, block, begin, end) {{ current_block = block; {name}({arguments}); }}\n}}\n"
    )
    return Kernel(
        name, source, listing, schedule, launcher, tuple(inputs), tuple(outputs), max(1, grid), in_place
    )


def pointers_of(inputs: Sequence[Buffer]) -> dict[Instruction, str]:
    """What those inputs of a kernel that are values of instructions are called in it."""
    return {buffer: f"p{i}" for i, buffer in enumerate(inputs) if isinstance(buffer, Instruction)}


def write_outputs(outputs: Mapping[int, Instruction], emitter: Emitter, place: Expr) -> None:
    """Compute the elements of outputs at a position, and store them.

    Args:
        outputs: by their number among those of the kernel.
        emitter: where to write.
        place: the position, the same in all of them.
    """
    for number, output in outputs.items():
        shape = array_shape(output)
        value = emitter.value(output, split(place, shape.dims))
        emitter.store(f"out{number}", place, value, shape.element_type)


def run_length(positions: Iterable[Expr], name: str, length: int) -> int:
    """How many neighbours along an axis are neighbours in all arrays that are read at these positions.

    Args:
        positions: as functions of the axis.
        name: of the variable that counts all elements of the axis.
        length: how many there are.
    """
    along = _axis(name, length)
    steps = {
        d.step * (d.size or 1) if d.step == 1 else d.step
        for p in positions
        for d in p.digits()
        if along in d.of.variables()
    }
    fitting = sorted(s for s in steps if s < length and length % s == 0 and s >= _SHORTEST)
    return fitting[0] if fitting else length


def vector_width(buffers: Iterable[Buffer], length: int, elements: int) -> int:
    """How many neighbours a thread of a GPU takes at once.

    Args:
        buffers: that it reads or writes there.
        length: of a run.
        elements: of all.
    """
    bits = [max(8, kind_of(b).bits) for b in buffers if isinstance(b, Part) or array_shape(b).rank]
    width = min(_WIDEST, max(1, _VECTOR * 8 // min(bits, default=128)))
    while width > 1 and (length % width or elements < _SMALL):
        width //= 2
    return width


def run_body(emitter: Emitter, names: str = "const Index column = first + lane;") -> list[str]:
    """What the emitter wrote, repeated for each lane of a run."""
    return [*emitter.head, "EACH_LANE {", names, *emitter.statements, "}"]


def run_along(column: str, length: int, width: int) -> Run:
    """The runs of a loop whose index is called `column`."""
    return Run(_axis(column, length), width)


def _axis(name: str, length: int) -> Variable:
    return Variable(name, 0, max(0, length - 1))


#: So many parts of a row may be computed each in its own way.
_MOST_PARTS = 6

#: Bytes that a thread of a simple loop has on their way from memory, in so many runs: 2048 threads with 16
#: bytes each are what one of 132 multiprocessors gets in a microsecond at 4.3 TB/s; 64 bytes fit into the 32
#: registers that so many threads have, and leave time to wait for indices. Other loops have enough to do.
_IN_FLIGHT, _MOST_AHEAD, _FEW_STATEMENTS = 64, 4, 16

#: Writes what is done for the element at a position.
_Write: TypeAlias = Callable[[Emitter, Expr], None]


def loop(outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> Kernel:
    """Every element of every output by itself; outputs of equal size share the loop."""
    groups: dict[int, dict[int, Instruction]] = {}
    for number, output in enumerate(outputs):
        groups.setdefault(array_shape(output).size, {})[number] = output
    body: list[str] = []
    emitters, blocks = [], 1
    for size, members in groups.items():
        for part in _loops_over(size, members, inputs):
            body += part.statements(size)
            emitters.append(part.emitter)
            blocks = max(blocks, -(-size // part.width // THREADS))
    return assemble(inputs, outputs, body, min(blocks, MAX_GRID), emitters, max(groups), "loop")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Some columns of all rows, computed alike.

    Attributes:
        begin: the first of them.
        end: the first that is none of them.
        of: number of columns of a row.
        width: see `Run`.
        emitter: statements for one of them.
    """

    begin: int
    end: int
    of: int
    width: int
    emitter: Emitter

    def statements(self, size: int) -> list[str]:
        """The loop over them in results of `size` elements."""
        rows, columns = size // max(1, self.of), self.end - self.begin
        start = f"start + {self.begin}" if self.begin else "start"
        ahead = self._ahead(rows * columns)
        function = f"each_run<Index, {rows}, {columns}, {self.width}, {ahead}>"
        head = f"{function}([&](Index row, Index start, auto lanes) INLINE {{"
        return [head, f"const Index first = {start};", *run_body(self.emitter), "});"]

    def _ahead(self, elements: int) -> int:
        """How many runs a thread takes at once, so that enough of what it loads is on its way.

        Args:
            elements: of all runs.
        """
        run, most = Run(Variable("column", self.begin, self.end - 1), self.width), 1
        loads = [(p, kind) for _, p, kind in dict.fromkeys(self.emitter.loads) if run.base(p) is not None]
        loaded = self.width * sum(max(8, kind.bits) // 8 for _, kind in loads)
        if loaded and len(self.emitter.statements) <= _FEW_STATEMENTS:
            most = max(1, min(_MOST_AHEAD, _IN_FLIGHT // loaded))
        while most > 1 and (most & (most - 1) or elements < most * self.width * MAX_GRID * THREADS):
            most -= 1
        return most


def _loops_over(
    size: int, outputs: Mapping[int, Instruction], inputs: Sequence[Instruction]
) -> list[_Columns]:
    """One loop, or one for each part of the rows in which other operands are read."""
    write, buffers = partial(write_outputs, outputs), [*inputs, *outputs.values()]
    columns = _run(size, inputs, write)
    whole = _columns(size, inputs, buffers, write, (0, max(1, columns), max(1, columns)))
    edges = {e for e in whole.emitter.edges if 0 < e < columns}
    # Parts begin at vectors: where an edge is inside of one, its elements are computed each in its own way.
    width = vector_width(buffers, columns, size)
    parts = sorted({0, columns, *(e - e % width for e in edges), *(e + -e % width for e in edges)})
    if not 2 < len(parts) <= _MOST_PARTS + 1:
        parts = sorted({0, columns, *edges})
    if not 2 < len(parts) <= _MOST_PARTS + 1:
        return [whole]
    return [_columns(size, inputs, buffers, write, (a, b, columns)) for a, b in pairwise(parts)]


def _run(size: int, inputs: Sequence[Instruction], write: _Write) -> int:
    """How many elements are neighbours in all arrays."""
    trial = Emitter(pointers_of(inputs))
    write(trial, variable("place", size))
    return run_length(trial.positions, "place", size)


def _columns(
    size: int,
    inputs: Sequence[Instruction],
    buffers: Sequence[Instruction],
    write: _Write,
    extent: tuple[int, int, int],
) -> _Columns:
    begin, end, columns = extent
    width = vector_width(buffers, gcd(begin, end, columns), size)
    column = Variable("column", begin, end - 1)
    emitter = Emitter(pointers_of(inputs), Run(column, width))
    index = Expr(((column, 1),)) if columns > 1 else constant(0)
    write(emitter, variable("row", size // columns) * columns + index)
    return _Columns(begin, end, columns, width, emitter)


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

    columns = max(1, _run(size, inputs, write))
    part = _columns(size, inputs, [*inputs, root], write, (0, columns, columns))
    grid = min(-(-size // part.width // THREADS), MAX_GRID)
    target_size = array_shape(root).size
    return assemble(
        inputs, (root,), part.statements(size), grid, [part.emitter], target_size, "update in place", operand
    )
