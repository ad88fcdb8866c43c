"""What the target of a program may do to f32 that HLO does not say: its products have narrower operands.

A TPU multiplies bf16. Unless a product or a convolution asks for more (`operand_precision`, `algorithm`), its
operands of f32 are rounded to bf16: by the hardware, where the text still says f32, or in the text, where
the compiler makes the operands, and what only moves data to them, bf16 (`bfloat16-propagation`). A GPU may
multiply TF32, in the hardware alone. What a product adds up and returns stays f32 on both.

XLA: xla_data.proto (PrecisionConfig), hlo/transforms/bfloat16_propagation.h; measured on what
libtpu 0.0.42 compiles: at operand_precision highest the same programs keep f32.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlotool.analysis.tiles import is_tiled
from hlotool.backends.numpy.rounding_errors import has_default_precision
from hlotool.dump.records import DumpModule
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ElementType, array_shapes


@dataclass(frozen=True, slots=True)
class ProductFreedom:
    """What products of f32 may be computed in.

    Attributes:
        unit: one ulp at 1 of the type that operands may be rounded to; 0 for f32 itself.
        reason: what a report says of it.
    """

    unit: float = 0.0
    reason: str = ""


STRICT = ProductFreedom()
ON_TPU = ProductFreedom(2.0**-7, "operands of default-precision products are bf16 on a TPU")
ON_GPU = ProductFreedom(2.0**-10, "operands of default-precision products may be TF32 on a GPU")

#: What TPU dumps put after a module's name: the number of a changelist.
_CHANGELIST = re.compile(r"\.cl_\d+\.[^/]*$")
#: Files that only the compiler for TPUs writes.
_TPU_ARTEFACT = "tpu_comp_env"


def product_freedom(module: DumpModule, reference: Module, tested: Module | None) -> ProductFreedom:
    """What the products of a program may be computed in, where some leave that open.

    Args:
        module: the files, whose names tell the target.
        reference: the program as it should be.
        tested: the text that is judged; None: a result that the target itself may have returned. Layouts in
            tiles tell a TPU, too, where names say nothing.
    """
    if not any(map(_is_open, reference.instructions())):
        return STRICT
    # Of a text in tiles no name of a file tells more: another compiler may have written the others.
    if any(is_tiled(program) for program in (reference, tested) if program is not None):
        return ON_TPU
    platforms = {stage.platform for stage in module.stages if stage.platform}
    if any("gpu" in platform for platform in platforms):
        return ON_GPU if tested is None else STRICT
    if any("tpu" in platform for platform in platforms):
        return ON_TPU
    if platforms:
        return STRICT
    return ON_TPU if _has_names_of_tpus(module) else STRICT


def _is_open(instruction: Instruction) -> bool:
    """Whether it is a product of f32 that asks for no precision."""
    kinds = (part.element_type for part in array_shapes(instruction.shape))
    return has_default_precision(instruction) and any(kind.real_part is ElementType.F32 for kind in kinds)


def _has_names_of_tpus(module: DumpModule) -> bool:
    names = [str(stage.source) for stage in module.stages]
    others = [file.path for file in module.artefacts]
    return any(map(_CHANGELIST.search, names)) or any(_TPU_ARTEFACT in name for name in others)
