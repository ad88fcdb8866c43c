"""XLA on the same HLO text in the same process: its result, its time, and the kernels that it launches.

XLA aborts the process on some programs; `suite` then goes on in another one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from hlotool.backends.xla import jaxlib_api
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Module
from hlotool.parser.reader import parse_module

#: What starts no kernel of its own.
_FREE = frozenset(
    {
        "add-dependency", "after-all", "async-start", "async-update", "bitcast", "call", "conditional",
        "constant", "domain", "get-tuple-element", "opt-barrier", "parameter", "partition-id",
        "replica-id", "tuple", "while",
    }
)  # fmt: skip
#: Whose computations are not run as programs but are part of an operation.
_RUN_COMPUTATIONS = frozenset({"async-start", "call", "conditional", "while"})


class NoXla(Exception):
    """XLA cannot be used here; says why."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """What XLA made of a program.

    Attributes:
        fusions: fused kernels.
        launches: instructions that launch something, those of a loop's body once.
    """

    fusions: int
    launches: int


@cache
def device(platform: str) -> Any:
    """The first device of a platform, `gpu` or `cpu`.

    Raises:
        NoXla: jaxlib, or its plug-in for the platform, is missing or does not work.
    """
    try:
        jax: Any = import_module("jax")
        if platform == "cpu":
            jax.config.update("jax_platforms", "cpu")
            jaxlib_api.initialize_lapack()
        jax.config.update("jax_enable_x64", True)
        return jax.devices(platform)[0]
    except (ImportError, RuntimeError) as error:
        raise NoXla(f"XLA for {platform}: {error}") from None


def version(platform: str) -> str:
    """`jaxlib X.Y.Z on DEVICE`; raises as `device`."""
    found = device(platform)
    import jaxlib.version

    return f"jaxlib {jaxlib.version.__version__} on {found.device_kind}"


class XlaProgram:
    """HLO text compiled by XLA, with its arguments on the device.

    Attributes:
        compile_seconds: that XLA took, reading the text included.

    Raises:
        NoXla: there is none; anything else is XLA's own.
    """

    def __init__(self, text: str, arguments: Sequence[Array], platform: str) -> None:
        found = device(platform)
        jax: Any = import_module("jax")
        self._jax = jax
        start = time.perf_counter()
        code = jaxlib_api.to_stablehlo(text)
        options = jaxlib_api.find("CompileOptions")()
        self._executable = jaxlib_api.compile_stablehlo(code, [found], options)
        self.compile_seconds = time.perf_counter() - start
        self._arguments = [jax.device_put(argument, found) for argument in arguments]
        self._results: list[Any] = []
        jax.block_until_ready(self._arguments)

    def kernels(self) -> Kernels | str:
        """What the optimised program launches; why it is unknown where its text cannot be read."""
        text = self._executable.hlo_modules()[0].to_string()
        try:
            return count_kernels(parse_module(text))
        except HlotoolError as error:
            return f"XLA's optimised program: {error}"

    def enqueue(self) -> None:
        """Start one execution; the memory of the last one's results may be used again."""
        self._results = self._executable.execute_sharded(
            self._arguments
        ).disassemble_into_single_device_arrays()

    def wait(self) -> None:
        """Until everything started is done."""
        self._jax.block_until_ready(self._results)

    def leaves(self) -> list[Array]:
        """The results of the last execution."""
        return [np.asarray(leaf[0]) for leaf in self._results]


def count_kernels(module: Module) -> Kernels:
    """Count the instructions that launch kernels, library calls or copies, wherever control flow leads.

    What is started and later waited for counts once. XLA's own listing (`thunks`) has more in one case: an
    operation that works in place, such as a sort, on an array that is needed afterwards copies it before.
    """
    opcodes: Counter[str] = Counter()
    pending: list[Computation] = [module.entry]
    seen: set[int] = set()
    while pending:
        computation = pending.pop()
        if id(computation) in seen:
            continue
        seen.add(id(computation))
        for instruction in computation.instructions:
            opcodes[instruction.opcode] += 1
            if instruction.opcode in _RUN_COMPUTATIONS:
                pending += instruction.called
    launches = sum(n for opcode, n in opcodes.items() if opcode not in _FREE and not opcode.endswith("-done"))
    return Kernels(opcodes["fusion"], launches)
