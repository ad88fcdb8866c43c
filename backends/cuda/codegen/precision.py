"""How far floats narrower than f32 are rounded inside of a fusion."""

from __future__ import annotations

import enum

from hlotool.backends.cuda.codegen.expansion import Value, expanded, leaves_of
from hlotool.backends.spec import Options
from hlotool.errors import UsageError
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.numerics.retyping import without_narrow_floats


class Precision(enum.Enum):
    """What happens to f16, bf16, f8 and f4 between the operations of one fusion.

    HLO rounds after every operation, as HLO says. WIDE keeps them in f32 and rounds what the fusion stores,
    as XLA may do (float_normalization.cc, simplify_fp_conversions.cc; `--xla_allow_excess_precision`), and
    as the numpy backend does with option `excess`: conversions to a narrow type inside of the fusion round
    nothing, either, while `reduce-precision` does.
    """

    HLO = "hlo"
    WIDE = "wide"


def precision_of(backend: str, options: Options) -> Precision:
    """What option `precision` of a backend's spec says.

    Raises:
        UsageError: there is no such precision.
    """
    name = options.get("precision", Precision.HLO.value)
    if name not in {p.value for p in Precision}:
        raise UsageError(f"backend {backend}: precision={name} is neither hlo nor wide")
    return Precision(name)


def widened(computation: Computation) -> tuple[dict[Instruction, Value], tuple[Instruction, ...]]:
    """Values of a fused computation in f32 where they are narrower, and its results in their declared types.

    Returns:
        What the instructions are worth, as `expanded`, and the arrays of the result.

    Raises:
        NotGenerated: as `expanded`.
    """
    retyped = without_narrow_floats(Module("fusion", [computation], computation))
    copy = retyped.module.entry
    arguments = [_converted(p, c) for p, c in zip(computation.parameters, copy.parameters)]
    values = expanded(copy, arguments)
    results = zip(leaves_of(values[copy.root]), leaves_of(computation.root))
    origins = {copied: origin for copied, origin in retyped.origins.items() if copied in values}
    seen = {origin: _declared(values[copied], origin) for copied, origin in origins.items()}
    return seen, tuple(_converted(value, declared) for value, declared in results)


def _declared(value: Value, origin: Instruction) -> Value:
    return _converted(value, origin) if isinstance(value, Instruction) else value


def _converted(value: Instruction, like: Instruction) -> Instruction:
    """`value` in the element type of another array."""
    if not isinstance(value.shape, ArrayShape) or not isinstance(like.shape, ArrayShape):
        return value
    if value.shape.element_type is like.shape.element_type:
        return value
    return Instruction(f"{value.name}.as.{like.shape.element_type}", "convert", like.shape, (value,))
