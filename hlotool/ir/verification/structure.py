"""The graph: names, order, roots, parameters, and who calls whom. XLA: hlo_verifier.cc VerifyHloStructure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.verification.findings import Findings
from hlotool.ir.walk import call_order, call_sites


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
    """Callees belong to the module, nobody calls itself, nobody calls the entry."""
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
