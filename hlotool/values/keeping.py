"""Who holds a large value: whoever made it, in memory, or somebody who puts it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

#: Takes a value and returns one of the same structure and bits, which may lie elsewhere.
Keep: TypeAlias = Callable[[Any], Any]


def as_it_is(value: Any) -> Any:
    """The value itself, in memory."""
    return value
