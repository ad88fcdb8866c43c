"""Numbers on the command line: each option says which ones it takes, and others are refused at once.

A number that is merely absurd is refused, too: what it would come to is a traceback of the system's (a time
that no clock can hold, a limit that is no C long) or a command that never ends.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from math import inf

from hlotool.amounts import size_of
from hlotool.options.declared import as_text, parser

#: Python takes `1_0`, `٣`, `nan` and blanks around for numbers, too.
_NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")
#: The system's limits are C longs, and no process does anything with less than a megabyte.
_LEAST_SIZE, _GREATEST_SIZE = 1 << 20, 1 << 60
#: What `--memory-limit` takes for "no limit".
NO_LIMIT = "none"

#: The longest wait that every platform's clocks can hold is 49 days.
_LONGEST = 4e6
#: A command line may have megabytes; a message quotes no more than this.
_QUOTED = 40


def whole_number(least: int, most: int, metavar: str = "N") -> Callable[[str], int]:
    """A parser of whole numbers in decimal, from `least` to `most`, which `--help` calls `metavar`."""

    @parser(metavar)
    def parse(text: str) -> int:
        # Longer ones are out of range whatever they are, and Python takes long over thousands of digits.
        is_decimal = re.fullmatch(r"[0-9]{1,30}", text) is not None
        value = int(text) if is_decimal else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{quoted(text)} is no whole number from {least} to {most}")
        return value

    return parse


#: Of random numbers. Records hold it as 64 bits with a sign.
seed = whole_number(0, (1 << 63) - 1, "SEED")
#: Of worker processes.
processes = whole_number(1, 1024)
#: Replicas or partitions, each of which is run.
devices = whole_number(1, 1024)
#: How often something is done again.
repetitions = whole_number(1, 10_000)
#: Modules.
modules = whole_number(1, 1_000_000_000)
#: Captured executions, or none.
executions = whole_number(0, 10_000)
#: Steps, lines, iterations: as many as there are.
distance = whole_number(0, (1 << 63) - 1)


@parser("I/N")
def shard(text: str) -> str:
    """`I/N` with 1 <= I <= N."""
    number, slash, count = text.partition("/")
    try:
        parts = (modules(number), modules(count)) if slash else (1, 0)
    except argparse.ArgumentTypeError:
        parts = (1, 0)
    if parts[0] > parts[1]:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no shard; write it like 2/8, from 1/8 to 8/8")
    return f"{parts[0]}/{parts[1]}"


def memory(size: int | str) -> int:
    """Bytes; 0 for no limit."""
    return byte_size(as_text(size)) if size else 0


@parser("SIZE", convert=memory, grave=True)
def byte_size(text: str) -> int:
    """`8G`, `512M`, `1.5GiB` or plain bytes; `none`, which is 0."""
    if text.strip().lower() == NO_LIMIT:
        return 0
    size = size_of(text)
    if size is None or not _LEAST_SIZE <= size <= _GREATEST_SIZE:
        wanted = f"write it like 8G or 512M, at least 1M; or {NO_LIMIT}"
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no size of a memory: {wanted}")
    return size


@parser("SECONDS")
def seconds(text: str) -> float:
    """A positive number of seconds, at most 46 days."""
    complaint = f"is no positive number of seconds, at most {_LONGEST:,.0f}"
    return number(text, lambda value: 0 < value <= _LONGEST, complaint)


@parser("N")
def minutes(text: str) -> float:
    """A positive number of minutes, at most 46 days."""
    most = _LONGEST / 60
    return number(
        text, lambda value: 0 < value <= most, f"is no positive number of minutes, at most {most:,.0f}"
    )


def tolerance(text: str) -> float:
    """A tolerance: a number, not negative."""
    return number(text, lambda value: 0 <= value < inf, "is no tolerance; write it like 1e-3")


@parser("P")
def confidence(text: str) -> float:
    """A probability from 0.5 up to, but not, 1."""
    return number(text, lambda value: 0.5 <= value < 1, "is no confidence; write it like 0.99")


def number(text: str, holds: Callable[[float], bool] = lambda value: True, complaint: str = "") -> float:
    """A number for which `holds` is true; the refusal of others says `complaint`."""
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no number")
    value = float(text)
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {complaint}")
    return value


def quoted(text: str) -> str:
    """`text` in quotes, cut to a length that a message can bear."""
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")
