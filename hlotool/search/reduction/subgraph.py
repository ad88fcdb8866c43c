"""The instructions of the entry that the failure needs; the others become parameters with what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hlotool.backends.base import Value
from hlotool.ir.edit_extract import extract
from hlotool.ir.module import Instruction
from hlotool.search.ddmin import minimize
from hlotool.search.reduction.case import Case, observe
from hlotool.search.reduction.oracle import CaseOracle

#: Come along with whatever reads them.
_FREE = frozenset({"constant", "iota"})


def minimize_entry(case: Case, oracle: CaseOracle) -> Case:
    """Keep as few instructions of the entry as fail; values between them are those that occurred."""
    items = [i for i in case.module.entry.instructions if i.opcode != "parameter" and i.opcode not in _FREE]
    if not items:
        return case
    values = observe(case)
    best = case

    def first_failing(candidates: Sequence[tuple[Instruction, ...]]) -> int | None:
        nonlocal best
        found = oracle.first_failing(
            [partial(cut_out, case, kept, values) for kept in candidates], "instructions"
        )
        if found is None:
            return None
        best = found[1]
        return found[0]

    whole = cut_out(case, items, values)
    if whole is not None and oracle.fails(whole, "sinks"):
        best = whole
        minimize(items, first_failing)
    return best


def cut_out(
    case: Case, kept: Sequence[Instruction], devices: Sequence[dict[Instruction, Value]]
) -> Case | None:
    """The program of the instructions in `kept`, which returns what none of them reads.

    Args:
        case: the program.
        kept: some instructions of its entry, in order.
        devices: values of the instructions that are replaced by parameters, on each device.
    """
    inside = dict.fromkeys(kept)
    free = [o for i in kept for o in i.operands if o.opcode in _FREE and o not in inside]
    read = {o for i in kept for o in i.operands}
    results = [i for i in kept if i not in read]
    if not results:
        return None
    cut = extract(case.module, [*dict.fromkeys(free), *kept], results)
    if any(given not in values for values in devices for given in cut.inputs):
        return None
    return case.with_rows(cut.module, [[values[given] for given in cut.inputs] for values in devices])
