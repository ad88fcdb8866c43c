"""What values are in the memory of a program, and what can be done about them."""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """What a value is to the program."""

    ARGUMENT = "argument"
    RESULT = "result"
    CONSTANT = "constant"
    TEMPORARY = "temporary"


class Change(enum.Enum):
    """What a user can do about a value."""

    #: Give an argument to the program, which writes a result there.
    DONATE = "donate"
    #: Compute it again before its next use.
    REMATERIALIZE = "rematerialize"
    #: Keep it in the host's memory until its next use.
    OFFLOAD = "offload"
