"""Windows, indices and contractions: random attributes come from `windows`."""

from __future__ import annotations

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.lab.conformance.generators.cases import ALL, Draft, generates
from hlotool.lab.conformance.generators.windows import GENERATORS
from hlotool.parser.reader import parse_module

#: Element types of dynamic-slice indices.
INDEX_TYPES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


@generates(*GENERATORS)
def random_module(draft: Draft, opcode: str) -> None:
    """A module of `windows`, taken over as it is."""
    text, arguments, _ = GENERATORS[opcode](draft.rng)
    module = parse_module(text)
    draft.arguments = [np.asarray(a) for a in arguments]
    draft.builder.instructions = module.entry.instructions


def index_operands(draft: Draft, dims: tuple[int, ...]) -> list[Instruction]:
    """Scalars of one integer type: inside, beyond both ends, the limits of the type."""
    kind = draft.choice(INDEX_TYPES)
    operands = []
    for size in dims:
        far = draft.chance(0.3)
        operands.append(draft.operand(kind, (), corners=float(far), limit=0 if far else size + 3))
    return operands


@generates("dynamic-slice")
def dynamic_slice(draft: Draft, opcode: str) -> None:
    """A slice whose start may lie beyond either end."""
    dims = draft.dims(low_rank=1)
    sizes = tuple(draft.size(0, n) for n in dims)
    x = draft.operand(draft.choice(ALL), dims)
    draft.op(opcode, x, *index_operands(draft, dims), dynamic_slice_sizes=sizes)


@generates("dynamic-update-slice")
def dynamic_update_slice(draft: Draft, opcode: str) -> None:
    """An update whose start may lie beyond either end."""
    kind, dims = draft.choice(ALL), draft.dims()
    sizes = tuple(draft.size(0, n) for n in dims)
    x, update = draft.operand(kind, dims), draft.operand(kind, sizes)
    draft.op(opcode, x, update, *index_operands(draft, dims))
