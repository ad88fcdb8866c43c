"""The numpy reference as the evaluator of constants that passes are given."""

from __future__ import annotations

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.ir.module import Module


def evaluate_constant(module: Module) -> Value:
    """What a module without parameters returns.

    Raises:
        Unsupported: the reference cannot execute it.
        HlotoolError: it failed.
    """
    return get_backend("numpy").compile(module).run([])
