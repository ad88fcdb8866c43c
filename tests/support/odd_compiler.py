"""A compiler with a fault of its own: where a program has a sine, it takes the maximum for the minimum.

Without its pass `algsimp` it is right. Its other fault, in `ceil`, no pass is the reason of.
"""

from __future__ import annotations

from typing import Any

import hlotool
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import NO_OPTIONS, Options
from hlotool.ir.module import Module

#: For `hlotool.backends.registry.BUILT_IN`.
ENTRY = "support.odd_compiler:create"


class OddCompiler:
    """See above."""

    name = "odd"
    version = "odd 1.0"

    def __init__(self, options: Options) -> None:
        self._is_right = options.get("disable") == "algsimp"

    def compile(self, module: Module) -> Any:
        text = module.to_text()
        if "sine(" in text and not self._is_right:
            text = text.replace(" minimum(", " maximum(")
        return NumpyBackend().compile(hlotool.parse(text.replace(" ceil(", " floor(")))


def create(options: Options = NO_OPTIONS) -> OddCompiler:
    return OddCompiler(options)
