"""Amounts of memory in words, written and read: units are powers of 1024, whatever letters name them."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(?:i?B)?", re.IGNORECASE)


def size_text(count: float) -> str:
    """Bytes in three digits: `512 B`, `12.1 KiB`, `1.54 MiB`; 1000 and more are `0.977 KiB`."""
    value = float(count)
    for unit in _UNITS:
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value * 1024:.3g} {_UNITS[-1]}"


def size_of(text: str) -> int | None:
    """Bytes of `8G`, `512M`, `1.5GiB`, `100`, `2000 KB`; None of what is no finite amount of memory."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    count = float(found[1]) * (1 << 10 * "BKMGTP".index(found[2].upper() or "B"))
    return int(count) if isfinite(count) else None
