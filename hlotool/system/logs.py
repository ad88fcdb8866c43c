"""The log: what hlotool does, written where the user asks for it.

Every module logs below the logger `hlotool`, which a program that uses hlotool as a library configures as any
other. The command line writes it to stderr at the level of `--log` or `HLOTOOL_LOG`. Worker processes write
to the same place as the process that the user started, whose stderr they inherit as a descriptor of their
own: what they write to theirs is kept for reports of crashes.
"""

from __future__ import annotations

import logging
import os

import msgspec

#: What `HLOTOOL_LOG` may say.
LEVELS = ("debug", "info", "warning")

_FORMAT = "%(asctime)s.%(msecs)03d %(process)d %(levelname)-7s %(name)s: %(message)s"


class LogTarget(msgspec.Struct, frozen=True):
    """Where the log goes.

    Attributes:
        level: the least that is written.
        descriptor: of the user's stderr.
    """

    level: str
    descriptor: int


_target: LogTarget | None = None


def start_log(level: str) -> None:
    """Write the log to stderr, of this process and the workers that it starts; `level` is one of LEVELS."""
    follow_log(LogTarget(level, os.dup(2)))


def follow_log(target: LogTarget) -> None:
    """Write the log of this process to `target`."""
    global _target
    _target = target
    stream = os.fdopen(target.descriptor, "w", encoding="utf-8", errors="replace", closefd=False)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))
    logger = logging.getLogger("hlotool")
    logger.addHandler(handler)
    logger.setLevel(target.level.upper())


def log_target() -> LogTarget | None:
    """Where the log of this process goes; None when none was asked for, or no process can inherit it."""
    return _target if os.name == "posix" else None
