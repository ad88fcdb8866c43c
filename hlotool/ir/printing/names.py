"""Names that can be read back: legal, and each used once. XLA: name_uniquer.cc."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ELEMENT_TYPES

_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_.-]")
_RESERVED = frozenset((*ELEMENT_TYPES, "token", "opaque"))


def legal_name(name: str) -> str:
    """`name` with underscores where a character is not allowed, and after the name of an element type."""
    if not _LEGAL.fullmatch(name):
        name = _ILLEGAL_CHARACTER.sub("_", name)
        name = name if _LEGAL.fullmatch(name) else f"_{name[1:]}"
    if name in _RESERVED:
        return f"{name}_"
    reserved = name.startswith("__") and not name.startswith("__xla_")
    return f"a{name[1:]}" if reserved else name


def printed_names(items: Sequence[Computation | Instruction]) -> dict[int, str]:
    """New names, by id, of the items whose own name is illegal or already taken by an earlier one."""
    legal = {item.name: legal_name(item.name) for item in items}
    if len(legal) == len(items) and all(old == new for old, new in legal.items()):
        return {}
    taken = set(legal.values())
    seen: set[str] = set()
    renamed: dict[int, str] = {}
    for item in items:
        name = legal[item.name]
        if name in seen:
            name = next(n for i in count(1) if (n := f"{name}.{i}") not in taken)
            taken.add(name)
        seen.add(name)
        if name != item.name:
            renamed[id(item)] = name
    return renamed
