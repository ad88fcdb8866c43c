"""The whole exception tree, and the exit codes it maps to.

HlotoolError
├── Miscompiled             a function that is checked whenever it is called is wrong
├── UsageError              the command line asks for something impossible
├── InputError              what was given cannot be used
│   ├── HloSyntaxError      not HLO text (line, column, caret)
│   ├── VerificationError   HLO that breaks a rule of the language (instruction, rule)
│   ├── DumpError           a path, archive or dump directory that cannot be read
│   │   └── StoreError      a server that failed to answer: another time it may
│   ├── ProtoError          a binary HLO file that cannot be decoded
│   └── InputDataError      captured or scripted inputs that do not fit the program
├── Unsupported             correct HLO that this backend cannot execute (instruction, reason)
│   ├── ElidedConstant      `constant({...})` whose value is nowhere in the dump
│   └── BackendUnavailable  a package or a device that the backend needs is missing
└── BackendFailed           a backend died while it worked
    ├── BackendCrashed      signal, abort, unexpected exception
    ├── BackendTimeout      time limit
    │   └── EndlessLoop     a loop whose state no longer changes: no limit would be enough
    ├── BackendOutOfMemory  memory limit
    ├── NotCompiled         the compiler that wrote a dump did not come to its end (in which pass)
    ├── BackendDeadlock     devices that wait for each other for ever (where each waits)
    └── KernelFault         a kernel that does what no GPU defines (what, in which line)

Errors carry data; `str()` renders one line that says what is wrong, where, and what to do.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ExitCode(enum.IntEnum):
    """What the exit status of every command means."""

    #: Everything that was compared agrees.
    AGREE = 0
    #: A mismatch, or a finding of `check`.
    MISMATCH = 1
    #: Wrong usage or unusable input.
    USAGE = 2
    #: Nothing was compared: unsupported, or nothing to compare with.
    NOTHING_COMPARED = 3
    #: A backend crashed, timed out or ran out of memory; or the compiler that wrote a dump did not finish.
    BACKEND_FAILED = 4
    #: Flaky or inconclusive.
    INCONCLUSIVE = 5
    #: Interrupted by the user.
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Location:
    """Where in which file something stands; line and column count from 1, 0 means unknown."""

    path: str | None = None
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.path or "<text>"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


def _placed(location: Location, said: str) -> str:
    """What is said, behind the place where that is known."""
    return f"{location}: {said}" if location.path or location.line else said


class HlotoolError(Exception):
    """Base of all errors that hlotool raises on purpose."""

    exit_code = ExitCode.USAGE


class Miscompiled(HlotoolError):
    """A function that is checked whenever it is called is wrong; the message is the report."""

    exit_code = ExitCode.MISMATCH


class UsageError(HlotoolError):
    """The command line or API call asks for something impossible."""


class InputError(HlotoolError):
    """What was given cannot be used."""


class HloSyntaxError(InputError):
    """Text that is not HLO.

    Args:
        message: what was expected and what was found, in readable names.
        location: file, line and column of the offending character.
        source_line: the text of that line, for the caret display.
    """

    def __init__(self, message: str, location: Location, source_line: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.source_line = source_line

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"

    def caret(self, width: int = 100) -> str:
        """The offending line, cut to `width` characters around the column, and a caret below it."""
        if self.source_line is None or not self.location.column:
            return ""
        text = self.source_line.expandtabs(1)
        at = self.location.column - 1
        start = max(0, min(at - width // 2, len(text) - width))
        shown = text[start : start + width]
        return f"{shown}\n{' ' * (at - start)}^"


class VerificationError(InputError):
    """HLO that breaks a rule of the language.

    Args:
        rule: short stable id of the rule, such as `operand-count`.
        message: what is wrong and what is allowed.
        instruction: name of the instruction, or None for a module-level rule.
        location: where the instruction stands.
    """

    def __init__(
        self, rule: str, message: str, instruction: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.instruction = instruction
        self.location = location or Location()

    def __str__(self) -> str:
        subject = f"{self.instruction}: " if self.instruction else ""
        return _placed(self.location, f"{subject}{self.message} [{self.rule}]")


class DumpError(InputError):
    """A path, archive or dump directory that cannot be read; the message names the path and the remedy."""


class StoreError(DumpError):
    """An object store or web server that failed to answer, also when it was asked again."""


class ProtoError(InputError):
    """A binary HLO file that cannot be decoded."""


class InputDataError(InputError):
    """Captured or scripted inputs that do not fit the program's parameters."""


