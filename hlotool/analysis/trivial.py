"""THE definition of a trivial program: one whose agreement says nothing of any other program.

Frontends compile one for every operation outside of `jit`: `jit_convert_element_type`,
`jit_broadcast_in_dim`, `jit_add`. A training script has sixty of them beside the one program that matters.
"""

from __future__ import annotations

from typing import Final

from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.ir.module import Module
from hlotool.ir.opcodes import OPCODES, Class, Trait, opcodes_with
from hlotool.ir.walk import reachable

#: Not counted: they give values another place, form or name, or make them of nothing.
_FREE: Final = frozenset({Class.DATA_MOVEMENT, Class.TUPLE, Class.SOURCE, Class.ANNOTATION})
#: Of which a trivial program has one at most. A reduction or a product is many operations.
_COUNTED: Final = frozenset({Class.ELEMENTWISE, Class.INDEXING})
#: Not counted either: what the first two call is counted in their place, and a conversion, which promotes the
#: scalar of `x + 1`, computes nothing.
_PASSED_OVER: Final = opcodes_with(Trait.INLINED) | {"convert", "bitcast-convert"}


def is_trivial(module: Module) -> bool:
    """Whether a program only moves and converts data, but for one elementwise or indexing operation."""
    count = 0
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            found = OPCODES[instruction.opcode].opcode_class
            if found in _FREE or instruction.opcode in _PASSED_OVER:
                continue
            if instruction.custom_call_target in TRANSPARENT:
                continue
            count += 1
            if found not in _COUNTED or count > 1:
                return False
    return True
