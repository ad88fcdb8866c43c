"""What went wrong inside XLA, as errors of hlotool.

XLA's errors begin with a status code of absl, such as `INVALID_ARGUMENT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hlotool.errors import (
    BackendCrashed,
    BackendFailed,
    BackendOutOfMemory,
    BackendUnavailable,
    HlotoolError,
    Unsupported,
    UsageError,
)

_STATUS = re.compile(r"\w*(?:Xla|Jax)RuntimeError: ([A-Z_]+): (.*)", re.DOTALL)

#: Options that XLA does not know, or whose value has another type.
_BAD_OPTION = re.compile(r"No such compile option|While setting option|is not a valid .* value")

#: StableHLO that its own verifier does not accept: XLA's importer cannot say it in StableHLO.
_DIAGNOSTIC = re.compile(r"^<unknown>:\d+:\d+: error: |: error: loc\(")

#: A custom call of another version of jaxlib; some only notice when they run it, as an internal error.
_UNKNOWN_CALL = re.compile(r"No registered implementation for")

#: What hlotool says in an interpreter that it does not run in.
_TOO_OLD = re.compile(r"hlotool needs Python .*")

#: What JAX says of platforms that have no device here.
_NO_DEVICE = re.compile(
    r"RuntimeError: (Unknown backend.*|Unable to initialize backend.*|Backend '\w+' failed to initialize.*)"
)

#: XLA understood the question and says no.
_REFUSALS = frozenset(
    {"INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND", "FAILED_PRECONDITION", "OUT_OF_RANGE"}
)

#: Exceptions of the process itself.
_OWN: dict[str, Callable[[str], HlotoolError]] = {
    "Refused": lambda reason: Unsupported(f"XLA: {reason}"),
    "WrongFlag": lambda reason: UsageError(f"backend xla: {reason}"),
    "TooFewDevices": BackendUnavailable,
    "NotImplementedError": BackendUnavailable,
    "NoPlugin": BackendUnavailable,
}

#: What brings the packages that are missing.
REMEDY = "pip install 'hlotool[xla]'"


def typed_error(error: BackendFailed) -> HlotoolError:
    """The error that a failed call of the process means."""
    if not isinstance(error, BackendCrashed):
        return error
    if found := _STATUS.match(error.message):
        return _status_error(found[1], found[2].strip(), error)
    kind, _, reason = error.message.partition(": ")
    if kind in _OWN:
        return _OWN[kind](" ".join(reason.split()))
    if found := _TOO_OLD.search(error.message + error.log):
        return BackendUnavailable(f"backend xla: {found[0]}")
    if "No module named" in error.message + error.log:
        missing = re.search(r"No module named '([\w.]+)'", error.message + error.log)
        name = missing[1] if missing else "a package"
        return BackendUnavailable(f"backend xla needs {name}: {REMEDY}")
    if found := _NO_DEVICE.match(error.message):
        return BackendUnavailable(f"no such device: {found[1]}")
    return error


def _status_error(status: str, message: str, error: BackendFailed) -> HlotoolError:
    line = " ".join(message.split())
    if _BAD_OPTION.search(message):
        return UsageError(f"backend xla: {line}")
    if status == "RESOURCE_EXHAUSTED":
        return BackendOutOfMemory(error.backend, line, error.log)
    if status in _REFUSALS or _DIAGNOSTIC.search(message) or _UNKNOWN_CALL.search(message):
        return Unsupported(f"XLA: {status}: {line}")
    return BackendCrashed(error.backend, f"{status}: {line}", error.log)
