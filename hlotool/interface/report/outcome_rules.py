"""The kinds of outcomes as rules, and what is equal for the same finding in another run.

A rule says what a kind of outcome means and what to do about it. The identity of a finding is the same
wherever its dump is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotool.checks.catalogue import all_rules
from hlotool.checks.records import Finding, Severity
from hlotool.interface.report.records import CauseRecord, RuleRecord
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import AGREEING
from hlotool.runs.records import LeafRecord, ModuleRecord

#: Of an agreement that holds a NaN or an infinity, where the user does not want any.
NOT_FINITE = "not-finite"
#: Of a file that could not be checked, of programs that could not be read, of what has no partner.
UNCHECKED, UNREAD, ALONE = "unchecked", "unread", "only-one-side"
#: Of two programs that are not the same text.
PROGRAM_DIFFERS = "program-differs"
#: Of an opcode on an element type: the backend does not run it, or no document allows what it returns.
NOT_EXECUTED, UNDOCUMENTED = "not-executed", "undocumented"

_MORE_INPUTS = "give the whole dump directory, or --inputs and --outputs of an execution"
_BISECT = "hlotool bisect names the pass and the instruction"
_VERIFY = "hlotool repro verify shows it again"
_ALONE_AGAIN = "run it alone with --verbose, which shows the log of the process"

#: What each says, and what to do about it, by its id. Ids are verdicts, levels of culprits, and those above.
_ABOUT = {
    "differs": (
        "not mathematically equivalent, by less than rounding error",
        "hlotool bisect --exact names the instruction; with --exact it is a mismatch",
    ),
    "not compared": ("one side only", _MORE_INPUTS),
    "not comparable": (
        "compared by value it would mean nothing",
        "the reason says of what",
    ),
    "unstable": (
        "too sensitive to rounding to judge",
        "hlotool prove, or other --inputs",
    ),
    "range": ("a value on the way is too large for its type", "scale it, or use a wider type"),
    "semantics": ("XLA's own implementations disagree here", "the reason names the rule"),
    "unsupported": ("it cannot be replayed", "the message names what is missing from the dump"),
    "bad input": ("no HLO, broken HLO, or inputs that do not fit", "the message says where"),
    "crashed": ("the process that ran it died", _ALONE_AGAIN),
    "timeout": ("no answer within the time limit", "a larger --timeout, or fewer iterations"),
    "out of memory": ("more memory than the limit", "a larger --memory-limit, or --jobs 1"),
    "not compiled": (
        "the compiler that wrote the dump did not finish",
        "hlotool reduce FILE --backend xla makes the program small while XLA still crashes on it",
    ),
    "unequal": (
        "not mathematically equivalent",
        f"with --exact, {_BISECT}",
    ),
    "wrong": (
        "no rounding and no order of sums explains this",
        "hlotool bisect names the pass and the instruction",
    ),
    "structural": ("types, dimensions or tuple structure of the results differ", "hlotool diff shows where"),
    "pass": ("a pass of the compiler made the program wrong", _VERIFY),
    "codegen": (
        "the optimised program is right, the code made of it is not",
        "hlotool repro verify shows it again",
    ),
    "runtime-library": (
        "a library that runs a part of the program is wrong",
        "hlotool repro verify shows it again",
    ),
    "flaky": ("results differ from run to run", "hlotool bisect --repeats N"),
    "equal where": (
        "the same on all that was covered",
        "the report names cases that were not reached",
    ),
    "refused": ("not decided", "the message says what exact arithmetic cannot evaluate"),
    NOT_FINITE: (
        "a result holds NaN or an infinity",
        "the report names what makes the first one",
    ),
    UNCHECKED: ("the file could not be checked", "the message says why"),
    UNREAD: ("the programs could not be read", "the message says why"),
    ALONE: ("there is nothing on the other side to compare it with", "give dumps of the same program"),
    NOT_EXECUTED: ("the backend does not run it", "the message says why"),
    UNDOCUMENTED: (
        "no document, and no rounding, allows what the backend returns",
        "hlotool conformance --out DIR writes the smallest program that shows it",
    ),
    PROGRAM_DIFFERS: ("the two programs are not the same", "hlotool diff lists the instructions"),
}


def rules_for(ids: Iterable[str]) -> list[RuleRecord]:
    """The rules of these ids, in alphabetical order; those of `check` as `--list-rules` has them."""
    checks = all_rules()
    found = []
    for name in sorted(set(ids)):
        if name in checks:
            rule = checks[name]
            severity, title, remedy = rule.severity, rule.title, rule.remedy or rule.title
        else:
            severity, (title, remedy) = Severity.ERROR, _ABOUT[name]
        found.append(RuleRecord(id=name, severity=severity, title=title, remedy=remedy))
    return found


#: What another dump of the same program calls otherwise: the number that a dump gives to a module, and what
#: TensorFlow counts and hashes.
_PASSING = re.compile(r"\bmodule_\d+\.|(?<=\S)_\d+__\S*$")
#: The number that XLA gives to an instruction.
_SUFFIX = re.compile(r"[.\d]+$")


def program_name(name: str) -> str:
    """What a module is called in any dump: without its folder, and without numbers that it has only there."""
    return _PASSING.sub("", name.replace("\\", "/").rpartition("/")[2])


def row_identity(row: ModuleRecord, cause: CauseRecord | None) -> tuple[str, ...]:
    """Module, sides, verdict, cause, and each output that does not agree with what is wrong about it."""
    wrong = [leaf for leaf in row.leaves if leaf.verdict not in AGREEING]
    return (
        program_name(row.name),
        row.stage_reference or "",
        row.stage_tested or "",
        # Another version of a backend is the same backend.
        (row.tested or "").partition(" ")[0],
        row.verdict.value,
        cause.id if cause is not None else "",
        *(part for leaf in wrong for part in leaf_identity(leaf)),
    )


def leaf_identity(leaf: LeafRecord) -> tuple[str, ...]:
    """An output: its name and shape, its verdict, and what is wrong about it."""
    pattern = leaf.evidence.pattern if leaf.evidence is not None else ""
    return output_name(leaf.index), leaf.shape, leaf.verdict.value, leaf.fault, pattern


def finding_identity(finding: Finding, cause: CauseRecord | None) -> tuple[str, ...]:
    """A finding of `check`: module, rule, instruction without its number, cause."""
    instruction = _SUFFIX.sub("", finding.instruction)
    return program_name(finding.module), finding.rule, instruction, cause.id if cause else ""
