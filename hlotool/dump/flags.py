"""What the compiler was told: the flags in the `debug_options` of a dump, which are not at their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotool.dump.records import DumpModule

#: Allow a compiler to lose NaN and infinity, or to compute as if there were none. Fast math alone does so,
#: whatever it is told to honor: x - x is 0, and (x + y) - y is x (measured with jaxlib 0.10.2).
#: XLA: xla.proto, DebugOptions.
_FAST_MATH = re.compile(
    r"^(xla_(?:cpu|gpu)_enable_fast_(?:math|min_max)=true|xla_cpu_fast_math_honor_(?:nans|infs)=false)$"
)
#: Allow it to multiply by a reciprocal, and to take other functions than asked for.
_INEXACT = re.compile(r"^xla_cpu_fast_math_honor_(?:division|functions)=false$")
#: Forbids to leave a rounding to a narrow type out.
_EVERY_ROUNDING = "xla_allow_excess_precision=false"

#: A flag in a text proto.
_FLAG = re.compile(rb"^(xla_\w+): (true|false)$", re.MULTILINE)

#: How the file ends that holds them.
SUFFIX = ".debug_options"


def switches(module: DumpModule) -> list[str]:
    """The flags of a module's compilation that are on or off, and not as by default, as `NAME=VALUE`."""
    texts = [file.source.read_bytes() for file in module.artefacts if file.path.endswith(SUFFIX)]
    found = (match for text in texts for match in _FLAG.finditer(text))
    return list(dict.fromkeys(f"{match[1].decode()}={match[2].decode()}" for match in found))


def fast_math(flags: Iterable[str]) -> list[str]:
    """Those of some flags under which NaN and infinity need not survive."""
    return [flag for flag in flags if _FAST_MATH.match(flag)]


def inexact(flags: Iterable[str]) -> list[str]:
    """Those under which divisions and functions need not be what they are called."""
    return [flag for flag in flags if _INEXACT.match(flag)]


def keeps_every_rounding(flags: Iterable[str]) -> bool:
    """Whether no rounding to a narrow type may be left out."""
    return _EVERY_ROUNDING in flags
