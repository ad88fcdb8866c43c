"""Functions of a user's script as StableHLO: the script runs in a process of its own, with JAX on the CPU.

Nothing of hlotool is imported here but the protocol: the interpreter may be another one.
"""

from __future__ import annotations

import inspect
import os
import re
import runpy
import sys
from collections.abc import Mapping
from typing import Any

from hlotool.backends.aot.protocol import LowerRequest

#: What a script calls the arguments of its functions.
EXAMPLE = "example_args"

_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")
#: Element types whose names JAX and HLO do not share.
_TYPES = {"pred": "bool", "bf16": "bfloat16", "s": "int", "u": "uint", "f": "float", "c": "complex"}


class BadScript(Exception):
    """The script has no such function, or does not say what it is called with."""


def lower(request: LowerRequest) -> str:
    """Lower a function, and write it; its name."""
    found = _function(request.script, request.function)
    stage = _stage(found[0], request.function, found[1], request.shapes)
    if hasattr(stage, "lower"):
        stage = stage.lower(lowering_platforms=(request.platform,))
    module = stage.compiler_ir("stablehlo")
    with open(request.output, "wb") as file:
        module.operation.write_bytecode(file)
    return str(module.operation.attributes["sym_name"].value)


def _function(script: str, name: str) -> tuple[Any, Mapping[str, Any]]:
    folder = os.path.dirname(os.path.abspath(script))
    sys.path.insert(0, folder)
    sys.argv = [script]
    values = runpy.run_path(script, run_name="__hlotool__")
    if not callable(values.get(name)) and not _is_stage(values.get(name)):
        functions = sorted(key for key, value in values.items() if callable(value) and key[0] != "_")
        raise BadScript(f"{script} has no function {name}; it has: {', '.join(functions) or 'none'}")
    return values[name], values


def _is_stage(value: Any) -> bool:
    return hasattr(value, "compiler_ir") or (hasattr(value, "jaxpr") and hasattr(value, "lower"))


def _stage(function: Any, name: str, values: Mapping[str, Any], shapes: tuple[str, ...] | None) -> Any:
    """What JAX traced or lowered: the script itself did, or it is done here on example arguments."""
    import jax

    if _is_stage(function):
        return function
    if shapes is not None:
        arguments: Any = tuple(map(_shaped, shapes))
    elif EXAMPLE in values and _parameters(function):
        arguments = values[EXAMPLE]() if callable(values[EXAMPLE]) else values[EXAMPLE]
    elif hasattr(function, "lower"):
        arguments = ()
    elif _parameters(function):
        raise BadScript(
            f"what is {name} called with? Say --args f32[8,128],s32[], let the script define {EXAMPLE} (a"
            " tuple, or a function that returns one), or name a function without parameters that returns"
            " jax.jit(f).lower(...)"
        )
    else:
        made = function()
        if not _is_stage(made):
            raise BadScript(f"{name} takes no arguments and returns nothing that jax.jit(f).lower(...) gives")
        return made
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    given = (arguments, {}) if not isinstance(arguments, Mapping) else ((), arguments)
    return jitted.trace(*given[0], **given[1])


def _parameters(function: Any) -> list[str]:
    """Those that must be given."""
    parameters = inspect.signature(function).parameters.values()
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in optional]


def _shaped(text: str) -> Any:
    from jax import ShapeDtypeStruct

    make: Any = ShapeDtypeStruct  # it has no types
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise BadScript(f"--args {text}: write shapes as HLO does, such as f32[8,128] or s32[]")
    return make(tuple(map(int, filter(None, match[2].split(",")))), _dtype(match[1]))


def _dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    letter, digits = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz")
    known = _TYPES.get(name) or f"{_TYPES.get(letter, letter)}{digits}"
    known = known if not name.startswith("f8") else f"float8_{name[2:]}"
    if hasattr(ml_dtypes, known):
        return np.dtype(getattr(ml_dtypes, known))
    try:
        return np.dtype(known)
    except TypeError:
        raise BadScript(f"--args: {name} is no element type") from None
