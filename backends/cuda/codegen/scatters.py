"""Scatter, without atomics: updates are applied in row-major order of the indices.

Each element of the result belongs to one thread, which looks at all updates and applies those that hit it.
Where windows are single elements along the indexed dimensions, updates are sorted first, in chunks, by the
row that they change. A block has a range of rows for its own, finds their updates in every chunk, and applies
those of each row in their order.

XLA: operation_semantics.md#scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Expr, Index, constant, linear, split, variable
from hlotool.backends.cuda.codegen.movement import all_within, as_i64, index_component
from hlotool.backends.cuda.codegen.reductions import combiner
from hlotool.backends.cuda.codegen.schedules import Buffer, Kernel, Part, assemble, loop, pointers_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Fewer updates are looked at by every element of the result.
_FEW = 8
#: Looks of all elements at all updates together that are still done so.
_MOST_LOOKS = 1 << 34
#: Numbers of updates have 32 bits.
_MOST_UPDATES = 1 << 32
#: Elements that a block changes at least, and how many blocks there are at most: 8 for each multiprocessor.
_PER_BLOCK, _BLOCKS = 1 << 12, 1056
#: Updates of a chunk, of which the keys lie in shared memory; those that a block applies at a time, and those
#: that a thread loads before it applies the first.
_CHUNK, _LISTED, _BATCH = 1 << 12, 1 << 10, 8


@dataclass(frozen=True, slots=True)
class _Scatter:
    """A scatter with its dimensions told apart.

    Attributes:
        instruction: the scatter.
        operands: that are updated.
        indices: where windows start.
        updates: windows.
        batching: dimension of the indices whose position is the start, by dimension of the operands.
        component: number of the component of an index vector, by dimension of the operands.
        along: dimensions of the updates that run over windows.
        inside: dimension of the updates that runs inside of windows, by dimension of the operands.
    """

    instruction: Instruction
    operands: tuple[Instruction, ...]
    indices: Instruction
    updates: tuple[Instruction, ...]
    batching: dict[int, int]
    component: dict[int, int]
    along: tuple[int, ...]
    inside: dict[int, int]

    @classmethod
    def of(cls, instruction: Instruction) -> _Scatter:
        """Read off the attributes."""
        count = len(instruction.operands) // 2
        operands, indices, updates = (
            instruction.operands[:count],
            instruction.operands[count],
            instruction.operands[count + 1 :],
        )
        batching_dims = (f"{of}_batching_dims" for of in ("input", "scatter_indices"))
        batching = dict(zip(*(instruction.integers(name, ()) for name in batching_dims)))
        mapped = instruction.integers("scatter_dims_to_operand_dims", ())
        component = {d: n for n, d in enumerate(mapped)}
        window_dims = instruction.integers("update_window_dims", ())
        missing = {*instruction.integers("inserted_window_dims", ()), *batching}
        kept = [d for d in range(array_shape(operands[0]).rank) if d not in missing]
        along = tuple(d for d in range(array_shape(updates[0]).rank) if d not in window_dims)
        inside = dict(zip(kept, window_dims))
        return cls(instruction, operands, indices, updates, batching, component, along, inside)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of the operands."""
        return array_shape(self.operands[0]).dims

    @property
    def window(self) -> tuple[int, ...]:
        """Sizes of a window, by dimension of the operands."""
        sizes = array_shape(self.updates[0]).dims
        return tuple(sizes[self.inside[d]] if d in self.inside else 1 for d in range(len(self.dims)))

    @property
    def counts(self) -> list[int]:
        """Numbers of windows, by dimension in `along`."""
        return [array_shape(self.updates[0]).dims[d] for d in self.along]

    @property
    def started(self) -> list[int]:
        """Dimensions of the operands along which windows start elsewhere than at 0."""
        return sorted({*self.batching, *self.component})

    @property
    def kinds(self) -> list[ElementType]:
        """Element types of the results."""
        return [element_type(operand) for operand in self.operands]

    def starts(self, emitter: Emitter, place: Sequence[Expr]) -> dict[int, Expr]:
        """Where a window starts, by dimension of the operands; `place` is its index in `along`."""
        vector = self.instruction.integer("index_vector_dim")
        found = {d: place[n - (n > vector)] for d, n in self.batching.items()}
        for d, component in self.component.items():
            value = index_component(emitter, self.indices, place, vector, component)
            found[d] = emitter.computed_index(as_i64(value, element_type(self.indices)))
        return found

    def fits(self, emitter: Emitter, starts: dict[int, Expr]) -> list[str]:
        """Conditions under which a window lies in the operand; it is skipped otherwise."""
        return all_within(emitter, starts.values(), [self.dims[d] - self.window[d] + 1 for d in starts])

    def update_index(self, place: Sequence[Expr], inside: Sequence[Expr]) -> list[Expr]:
        """The index in the updates; `inside` is the one in the window, by dimension of the operands."""
        parts = dict(zip(self.along, place))
        parts |= {update_dim: inside[d] for d, update_dim in self.inside.items()}
        return [parts[d] for d in range(len(parts))]

    def combined(self, emitter: Emitter, current: Sequence[str], index: Sequence[Expr]) -> list[str]:
        """Names of the elements after an update."""
        values = [emitter.value(update, index) for update in self.updates]
        results = emitter.apply(combiner(self.instruction).form, [*current, *values])
        return [emitter.define(computed(kind), result) for kind, result in zip(self.kinds, results)]


