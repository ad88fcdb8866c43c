"""The graph: names, order, roots, parameters, callers and callees, asynchronous pairs, channels.

XLA: hlo_verifier.cc (VerifyHloStructure, CheckFusionInstruction, VerifyAsynchronousInstructionPairs,
VerifyChannels, HandleCall).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.verification.findings import Findings
from hlotool.ir.walk import Users, call_order, call_sites, has_own_side_effect


def check_structure(findings: Findings) -> bool:
    """Check the whole graph.

    Returns:
        Whether it is sound enough for the other rules to look at it.
    """
    module, before = findings.module, len(findings.errors)
    findings.check(bool(module.name), "module-name", "a module must have a name")
    findings.check(module.entry in module.computations, "entry", "the entry must be one of the computations")
    _check_unique(findings, "computation-name", module.computations)
    for computation in module.computations:
        _check_unique(findings, "instruction-name", computation.instructions)
        _check_order(findings, computation)
        _check_root(findings, computation)
        _check_parameters(findings, computation)
    _check_calls(findings, module)
    return len(findings.errors) == before


def _check_unique(
    findings: Findings, rule: str, items: Iterable[Instruction] | Iterable[Computation]
) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            findings.add(rule, f"the name {item.name} is used twice", item)
        seen.add(item.name)


def _check_order(findings: Findings, computation: Computation) -> None:
    """Operands and control predecessors stand before in the same computation, so there are no cycles."""
    members, before = set(computation.instructions), set[Instruction]()
    for instruction in computation.instructions:
        for kind, what, needed in (
            ("operand", "operand", instruction.operands),
            ("control", "control predecessor", instruction.control_predecessors),
        ):
            for other in needed:
                if other not in members:
                    message = f"{what} {other.name} is in another computation than {computation.name}"
                    findings.add(f"{kind}-computation", message, instruction)
                elif other not in before:
                    message = f"{what} {other.name} must stand before its use"
                    findings.add(f"{kind}-order", message, instruction)
        before.add(instruction)


def _check_root(findings: Findings, computation: Computation) -> None:
    count = sum(1 for i in computation.instructions if i is computation.root)
    findings.check(
        count == 1,
        "root",
        f"the root must be one of the instructions, once; it is {count} times",
        computation,
    )


def _check_parameters(findings: Findings, computation: Computation) -> None:
    """Numbers 0 to n - 1, each once."""
    parameters = [i for i in computation.instructions if i.opcode == "parameter"]
    for parameter in parameters:
        number = parameter.parameter_number
        findings.check(
            number is not None and 0 <= number < len(parameters),
            "parameter-number",
            f"parameter numbers must be 0 to {len(parameters) - 1}, not {number}",
            parameter,
        )
    for number, times in Counter(p.parameter_number for p in parameters).items():
        if times > 1:
            repeated = [p for p in parameters if p.parameter_number == number][1]
            findings.add("parameter-number", f"parameter number {number} is used {times} times", repeated)


def _check_calls(findings: Findings, module: Module) -> None:
    """Callees belong to the module, no computation calls itself, and none calls the entry."""
    members = set(module.computations)
    sites = call_sites(module)
    for callee, calls in sites.items():
        for site in calls:
            findings.check(
                callee in members,
                "unknown-computation",
                f"the called computation {callee.name} is not part of the module",
                site.instruction,
            )
            findings.check(
                callee is not module.entry,
                "entry",
                f"the entry {callee.name} must not be called",
                site.instruction,
            )
    try:
        call_order(module)
    except ValueError as error:
        findings.add("recursion", str(error))


#: Opcodes whose callees run on the caller's own thread.
_SAME_THREAD = frozenset({"fusion", "while", "conditional"})

#: Who may read the result of a start, and whose result an end may read.
_NEXT: Mapping[str, tuple[str, ...]] = {
    "async-start": ("async-update", "async-done"),
    "async-update": ("async-update", "async-done"),
    "all-reduce-start": ("all-reduce-done",),
    "collective-permute-start": ("collective-permute-done",),
    "copy-start": ("copy-done",),
    "send": ("send-done", "tuple"),
    "recv": ("recv-done", "tuple"),
}
_PREVIOUS: Mapping[str, tuple[str, ...]] = {
    "async-update": ("async-start", "async-update"),
    "async-done": ("async-start", "async-update"),
    "all-reduce-done": ("all-reduce-start",),
    "collective-permute-done": ("collective-permute-start",),
    "copy-done": ("copy-start",),
    "send-done": ("send", "get-tuple-element"),
    "recv-done": ("recv", "get-tuple-element"),
}


def check_calls(findings: Findings, computation: Computation, users: Users) -> None:
    """All rules on callers of one computation."""
    for instruction in computation.instructions:
        opcode = instruction.opcode
        if opcode in _SAME_THREAD:
            _check_thread(findings, computation, instruction)
        if opcode == "fusion":
            _check_fused(findings, instruction)
        elif opcode == "call":
            _check_composite(findings, instruction)
        elif opcode in ("async-start", "async-update", "async-done"):
            _check_async(findings, instruction)
        elif opcode in ("while", "conditional"):
            _check_shardings(findings, instruction)
        if opcode in _NEXT or opcode in _PREVIOUS:
            _check_pair(findings, computation, instruction, users)


def _check_thread(findings: Findings, computation: Computation, instruction: Instruction) -> None:
    for callee in instruction.called:
        findings.check(
            callee.execution_thread == computation.execution_thread,
            "execution-thread",
            f"{callee.name} runs on thread {callee.execution_thread}, not on {computation.execution_thread}",
            instruction,
        )


def _check_async(findings: Findings, instruction: Instruction) -> None:
    """The wrapped computation is one instruction (or a group of transfers) on the thread that is named."""
    wrapped = instruction.attribute("calls", Computation, None)
    thread = instruction.attribute("async_execution_thread", str, None)
    if wrapped is None:
        return
    if thread is not None or instruction.opcode == "async-start":
        findings.check(
            wrapped.execution_thread == (thread or "main"),
            "execution-thread",
            f"{wrapped.name} runs on thread {wrapped.execution_thread}, not on {thread or 'main'}",
            instruction,
        )
    group = instruction.frontend_attribute("_collectives_group") is not None
    findings.check(
        instruction.opcode != "async-start" or group or _is_wrapper(wrapped),
        "async-computation",
        f"{wrapped.name} must hold only parameters and the root",
        instruction,
    )


def _is_wrapper(wrapped: Computation) -> bool:
    others = [i.opcode for i in wrapped.instructions if i.opcode != "parameter" and i is not wrapped.root]
    return not others or all(opcode in ("send", "recv", "tuple") for opcode in (*others, wrapped.root.opcode))


def _check_shardings(findings: Findings, instruction: Instruction) -> None:
    """A loop or conditional and what it calls are sharded alike. XLA: VerifyConsistentSharding."""
    parts = [instruction, *(callee.root for callee in instruction.called)]
    if instruction.opcode == "while":
        parts = [instruction]
        for name in ("body", "condition"):
            callee = instruction.attribute(name, Computation, None)
            if callee is not None:
                parts += callee.parameters if name == "condition" else [callee.root, *callee.parameters]
    shardings = {replace(p.sharding, metadata=()) for p in parts if p.sharding is not None}
    kinds = {sharding.kind for sharding in shardings}
    findings.check(
        len(shardings) < 2 or len(kinds) < 2 or "tuple" in kinds,
        "sharding",
        f"{instruction.opcode} and what it calls must be sharded alike",
        instruction,
    )


def _check_fused(findings: Findings, fusion: Instruction) -> None:
    """Everything in a fused computation is used, the root only as the result."""
    fused = fusion.attribute("calls", Computation, None)
    if fused is None:
        return
    used = {operand for i in fused.instructions for operand in i.operands}
    findings.check(fused.root not in used, "fusion", f"the root of {fused.name} must have no users", fusion)
    for instruction in fused.instructions:
        if instruction is not fused.root and instruction not in used and not has_own_side_effect(instruction):
            findings.add("fusion", f"{instruction.name} in {fused.name} must have users", fusion)


def _check_composite(findings: Findings, call: Instruction) -> None:
    """A composite says its name in the frontend attributes."""
    if not call.flag("is_composite"):
        return
    findings.check(
        bool(call.frontend_attribute("composite.name")),
        "composite",
        "a composite call needs the frontend attribute composite.name",
        call,
    )
    version = call.frontend_attribute("composite.version")
    findings.check(
        version is None or version.isdigit(),
        "composite",
        f"composite.version must be a number, not {version}",
        call,
    )


def _check_pair(findings: Findings, computation: Computation, instruction: Instruction, users: Users) -> None:
    """A start has one reader, its end; an end reads its start."""
    following, readers = _NEXT.get(instruction.opcode), users.get(instruction, [])
    wrapped = instruction is computation.root and instruction.opcode in ("send", "recv")
    if following is not None and not wrapped:
        opcodes = [reader.opcode for reader in readers]
        findings.check(
            len(opcodes) == 1 and opcodes[0] in following,
            "async-users",
            f"{instruction.opcode} must have one user, {' or '.join(following)}, not {opcodes}",
            instruction,
        )
    previous = _PREVIOUS.get(instruction.opcode)
    if previous is not None and instruction.operands:
        opcode = instruction.operands[0].opcode
        findings.check(
            opcode in previous,
            "async-pair",
            f"the operand of {instruction.opcode} must be {' or '.join(previous)}, not {opcode}",
            instruction,
        )
        _check_channel(findings, instruction)


def _check_channel(findings: Findings, done: Instruction) -> None:
    """send and send-done, recv and recv-done agree in channel and kind."""
    start = done.operands[0]
    if start.opcode not in ("send", "recv") or "channel_id" not in start.attributes:
        return
    for name, default in (("channel_id", None), ("is_host_transfer", False)):
        mine, its = done.attributes.get(name, default), start.attributes.get(name, default)
        findings.check(mine == its, "channel", f"{name} is {mine}, but {its} at {start.name}", done)
