"""What a backend says of itself; runs in a worker, because loading a backend can crash."""

from __future__ import annotations

from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.replay.records import Record


class Description(Record, frozen=True, kw_only=True):
    """A backend: its version and the device it computes on, or the reason why it cannot be used."""

    version: str = ""
    device: str = ""
    reason: str = ""


def describe_backend(name: str) -> Description:
    """Load the backend called `name`; an exception that is not ours says that it is broken."""
    try:
        backend = get_backend(name)
        return Description(version=backend.version, device=getattr(backend, "device", "cpu"))
    except HlotoolError as error:
        return Description(reason=error.message if isinstance(error, BackendFailed) else str(error))
