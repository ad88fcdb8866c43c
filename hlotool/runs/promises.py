"""Promises that a compiled program makes to the code that is generated for it, and that are not so.

Some attributes change no value that an interpreter computes, and yet a backend relies on them: a trip count
that stands in a loop's `backend_config`, `unique_indices` and `indices_are_sorted` of scatters and gathers,
a sort that need not be stable, an operation in place. A pass may state what it has found out, and it must
be true.

What a program states about itself is checked without running it where that is possible, and on the values
that occur in a run otherwise. What the program as it was given promises itself is its author's affair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import ReadingProbe, ResultReader, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import rounding_epsilon
from hlotool.facts.schedules import missing_copies
from hlotool.facts.trip_counts import false_trip_counts, known_trip_count, static_trip_count
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.ir.walk import post_order

#: Rows of a sort, and index vectors, that are looked at: the first ones are as good as any.
_ROWS, _VECTORS = 64, 1 << 18


def is_unstable(instruction: Instruction) -> bool:
    """Whether it sorts several arrays and may leave equal keys in any order.

    Where positions are among what is compared, no keys are equal: so XLA makes stable sorts of others.
    XLA: stable_sort_expander.cc.
    """
    if instruction.opcode != "sort" or len(instruction.operands) < 2 or instruction.flag("is_stable"):
        return False
    dimension = instruction.integers("dimensions")[0]
    keys = (instruction.operands[number] for number in set(_compared(instruction)))
    return not any(k.opcode == "iota" and k.integer("iota_dimension") == dimension for k in keys)


class PromiseWatch(ReadingProbe):
    """The probe of one run.

    Args:
        module: that runs.
        is_stable: its sorts are expected to be stable, whatever they say.

    Attributes:
        broken: what was seen, a line for each instruction.
    """

    def __init__(self, module: Module, is_stable: bool) -> None:
        super().__init__()
        self.broken: list[str] = []
        self._counts: dict[Computation, int] = {}
        for one in module.instructions():
            if one.opcode in ("scatter", "gather") and _promises(one):
                self.readers[one] = self._indices(one)
            elif is_stable and is_unstable(one):
                self.readers[one] = self._ties(one)
            elif one.opcode == "while":
                self._watch_loop(one)

    def _say(self, instruction: Instruction, text: str) -> None:
        self.broken.append(f"{instruction.opcode} %{instruction.name} {text}")
        self.readers.pop(instruction, None)

    def _indices(self, one: Instruction) -> Any:
        def read(values: Sequence[Value]) -> ResultReader | None:
            vectors = _index_vectors(one, values)
            if one.flag("unique_indices") and (twice := _repeated(vectors)) is not None:
                self._say(one, f"promises unique_indices, and {twice} occurs twice: an update may be lost")
            elif one.flag("indices_are_sorted") and (falling := _falling(vectors)) is not None:
                self._say(one, f"promises indices_are_sorted, and {falling[1]} comes after {falling[0]}")
            return None

        return read

    def _ties(self, one: Instruction) -> Any:
        def read(values: Sequence[Value]) -> ResultReader | None:
            if ties := _open_ties(one, values):
                text = (
                    "was stable and is not, and {} of equal keys hold different values: their order is open"
                )
                self._say(one, text.format(f"{ties} neighbours" if ties > 1 else "two neighbours"))
            return None

        return read

    def _watch_loop(self, loop: Instruction) -> None:
        stated, body = known_trip_count(loop), loop.computation("body")
        is_counted = body.root.opcode not in ("parameter", "constant") and body.root not in self.readers
        if stated is None or static_trip_count(loop) is not None or not is_counted:
            return

        def beat(_: Sequence[Value]) -> None:
            self._counts[body] = self._counts.get(body, 0) + 1

        def begin(_: Sequence[Value]) -> ResultReader | None:
            self._counts[body] = 0

            def end(_: Value) -> None:
                if (true := self._counts[body]) != stated:
                    self._say(
                        loop, f"ran {true} times and states known_trip_count {stated}: code may stop there"
                    )

            return end

        self.readers[body.root] = beat
        self.readers[loop] = begin


def _promises(one: Instruction) -> bool:
    """Whether its indices are promised something, and no batching dimensions leave open of what."""
    batched = any(one.attributes.get(name) for name in ("input_batching_dims", "operand_batching_dims"))
    return not batched and (one.flag("unique_indices") or one.flag("indices_are_sorted"))


def _index_vectors(one: Instruction, values: Sequence[Value]) -> Array:
    """The index vectors in order, one a row, by dimensions of the operand; of a scatter those in bounds."""
    count = 1 if one.opcode == "gather" else (len(values) - 1) // 2
    indices = np.asarray(values[count])
    at = one.integer("index_vector_dim")
    if at == indices.ndim:
        indices = indices[..., None]
    rows = np.moveaxis(indices, at, -1).reshape(-1, indices.shape[at])[:_VECTORS].astype(np.int64)
    name = "start_index_map" if one.opcode == "gather" else "scatter_dims_to_operand_dims"
    dims = one.integers(name)
    rows = rows[:, np.argsort(dims)]
    shape = np.asarray(values[0]).shape
    most = np.array([shape[d] - _window(one, values, d, count) for d in sorted(dims)], np.int64)
    if one.opcode == "gather":
        return np.clip(rows, 0, most)
    kept: Array = rows[((rows >= 0) & (rows <= most)).all(axis=1)]
    return kept


def _window(one: Instruction, values: Sequence[Value], dim: int, count: int) -> int:
    """How many elements of a dimension one index vector reaches."""
    if one.opcode == "gather":
        return one.integers("slice_sizes")[dim]
    inserted = one.integers("inserted_window_dims")
    if dim in inserted:
        return 1
    window = [d for d in range(np.asarray(values[0]).ndim) if d not in inserted]
    return int(np.asarray(values[count + 1]).shape[one.integers("update_window_dims")[window.index(dim)]])


def _repeated(vectors: Array) -> list[int] | None:
    found, counts = np.unique(vectors, axis=0, return_counts=True)
    return found[counts.argmax()].tolist() if counts.size and counts.max() > 1 else None


def _falling(vectors: Array) -> tuple[list[int], list[int]] | None:
    """Two neighbours of which the second is the smaller one."""
    steps = np.sign(vectors[1:] - vectors[:-1])
    if not steps.size:
        return None
    first = np.argmax(steps != 0, axis=1)
    falls = np.flatnonzero(np.take_along_axis(steps, first[:, None], axis=1)[:, 0] < 0)
    return (vectors[falls[0]].tolist(), vectors[falls[0] + 1].tolist()) if len(falls) else None


def _open_ties(one: Instruction, values: Sequence[Value]) -> int:
    """How many neighbours have the same bits in all that is compared, and not in what goes along."""
    compared = set(_compared(one))
    if len(compared) == len(one.operands):
        return 0
    dimension = one.integers("dimensions")[0]
    bits = [_bits(np.moveaxis(np.asarray(value), dimension, -1)) for value in values]
    ties = 0
    for row in range(min(_ROWS, bits[0].shape[0])):
        keys = np.stack([bits[k][row] for k in sorted(compared)])
        others = np.stack([b[row] for k, b in enumerate(bits) if k not in compared])
        order = np.lexsort(np.concatenate([others, keys]))
        keys, others = keys[:, order], others[:, order]
        same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        ties += int((same & (others[:, 1:] != others[:, :-1]).any(axis=0)).sum())
    return ties


def _compared(one: Instruction) -> Iterator[int]:
    """Operands that the comparison looks at."""
    comparison = one.computation("to_apply")
    used = set(post_order([comparison.root]))
    for number, parameter in enumerate(comparison.parameters):
        if parameter in used:
            yield number // 2


def _bits(array: Array) -> Array:
    """Rows of what tells values apart: their bits as integers."""
    flat = np.ascontiguousarray(array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1))
    if flat.dtype.kind == "c":
        return flat.view(np.float32 if flat.dtype.itemsize == 8 else np.float64)[:, ::2].view(
            np.uint32 if flat.dtype.itemsize == 8 else np.uint64
        )
    return flat.view(f"u{flat.dtype.itemsize}")


#: Of each kind so many are named.
_NAMED = 3


def broken_promises(
    reference: Module, tested: Module, arguments: Sequence[Value] | None, unit: float = 0.0
) -> list[str]:
    """What `tested` promises and does not keep, a line each; nothing that `reference` breaks, too.

    Args:
        reference: the program as it was given.
        tested: the same after some passes.
        arguments: of a run; None: only what holds of all runs is looked at.
        unit: one ulp at 1 of what the target may round operands of products to (`Freedoms.algorithm_unit`).
    """
    found = [
        *_false_trip_counts(reference, tested),
        *_missing_copies(reference, tested),
        *_lowered_products(reference, tested, unit),
    ]
    if arguments is not None and not found:
        found = broken_on(reference, tested, arguments)
    return found[:_NAMED]


def depends_on_values(reference: Module, tested: Module) -> bool:
    """Whether `tested` promises what only values tell."""
    return bool(PromiseWatch(tested, _has_stable_sort(reference)).readers)


def weaker_promises(reference: Module, tested: Module) -> list[str]:
    """What `reference` asks for and `tested` no longer does, a line each: whether that shows is open."""
    if not _has_stable_sort(reference):
        return []
    return [
        f"sort %{one.name} need no longer be stable: a backend may leave equal keys in any order"
        for one in tested.instructions()
        if is_unstable(one)
    ][:_NAMED]


def _lowered_products(reference: Module, tested: Module, unit: float) -> Iterator[str]:
    """Products that are told to be less exact than the program as it was given wants them.

    A product that asks for its precision keeps it, unless it is taken apart, or its operands have another
    type. Of others the target decides: no `algorithm` may round more than it does.
    """
    before = [one for one in reference.instructions() if _is_product(one)]
    after = [one for one in tested.instructions() if _is_product(one)]
    coarsest = max([unit, *map(_rounds_operands_to, before)])
    asked = {_origin(one): one for one in before if _asks_for_precision(one)}
    parts = Counter(map(_origin, after))
    for one in after:
        wanted = asked.get(_origin(one)) if _origin(one)[0] and parts[_origin(one)] == 1 else None
        limit = coarsest if wanted is None else _rounds_operands_to(wanted)
        name = f"{one.opcode} %{one.name}"
        if _rounds_operands_to(one) > max(limit, *map(epsilon, _given(one))):
            yield f"{name} says algorithm={one.attributes['algorithm']}: it is to round more than it may"
        elif wanted is not None and not _asks_for_precision(one) and _given(one) == _given(wanted):
            yield f"{name} no longer asks for {_precision(wanted)}: a backend may compute it with less"


def _false_trip_counts(reference: Module, tested: Module) -> Iterator[str]:
    if any(True for _ in false_trip_counts(reference)):
        return
    for loop, stated, true in false_trip_counts(tested):
        yield f"while %{loop.name} runs {true} times and states known_trip_count {stated}, code may go by it"


def _missing_copies(reference: Module, tested: Module) -> Iterator[str]:
    if not any(True for _ in missing_copies(reference)):
        yield from map(str, missing_copies(tested))


def broken_on(reference: Module, tested: Module, arguments: Sequence[Value]) -> list[str]:
    """What `tested` promises and values of a run break, a line each; nothing that `reference` breaks, too."""
    stable = _has_stable_sort(reference)
    watch = PromiseWatch(tested, stable)
    if not watch.readers:
        return []
    try:
        NumpyBackend().compile(tested).run(arguments, watch)
        if not watch.broken:
            return []
        own = PromiseWatch(reference, False)
        if own.readers:
            NumpyBackend().compile(reference).run(arguments, own)
    except HlotoolError:
        # The verdict does not rest on it.
        return []
    return [] if own.broken else watch.broken


def _has_stable_sort(module: Module) -> bool:
    """Whether a program asks for stable sorts, and for no others, of several arrays."""
    sorts = [i for i in module.instructions() if i.opcode == "sort" and len(i.operands) > 1]
    return bool(sorts) and not any(map(is_unstable, sorts))


def _is_product(instruction: Instruction) -> bool:
    return (
        instruction.opcode in opcodes_with(Class.CONTRACTION) - {"scaled-dot"}
        and instruction.element_type.is_inexact
    )


def _given(product: Instruction) -> list[ElementType]:
    return [operand.element_type for operand in product.operands[:2]]


def _rounds_operands_to(product: Instruction) -> float:
    """One ulp at 1 of what its `algorithm` rounds operands to; 0 where it names none, or none that rounds."""
    if product.opcode == "convolution" or product.attributes.get("algorithm") is None:
        return 0.0
    return rounding_epsilon(product, product.element_type)


def _precision(instruction: Instruction) -> str:
    algorithm = instruction.attributes.get("algorithm")
    if algorithm is not None:
        return f"algorithm={algorithm}"
    asked = instruction.attributes.get("operand_precision", ())
    return f"operand_precision={{{','.join(map(str, asked))}}}" if isinstance(asked, tuple) else "more"


def _asks_for_precision(instruction: Instruction) -> bool:
    """Whether the operands' own types are to be multiplied; `default` leaves that to the target."""
    if instruction.attributes.get("algorithm") is not None:
        return True
    asked = instruction.attributes.get("operand_precision", ())
    return isinstance(asked, tuple) and any(str(one) in ("high", "highest") for one in asked)


def _origin(instruction: Instruction) -> tuple[str, str, int]:
    """What tells which operation of the frontend's an instruction comes from; empty names tell nothing."""
    metadata = instruction.metadata
    if metadata is None or not metadata.op_name:
        return "", "", 0
    return instruction.opcode, metadata.op_name, metadata.source_line or metadata.stack_frame_id or 0
