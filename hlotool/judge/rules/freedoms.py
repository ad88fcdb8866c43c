"""What the target of a program may do that HLO does not say: the freedoms of legal executions.

- **Products of f32.** A TPU multiplies bf16. Unless a product or a convolution asks for more
  (`operand_precision`, `algorithm`), its operands of f32 are rounded to bf16: by the hardware, where the
  text still says f32, or in the text, where the compiler makes the operands, and what only moves data to
  them, bf16 (`bfloat16-propagation`). A GPU may multiply TF32, in the hardware alone. What a product adds
  up and returns stays f32 on both.
- **Sums of narrow types** are made in f32 on a TPU, and rounded once: `bfloat16-propagation` makes a sum of
  thousands of bf16 terms out of one of f32 whose result is rounded to bf16 anyway.
- **Contraction.** A product whose only rounding is that of the sum it enters (fma), in complex operations,
  too: on every target (`rules.products`).
- **Excess precision.** A narrow type need not be rounded to, unless the dump's debug options say
  `xla_allow_excess_precision=false`. A `reduce-precision` always is (`facts.retyping`).
- **f64 of pairs.** A TPU makes f64 of two f32: of 2^-44 precision, and of the range of f32
  (`rules.semantics`).
- **Fast math.** NaN and infinity may be lost where the dump's debug options say so.

Nothing else loses width (`rules.lost_width`).

XLA: xla_data.proto (PrecisionConfig), hlo/transforms/bfloat16_propagation.h, xla.proto (DebugOptions); as
measured on what libtpu 0.0.42 compiles: at operand_precision highest the same programs keep f32.
"""

from __future__ import annotations

import re

from msgspec import Struct

from hlotool.backends.numpy.executions.rounding_errors import has_default_precision
from hlotool.facts.buffers import is_tiled
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ElementType, array_shapes
from hlotool.judge.records import FreedomsRecord
from hlotool.sources.compilation import fast_math, inexact, keeps_every_rounding, switches
from hlotool.sources.records import DumpModule


class ProductFreedom(Struct, frozen=True):
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


class Freedoms(Struct, frozen=True):
    """What a legal execution of one program for one target may do.

    Attributes:
        target: `cpu`, `gpu`, `tpu`, or empty where nothing tells.
        told_by: what tells the target, in words.
        product: what products of f32 may be computed in.
        excess_precision: a rounding to a narrow type may be left out.
        fast_math: the flags under which NaN and infinity need not survive.
        inexact: those under which divisions and functions need not be what they are called.
    """

    target: str = ""
    told_by: str = ""
    product: ProductFreedom = STRICT
    excess_precision: bool = True
    fast_math: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()

    @property
    def regrouping(self) -> str:
        """The flag under which sums may be regrouped as if nothing were rounded; empty without one."""
        return next((flag for flag in self.fast_math if flag.endswith("enable_fast_math=true")), "")

    @property
    def sums_are_wide(self) -> bool:
        """Whether sums of a narrow type are made in f32."""
        return self.target == "tpu"

    @property
    def algorithm_unit(self) -> float:
        """One ulp at 1 of what an `algorithm` that only the compiler names may round operands to."""
        return ON_GPU.unit if self.target == "gpu" else self.product.unit

    @property
    def f64_unit(self) -> float:
        """What an operation on f64 may be off by, relative to its result: a TPU makes f64 of pairs of f32.

        Measured with libtpu 0.0.42: 12 ulps, 2^-48, for a product and a sum; the arithmetic of such pairs is
        good to 2^-44 (Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks of
        double-word arithmetic", 2017).
        """
        return 2.0**-44 if self.target == "tpu" else 0.0

    @property
    def record(self) -> FreedomsRecord:
        """The same as plain data."""
        return FreedomsRecord(
            target=self.target,
            told_by=self.told_by,
            products=self.product.reason,
            excess_precision=self.excess_precision,
            flags=[*self.fast_math, *self.inexact],
        )


#: Of a program whose target is not known.
UNKNOWN_TARGET = Freedoms()


def freedoms(
    module: DumpModule,
    reference: Module,
    tested: Module | None,
    is_made_here: bool = False,
    runs_as: str = "",
) -> Freedoms:
    """What a legal execution of a program may do.

    Args:
        module: the files, whose names show the target, and whose debug options the flags.
        reference: the program as it should be.
        tested: the text that is judged; None: a result that the target itself may have returned. Layouts in
            tiles show a TPU, too, where names say nothing.
        is_made_here: a compiler made `tested` just now; the files, with their flags, are of another one.
        runs_as: the target whose hardware the backend stands for that executed `tested`; empty for none.
    """
    target, told_by = _target(module, reference, tested, is_made_here)
    if runs_as:
        target, told_by = runs_as, "the backend"
    product = STRICT
    if any(map(_is_open, reference.instructions())):
        if target == "tpu":
            product = ON_TPU
        elif target == "gpu" and (tested is None or runs_as):
            product = ON_GPU
    flags = [] if is_made_here else switches(module)
    excess = not keeps_every_rounding(flags)
    return Freedoms(target, told_by, product, excess, tuple(fast_math(flags)), tuple(inexact(flags)))


def freedoms_on(target: str, reference: Module) -> Freedoms:
    """What a legal execution may do on a backend that returns results, and no program.

    Args:
        target: what it compiles for (`backends.base.target_of`).
        reference: the program.
    """
    products = {"tpu": ON_TPU, "gpu": ON_GPU}
    if target not in products:
        return UNKNOWN_TARGET
    product = products[target] if any(map(_is_open, reference.instructions())) else STRICT
    return Freedoms(target, "the backend", product)


def _target(
    module: DumpModule, reference: Module, tested: Module | None, is_made_here: bool
) -> tuple[str, str]:
    """The target, and what shows it."""
    if is_made_here:
        return ("tpu", "layouts in tiles") if tested is not None and is_tiled(tested) else ("", "")
    platforms = " ".join(stage.platform for stage in module.stages)
    for target in ("gpu", "tpu", "cpu"):
        if target in platforms:
            return target, "names of files"
    if platforms.strip():
        return "", ""
    if _has_names_of_tpus(module):
        return "tpu", "names of files"
    if any(is_tiled(program) for program in (reference, tested) if program is not None):
        return "tpu", "layouts in tiles"
    return "", ""


def _is_open(instruction: Instruction) -> bool:
    """Whether it is a product of f32 that asks for no precision."""
    kinds = (part.element_type for part in array_shapes(instruction.shape))
    return has_default_precision(instruction) and any(kind.real_part is ElementType.F32 for kind in kinds)


def _has_names_of_tpus(module: DumpModule) -> bool:
    names = [str(stage.source) for stage in module.stages]
    others = [file.path for file in module.artefacts]
    return any(map(_CHANGELIST.search, names)) or any(_TPU_ARTEFACT in name for name in others)


def makes_pairs(instruction: Instruction) -> bool:
    """Whether it takes f64 apart for a TPU, or makes one of two f32: pairs depend on how f32 is rounded."""
    target = instruction.custom_call_target
    if target == "X64Combine":
        shape = instruction.shape
    elif target in ("X64SplitHigh", "X64SplitLow"):
        shape = instruction.operands[0].shape
    else:
        return False
    return any(part.element_type is ElementType.F64 for part in array_shapes(shape))
