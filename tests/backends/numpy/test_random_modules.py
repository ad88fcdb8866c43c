"""Random attributes of the opcodes that have many, against real XLA; a failing seed reproduces itself."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, check, slow
from support.xla import JAXLIB, ONLY_EMITTERS, fusion_emitters

from hlotool.lab.conformance.generators.windows import GENERATORS


def untied(values: Array) -> Array:
    """The values in their order, but that of equal ones the later one is larger."""
    ranks = np.empty(values.size, values.dtype)
    ranks[np.argsort(values, axis=None, kind="stable")] = np.arange(values.size)
    return ranks.reshape(values.shape)


@pytest.mark.xla
@pytest.mark.parametrize("opcode", GENERATORS)
@pytest.mark.parametrize("seed", [*range(3), *slow(*range(3, 60))])
def test_like_xla(opcode: str, seed: int) -> None:
    text, arguments, steps = GENERATORS[opcode](np.random.default_rng([seed, len(opcode)]))
    if opcode == "select-and-scatter" and JAXLIB >= ONLY_EMITTERS:
        arguments[0] = untied(arguments[0])
    # The fusion emitters leave row-major order in some windows, which shows where elements are equal.
    check(text, arguments, steps=steps, **fusion_emitters(opcode != "select-and-scatter"))
