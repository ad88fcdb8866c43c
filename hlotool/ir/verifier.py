"""Whether a module is HLO: the rules that XLA's own verifier enforces, all findings at once.

Layouts are judged only if VerifyOptions says so: before layout assignment there are none.
XLA: hlo_verifier.cc, shape_inference.cc.
"""

from __future__ import annotations

from hlotool.errors import VerificationError
from hlotool.ir.module import Module
from hlotool.ir.verification.collectives import check_collectives, check_host_channels
from hlotool.ir.verification.declarations import check_header, check_instruction
from hlotool.ir.verification.findings import FORMAL_RULES, Findings, VerifyOptions
from hlotool.ir.verification.memory import check_buffers, check_layouts
from hlotool.ir.verification.structure import check_calls, check_structure
from hlotool.ir.walk import call_sites, users

__all__ = ["VerifyOptions", "verify", "verify_or_raise", "verify_to_execute"]


def verify(module: Module, options: VerifyOptions | None = None) -> list[VerificationError]:
    """Everything that is wrong with `module`, in textual order within each group of rules; empty when valid.

    A broken graph (names, order, roots, parameters, calls) is reported alone: other rules would trip over it.
    """
    findings = Findings(module, options or VerifyOptions())
    if not check_structure(findings):
        return findings.errors
    sites = call_sites(module)
    for computation in module.computations:
        readers = users(computation)
        for instruction in computation.instructions:
            check_instruction(findings, instruction)
        check_calls(findings, computation, readers)
        check_buffers(findings, computation, readers, sites)
    check_collectives(findings)
    check_host_channels(findings)
    check_header(findings)
    if findings.options.layout_sensitive and not findings.errors:
        check_layouts(findings)
    return findings.errors


def verify_or_raise(module: Module, options: VerifyOptions | None = None) -> None:
    """Raise the first finding of `verify` as a VerificationError."""
    findings = verify(module, options)
    if findings:
        raise findings[0]


def verify_to_execute(module: Module) -> list[VerificationError]:
    """Raise the first finding that execution depends on as a VerificationError.

    Returns:
        The other findings: broken rules on the form of programs, which XLA breaks now and then itself.
    """
    findings = verify(module)
    for finding in findings:
        if finding.rule not in FORMAL_RULES:
            raise finding
    return findings
