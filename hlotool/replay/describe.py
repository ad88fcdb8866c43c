"""What a backend says of itself; runs in a worker, because loading a backend can crash."""

from __future__ import annotations

from hlotool.backends.registry import get_backend
from hlotool.replay.records import Record


class Description(Record, frozen=True, kw_only=True):
    """A backend that can be loaded: its version, and the device it computes on."""

    version: str
    device: str


def describe_backend(name: str) -> Description:
    """Load the backend called `name`; any exception says that it is not available."""
    backend = get_backend(name)
    return Description(version=backend.version, device=getattr(backend, "device", "cpu"))
