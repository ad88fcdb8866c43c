"""Executes small programs with StableHLO's reference interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotool.backends.base import Probe, Value
from hlotool.backends.stablehlo.protocol import Evaluation
from hlotool.backends.stablehlo.types import from_plain, plain_types, to_plain
from hlotool.backends.xla.executable import flat_arguments, value_of
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.process import XlaProcess, key_for, shared_process
from hlotool.backends.xla.programs import logical_module
from hlotool.backends.xla.protocol import ArrayData, Results
from hlotool.backends.xla.routes import refuse_the_outside
from hlotool.backends.xla.signature import flat_signature
from hlotool.errors import BackendCrashed, Location, Unsupported
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import array_shapes

_EVALUATE = "hlotool.backends.stablehlo.child:evaluate"

_TEXT = PrintOptions(metadata=False)

#: What the interpreter says of programs that it cannot run, before it ends the process or raises.
_REFUSAL = re.compile(r"LLVM ERROR: (.*?)(?:\. However|$)|^MLIRError: (.*)", re.DOTALL)


class StablehloExecutable:
    """A program for the interpreter; everything happens when it is run."""

    def __init__(self, module: Module, process: XlaProcess) -> None:
        flat = flat_signature(logical_module(module))
        refuse_the_outside(flat)
        self.module = module
        self._parameters = [s.element_type for p in flat.entry.parameters for s in array_shapes(p.shape)]
        self._results = [shape.element_type for shape in array_shapes(flat.entry.root.shape)]
        self._text = print_module(plain_types(flat), _TEXT)
        self._process = process

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. The interpreter shows nothing, so `probe` must be None.

        Raises:
            Unsupported: the interpreter does not know an operation.
        """
        if probe is not None:
            raise Unsupported("StableHLO's interpreter does not show the values of single instructions")
        arrays = flat_arguments(self.module, arguments)
        plain = [part for kind, array in zip(self._parameters, arrays) for part in to_plain(kind, array)]
        evaluation = Evaluation(self._text, [ArrayData.of(part) for part in plain])
        try:
            [row] = self._process.call(_EVALUATE, evaluation, Results).devices
        except BackendCrashed as error:
            raise _refusal(error, self.module) or error from None
        remaining = iter([data.to_array() for data in row])
        return value_of(self.module, [from_plain(kind, remaining) for kind in self._results])


def _refusal(error: BackendCrashed, module: Module) -> Unsupported | None:
    found = _REFUSAL.search(error.message)
    if found is None:
        return None
    reason = " ".join((found[1] or found[2]).split())
    return Unsupported(f"StableHLO's interpreter: {reason}", location=Location(module.path))


class StablehloBackend:
    """StableHLO's reference interpreter of the installed jaxlib, or of another interpreter's."""

    def __init__(self, options: XlaOptions | None = None, name: str = "stablehlo") -> None:
        options = options or XlaOptions()
        self.name = name
        self._process = shared_process(key_for("cpu", options.python, 1, options.timeout))

    def warm_up(self) -> None:
        """Start the process that holds the interpreter, without waiting for it."""
        self._process.start()

    @property
    def version(self) -> str:
        """`StableHLO of jaxlib X.Y.Z`."""
        return f"StableHLO of jaxlib {self._process.setup().jaxlib}"

    def compile(self, module: Module) -> StablehloExecutable:
        """Write the program as the interpreter wants it.

        Raises:
            Unsupported: it is for several devices, or it talks to the host.
        """
        if is_per_device(module):
            raise Unsupported("StableHLO's interpreter runs programs for one device")
        return StablehloExecutable(module, self._process)
