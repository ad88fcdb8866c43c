"""What the compiler for a TPU or GPU says of a program, beside the rules that foresee it.

Where they differ the compiler is right: what it takes is no error, whatever a rule expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hlotool.backends.base import CompilingBackend
from hlotool.backends.registry import brief, get_backend
from hlotool.checks.explain.recognition import recognize
from hlotool.checks.records import Finding, Severity
from hlotool.checks.rules import Applies, CompilerAnswer, Problem, Subject, module_rule
from hlotool.errors import (
    BackendCrashed,
    BackendOutOfMemory,
    BackendUnavailable,
    InputError,
    Unsupported,
)
from hlotool.ir.module import Module

#: The rule that finds what a compiler says.
COMPILER = "compiler"

#: Rules whose errors say that the compiler refuses a program, or dies of it, by the message of the catalogue
#: that it then gives. The compiler's names are not ours: the program goes to it by way of StableHLO.
_REFUSALS = {
    "E1200": "offload-output",
    "tpu-host-memory-fatal": "offload-condition",
    "offload-used-in-condition": "offload-condition",
    "tpu-parameter-on-device": "offload-update",
    "offload-update-needs-broadcast": "offload-update",
    "offload-allocate-buffer-operands": "offload-update",
    "offload-annotation-operands": "offload-annotation",
    "offload-annotation-unknown": "offload-annotation",
    "offload-branches-fatal": "offload-branches",
    "offload-branches-legalize": "offload-branches",
    "tpu-transpose-on-host": "offload-transpose",
}

#: Characters of a message that are shown: some compilers add their whole stack.
_SHOWN = 600


def ask_compiler(module: Module, target: str) -> CompilerAnswer:
    """Compile `module` for `target`, a spec of the backend `aot` without its name.

    Raises:
        BackendUnavailable: there is no such compiler here.
        Unsupported: it is not asked such programs.
        BackendTimeout: it does not come to an end.
        UsageError: it takes no such options.
    """
    name = f"aot:{target}"
    backend = get_backend(name)
    assert isinstance(backend, CompilingBackend)
    version = backend.version
    try:
        if backend.made_of(module) is None:
            backend.compile(module)
    except BackendUnavailable:
        raise
    except InputError:
        return CompilerAnswer(version)  # what it ends with is a text that is not read here
    except Unsupported as error:
        by_whom, _, refusal = error.reason.partition(": ")
        if by_whom != brief(name):
            raise  # it was not asked
        return CompilerAnswer(version, _shown(refusal))
    except (BackendCrashed, BackendOutOfMemory) as error:
        return CompilerAnswer(version, _shown(error.message))
    return CompilerAnswer(version)


def _shown(message: str) -> str:
    return " ".join(message.split())[:_SHOWN]


@module_rule(COMPILER, Severity.ERROR, "what the compiler says that --compile names", applies=Applies.PROGRAM)
def compiler_answer(subject: Subject) -> Iterator[Problem]:
    """A note where it compiles; else its message, the instruction that it names, and what to do."""
    answer = subject.answer
    if answer is None:
        return
    if not answer.refusal:
        yield Problem(f"{answer.compiler} compiles it", severity=Severity.NOTE, remedy="")
        return
    found = recognize(answer.refusal)
    names = {i.name: i for i in subject.instructions}
    named = [names[n] for each in found for n in each.instructions if n in names]
    yield Problem(
        f"{answer.compiler}: {answer.refusal}",
        named[0] if named else None,
        details=[each.entry.cause for each in found if not each.entry.generic],
        remedy="; ".join(found[0].entry.remedy) if found else "",
    )


def beside_the_compiler(findings: Sequence[Finding], answer: CompilerAnswer) -> list[Finding]:
    """What rules and compiler say of one program, with the compiler's word where they differ.

    Args:
        findings: of all rules, that of the compiler among them.
        answer: of the compiler.
    """
    rules = set(_REFUSALS.values())
    expected = [f for f in findings if f.rule in rules and f.severity is Severity.ERROR]
    if not answer.refusal:
        word = f"{answer.compiler} takes it: the compiler is right"
        return [_weaker(f, Severity.NOTE, word) if f in expected else f for f in findings]
    said = {_REFUSALS.get(each.entry.id) for each in recognize(answer.refusal)}
    foreseen = [f for f in expected if f.rule in said]
    word = f"{answer.compiler} refuses the program for another reason, and may not have come as far as this"
    kept: list[Finding] = []
    for finding in findings:
        if finding.rule == COMPILER:
            kept.append(_with_path(finding, foreseen[0]) if foreseen else _unforeseen(finding, expected))
        elif finding not in foreseen:
            kept.append(_weaker(finding, Severity.WARNING, word) if finding in expected else finding)
    return kept


def _weaker(finding: Finding, severity: Severity, word: str) -> Finding:
    return msgspec.structs.replace(finding, severity=severity, details=[*finding.details, word])


def _with_path(finding: Finding, foreseen: Finding) -> Finding:
    """The compiler's message with the tensor's path and the ways out that a rule knows."""
    return msgspec.structs.replace(
        finding,
        line=foreseen.line,
        instruction=foreseen.instruction,
        source=foreseen.source,
        path=foreseen.path,
        details=[*foreseen.details, f"foreseen by the rule {foreseen.rule}"],
        remedy=foreseen.remedy,
    )


def _unforeseen(finding: Finding, expected: Sequence[Finding]) -> Finding:
    said = f"; they expect: {expected[0].message}" if expected else ""
    return msgspec.structs.replace(
        finding, details=[*finding.details, f"no rule of check foresees this{said}: the compiler is right"]
    )
