"""Processes that hold XLA, shared by all programs that go with the same set-up.

What went wrong inside XLA becomes an error of hlotool; a compilation may leave a dump, with flags that the
version knows.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from hlotool.backends.xla.protocol import Compiled, CompileRequest, Execution, Flag, Results, Setup
from hlotool.errors import (
    BackendCrashed,
    BackendFailed,
    BackendOutOfMemory,
    BackendUnavailable,
    HlotoolError,
    Unsupported,
    UsageError,
)
from hlotool.system.executor import Done, Limits
from hlotool.system.pool import Pool
from hlotool.system.resources import address_space_limit

#: XLA itself, and what installs it.
_XLA = "xla"

_STATUS = re.compile(r"\w*(?:Xla|Jax)RuntimeError: ([A-Z_]+): (.*)", re.DOTALL)

#: Options that XLA does not know, or whose value has another type.
_BAD_OPTION = re.compile(r"No such compile option|While setting option|is not a valid .* value")

#: StableHLO that its own verifier does not accept: XLA's importer cannot say it in StableHLO.
_DIAGNOSTIC = re.compile(r"^<unknown>:\d+:\d+: error: |: error: loc\(")

#: What hlotool says in an interpreter that it does not run in.
_TOO_OLD = re.compile(r"hlotool needs Python .*")

#: A custom call of another version of jaxlib; some only notice when they run it, as an internal error.
_UNKNOWN_CALL = re.compile(r"No registered implementation for")

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
    "BadScript": UsageError,
    "TooFewDevices": BackendUnavailable,
    "NotImplementedError": BackendUnavailable,
    "NoPlugin": BackendUnavailable,
}


def typed_error(error: BackendFailed, python: str = "", extra: str = _XLA) -> HlotoolError:
    """The error that a failed call of the process means.

    Args:
        error: as it was raised.
        python: its interpreter, empty for this one.
        extra: of hlotool, brings what it needs.
    """
    if not isinstance(error, BackendCrashed):
        return error
    if found := _STATUS.match(error.message):
        return _status_error(found[1], found[2].strip(), error)
    kind, _, reason = error.message.partition(": ")
    line = " ".join(reason.split())
    if kind == "Refused":
        return Unsupported(f"{_compiler(error)}: {line}")
    if kind == "WrongFlag":
        return UsageError(f"backend {error.backend}: {line}")
    if kind in _OWN:
        return _OWN[kind](line)
    if found := _TOO_OLD.search(error.message + error.log):
        return BackendUnavailable(f"backend {error.backend}: {found[0]}")
    if "No module named" in error.message + error.log:
        missing = re.search(r"No module named '([\w.]+)'", error.message + error.log)
        name = missing[1] if missing else "a package"
        remedy = f"{python} -m pip install {name}" if python else f"pip install 'hlotool[{extra}]'"
        where = f" in {python}" if python else ""
        return BackendUnavailable(f"backend {error.backend} needs {name}{where}: {remedy}")
    if found := _NO_DEVICE.match(error.message):
        return BackendUnavailable(f"no such device: {found[1]}")
    return error


def _status_error(status: str, message: str, error: BackendFailed) -> HlotoolError:
    line = " ".join(message.split())
    if _BAD_OPTION.search(message):
        return UsageError(f"backend {error.backend}: {line}")
    if status == "RESOURCE_EXHAUSTED":
        return BackendOutOfMemory(error.backend, line, error.log)
    if status in _REFUSALS or _DIAGNOSTIC.search(message) or _UNKNOWN_CALL.search(message):
        return Unsupported(f"{_compiler(error)}: {status}: {line}")
    return BackendCrashed(error.backend, f"{status}: {line}", error.log)


def _compiler(error: BackendFailed) -> str:
    """What its messages are known by."""
    return "XLA" if error.backend == _XLA else error.backend


_T = TypeVar("_T")

_CHILD = "hlotool.backends.xla.child"

#: Devices of a process that has more than one: most programs for several devices go with it.
_MANY_DEVICES = 8


@dataclass(frozen=True, slots=True)
class ProcessKey:
    """What a process is set up with once and for all.

    Attributes:
        platform: `cpu`, `gpu`, `tpu`, the path of a PJRT plug-in; `aot` for compilers without a device.
        python: path of its interpreter, empty for this one.
        devices: how many it has on the CPU; the other platforms have what there is.
        timeout: seconds per call.
        environment: variables besides, with their values.
        preload: modules that it imports before its first call.
        name: what fails where it does, in messages.
        extra: of hlotool, brings what it needs.
    """

    platform: str = "cpu"
    python: str = ""
    devices: int = 1
    timeout: float | None = None
    environment: tuple[tuple[str, str], ...] = ()
    preload: tuple[str, ...] = (_CHILD, "jax")
    name: str = _XLA
    extra: str = _XLA


def key_for(platform: str, python: str, devices: int, timeout: float | None) -> ProcessKey:
    """The process for a program that needs so many devices."""
    if devices > 1:
        devices = max(_MANY_DEVICES, devices)
    name = f"pjrt:{platform}" if os.path.isabs(platform) else _XLA
    return ProcessKey(platform, python, devices if platform == "cpu" else 1, timeout, name=name)


def _memory_limit(platform: str) -> int | None:
    """Bytes of address space: those of this process, else a share of what is free.

    Drivers of devices map the devices' memory, too; nothing bounds them but what the user says.
    """
    return address_space_limit() or (None if platform == "cpu" else 0)


@cache
def shared_process(key: ProcessKey) -> XlaProcess:
    """The one process of this set-up; it starts with its first call and ends with this process."""
    return XlaProcess(key)


class XlaProcess:
    """A process that holds XLA. One that dies or hangs is replaced at the next call.

    All methods raise BackendFailed when it dies or takes too long, Unsupported for what XLA refuses, and
    BackendUnavailable when a package or a device is missing.
    """

    def __init__(self, key: ProcessKey) -> None:
        self.key = key
        self._released: list[int] = []
        self._lock = threading.Lock()
        limits = Limits(1, key.timeout, _memory_limit(key.platform))
        environment = process_environment(key)
        self._pool = Pool(limits, key.preload, key.name, environment, key.python)
        atexit.register(self._pool.close)

    def start(self) -> None:
        """Start it, so that its imports overlap with whatever the caller does next."""
        with self._lock:
            self._pool.start()

    def setup(self) -> Setup:
        """The version of jaxlib in the process and the device that it computes on."""
        return self.call(f"{_CHILD}:describe", self.key.platform, Setup)

    def compile(self, program: CompileRequest) -> Compiled:
        """Compile a program."""
        return self.call(f"{_CHILD}:compile_program", program, Compiled)

    def run(self, execution: Execution) -> Results:
        """Run what was compiled."""
        return self.call(f"{_CHILD}:run_program", execution, Results)

    def release(self, executable: int) -> None:
        """Have an executable forgotten with the next compilation."""
        self._released.append(executable)

    def take_released(self) -> tuple[int, ...]:
        """The numbers of the executables that the process may forget; each is given once."""
        numbers, self._released = tuple(self._released), []
        return numbers

    def call(self, function: str, argument: object, kind: type[_T]) -> _T:
        """Call any function in the process; its result is of `kind`."""
        with self._lock:
            value = self._value(function, argument)
        if isinstance(value, BackendFailed):
            raise typed_error(value, self.key.python, self.key.extra)
        return msgspec.msgpack.decode(value, type=kind)

    def _value(self, function: str, argument: object) -> bytes | BackendFailed:
        try:
            events = list(self._pool.run(function, [argument]))
        except BackendFailed as error:
            return error
        except BaseException:
            # The user's Ctrl-C: an answer that comes later must not be taken for that of the next call.
            self._pool.close()
            raise
        return next(event.value for event in events if isinstance(event, Done))

    def close(self) -> None:
        """End the process."""
        self._pool.close()
        atexit.unregister(self._pool.close)


def process_environment(key: ProcessKey) -> Mapping[str, str]:
    """Variables of a process: those of this one, but for what would change XLA behind the user's back."""
    kept = {n: v for n, v in os.environ.items() if n != "XLA_FLAGS" and not n.startswith("JAX_")}
    # A process that takes all memory of a GPU would leave none for the next one.
    kept.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if key.devices > 1:
        kept["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={key.devices}"
    return {**kept, **dict(key.environment)}


#: The first version that reads the tables of source positions in a module's text.
READS_STACK_FRAMES: Final = (0, 8, 3)
#: The first version with a flag against elided constants.
_KNOWS_LARGE_CONSTANTS: Final = (0, 4, 38)


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A dump to be written.

    Attributes:
        folder: that gets it.
        passes: regular expression of the passes after which the program is written.
    """

    folder: Path
    passes: str = ".*"


def dump_flags(dump: DumpRequest, version: tuple[int, ...]) -> list[Flag]:
    """What makes XLA write a dump."""
    flags: list[Flag] = [
        ("xla_dump_to", str(dump.folder)),
        ("xla_dump_hlo_as_text", True),
        ("xla_dump_hlo_pass_re", dump.passes),
    ]
    if version >= _KNOWS_LARGE_CONSTANTS:
        flags.append(("xla_dump_large_constants", True))
    return flags
