"""Every operation that kernels know."""

from __future__ import annotations

from hlotool.backends.cuda.codegen import bits, movement, reductions
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import RULES

#: Whose import registers their rules.
FAMILIES = (bits, movement, reductions)

#: Opcodes that are elementwise or have a rule.
OPCODES = frozenset(ELEMENTWISE) | frozenset(RULES)
