"""Random attributes of the opcodes that have many, against real XLA; a failing seed reproduces itself."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check, slow

from hlotool.conformance.generators.windows import GENERATORS


@pytest.mark.xla
@pytest.mark.parametrize("opcode", GENERATORS)
@pytest.mark.parametrize("seed", [*range(3), *slow(*range(3, 60))])
def test_like_xla(opcode: str, seed: int) -> None:
    text, arguments, steps = GENERATORS[opcode](np.random.default_rng([seed, len(opcode)]))
    # The fusion emitters leave row-major order in some windows, which shows where elements are equal.
    check(text, arguments, steps=steps, xla_cpu_use_fusion_emitters=opcode != "select-and-scatter")