@writes("scatter")
def scatter(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A loop over all updates."""
    plan = _Scatter.of(instruction)
    current = [emitter.variable(k, emitter.value(o, index)) for k, o in zip(plan.kinds, plan.operands)]
    with emitter.loops(plan.counts) as place:
        starts = plan.starts(emitter, place)
        inside = [part - starts[d] if d in starts else part for d, part in enumerate(index)]
        hits = all_within(emitter, inside, plan.window)
        with emitter.where([*plan.fits(emitter, starts), *hits]):
            results = plan.combined(emitter, current, plan.update_index(place, inside))
            for name, result in zip(current, results):
                emitter.add(f"{name} = {result};")
    return tuple(current)


def scattered(
    instruction: Instruction, parts: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    """The kernels of a scatter.

    Args:
        instruction: the scatter.
        parts: its results.
        inputs: memory that it may read.

    Raises:
        NotGenerated: its computation cannot be written, or it would take too long.
    """
    plan = _Scatter.of(instruction)
    updates = prod(plan.counts)
    if updates > _MOST_UPDATES:
        raise NotGenerated("their numbers do not fit into 32 bits", instruction)
    if updates > _FEW and all(plan.window[d] == 1 for d in plan.started) and plan.started:
        return _by_rows(plan, parts, inputs)
    if updates * prod(plan.dims) > _MOST_LOOKS:
        raise NotGenerated("many updates of large windows", instruction)
    return [loop(parts, inputs)]


def _by_rows(plan: _Scatter, parts: Sequence[Instruction], inputs: Sequence[Instruction]) -> list[Kernel]:
    """Rows are what lies at one index of the dimensions along which windows start; each has one owner."""
    in_place = _updated_in_place(plan, inputs)
    inputs = [i for i in inputs if i is not in_place]
    updates = prod(plan.counts)
    size = min(_CHUNK, max(2, 1 << (updates - 1).bit_length()))
    keys = Part(ElementType.U64, -(-updates // size) * size)
    return [_sorting(plan, keys, size, inputs), _applying(plan, keys, size, parts, inputs, in_place)]


def _sorting(plan: _Scatter, keys: Part, size: int, inputs: Sequence[Instruction]) -> Kernel:
    """The updates of each chunk, those of a row in their order; what changes nothing comes last."""
    updates = prod(plan.counts)
    emitter = Emitter(pointers_of(inputs))
    with emitter.block(f"if (update < {updates})"):
        place = split(variable("update", updates), plan.counts)
        starts = plan.starts(emitter, place)
        with emitter.where(plan.fits(emitter, starts)):
            row = linear([starts[d] for d in plan.started], [plan.dims[d] for d in plan.started])
            emitter.add(f"key = (u64){emitter.index(row)} * {size} + i;")
    each = f"[&](int t) INLINE {{ for (int i = t; i < {size}; i += NT) {{"
    body = [
        f"SHARED(u64, keys, {size});",
        f"const Index chunk = block_id() * {size};",
        f"phase({each}",
        "const Index update = chunk + i; u64 key = ~0ull;",
        *emitter.statements,
        "keys[i] = key; } });",
        f"sort_keys(keys, {size});",
        f"each_thread({each} out0[chunk + i] = keys[i]; }} }});",
    ]
    return assemble(inputs, [keys], body, keys.size // size, [emitter], keys.size, "order of updates")


def _applying(
    plan: _Scatter,
    keys: Part,
    size: int,
    parts: Sequence[Instruction],
    inputs: Sequence[Instruction],
    in_place: Instruction | None,
) -> Kernel:
    """The updates of each row, by the block that owns it; lanes are its columns."""
    rows = prod(plan.dims[d] for d in plan.started)
    others = [d for d in range(len(plan.dims)) if d not in plan.started]
    columns = prod(plan.dims[d] for d in others)
    buffers: list[Buffer] = [keys, *inputs]
    emitter = Emitter(pointers_of(buffers))
    row = split(variable("row", rows), [plan.dims[d] for d in plan.started])
    index = _index(plan, others, row)
    across = f"for (i64 column = lane; column < {columns}ll; column += lanes)"
    groups = f"each_group({columns}ll, [&](int group, int groups, i64 lane, i64 lanes) INLINE"
    grid = max(1, min(_BLOCKS, rows, -(-prod(array_shape(plan.updates[0]).dims) // _PER_BLOCK)))
    emitter.add(
        f"const i64 begin = {rows}ll * block_id() / {grid}, end = {rows}ll * (block_id() + 1) / {grid};"
    )
    if in_place is None:
        with (
            emitter.block(groups),
            emitter.block(f"for (i64 row = begin + group; row < end; row += groups) {across}"),
        ):
            _write(emitter, plan, index, [emitter.value(operand, index) for operand in plan.operands])
        emitter.add("); barrier();")
    held = " ".join(f"{computed(kind)} v{n};" for n, kind in enumerate(plan.kinds))
    emitter.add(f"struct Held {{ {held} }};")
    chunks = keys.size // size
    listed = "[&](const u64* list, int count) INLINE"
    with emitter.block(f"each_update<{size}, {_LISTED}, {chunks}>(p0, begin, end, {listed}"):
        with emitter.block(groups), emitter.block(across):
            inside = [constant(0) if d in plan.started else part for d, part in enumerate(index)]
            with emitter.where(all_within(emitter, inside, plan.window)):
                _apply(emitter, plan, index, inside)
        emitter.add(");")
    emitter.add(");")
    extent = max(prod(plan.dims), prod(plan.counts))
    return assemble(
        buffers, parts, emitter.statements, grid, [emitter], extent, "rows of a scatter", in_place
    )


def _apply(emitter: Emitter, plan: _Scatter, index: Sequence[Expr], inside: Sequence[Expr]) -> None:
    """The listed updates of one column, of this group's rows: several are loaded before any is applied.

    The list is sorted: a row is read for its first update there, and written behind its last one.
    """
    held = [f"held.v{n}" for n in range(len(plan.kinds))]
    emitter.add("i64 last = -1; Held held;")
    with emitter.block(f"for (int i = 0; i < count; i += {_BATCH})"):
        emitter.add(f"Held given[{_BATCH}], found[{_BATCH}];")
        mine = f"EACH_OF_BATCH({_BATCH}) if (i + k < count && (int)(list[i + k] >> 32) % groups == group)"
        row = "const i64 row = begin + (i64)(list[i + k] >> 32);"
        with emitter.block(mine):
            emitter.add("const i64 update = (u32)list[i + k];")
            place = split(variable("update", prod(plan.counts)), plan.counts)
            for n, update in enumerate(plan.updates):
                emitter.add(f"given[k].v{n} = {emitter.value(update, plan.update_index(place, inside))};")
            with emitter.block("if (i + k == 0 || list[i + k - 1] >> 32 != list[i + k] >> 32)"):
                emitter.add(row)
                position = emitter.index(linear(index, plan.dims))
                for n, kind in enumerate(plan.kinds):
                    emitter.add(f"found[k].v{n} = {load(f'out{n}', position, kind)};")
        with emitter.block(mine):
            emitter.add(row.replace("row", "next", 1))
            with emitter.block("if (next != last)"):
                with emitter.block("if (last >= 0)"):
                    emitter.add("const i64 row = last;")
                    _write(emitter, plan, index, held)
                emitter.add("last = next; held = found[k];")
            given = [f"given[k].v{n}" for n in range(len(plan.kinds))]
            results = emitter.apply(combiner(plan.instruction).form, [*held, *given])
            for name, result in zip(held, results):
                emitter.add(f"{name} = {result};")
    with emitter.block("if (last >= 0)"):
        emitter.add("const i64 row = last;")
        _write(emitter, plan, index, held)


def _updated_in_place(plan: _Scatter, inputs: Sequence[Instruction]) -> Instruction | None:
    """The operand, if it lies in memory and nothing else reads it."""
    operand = plan.operands[0]
    if len(plan.operands) > 1 or operand not in inputs or operand.opcode == "constant":
        return None
    pending, seen = [plan.indices, *plan.updates], {plan.indices, *plan.updates}
    while pending:
        instruction = pending.pop()
        if instruction is operand:
            return None
        needed = () if instruction in inputs else instruction.operands
        pending += [o for o in needed if o not in seen]
        seen.update(needed)
    return operand


def _index(plan: _Scatter, others: Sequence[int], started: Sequence[Expr]) -> list[Expr]:
    """The index of an element: its row, and its place in it."""
    parts = dict(zip(plan.started, started))
    sizes = [plan.dims[d] for d in others]
    parts |= dict(zip(others, split(variable("column", prod(sizes)), sizes)))
    return [parts[d] for d in range(len(parts))]


def _write(emitter: Emitter, plan: _Scatter, index: Sequence[Expr], values: Sequence[str]) -> None:
    position = emitter.index(linear(index, plan.dims))
    for n, (value, kind) in enumerate(zip(values, plan.kinds)):
        emitter.add(store(f"out{n}", position, value, kind))
