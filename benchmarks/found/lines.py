"""What stands in front of the lines of HLO, drawn at random: logs, numbers of lines, marks of quotation.

Everything here is a function `(random, lines) -> lines`. None of it is one of the forms of `corpus/found`:
the parts of a prefix, their order and what separates them are drawn, so that a reader that knows those forms
alone fails on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

#: Puts something in front of lines.
Layer = Callable[[random.Random, Sequence[str]], list[str]]

#: How loggers write times; `%3f` stands for milliseconds.
_TIMES = (
    "%Y-%m-%d %H:%M:%S,%3f",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y/%m/%d %H:%M:%S",
    "%H:%M:%S",
    "%H:%M:%S.%f",
    "[%H:%M:%S]",
    "[%Y-%m-%d %H:%M:%S]",
    "%b %d %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S +0000",
    "%m/%d/%Y %I:%M:%S %p",
    "%y%m%d %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
)
_LEVELS = ("INFO", "[INFO]", "INFO:", "I", "info", "<6>", "DEBUG", "(info)", "level=info", "WARNING")
_PROCESSES = (
    "host-{n}",
    "[rank{n}]",
    "rank={n}",
    "(pid={n}3021)",
    "worker[{n}]",
    "[1,{n}]<stdout>",
    "pod/trainer-{n}-x7q",
    "trainer_{n}",
    "[Worker {n}/8]",
    "{n}",
    "[node{n}:0]",
    "tpu-vm-{n}.c.project.internal",
)
_PLACES = ("dump.cc:123]", "compiler.py:88", "jax._src.compiler", "xla.service", "[train]", "main:", "stdout")
_SEPARATORS = (" ", " ", ": ", " - ", " | ", "\t", " :: ")
_ENDS = (" ", " ", ": ", " - ", " | ", "| ", "> ", "] ", "\t", ":", " > ", " :: ")
_OTHERS = (
    "Compiling module",
    "step 12 loss 0.334",
    "allocated 3 buffers {total 4.5 GiB}",
    "cache miss -> recompiling",
    "took 0.23 s",
    "x = 3",
    "warning: slow constant folding (see the documentation)",
)


class _Clock:
    """A time that passes."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.now = datetime(2026, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), tzinfo=UTC)
        self.seconds = rng.uniform(1, 4000)

    def tick(self) -> None:
        passed = self._rng.choice((0, 0.000017, 0.0012, 1.4))
        self.seconds += passed
        self.now += timedelta(seconds=passed)


def _time(rng: random.Random, clock: _Clock) -> Callable[[], str]:
    """How one logger writes the time."""
    wall = rng.choice(_TIMES)
    return rng.choice(
        [
            lambda: clock.now.strftime(wall.replace("%3f", f"{clock.now.microsecond // 1000:03d}")),
            lambda: clock.now.strftime(wall.replace("%3f", f"{clock.now.microsecond // 1000:03d}")),
            lambda: clock.now.strftime(wall.replace("%3f", f"{clock.now.microsecond // 1000:03d}")),
            lambda: f"[{clock.seconds:12.6f}]",
            lambda: f"{clock.seconds:.3f}",
            lambda: f"{clock.now.timestamp():.6f}",
            lambda: f"{clock.now.timestamp() * 1000:.0f}",
            lambda: f"+{clock.seconds:.1f}s",
            lambda: str(timedelta(seconds=int(clock.seconds))),
        ]
    )


def _prefixes(rng: random.Random) -> tuple[Callable[[int], str], bool]:
    """A logger's prefix for each of several processes, and whether it tells them apart."""
    clock = _Clock(rng)
    time, level, process, place = (
        _time(rng, clock),
        rng.choice(_LEVELS),
        rng.choice(_PROCESSES),
        rng.choice(_PLACES),
    )
    order = rng.sample(("time", "level", "process", "place"), rng.randint(1, 4))
    if rng.random() < 0.6:
        order.sort(key=("time", "level", "process", "place").index)
    separator, end = rng.choice(_SEPARATORS), rng.choice(_ENDS)

    def prefix(number: int) -> str:
        clock.tick()
        parts = {"time": time(), "level": level, "process": process.format(n=number), "place": place}
        return separator.join(parts[name] for name in order) + end

    return prefix, "process" in order


