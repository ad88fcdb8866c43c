"""Compiles programs with IREE and runs them on this CPU."""

from __future__ import annotations

import re

from hlotool.backends.stablehlo.backend import PlainExecutable, refused, to_stablehlo
from hlotool.backends.stablehlo.protocol import Evaluation
from hlotool.backends.xla.process import ProcessKey, shared_process
from hlotool.backends.xla.protocol import Results
from hlotool.errors import BackendCrashed, Unsupported
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device

_CHILD = "hlotool.backends.iree.child"

#: What its compiler says of programs that it cannot compile; of a fault of its own it says where it stands.
_REFUSAL = re.compile(r"CompilerToolError: .*?Error code: 1\b.*?error: ([^\n]*)", re.DOTALL)

#: The runtime's own words for what it cannot run.
_NOT_RUN = re.compile(r"(?:UNIMPLEMENTED|INVALID_ARGUMENT|NOT_FOUND)[;:] ([^\n]*)")


class IreeBackend:
    """IREE's compiler and runtime, of this interpreter or of another one.

    Args:
        python: path of the other one; empty for this.
        timeout: seconds for each run, which compiles a program that is new.
        name: its spec.
    """

    def __init__(self, python: str = "", timeout: float | None = None, name: str = "iree") -> None:
        self.name = name
        self._process = shared_process(
            ProcessKey("cpu", python, 1, timeout, preload=(_CHILD,), name="iree", extra="iree")
        )

    def warm_up(self) -> None:
        """Start the process that holds the runtime, without waiting for it."""
        self._process.start()

    @property
    def version(self) -> str:
        """`IREE X.Y.Z`.

        Raises:
            BackendUnavailable: it is not installed.
        """
        return f"IREE {self._process.call(f'{_CHILD}:version', '', str)}"

    def compile(self, module: Module) -> PlainExecutable:
        """Write the program as StableHLO; it is compiled where it is run.

        Raises:
            Unsupported: it is for several devices, talks to the host, or is none in StableHLO.
            BackendUnavailable: there is no jaxlib, which writes it.
        """
        if is_per_device(module):
            raise Unsupported("backend iree runs programs for one device")
        return PlainExecutable(module, to_stablehlo, self._evaluated)

    def _evaluated(self, evaluation: Evaluation) -> Results:
        try:
            return self._process.call(f"{_CHILD}:evaluate", evaluation, Results)
        except BackendCrashed as error:
            pattern = _REFUSAL if _REFUSAL.search(error.message) else _NOT_RUN
            raise refused(error, pattern, "IREE") from None
