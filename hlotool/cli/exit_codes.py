"""What the exit status of a command means."""

from __future__ import annotations

from hlotool.errors import ExitCode

#: What `--help` says about the exit status.
EXIT_CODES = {
    ExitCode.AGREE: "everything that was compared agrees",
    ExitCode.MISMATCH: "a mismatch, or a finding",
    ExitCode.USAGE: "wrong usage, or input that cannot be used",
    ExitCode.NOTHING_COMPARED: "nothing was compared: unsupported, or nothing to compare with",
    ExitCode.BACKEND_FAILED: "a backend crashed, timed out or ran out of memory; a compilation did not end",
    ExitCode.INCONCLUSIVE: "flaky or inconclusive",
    ExitCode.INTERRUPTED: "interrupted",
}


def exit_code_text() -> str:
    """The exit codes as a block for `--help`."""
    rows = [f"  {code.value:<4} {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["exit codes:", *rows])
