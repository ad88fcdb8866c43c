"""The worker process, which runs calls for its parent one at a time, and the messages between the two.

Whatever can crash, hang or fill the memory runs here. The process owns its file descriptors: the channel to
the parent is moved away from stdin and stdout, so that a stray print of any library lands in the log.

Messages are length-prefixed MessagePack. The argument of a call is a pickle (parent and worker are the same
program of the same user); the answer is MessagePack only, so that a worker gone mad can send garbage but
never code.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import IO, Any, Literal, TypeAlias

import msgspec

from hlotool.errors import BackendFailed, BackendTimeout
from hlotool.system.logs import LogTarget, follow_log
from hlotool.system.records import encoded
from hlotool.system.resources import limit_address_space, limit_growth

#: Written once by a worker before its first message. Whatever an interpreter's start-up files print to
#: stdout comes before it and is passed over.
GREETING = b"\0hlotool worker\0"

#: Written by a worker to its log before each call: what lies before it belongs to others.
CALL_MARK = b"\0hlotool call\0\n"

#: New objects before the collector looks for garbage, 700 by default: programs and plans are thousands that
#: stay, and it takes a tenth of the time to look through them again and again.
_RARELY = 5_000

_LENGTH = struct.Struct("<Q")
#: No message is as long as this; a longer one is garbage.
_LONGEST = 1 << 32


class Call(msgspec.Struct, frozen=True, tag=True):
    """Parent to worker: run `function` (`package.module:name`) on the unpickled `argument`.

    Meanwhile it may take `memory_share` bytes more than it has, 0 for no limit.
    """

    function: str
    argument: bytes
    memory_share: int = 0


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: imports are done; `notes` are warnings for the user."""

    notes: list[str]


