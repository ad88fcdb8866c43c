"""What went wrong inside XLA, as errors of hlotool.

XLA's errors begin with a status code of absl, such as `INVALID_ARGUMENT`.
"""

from __future__ import annotations

import re

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

#: What JAX says of platforms that have no device here.
_NO_DEVICE = re.compile(
    r"RuntimeError: (Unknown backend.*|Unable to initialize backend.*|Backend '\w+' failed to initialize.*)"
)

#: XLA understood the question and says no.
_REFUSALS = frozenset(
    {"INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND", "FAILED_PRECONDITION", "OUT_OF_RANGE"}
)

#: What brings the packages that are missing.
REMEDY = "pip install 'hlotool[xla]'"


def typed_error(error: BackendFailed) -> HlotoolError:
    """The error that a failed call of the process means."""
    if not isinstance(error, BackendCrashed):
        return error
    if found := _STATUS.match(error.message):
        return _status_error(found[1], found[2].strip(), error)
    if error.message.startswith("WrongFlag: "):
        return UsageError(f"backend xla: {error.message.removeprefix('WrongFlag: ')}")
    if "No module named" in error.message + error.log:
        missing = re.search(r"No module named '([\w.]+)'", error.message + error.log)
        name = missing[1] if missing else "a package"
        return BackendUnavailable(f"backend xla needs {name}: {REMEDY}")
    if found := _NO_DEVICE.match(error.message):
        return BackendUnavailable(f"no such device: {found[1]}")
    if found := re.match(r"Refused: (.*)", error.message, re.DOTALL):
        return Unsupported(f"XLA: {' '.join(found[1].split())}")
    if found := re.match(r"NotImplementedError: (.*)", error.message):
        return BackendUnavailable(found[1])
    return error


def _status_error(status: str, message: str, error: BackendFailed) -> HlotoolError:
    line = " ".join(message.split())
    if _BAD_OPTION.search(message):
        return UsageError(f"backend xla: {line}")
    if status == "RESOURCE_EXHAUSTED":
        return BackendOutOfMemory(error.backend, line, error.log)
    if status in _REFUSALS or _DIAGNOSTIC.search(message):
        return Unsupported(f"XLA: {status}: {line}")
    return BackendCrashed(error.backend, f"{status}: {line}", error.log)
