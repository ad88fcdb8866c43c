"""What a user wants of the sizes of programs: `never`, `auto`, `4096=7,512=3`, `8G`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hlotool.amounts import size_of
from hlotool.errors import UsageError

NEVER: Final = "never"
AUTO: Final = "auto"
_SIZES = re.compile(r"\d+=\d+(,\d+=\d+)*")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of sizes.

    Attributes:
        sizes: new ones by the old ones; empty where they are to be chosen.
        memory: bytes that a comparison may take; 0 for what there is.
    """

    sizes: Mapping[int, int]
    memory: int = 0


def wish_of(text: str) -> Wish:
    """What a text asks for that is not `never`.

    Raises:
        UsageError: it is none of those above, or a size would become 1 or larger.
    """
    if text == AUTO:
        return Wish({})
    if _SIZES.fullmatch(text):
        pairs = (pair.split("=") for pair in text.split(","))
        sizes = {int(old): int(new) for old, new in pairs}
        if wrong := [old for old, new in sizes.items() if not 1 < new <= old]:
            raise UsageError(f"a size of {wrong[0]} can become 2 to {wrong[0]}, not {sizes[wrong[0]]}")
        return Wish(sizes)
    if memory := size_of(text):
        return Wish({}, memory)
    raise UsageError(f"{text!r} is no scale; write never, auto, sizes like 4096=7,512=3 or memory like 8G")
