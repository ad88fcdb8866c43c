"""Random attributes of the opcodes that have many, against real XLA; a failing seed reproduces itself."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, check, slow
from support.xla import JAXLIB, ONLY_EMITTERS, fusion_emitters

from hlotool.lab.conformance.generators.cases import Draft, generators

#: How many roundings a result may differ by, relative to the largest partial sum; none where nothing rounds.
STEPS = {
    "convolution": 128.0,
    "dot": 128.0,
    "gather": 0.0,
    "reduce-window": 128.0,
    "scatter": 0.0,
    "select-and-scatter": 0.0,
}


def untied(values: Array) -> Array:
    """The values in their order, but that of equal ones the later one is larger."""
    ranks = np.empty(values.size, values.dtype)
    ranks[np.argsort(values, axis=None, kind="stable")] = np.arange(values.size)
    return ranks.reshape(values.shape)


@pytest.mark.xla
@pytest.mark.parametrize("opcode", STEPS)
@pytest.mark.parametrize("seed", [*range(3), *slow(*range(3, 60))])
def test_like_xla(opcode: str, seed: int) -> None:
    draft = Draft(np.random.default_rng([seed, len(opcode)]))
    generators()[opcode](draft, opcode)
    arguments, text = draft.arguments, draft.builder.build_module().to_text()
    is_exact = opcode == "reduce-window" and "add" not in text
    if opcode == "select-and-scatter" and JAXLIB >= ONLY_EMITTERS:
        arguments[0] = untied(arguments[0])
    # The fusion emitters leave row-major order in some windows, which shows where elements are equal.
    check(
        text,
        arguments,
        steps=0 if is_exact else STEPS[opcode],
        **fusion_emitters(opcode != "select-and-scatter"),
    )