class Returned(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: the function's result in MessagePack, and how long it took."""

    value: bytes
    seconds: float


class Doing(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: what the function is busy with, in words for the user; no answer yet."""

    text: str


class SoFar(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: something that the function has found, in MessagePack; no answer yet.

    It is all there is if the process ends before its function does.
    """

    value: bytes


#: What went wrong: no memory; a device of no more use, perhaps because a kernel ran for too long; anything.
RaisedKind: TypeAlias = Literal["memory", "timeout", "broken", "exception"]


class Raised(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: the function raised; but for plain exceptions, the worker should be replaced."""

    kind: RaisedKind
    message: str
    traceback: str
    seconds: float


Answer: TypeAlias = Ready | Doing | SoFar | Returned | Raised

_encoder = msgspec.msgpack.Encoder()
_calls = msgspec.msgpack.Decoder(Call)
_answers = msgspec.msgpack.Decoder(Answer)


def write_message(stream: IO[bytes], message: Call | Answer) -> None:
    """Send `message`; raises OSError when the other end is closed."""
    content = encoded(message, _encoder.encode)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def read_call(stream: IO[bytes]) -> Call | None:
    """The next call, or None when the parent is gone."""
    content = _read_frame(stream)
    return None if content is None else _calls.decode(content)


def read_answer(stream: IO[bytes]) -> Answer | None:
    """The next answer, or None when the worker is gone (or what it sent is damaged)."""
    try:
        content = _read_frame(stream)
        return None if content is None else _answers.decode(content)
    except msgspec.DecodeError:
        return None


def skip_to_greeting(stream: IO[bytes]) -> bool:
    """Pass over everything up to and including GREETING; False when the stream ends before."""
    recent = b""
    while byte := stream.read(1):
        recent = (recent + byte)[-len(GREETING) :]
        if recent == GREETING:
            return True
    return False


def _read_frame(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > _LONGEST:
        return None
    content = stream.read(size)
    return content if len(content) == size else None


#: For `python -c`: the parent's search path, so that the worker imports the same packages, installed or not.
BOOT = "import sys; sys.path[:] = sys.argv[2:]; from hlotool.system.worker import main; main(sys.argv[1])"

#: For another interpreter with packages of its own: nothing but `hlotool` itself comes from the parent's, and
#: msgspec where it has none. One that was built for another Python does not load; then it has to be there.
BOOT_ELSEWHERE = """
import importlib.util, sys
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
load("hlotool", sys.argv[2])
if importlib.util.find_spec("msgspec") is None:
    try:
        load("msgspec", sys.argv[3])
    except ImportError:
        raise ModuleNotFoundError("No module named 'msgspec'") from None
from hlotool.system.worker import main
main(sys.argv[1])
"""

_is_worker = False
#: Where messages to the parent go, once it waits for an answer.
_worker_answers: IO[bytes] | None = None


class WorkerOptions(msgspec.Struct, frozen=True):
    """How a worker is set up.

    Attributes:
        preload: modules to import before the first call.
        memory_limit: bytes of address space that the user allows, 0 for no limit.
        log: where its log goes, if anywhere.
        niceness: how much it gives way to others.
    """

    preload: tuple[str, ...] = ()
    memory_limit: int = 0
    log: LogTarget | None = None
    niceness: int = 0


def main(options_json: str) -> None:
    """Serve calls until the parent goes away."""
    global _is_worker, _worker_answers
    _is_worker = True
    requests, answers = _private_channel()
    answers.write(GREETING)
    calls = _listen(requests)
    _trace_crashes()
    options = msgspec.json.decode(options_json, type=WorkerOptions)
    if options.niceness and hasattr(os, "nice"):
        os.nice(options.niceness)
    if options.log is not None:
        follow_log(options.log)
    _preload(options.preload)
    write_message(answers, Ready(limit_address_space(options.memory_limit)))
    _worker_answers = answers
    while True:
        call = calls.get()
        _mark_log()
        limit_growth(call.memory_share)
        answer = execute(call)
        limit_growth(0)
        limit_address_space(options.memory_limit)
        write_message(answers, answer)


def tell(text: str) -> None:
    """Let the parent show the user what this worker is busy with; nothing in other processes."""
    if _worker_answers is not None:
        write_message(_worker_answers, Doing(text))


def hand_over(value: object) -> None:
    """Let the parent have something that was found, in case that this process does not come to its end."""
    if _worker_answers is not None:
        write_message(_worker_answers, SoFar(encoded(value, msgspec.msgpack.encode)))


def is_worker() -> bool:
    """Whether this process is a worker itself."""
    return _is_worker


def _mark_log() -> None:
    """Part what calls write: the mark takes the same way as that, so that no reader can be late for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(2, CALL_MARK)


def _preload(names: Sequence[str]) -> None:
    """Import modules; what they hold stays for good, so that the garbage collector need not look at it."""
    gc.disable()
    for name in names:
        import_module(name)
    gc.freeze()
    gc.set_threshold(_RARELY)
    gc.enable()


def execute(call: Call) -> Answer:
    """Run one call; every exception becomes an answer."""
    start = time.perf_counter()
    try:
        value = resolve(call.function)(pickle.loads(call.argument))
        return Returned(encoded(value, msgspec.msgpack.encode), time.perf_counter() - start)
    except MemoryError as error:
        return _raised("memory", str(error), start)
    except Exception as error:
        if isinstance(error, BackendFailed) and error.here:
            kind: RaisedKind = "timeout" if isinstance(error, BackendTimeout) else "broken"
            return _raised(kind, str(error), start)
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _raised("exception", message, start)


def _private_channel() -> tuple[IO[bytes], IO[bytes]]:
    """The parent's two pipes on descriptors of their own; stdin becomes empty, stdout joins stderr."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def _listen(requests: IO[bytes]) -> queue.SimpleQueue[Call]:
    """Receive calls in a thread. It ends the process at once when the parent is gone, whatever runs then."""
    calls: queue.SimpleQueue[Call] = queue.SimpleQueue()

    def receive() -> None:
        while call := read_call(requests):
            calls.put(call)
        # Nothing is imported here, where an import of what runs may have been cut.
        if (passing := sys.modules.get("hlotool.system.files")) is not None:
            passing.remove_own()
        os._exit(0)

    threading.Thread(target=receive, name="calls", daemon=True).start()
    return calls


def _trace_crashes() -> None:
    """Let a fatal signal leave a Python traceback in the log."""
    import faulthandler

    if sys.version_info >= (3, 14):
        # Addresses of C, which tell nothing without symbols, would push what the library said out of the log.
        faulthandler.enable(sys.stderr, c_stack=False)
    else:
        faulthandler.enable(sys.stderr)


def resolve(function: str) -> Callable[[Any], Any]:
    """The function that `package.module:name` names."""
    module, _, name = function.partition(":")
    found: Callable[[Any], Any] = getattr(import_module(module), name)
    return found


def _raised(kind: RaisedKind, message: str, start: float) -> Raised:
    return Raised(kind, message, traceback.format_exc(), time.perf_counter() - start)
