"""The compiler at hand, and what its bug tracker calls it."""

from __future__ import annotations

import msgspec

from hlotool.backends.registry import get_backend
from hlotool.backends.spec import parse_spec
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.findings.records import Record
from hlotool.workers.pool import Pool

#: What a worker calls.
FUNCTION = "hlotool.search.bisection.compiler:compiler_here"

#: Options of a backend that say where it is found and how long it may take, not what it does.
_NOT_WHAT = frozenset({"python", "timeout"})


class CompilerRecord(Record, frozen=True, kw_only=True):
    """The compiler at hand.

    Attributes:
        name: with version and options, such as `XLA 0.10.2`.
        error: why there is none.
    """

    name: str = ""
    error: str = ""


def compiler_here(backend: str) -> CompilerRecord:
    """What a backend compiles with; called in a worker, for it may take the process down."""
    try:
        version = get_backend(backend).version
    except HlotoolError as error:
        return CompilerRecord(error=str(error))
    return CompilerRecord(name=compiler_name(version, backend))


def compiler_name(version: str, backend: str) -> str:
    """A compiler as its bug tracker knows it: `XLA 0.10.2` for jaxlib of that version, with options.

    Args:
        version: as the backend says it.
        backend: its spec.
    """
    name = version.partition(" (")[0].replace("jaxlib ", "XLA ")
    given = parse_spec(backend).options.items()
    options = [f"{key}={value}" if value else key for key, value in given if key not in _NOT_WHAT]
    return f"{name} ({', '.join(options)})" if options else name


def asked_compiler(pool: Pool, backend: str) -> CompilerRecord:
    """The compiler at hand, as a worker knows it.

    Raises:
        BackendFailed: it died when it was asked.
    """
    [end] = pool.call_all(FUNCTION, [backend])
    if isinstance(end.value, BackendFailed):
        raise end.value
    return msgspec.msgpack.decode(end.value, type=CompilerRecord)