def log(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """A log with a prefix in each line, what others say before, behind and, of other processes, between."""
    prefix, tells_apart = _prefixes(rng)
    own = rng.randint(0, 3)
    said: list[str] = [prefix(own) + rng.choice(_OTHERS) for _ in range(rng.randint(0, 3))]
    for line in lines:
        said.append(prefix(own) + line)
        if tells_apart and rng.random() < 0.05:
            said.append(prefix(own + rng.randint(1, 4)) + rng.choice(_OTHERS))
    said += [prefix(own) + rng.choice(_OTHERS) for _ in range(rng.randint(0, 3))]
    return [line.rstrip() for line in said] if rng.random() < 0.5 else said


def message(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """A message of many lines, of which the first has a prefix; others before and behind it."""
    prefix, _ = _prefixes(rng)
    before = [prefix(0) + rng.choice(_OTHERS) for _ in range(rng.randint(0, 3))]
    behind = [prefix(0) + rng.choice(_OTHERS) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.3:
        return [*before, prefix(0) + "the module is:", *lines, *behind]
    return [*before, prefix(0) + lines[0], *lines[1:], *behind]


_NUMBERS = (
    "{n:6d}\t",
    "{n:6d}  ",
    "{n}:",
    "{n}: ",
    "{n}|",
    "{n:5d} | ",
    "{n:4d}│ ",
    "{n}\t",
    "{n:>4}→",
    "L{n}: ",
    "L{n}\t",
    "{n:04d} ",
    "[{n}] ",
    "{n:3d} ",
    "{n}. ",
    "{n:>5}-",
    "dump/module.txt:{n}:",
    "./a b/module_0001.txt:{n}: ",
    "module.txt-{n}-",
    "#{n} ",
    "|{n:4d}|",
    "<{n}> ",
)


def numbered(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """Lines with their numbers, as tools that show files write them."""
    form, first = rng.choice(_NUMBERS), rng.choice((1, 1, 0, 17, 98))
    return [form.format(n=first + n) + line for n, line in enumerate(lines)]


_MARKS = ("> ", ">", ">> ", "> > ", "| ", "# ", "// ", "//", "; ", ";; ", "-- ", " * ", "% ", "#> ", "E   ")
_MORE_MARKS = (
    "    > ",
    "+ ",
    "- ",
    "+",
    "  + ",
    "    ",
    "\t",
    "! ",
    "│ ",
    "• ",
    "... ",
    "[out] ",
    "out: ",
    "#  ",
)


def marked(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """Lines behind a mark, as in answers, comments and changes; empty lines may have lost its blank."""
    mark = rng.choice(_MARKS + _MORE_MARKS)
    is_stripped = rng.random() < 0.5
    return [(mark + line).rstrip() if is_stripped and not line else mark + line for line in lines]


_COLOURS = ("\x1b[31m", "\x1b[1;32m", "\x1b[38;5;208m", "\x1b[01;31m\x1b[K", "\x1b[90m")


def coloured(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """Lines with the colours of a terminal around some of their words."""
    colour, end = rng.choice(_COLOURS), rng.choice(("\x1b[0m", "\x1b[m\x1b[K", "\x1b[39;49m"))
    made: list[str] = []
    for line in lines:
        words = line.split(" ")
        made.append(" ".join(f"{colour}{w}{end}" if w and rng.random() < 0.2 else w for w in words))
    return made


def indented(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """Lines further to the right, or with tabs for blanks, or blanks at their ends, or all at the left."""
    way = rng.randrange(4)
    if way == 0:
        depth = rng.choice((1, 2, 3, 4, 6, 8, 13)) * " "
        return [depth + line if line else line for line in lines]
    if way == 1:
        return [line.replace("  ", "\t", 1) if line.startswith("  ") else line for line in lines]
    if way == 2:
        return [line + rng.choice(("", " ", "   ", "\t")) for line in lines]
    return [line.lstrip() for line in lines]


LAYERS: dict[str, Layer] = {
    "log": log,
    "message": message,
    "numbered": numbered,
    "marked": marked,
    "coloured": coloured,
    "indented": indented,
}
