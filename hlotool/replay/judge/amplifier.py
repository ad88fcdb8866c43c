"""Which instruction makes a program unstable: where the spread of legal executions explodes.

Three executions are watched. Of every value a few elements are kept; their spread relative to their size is
compared with that of the operands. In a loop the first rounds are watched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hlotool.backends.base import Value
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ElementType, array_shapes
from hlotool.numerics.patterns import typical_magnitude
from hlotool.numerics.ulp import epsilon
from hlotool.replay.judge.ensemble import Ensemble

#: Executions watched, elements kept of a value, and values kept of an instruction.
_EXECUTIONS, _ELEMENTS, _ROUNDS = 3, 256, 32
#: A relative spread below this is no spread yet; ulps by which a few roundings differ.
_LEAST, _FEW = 1e-16, 4
#: They hand on what others made.
_CARRIERS = frozenset((Class.TUPLE, Class.CONTROL, Class.ANNOTATION, Class.SOURCE, Class.DATA_MOVEMENT))


@dataclass(slots=True)
class Sketches:
    """A few elements of every value of one execution, in order.

    Attributes:
        elements: that are kept of a value.
        values: by instruction, in the order of execution; one per round of a loop.
    """

    elements: int = _ELEMENTS
    values: dict[Instruction, list[Array]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Keep some elements; the probe of an execution."""
        kept = self.values[instruction]
        if len(kept) < _ROUNDS and isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fciub":
            flat = np.asarray(value).reshape(-1)
            kept.append(flat[:: max(1, flat.size // self.elements)][: self.elements].astype(np.complex128))


def amplifying_instruction(ensemble: Ensemble) -> Instruction | None:
    """The instruction whose result spreads most beyond its operands; None where it cannot be watched."""
    executions = []
    for number in range(_EXECUTIONS):
        sketches = Sketches()
        if not ensemble.watch(number, sketches):
            return None
        executions.append(sketches.values)
    return _largest_growth(executions)


def _largest_growth(executions: Sequence[dict[Instruction, list[Array]]]) -> Instruction | None:
    spreads = {i: _spreads([e.get(i, []) for e in executions]) for i in executions[0]}
    best, growth = None, 1.0
    for instruction, own in spreads.items():
        if instruction.row.opcode_class in _CARRIERS or not own:
            continue
        for round_number, spread in enumerate(own):
            before = [
                known[min(round_number, len(known) - 1)]
                for operand in instruction.operands
                if (known := spreads.get(operand))
            ]
            grown = spread / max([_rounding(instruction), *before])
            if spread > _LEAST and grown > growth:
                best, growth = instruction, grown
    return best


def _rounding(instruction: Instruction) -> float:
    """What one rounding makes of operands without spread: no amplification."""
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    kinds = {part.element_type for shape in shapes for part in array_shapes(shape)}
    return _FEW * max((epsilon(kind) for kind in kinds if kind.is_inexact), default=epsilon(ElementType.F64))


def _spreads(rounds: Sequence[Sequence[Array]]) -> list[float]:
    """Relative spread of each value of one instruction."""
    found = []
    for versions in zip(*rounds):
        if len({v.size for v in versions}) > 1:
            found.append(1.0)
            continue
        stacked = np.stack(versions)
        with np.errstate(all="ignore"):
            usable = stacked[:, np.isfinite(stacked).all(axis=0)]
            size = typical_magnitude(usable)
            spread = typical_magnitude(usable - usable.mean(axis=0)) if usable.size else 0.0
        found.append(min(1.0, spread / size) if size else 0.0)
    return found
