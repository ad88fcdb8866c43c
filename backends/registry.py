"""Backends by name, from the entry points of group `hlotool.backends`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hlotool.backends.base import Backend, DevicesBackend
from hlotool.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "hlotool.backends"


def _create_numpy() -> Backend:
    from hlotool.backends.numpy import create

    return create()


#: Known without an installed distribution, so that a plain checkout works.
BUILT_IN: dict[str, Callable[[], Backend]] = {"numpy": _create_numpy}


def backend_names() -> list[str]:
    """All names that `get_backend` accepts."""
    return sorted(set(BUILT_IN) | {entry.name for entry in _entry_points()})


def _entry_points() -> EntryPoints:
    """Those of installed packages. The import takes longer than a small program, and built-ins need none."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def get_backend(name: str) -> Backend:
    """The backend called `name`.

    Raises:
        UsageError: there is none of that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    for entry in _entry_points():
        if entry.name == name:
            factory: Callable[[], Backend] = entry.load()
            return factory()
    raise UsageError(f"no backend {name!r}; there are: {', '.join(backend_names())}")


def get_devices_backend(name: str) -> DevicesBackend:
    """The backend called `name`, which must execute programs for several devices.

    Raises:
        UsageError: there is none of that name.
        Unsupported: it executes programs for one device only.
    """
    backend = get_backend(name)
    if not isinstance(backend, DevicesBackend):
        raise Unsupported(f"backend {name} runs programs for one device")
    return backend
