"""What a user wants of the sizes of programs, and what became of them, as plain data.

Requests are `never`, `auto`, `4096=7,512=3`, `8G`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from hlotool.errors import UsageError
from hlotool.system.records import Record
from hlotool.system.user_input import size_of, size_text

NEVER: Final = "never"
AUTO: Final = "auto"
_SIZES = re.compile(r"\d+=\d+(,\d+=\d+)*")


class Wish(Struct, frozen=True):
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


#: Sizes that one line names: loops, and the largest others.
_NAMED: Final = 6


#: What smaller sizes cannot show.
UNSEEN: Final = (
    "a fault that only the full sizes show: the remainder of a tile, an index beyond 32 bits, a long sum",
    "what the hardware returned: it is of the full sizes, and compared with nothing",
    "a number that a compiler computed from a size and hid in another one",
)

#: Name of a size that a loop walks along.
LOOP: Final = "loop"


class SizeRecord(Record, frozen=True, kw_only=True):
    """One size that was changed, wherever it occurs.

    Attributes:
        name: a parameter of the entry and its dimension that has the size; `loop` of a stack that a loop
            walks along; else empty.
        old: in the program as it is.
        new: in the one that ran.
        dimensions: how many dimensions of values have it, alone or as a factor or part.
    """

    name: str
    old: int
    new: int
    dimensions: int


class StayingRecord(Record, frozen=True, kw_only=True):
    """One size that could not be changed.

    Attributes:
        size: that stays.
        why: it does.
        dimensions: how many dimensions of values have it.
    """

    size: int
    why: str
    dimensions: int


class InPlaceRecord(Record, frozen=True, kw_only=True):
    """That programs ran at full size in less memory than a comparison takes by itself.

    Attributes:
        limit: bytes of memory that there were.
        memory: bytes that a comparison would have taken, estimated.
        needed: bytes of memory that one execution needs this way, estimated.
        on_disk: bytes of arguments and results that were read from temporary files.
        reordered: programs whose instructions ran in another order, in which less is alive at once.
    """

    limit: int
    memory: int
    needed: int
    on_disk: int = 0
    reordered: int = 0

    @property
    def text(self) -> str:
        """In one line: `8 GiB: 3.1 GiB of arguments and results on disk, 2 programs in a lighter order`."""
        parts = []
        if self.on_disk:
            parts.append(f"{size_text(self.on_disk)} of arguments and results on disk")
        if self.reordered:
            parts.append(f"{self.reordered} program{'s' * (self.reordered > 1)} in a lighter order")
        parts.append("no extra inputs")
        return f"{size_text(self.limit)}: {', '.join(parts)}"


class ScaleRecord(Record, frozen=True, kw_only=True):
    """That programs ran with smaller sizes than they have.

    Attributes:
        why: they did.
        sizes: that were changed, the largest first.
        stay: large ones that were not, the largest first.
        constants: how many constants hold a size, and changed with it.
        unseen: positions that one of the programs has alone and that may lie behind the end of a smaller
            dimension: a fault there is not seen.
        memory: bytes that one execution needs as the program is, estimated.
        work: units of work, about a nanosecond each, of one execution as the program is, estimated.
        scaled_memory: likewise of the one that ran.
        scaled_work: likewise.
        settled: more memory, or less, would have led to the same sizes: the user gave them, or time decides.
    """

    why: str
    sizes: list[SizeRecord]
    stay: list[StayingRecord] = []
    constants: int = 0
    unseen: list[str] = []
    memory: int = 0
    work: int = 0
    scaled_memory: int = 0
    scaled_work: int = 0
    settled: bool = False

    @property
    def text(self) -> str:
        """In one line: `151936 → 31, 5120 → 23, loop 40 → 3 and 4 more; 2 sizes could not be told and
        stay`."""
        loops = [size for size in self.sizes if size.name == LOOP]
        others = [size for size in self.sizes if size.name != LOOP]
        named = [*others[: max(0, _NAMED - len(loops))], *loops]
        text = ", ".join(f"{'loop ' * (size.name == LOOP)}{size.old} → {size.new}" for size in named)
        if hidden := len(self.sizes) - len(named):
            text += f" and {hidden} more"
        if count := len({stay.size for stay in self.stay}):
            text += f"; {count} size{'s' * (count > 1)} could not be derived and stay{'s' * (count == 1)}"
        return text


class PlanRecord(Record, frozen=True, kw_only=True):
    """What would become of one module.

    Attributes:
        path: of the file that speaks for it.
        name: of the module.
        memory: bytes that one execution needs as the programs are, estimated.
        work: units of work, about a nanosecond each, of one execution, estimated.
        why: they do not fit, or are to get other sizes; empty where they run as they are.
        in_place: how they would run as they are all the same.
        scaled: the sizes that they would get.
        unseen: what a comparison of the smaller programs cannot show.
        note: why nothing can be said or done; empty otherwise.
    """

    path: str
    name: str
    memory: int = 0
    work: int = 0
    why: str = ""
    in_place: InPlaceRecord | None = None
    scaled: ScaleRecord | None = None
    unseen: list[str] = []
    note: str = ""
