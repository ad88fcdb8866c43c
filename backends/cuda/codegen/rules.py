"""Every operation that kernels know."""

from __future__ import annotations

from hlotool.backends.cuda.codegen import (
    bits,
    contractions,
    convolutions,
    movement,
    narrow_products,
    pooling,
    reductions,
    scatters,
)
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import RULES
from hlotool.backends.cuda.codegen.expansion import SPELLINGS

#: Whose import registers their rules.
FAMILIES = (bits, contractions, convolutions, movement, narrow_products, pooling, reductions, scatters)

#: Opcodes that are elementwise, have a rule, or are written in simpler instructions.
OPCODES = frozenset(ELEMENTWISE) | frozenset(RULES) | frozenset(SPELLINGS) | {"get-dimension-size"}
