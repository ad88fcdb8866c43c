"""The process that holds IREE: its runtime may die of a program, its compiler is a program of its own."""

from __future__ import annotations

from functools import cache
from importlib import metadata

import numpy as np

from hlotool.backends.stablehlo.protocol import Evaluation
from hlotool.backends.xla.child import NoPlugin
from hlotool.backends.xla.protocol import ArrayData, Results

_REMEDY = "pip install 'hlotool[iree]'"


def version(_: str) -> str:
    """The version of IREE's compiler.

    Raises:
        NoPlugin: it is missing.
    """
    try:
        for package in ("iree-base-runtime", "iree-base-compiler"):
            found = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise NoPlugin(f"there is no IREE here: {_REMEDY}") from None
    return found


def evaluate(evaluation: Evaluation) -> Results:
    """Run a program once; its text is StableHLO.

    Raises:
        NoPlugin: IREE is missing.
        Exception: of IREE's own, where it cannot compile or run it.
    """
    version("")
    from iree import runtime

    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    module = runtime.VmModule.copy_buffer(context.instance, _compiled(evaluation.text))
    context.add_vm_module(module)
    results = context.modules[module.name]["main"](*(data.to_array() for data in evaluation.arguments))
    several = results if isinstance(results, (tuple, list)) else [results]
    return Results(True, [[ArrayData.of(np.asarray(result)) for result in several]])


@cache
def _compiled(text: str) -> bytes:
    from iree import compiler

    code: bytes = compiler.compile_str(
        text,
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    return code
