"""What the tests of backend `cuda` run in a process with the stand-in for a GPU; each case returns JSON.

`python -m support.cuda_cases NAME` prints what the case of that name returns.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.backend import CudaBackend, CudaExecutable
from hlotool.backends.cuda.machine import to_arrays
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.ir.arrays import Array
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from support.cuda_programs import DOTS, PROGRAMS, SPREAD, TOO_LARGE, arguments_for
from support.differential import leaves
from support.kernels import differing, on_numpy
from support.random_fusions import arguments_of, module_of, random_fusion


@cache
def backend(options: str = "") -> CudaBackend:
    found = get_backend(f"cuda:compiler=nvcc{options}")
    assert isinstance(found, CudaBackend)
    return found


def program(name: str, options: str = "") -> tuple[Module, CudaExecutable, list[Any]]:
    module = parse_module(TOO_LARGE if name == "too large" else PROGRAMS[name])
    return module, backend(options).compile(module), arguments_for(module)


def counted(name: str) -> int:
    """What the driver says of how often something happened."""
    function = ctypes.CDLL("libcuda.so.1").fake_cuda_count
    function.restype = ctypes.c_longlong
    number: int = function(name.encode())
    return number


def wrong(module: Module, value: Value, arguments: list[Any]) -> int:
    """Elements that are not those of the reference, to the bit."""
    pairs = zip(leaves(value), on_numpy(module, arguments))
    return sum(_differing(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _differing(ours: Array, theirs: Array) -> int:
    assert ours.shape == theirs.shape
    is_token = ours.dtype == object
    return 0 if is_token or not ours.size else differing(ours, theirs)


def programs() -> Any:
    """All programs: wrong elements, launches, notes."""
    found = {}
    for name in PROGRAMS:
        module, executable, arguments = program(name)
        value = executable.run(arguments)
        found[name] = [wrong(module, value, arguments), executable.launches, list(executable.notes)]
    return found


def traffic() -> Any:
    """What a run of each program moves: bytes up, down, and on the device; the second run of two."""
    found = {}
    for name in PROGRAMS:
        _, executable, arguments = program(name)
        for _ in range(2):
            before = [counted(f"bytes {way}") for way in ("up", "down", "copied")]
            executable.run(arguments)
        found[name] = [counted(f"bytes {w}") - b for w, b in zip(("up", "down", "copied"), before)]
    return found


def fusions() -> Any:
    """Random fusions: wrong elements of each."""
    chosen = [random_fusion(seed) for seed in range(12)]
    module, arguments = parse_module(module_of(chosen)), arguments_of(chosen, 0)
    values = zip(leaves(backend().compile(module).run(arguments)), on_numpy(module, arguments))
    return [differing(a, b) for a, b in values]


def repeats() -> Any:
    """Whether runs over memory of other content give the same bits, and what is left when all is over."""
    same = True
    for name in PROGRAMS:
        _, executable, arguments = program(name)
        results = []
        for byte in (0x00, 0xFF, 0x5A):
            _poison(byte)
            results.append([np.asarray(leaf).tobytes() for leaf in leaves(executable.run(arguments))])
        same &= results[0] == results[1] == results[2]
    del executable
    gc.collect()
    backend().memory.device.release()
    return [same, counted("bytes in use")]


def _poison(byte: int) -> None:
    """Fill what the memory pool will hand out next."""
    device = backend().memory.device
    blocks = [(device.allocate(1 << size), 1 << size) for size in range(14) for _ in range(4)]
    for block, size in blocks:
        device.fill(block, byte, size)


def timing() -> Any:
    """Prepared programs: right, their arguments kept as they are, no uploads after the first."""
    module, executable, arguments = program("loop")
    prepared = executable.prepare(arguments)
    prepared.run()
    before = counted("bytes up")
    times = prepared.time(3, inner=2)
    moved = counted("bytes up") - before
    values = [to_arrays(prepared.run()) for _ in range(2)]
    return [[wrong(module, value, arguments) for value in values], len(times), min(times) > 0, moved]


def probed() -> Any:
    """What a probe sees of a program with a fusion."""
    _, executable, arguments = program("in a fusion")
    seen: list[str] = []

    def see(instruction: Any, value: Any) -> None:
        assert isinstance(value, np.ndarray | np.generic | tuple)
        seen.append(instruction.name)

    executable.run(arguments, see)
    return seen


def full() -> Any:
    """A device that is too small for all values of a program at a time; and for one of them."""
    module, executable, arguments = program("many alive", ",unfused")
    bad = wrong(module, executable.run(arguments), arguments)
    return [bad, list(executable.notes), failure("too large")]


def products() -> Any:
    """Large dots of many kinds: launches with and without the library, and how far the results are apart."""
    found = {}
    for name, text in DOTS.items():
        module = parse_module(text)
        arguments = arguments_for(module)
        executable, generated = (backend(o).compile(module) for o in ("", ",generated"))
        ours, theirs = (np.asarray(e.run(arguments)) for e in (executable, generated))
        scale = np.abs(theirs.astype(np.complex128)).max()
        distance = float(np.abs(ours.astype(np.complex128) - theirs.astype(np.complex128)).max() / scale)
        found[name] = [executable.launches, generated.launches, distance]
    return found


def failing_product() -> Any:
    """The error of a product that the library cannot do."""
    module = parse_module(DOTS["plain"])
    try:
        backend().compile(module).run(arguments_for(module))
    except BackendFailed as error:
        return str(error)
    return ""


def failure(name: str = "chain") -> Any:
    """The error of one run, and how the next one ends."""
    module, executable, arguments = program(name)
    try:
        executable.run(arguments)
    except HlotoolError as error:
        first = [type(error).__name__, str(error), isinstance(error, BackendFailed) and error.here]
    else:
        first = ["nothing", "", False]
    try:
        return [*first, wrong(module, executable.run(arguments), arguments)]
    except HlotoolError as error:
        return [*first, type(error).__name__]


def unavailable() -> Any:
    """Why the backend cannot be used, or what it is."""
    try:
        return [backend().version, backend().device]
    except HlotoolError as error:
        return [type(error).__name__, str(error)]


def another_device() -> Any:
    """What is said of a device of a higher number than there are."""
    try:
        backend(",device=7")
    except HlotoolError as error:
        return str(error)
    return ""


def refused() -> Any:
    """What is said when kernels are not for this device."""
    try:
        program("chain")
    except HlotoolError as error:
        return [type(error).__name__, str(error)]
    return []


def elsewhere() -> Any:
    """A program in another thread: wrong elements."""
    module, executable, arguments = program("loop")
    found: list[int] = []
    run = lambda: found.append(wrong(module, executable.run(arguments), arguments))  # noqa: E731
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


def devices() -> Any:
    """A program for two devices: wrong elements of each, what a probe sees on the second, notes."""
    module, grid = parse_module(SPREAD), DeviceGrid(1, 2)
    arguments = [[np.arange(64, dtype=np.float32) + n] for n in range(2)]
    expected = NumpyBackend().compile_devices(module, grid).run_devices(arguments)
    executable = backend().compile_devices(module, grid)
    seen: list[str] = []
    results = [executable.run_devices(arguments)]
    notes = list(executable.notes)
    probes: list[Probe | None] = [None, lambda instruction, value: seen.append(instruction.name)]
    results.append(executable.run_devices(arguments, probes))
    bad = [
        sum(_differing(a, b) for a, b in zip(leaves(ours), leaves(theirs)))
        for result in results
        for ours, theirs in zip(result, expected)
    ]
    return [bad, seen, notes]


def main(name: str) -> None:
    case: Callable[[], Any] = globals()[name]
    print(json.dumps(case()))


if __name__ == "__main__":
    main(sys.argv[1])
