"""HLO as StableHLO, which jaxlib writes."""

from __future__ import annotations

from importlib.util import find_spec

from hlotool.backends.stablehlo.protocol import Converted
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.process import key_for, shared_process
from hlotool.backends.xla.programs import logical_module
from hlotool.errors import BackendUnavailable, Location, Unsupported
from hlotool.ir.module import Module
from hlotool.ir.printer import print_module

_CONVERT = "hlotool.backends.stablehlo.child:convert"


def to_stablehlo(module: Module) -> str:
    """A program as a frontend would have written it: without fusions, layouts and schedule.

    Raises:
        BackendUnavailable: there is no jaxlib.
        BackendFailed: XLA died of the program.
        Unsupported: StableHLO has no word for something in it.
    """
    if find_spec("jaxlib") is None:
        raise BackendUnavailable("StableHLO is written by jaxlib: pip install 'hlotool[xla]'")
    options = XlaOptions()
    process = shared_process(key_for("cpu", options.python, 1, options.timeout))
    answer = process.call(_CONVERT, print_module(logical_module(module)), Converted)
    if answer.refusal:
        raise Unsupported(f"XLA writes no StableHLO for it: {answer.refusal}", location=Location(module.path))
    return answer.text
