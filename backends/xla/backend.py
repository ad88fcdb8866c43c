"""Executes HLO with real XLA: programs as the frontend made them, and programs that are optimised already."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np

from hlotool.backends.base import TOKEN, Probe, Value
from hlotool.backends.xla.host import host_module
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.process import XlaProcess, key_for, shared_process
from hlotool.backends.xla.protocol import ArrayData, Execution, Program, Route, Setup
from hlotool.backends.xla.routes import route_for
from hlotool.backends.xla.signature import flat_signature
from hlotool.errors import InputDataError, Unsupported
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Module
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ArrayShape, leaves
from hlotool.values.flatten import flatten, unflatten

#: Where instructions come from makes no difference, and older versions cannot read how it is written now.
_TEXT = PrintOptions(metadata=False)


class XlaExecutable:
    """A program compiled by XLA; compiled once more when the process that held it died."""

    def __init__(self, module: Module, program: Program, process: XlaProcess) -> None:
        self.module = module
        self._program = program
        self._process = process
        self._number = self._compile()

    def _compile(self) -> int:
        number = self._process.compile(self._program).executable
        weakref.finalize(self, self._process.release, number)
        return number

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. XLA lets nobody watch, so `probe` must be None."""
        if probe is not None:
            raise Unsupported("XLA does not show the values of single instructions")
        [result] = self._run([arguments])
        return result

    def _run(self, arguments: Sequence[Sequence[Value]]) -> list[Value]:
        rows = [_argument_data(self.module, row) for row in arguments]
        results = self._process.run(Execution(self._number, rows))
        if not results.known:
            self._number = self._compile()
            results = self._process.run(Execution(self._number, rows))
        return [_value(self.module, row) for row in results.devices]


class XlaBackend:
    """XLA of the installed jaxlib, or of the one that another interpreter has."""

    def __init__(self, options: XlaOptions | None = None, name: str = "xla") -> None:
        self.name = name
        self.options = options or XlaOptions()

    @cached_property
    def setup(self) -> Setup:
        """What it computes with.

        Raises:
            BackendUnavailable: jaxlib or the device is missing.
        """
        return self._process(1).setup()

    @property
    def version(self) -> str:
        """`jaxlib X.Y.Z`, and the options that tell variants apart."""
        _, _, options = self.name.partition(":")
        return f"jaxlib {self.setup.jaxlib}" + (f" ({options})" if options else "")

    @property
    def device(self) -> str:
        """What it computes on."""
        return self.setup.device

    def compile(self, module: Module) -> XlaExecutable:
        """Compile for one device."""
        flat = flat_signature(module)
        route = self.options.route or route_for(module)
        program = Program(
            text=print_module(flat, _TEXT),
            route=route,
            host="" if route is Route.MLIR else print_module(host_module(flat)),
            flags=self.options.flags,
            platform=self.options.platform,
        )
        return XlaExecutable(module, program, self._process(1))

    def _process(self, devices: int) -> XlaProcess:
        options = self.options
        return shared_process(key_for(options.platform, options.python, devices, options.timeout))


def _argument_data(module: Module, arguments: Sequence[Value]) -> list[ArrayData]:
    """The arrays in the arguments, one by one."""
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(arguments)}")
    return [
        ArrayData.of(np.asarray(leaf, dtype_of(shape.element_type)))
        for parameter, argument in zip(parameters, arguments)
        for _, shape, leaf in flatten(parameter.shape, argument)
        if isinstance(shape, ArrayShape)
    ]


def _value(module: Module, row: Sequence[ArrayData]) -> Value:
    """The result that consists of these arrays."""
    arrays = iter(row)
    shape = module.entry.root.shape
    parts = [
        next(arrays).to_array(dtype_of(leaf.element_type)) if isinstance(leaf, ArrayShape) else TOKEN
        for _, leaf in leaves(shape)
    ]
    return cast(Value, unflatten(shape, parts))
