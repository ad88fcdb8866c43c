"""What the judge is asked: two results, their programs, what targets may do, what may be spent.

What the target of a program may do that HLO does not say, the freedoms of legal executions:

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

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hlotool.backends.base import Backend, Probe, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.rounding_errors import has_default_precision
from hlotool.facts.buffers import is_tiled
from hlotool.facts.dataflow import Leaves, join_leaves, leaf_facts
from hlotool.facts.float_order import flush_threshold
from hlotool.facts.result_facts import Facts
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, array_shapes, leaves
from hlotool.judge.comparison import Comparison, LeafComparison, compare_values, part_at
from hlotool.judge.records import FreedomsRecord
from hlotool.judge.tolerance import ChosenTolerance, Tolerance, few_ulps
from hlotool.sources.compilation import fast_math, inexact, keeps_every_rounding, switches
from hlotool.sources.records import DumpModule

if TYPE_CHECKING:
    from hlotool.runs.exact.result import ExactResult


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


@dataclass(frozen=True, slots=True)
class Freedoms:
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
    module: DumpModule, reference: Module, tested: Module | None, is_made_here: bool = False
) -> Freedoms:
    """What a legal execution of a program may do.

    Args:
        module: the files, whose names show the target, and whose debug options the flags.
        reference: the program as it should be.
        tested: the text that is judged; None: a result that the target itself may have returned. Layouts in
            tiles show a TPU, too, where names say nothing.
        is_made_here: a compiler made `tested` just now; the files, with their flags, are of another one.
    """
    target, told_by = _target(module, reference, tested, is_made_here)
    product = STRICT
    if any(map(_is_open, reference.instructions())):
        if target == "tpu":
            product = ON_TPU
        elif target == "gpu" and tested is None:
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
    if target != "tpu":
        return UNKNOWN_TARGET
    product = ON_TPU if any(map(_is_open, reference.instructions())) else STRICT
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


#: Runs a program under a policy: from a backend to a function of nothing that executes once.
Execute = Callable[[Backend], Callable[[], Value]]
#: Compares an output by its name, the expected and the actual array: whether they agree, what is wrong, or
#: None where it has no opinion.
CompareWith: TypeAlias = "Callable[[str, Array, Array], bool | str | None]"
#: Compares both programs as functions of real numbers, within so many seconds, at so many points.
CompareExactly: TypeAlias = "Callable[[float, int], ExactResult]"


@dataclass(frozen=True, eq=False)
class Side:
    """One program of a judgement, and how it can be executed.

    Attributes:
        module: the program.
        shape: of its result.
        execute: runs it on the arguments of the judgement, on one device or many.
        watch: runs it under a probe; None where it runs on several devices.
    """

    module: Module
    shape: Shape
    execute: Execute
    watch: Callable[[Backend, Probe], Value] | None = None


def side_of(module: Module, arguments: Sequence[Value]) -> Side:
    """A program for one device on `arguments`."""

    def execute(backend: Backend) -> Callable[[], Value]:
        executable = backend.compile(module)
        return lambda: executable.run(arguments)

    return Side(module, module.entry.root.shape, execute, watching(module, arguments))


def watching(module: Module, arguments: Sequence[Value]) -> Callable[[Backend, Probe], Value]:
    """Runs a program for one device under a probe, which sees the arguments first."""

    def watch(backend: Backend, probe: Probe) -> Value:
        for parameter, argument in zip(module.entry.parameters, arguments):
            probe(parameter, argument)
        return backend.compile(module).run(arguments, probe)

    return watch


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """One question to the judge.

    Attributes:
        reference: the program as it should be.
        expected: its result.
        actual: the result in question, of the same shape.
        facts: what the leaves depend on, joined over both sides.
        tested: the program that gave `actual`, where that is HLO of its own (after a pass, say).
        seed: of the ensembles.
        tolerance: set by the user, in place of an ensemble.
        tolerances: set for single outputs, by shape index, of arrays or of tuples.
        compare_with: the user's own comparison, before any tolerance.
        deadline: in `time.monotonic`: from then on no execution begins, and a bound decides.
        work: units of work after which none begins either.
        thorough: look for the pattern of every wrong leaf, not only of the worst few.
        freedoms: what the target may do in its hardware, or in the text of `tested`.
        compare_exactly: says whether both programs are the same function; None where that says nothing about
            `actual`, because something else than the reference's interpreter returned it.
        exact: the user wants the same function, not only close values.
    """

    reference: Side
    expected: Value
    actual: Value
    facts: Leaves
    tested: Side | None = None
    seed: int = 0
    tolerance: ChosenTolerance | None = None
    tolerances: Mapping[ShapeIndex, ChosenTolerance] = field(default_factory=dict)
    compare_with: CompareWith | None = None
    deadline: float = math.inf
    work: float = math.inf
    thorough: bool = False
    freedoms: Freedoms = UNKNOWN_TARGET
    compare_exactly: CompareExactly | None = None
    exact: bool = False

    @property
    def product_unit(self) -> float:
        """One ulp at 1 of what products of f32 may be computed in; 0 for f32 itself."""
        return self.freedoms.product.unit

    def compared(self) -> Comparison:
        """What a comparison of the values says, without another execution."""
        return compare_values(
            self.reference.shape,
            self.expected,
            self.actual,
            actual_shape=self.tested.shape if self.tested is not None else None,
            facts=self.facts,
            tolerance=self.tolerance or self.few,
        )

    @property
    def has_f64_of_pairs(self) -> bool:
        """Whether what gave `actual` makes f64 of pairs of f32: a TPU, or its program once that says so."""
        if not self.freedoms.f64_unit:
            return False
        return self.tested is None or any(map(makes_pairs, self.tested.module.instructions()))

    def few(self, element_type: ElementType, facts: Facts, scale: float) -> Tolerance:
        """What needs no explanation: a few ulps, of pairs of f32 where the target has no f64 of its own."""
        few, unit = few_ulps(element_type, facts, scale), self.freedoms.f64_unit
        if not unit or element_type.real_part is not ElementType.F64:
            return few
        tiny = flush_threshold(ElementType.F32)
        return replace(
            few, atol=unit * scale, rtol=unit, denormal=tiny, reason="an f64 of a TPU is a pair of f32"
        )

    def leaves(self, compared: Comparison) -> Iterator[Leaf]:
        """The arrays of the result, with what was said of them."""
        said = {leaf.index: leaf for leaf in compared.leaves}
        for number, (index, shape) in enumerate(leaves(self.reference.shape)):
            if isinstance(shape, ArrayShape):
                expected, actual = (np.asarray(part_at(v, index)) for v in (self.expected, self.actual))
                yield Leaf(number, shape, self.facts[number], expected, actual, said[index])


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


def judgement_of(
    reference: Module,
    arguments: Sequence[Value],
    actual: Value,
    *,
    expected: Value | None = None,
    tested: Module | None = None,
    seed: int = 0,
    tolerance: ChosenTolerance | None = None,
    compare_exactly: CompareExactly | None = None,
    exact: bool = False,
    freedoms: Freedoms = UNKNOWN_TARGET,
) -> Judgement:
    """The judgement on a result of a program for one device.

    Args:
        reference: the program as it should be, such as the module before optimizations.
        arguments: one value per entry parameter, of both programs.
        actual: the result in question: of another program, another backend, or captured.
        expected: what the numpy backend returns for `reference`; None has it computed.
        tested: the program that gave `actual`, where that is another one.
        seed: of the ensembles.
        tolerance: set by the user.
        compare_exactly: both programs as functions, where the numpy backend executed both.
        exact: the user wants the same function.
        freedoms: what the target may do.

    Raises:
        Unsupported: the numpy backend cannot execute `reference`.
        InputDataError: the arguments do not fit.
    """
    if expected is None:
        expected = NumpyBackend().compile(reference).run(arguments)
    facts = leaf_facts(reference)
    return Judgement(
        reference=side_of(reference, arguments),
        expected=expected,
        actual=actual,
        facts=facts if tested is None else join_leaves(facts, leaf_facts(tested)),
        tested=None if tested is None else side_of(tested, arguments),
        seed=seed,
        tolerance=tolerance,
        compare_exactly=compare_exactly,
        exact=exact,
        freedoms=freedoms,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One array of the results.

    Attributes:
        number: of the leaf in tuple order; tokens count.
        shape: declared by the reference.
        facts: what it depends on.
        expected: the reference's.
        actual: the one in question.
        compared: what a comparison of the two says.
    """

    number: int
    shape: ArrayShape
    facts: Facts
    expected: Array
    actual: Array
    compared: LeafComparison

    @property
    def is_inexact(self) -> bool:
        """Whether its elements are rounded."""
        return self.shape.element_type.is_inexact
