"""Errors for people: one clear line, the offending text with a caret where there is a position."""

from __future__ import annotations

from hlotool.findings.records import ErrorRecord


def error_text(error: ErrorRecord) -> str:
    """What stderr shows of an error that ends a command."""
    return "\n".join([f"hlotool: error: {error.message}", *error.log.splitlines()])