class Unsupported(HlotoolError):
    """Correct HLO that this backend cannot execute.

    Args:
        reason: why, in one clause; for custom calls it names the target.
        instruction: the instruction's name.
        opcode: its opcode.
        location: where it stands.
    """

    exit_code = ExitCode.NOTHING_COMPARED

    def __init__(
        self,
        reason: str,
        instruction: str | None = None,
        opcode: str | None = None,
        location: Location | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instruction = instruction
        self.opcode = opcode
        self.location = location or Location()

    def __str__(self) -> str:
        subject = f"{self.opcode} {self.instruction}: " if self.instruction else ""
        return _placed(self.location, f"{subject}{self.reason}")


class ElidedConstant(Unsupported):
    """A constant printed as `{...}` whose value is nowhere in the dump.

    Running with made-up values would accuse a healthy program, so this is an error with a remedy.
    """

    REMEDY = "dump again with --xla_dump_large_constants (or add --xla_dump_hlo_as_proto)"

    def __init__(self, instruction: str | None = None, location: Location | None = None) -> None:
        super().__init__(
            f"the value of this constant is elided in the dump ({{...}}); {self.REMEDY}",
            instruction,
            "constant",
            location,
        )


class BackendUnavailable(Unsupported):
    """A backend that cannot be used here: a package or a device is missing; the reason names the remedy."""

    def __str__(self) -> str:
        return self.reason


class BackendFailed(HlotoolError):
    """A backend died while it compiled or ran a module.

    Args:
        backend: name of the backend.
        message: what happened.
        log: last lines of what the process wrote.
        here: it happened in this very process, which had better not be used again.
    """

    exit_code = ExitCode.BACKEND_FAILED

    def __init__(self, backend: str, message: str, log: str = "", here: bool = False) -> None:
        super().__init__(message)
        self.backend = backend
        self.message = message
        self.log = log
        self.here = here

    def __str__(self) -> str:
        return f"{self.backend}: {self.message}"


class BackendCrashed(BackendFailed):
    """The backend's process died by a signal, an abort or an unexpected exception."""


class BackendTimeout(BackendFailed):
    """The backend did not answer within the time limit."""


class EndlessLoop(BackendTimeout):
    """A loop goes on for ever: its state no longer changes, and no time limit would be enough."""


class BackendOutOfMemory(BackendFailed):
    """The backend needed more memory than its limit."""


class NotCompiled(BackendFailed):
    """The compiler that wrote a dump died, or was killed, amid a program; the message says where."""

    def __init__(self, message: str) -> None:
        super().__init__("XLA", message)

    def __str__(self) -> str:
        return self.message


class BackendDeadlock(BackendFailed):
    """The program's devices wait for each other for ever; the message says where each of them waits."""


class KernelFault(BackendFailed):
    """A kernel does what is forbidden, or has no defined result, on any GPU.

    Args:
        kind: `bounds`, `alignment`, `uninitialised`, `race`, `in flight`, `barrier`, `lanes`, `launch`,
            `assert`
            or `trap`.
        message: what happens there, to which thread.
        kernel: name of the kernel.
        location: line of the instruction in its text.
        instruction: the instruction as written.
    """

    def __init__(
        self, kind: str, message: str, kernel: str, location: Location | None = None, instruction: str = ""
    ) -> None:
        super().__init__(kernel, message)
        self.kind = kind
        self.kernel = kernel
        self.location = location or Location()
        self.instruction = instruction

    def __str__(self) -> str:
        quoted = f" ({self.instruction})" if self.instruction else ""
        return _placed(self.location, f"kernel {self.kernel}: {self.message}{quoted}")
