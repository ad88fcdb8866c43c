"""What the compiler was told: the flags in the `debug_options` of a dump, which are not at their defaults."""

from __future__ import annotations

import re

from hlotool.dump.records import DumpModule

#: Allow a compiler to lose NaN and infinity, or to compute as if there were none.
#: XLA: xla.proto, DebugOptions.
_FAST_MATH = re.compile(
    rb"^(xla_(?:cpu|gpu)_enable_fast_(?:math|min_max)): true$"
    rb"|^(xla_cpu_fast_math_honor_(?:nans|infs)): false$",
    re.MULTILINE,
)

#: How the file ends that holds them.
SUFFIX = ".debug_options"


def fast_math_flags(module: DumpModule) -> list[str]:
    """The flags of a module's compilation under which NaN and infinity need not survive, as `NAME=VALUE`."""
    texts = [file.source.read_bytes() for file in module.artefacts if file.path.endswith(SUFFIX)]
    found = [match for text in texts for match in _FAST_MATH.finditer(text)]
    return [f"{match[1].decode()}=true" if match[1] else f"{match[2].decode()}=false" for match in found]
