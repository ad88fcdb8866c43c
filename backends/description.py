"""What a backend says of itself; runs in a worker, because loading a backend can crash."""

from __future__ import annotations

from hlotool.backends.registry import backend_options, get_backend
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.findings.records import Record


class Description(Record, frozen=True, kw_only=True):
    """A backend: its version, device and options, or the reason why it cannot be used."""

    version: str = ""
    device: str = ""
    options: dict[str, str] = {}
    reason: str = ""


def describe_backend(name: str) -> Description:
    """Load the backend called `name`; an exception that is not ours says that it is broken."""
    try:
        backend = get_backend(name)
        device = getattr(backend, "device", "cpu")
        return Description(version=backend.version, device=device, options=dict(backend_options(name)))
    except HlotoolError as error:
        return Description(reason=error.message if isinstance(error, BackendFailed) else str(error))
