"""Records as plain data, compared apart from what depends on the clock."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def without(value: Any, keys: Collection[str] = ("seconds",)) -> Any:
    """Plain data without some keys, wherever they stand."""
    if isinstance(value, dict):
        return {key: without(part, keys) for key, part in value.items() if key not in keys}
    return [without(part, keys) for part in value] if isinstance(value, list) else value
