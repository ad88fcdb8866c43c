"""Every operation that kernels know."""

from __future__ import annotations

# Importing a family registers its rules.
from hlotool.backends.cuda.codegen import (  # noqa: F401
    batch_norms,
    bits,
    contractions,
    convolutions,
    movement,
    narrow_products,
    pooling,
    random_bits,
    reductions,
    scatters,
)
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import RULES
from hlotool.backends.cuda.codegen.expansion import SPELLINGS
from hlotool.backends.cuda.codegen.movement import TAKERS
from hlotool.ir.opcodes import OPCODES as ROWS

#: Opcodes that are elementwise, have a rule, or are written in simpler instructions.
OPCODES = frozenset(ELEMENTWISE).union(RULES, TAKERS, SPELLINGS, {"get-dimension-size"}).intersection(ROWS)
