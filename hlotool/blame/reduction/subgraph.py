"""Instructions cut out of a program: those that the user names, or those that the failure needs.

What is cut off becomes parameters, with the values that occurred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hlotool.backends.base import Value
from hlotool.blame.reduction.case import Case, observe, traces
from hlotool.blame.reduction.oracle import CaseOracle
from hlotool.blame.searches import minimize
from hlotool.errors import Unsupported, UsageError
from hlotool.inputs.frames import frames_of, value_in
from hlotool.ir.edit_calls import cone, extract
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.system.user_input import did_you_mean


@dataclass(frozen=True, slots=True)
class Cut:
    """What was cut out.

    Attributes:
        case: the new program and its arguments.
        inputs: the instructions of the original that its parameters stand for.
        results: those whose values it returns.
        calls: how often the computation that they are part of was executed.
    """

    case: Case
    inputs: tuple[Instruction, ...]
    results: tuple[Instruction, ...]
    calls: int


def cut_named(case: Case, names: Sequence[str], height: int = 0, call: int = 0) -> Cut:
    """Cut out instructions, or a whole computation.

    Of a program for each of several devices, what exchanges values gets those of each device; other parts get
    those of the first one.

    Args:
        case: the program of which a part is wanted, and its arguments.
        names: of instructions of one computation, with or without `%`; or of one computation.
        height: so many steps back along operands come along.
        call: number of the execution whose values are taken, where there are several: iterations of a loop.

    Raises:
        UsageError: there is nothing of that name, or several; or not so many executions.
        Unsupported: the reference cannot run the module, or does not execute this part on its own.
    """
    module = case.module
    home, members = _members(module, [name.removeprefix("%") for name in names], height)
    devices = [list(frames_of(entry, home)) for entry in traces(case)]
    calls = min(map(len, devices))
    if not calls:
        raise Unsupported(f"{home.name} is applied to scalars, or is never executed: it has no values")
    if not 0 <= call < calls:
        raise UsageError(f"{home.name} was executed {calls} times, there is no number {call}")
    read = {o for member in members for o in member.operands}
    results = [member for member in members if member not in read or member is home.root]
    cut = extract(module, members, results)
    rows = [[value_in(frames[call], given) for given in cut.inputs] for frames in devices]
    return Cut(case.with_rows(cut.module, rows), cut.inputs, cut.results, calls)


def _members(module: Module, names: Sequence[str], height: int) -> tuple[Computation, list[Instruction]]:
    """The computation that is meant, and its instructions that are wanted, operands first."""
    whole = [c for c in module.computations if [c.name] == list(names)]
    if whole and not _holders(module, names[0]):
        inside = [i for i in whole[0].instructions if i.opcode != "parameter"]
        if not inside:
            raise UsageError(f"{names[0]} holds nothing but parameters")
        return whole[0], inside
    homes = [c for c in module.computations if set(names) <= {i.name for i in c.instructions}]
    if not homes:
        missing = next((n for n in names if not _holders(module, n)), "")
        what = "not of one computation"
        if missing:
            known = [*(i.name for i in module.instructions()), *(c.name for c in module.computations)]
            what = f"no instruction or computation %{missing}{did_you_mean(missing, known)}"
        raise UsageError(f"{module.name}: {', '.join(names)}: {what}")
    if len(homes) > 1:
        raise UsageError(
            f"{names[0]} is in {len(homes)} computations: {', '.join(c.name for c in homes[:6])}"
        )
    wanted = [i for i in homes[0].instructions if i.name in set(names) and i.opcode != "parameter"]
    if not wanted:
        raise UsageError(f"{', '.join(names)}: a parameter alone is no program")
    boundary = [] if height else [o for i in wanted for o in i.operands if o not in wanted]
    boundary = [o for o in boundary if o.opcode not in ("constant", "iota")]
    return homes[0], cone(wanted, boundary, height)


def _holders(module: Module, name: str) -> list[Computation]:
    return [c for c in module.computations if any(i.name == name for i in c.instructions)]


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
