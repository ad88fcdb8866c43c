"""Mutants of a program, and what proves that one changes nothing: the same text, exact arithmetic, ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from hlotool.backends.registry import evaluate_constant
from hlotool.errors import HlotoolError
from hlotool.facts.flow import CallGraph
from hlotool.facts.machine_ranges import MachineRanges
from hlotool.facts.recognition import TRANSPARENT, is_zero
from hlotool.ir.arrays import integer_limits
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, leaves
from hlotool.ir.verifier import verify
from hlotool.lab.faults import CATALOGUE, DECISIONS, FaultKind, Site, family_of
from hlotool.lab.faults.arithmetic import CLAMPED, saturated_at
from hlotool.lab.faults.edit import find
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.manager import PassManager
from hlotool.rewrite.passes.pipeline import parse_pipeline
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.result import Relation
from hlotool.runs.fleet.normal_form import normal_form
from hlotool.runs.program import Program

#: Every way to be wrong that needs one device.
KINDS = (*CATALOGUE, *DECISIONS)
#: Draws for one mutant before a program is taken to have no more places.
_TRIES = 20


@dataclass(frozen=True)
class Mutant:
    """A program with one fault.

    Attributes:
        right: the program without it.
        kind: of the fault.
        site: where it is.
        seed: of the choices that the kind makes.
    """

    right: Module
    kind: FaultKind
    site: Site
    seed: int

    @cached_property
    def module(self) -> Module:
        """The program with the fault."""
        return self.kind.plant(self.right, self.site, self.seed)

    @property
    def is_valid(self) -> bool:
        """Whether it is HLO: of rare forms of an instruction not every kind knows."""
        try:
            return not verify(self.module)
        except (KeyError, TypeError, ValueError, IndexError):
            return False


def draw(right: Module, count: int, seed: int, kinds: Sequence[FaultKind] = KINDS) -> Iterator[Mutant]:
    """Up to `count` mutants of a program, no two alike; which ones depends on the seed only.

    The kind is drawn first, of those that fit somewhere: rare kinds are as frequent as others.
    """
    rng = np.random.default_rng(seed)
    places = {kind: sites for kind in kinds if (sites := kind.sites(right))}
    fitting, seen = list(places), set[tuple[str, Site]]()
    if not fitting:
        return
    found = tries = 0
    while found < count and tries < _TRIES * count:
        tries += 1
        kind = fitting[int(rng.integers(len(fitting)))]
        site = places[kind][int(rng.integers(len(places[kind])))]
        mutant = Mutant(right, kind, site, int(rng.integers(1 << 30)))
        if (kind.name, site) not in seen and mutant.is_valid:
            seen.add((kind.name, site))
            found += 1
            yield mutant


#: What distinguishes -0 from 0, by the operands in which it does so; None for all of them.
_READS: Final[Mapping[str, tuple[int, ...] | None]] = {
    "atan2": None,
    "bitcast-convert": None,
    "cholesky": None,
    "custom-call": None,
    "divide": (1,),
    "power": (0,),
    "rsqrt": None,
    "topk": None,
    "triangular-solve": (0,),
}

#: What is the same of both zeros.
_FORGETS: Final = opcodes_with(Trait.EVEN) | {"exponential", "log", "logistic"}


def sign_of_zero_is_read(module: Module, starts_at: Callable[[Instruction], bool]) -> bool:
    """Whether something decides by the signs of zeros that some instructions return.

    What does not, hands on values that differ in signs of zeros at most: sums, products, comparisons, data
    movement. XLA does not keep these signs: `x + 0` is `x` to its simplifier.

    Args:
        module: the program.
        starts_at: gives those instructions.
    """
    calls = CallGraph(module)
    ranges = MachineRanges(calls)
    marked = _Marks(module, starts_at, ranges).marked
    return any(_reads(instruction, marked, ranges) for instruction in module.instructions())


def _reads(instruction: Instruction, marked: set[Instruction], ranges: MachineRanges) -> bool:
    if not any(operand in marked for operand in instruction.operands):
        return False
    shape = instruction.shape
    if isinstance(shape, ArrayShape) and shape.element_type.is_complex:
        return True
    if instruction.opcode == "compare":
        return "type" in instruction.attributes
    if instruction.opcode not in _READS or instruction.custom_call_target in TRANSPARENT:
        return False
    places = _READS[instruction.opcode]
    operands = instruction.operands if places is None else [instruction.operands[n] for n in places]
    return any(operand in marked and ranges.of(operand).holds_zero for operand in operands)


class _Marks:
    """The instructions that the values of some others reach, whichever part of a tuple they are in."""

    def __init__(
        self, module: Module, starts_at: Callable[[Instruction], bool], ranges: MachineRanges
    ) -> None:
        self._ranges = ranges
        self.marked = {i for i in module.instructions() if starts_at(i)}
        size = -1
        while size != len(self.marked):
            size = len(self.marked)
            for computation in module.computations:
                for instruction in computation.instructions:
                    self._visit(instruction)

    def _visit(self, instruction: Instruction) -> None:
        if any(operand in self.marked for operand in instruction.operands) and not self._forgets(instruction):
            self.marked.add(instruction)
        for called in instruction.called:
            self._enter(instruction, called)
            if called.root in self.marked:
                self.marked.add(instruction)

    def _forgets(self, instruction: Instruction) -> bool:
        """Whether a result is the same to the bit, whatever the signs of zeros among the operands are.

        What makes integers or preds of such signs is among what reads them, or does not see them.
        """
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or any(instruction.called):
            return False
        if instruction.opcode == "select" and self._replaces_zeros(instruction):
            return True
        if instruction.opcode in ("add", "subtract"):
            # A zero of either sign leaves any other number as it is.
            return any(not self._ranges.of(operand).holds_zero for operand in instruction.operands)
        is_whole = shape.element_type.is_integer or shape.element_type is ElementType.PRED
        return is_whole or instruction.opcode in _FORGETS

    def _replaces_zeros(self, select: Instruction) -> bool:
        """Whether it is `select(x == 0, c, x)`, as sorts of floats ask before they compare all bits."""
        mask, chosen, value = select.operands
        if chosen in self.marked or mask.opcode != "compare" or mask.attributes.get("direction") != "EQ":
            return False
        if "type" in mask.attributes or value not in mask.operands:
            return False
        return is_zero(mask.operands[1 - mask.operands.index(value)])

    def _enter(self, caller: Instruction, called: Computation) -> None:
        """The parameters of a computation, of which those of loops and reducers stand for many values."""
        if caller.opcode in ("call", "fusion"):
            pairs = zip(called.parameters, caller.operands)
            self.marked.update(parameter for parameter, operand in pairs if operand in self.marked)
        elif caller in self.marked or called.root in self.marked:
            self.marked.update(called.parameters)


#: Points at which the field compares: few would do for sums and products, branches are seen by chance.
_TRIALS: Final = 8
_SECONDS: Final = 10.0
#: Passes after which every bit is what it was before them.
_TIDY: Final = "despecialize,inline,fix(simplify-tuples,simplify,fold,simplify-conditionals,cse,dce)"

#: Families of faults of which equal real numbers prove nothing: they show by rounding, by wrapping, where two
#: numbers are equal, or on one side of a threshold that random points do not meet.
_NOT_OF_REALS: Final = frozenset({"precision", "integers", "tie", "branch"})
#: What random points do not see, either.
_UNSEEN: Final = frozenset({"clamp dropped"})


def same_to_the_bit(mutant: Mutant) -> str:
    """The proof in words that a mutant returns what the program returns that it was made from; empty without.

    Signs of zeros that nothing reads do not count: XLA does not keep them either.
    """
    if proof := _by_ranges(mutant):
        return proof
    try:
        is_same = same_when_tidied(mutant.right, mutant.module)
    except HlotoolError:
        return ""
    return "the same text, once both are simplified" if is_same else ""


def same_of_reals(reference: Program, mutant: Mutant, tested: Program) -> str:
    """The proof in words that a mutant is the reference's function of real numbers; empty without one.

    Args:
        reference: that judges.
        mutant: of it, or of a later stage.
        tested: the mutant, compiled.
    """
    kind = mutant.kind
    if family_of(kind) in _NOT_OF_REALS or kind.name in _UNSEEN or kind.poison is not None:
        return ""
    if not _is_of_numbers(reference) or not _is_seen(mutant):
        return ""
    result = compare(reference, tested, Options(trials=_TRIALS, time_limit=_SECONDS))
    return "mathematically equivalent" if result.relation is Relation.EQUAL else ""


def same_when_tidied(one: Module, other: Module) -> bool:
    """Whether two programs are one text, up to names, when passes have taken away what they can.

    Raises:
        HlotoolError: a pass failed.
    """
    return _tidied(one) == _tidied.__wrapped__(other)


@lru_cache(maxsize=4)
def _tidied(module: Module) -> str:
    """The normal form of a module; kept for programs with many mutants."""
    tidied = clone_module(module).module
    PassManager(Context(evaluate=evaluate_constant), verify=False).run(tidied, parse_pipeline(_TIDY))
    return normal_form(tidied.to_text()).key


def _is_seen(mutant: Mutant) -> bool:
    """Whether real numbers tell what the program does at the place of the fault.

    No number is NaN: what a program asks of it, and does with it, has only one outcome among real numbers. Of
    integers and preds, which here are made of constants and of such questions, they may see one value.
    """
    _, target = find(mutant.right, mutant.site)
    arrays = [shape for _, shape in leaves(target.shape) if isinstance(shape, ArrayShape)]
    is_of_numbers = all(shape.element_type.is_inexact for shape in arrays)
    return is_of_numbers and not any(map(_is_about_nan, mutant.right.instructions()))


def _is_about_nan(instruction: Instruction) -> bool:
    if instruction.opcode == "compare":
        return instruction.operands[0] is instruction.operands[1]
    literal, shape = instruction.literal, instruction.shape
    if literal is None or not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return instruction.opcode == "is-finite"
    return literal.has_elided or bool(np.isnan(literal.array.astype(complex)).any())


def _by_ranges(mutant: Mutant) -> str:
    """Why numbers as they are at the place of a fault are not changed by it; empty without a reason."""
    name, (_, place) = mutant.kind.name, find(mutant.right, mutant.site)
    if name in _MOVES:
        return "all elements there are the same" if _is_splat(place) else ""
    if name not in _LOSES:
        return ""
    ranges = MachineRanges(CallGraph(mutant.right))
    if _LOSES[name](place, ranges):
        return "no number there is one that the fault changes"
    if name == "negative zero lost" and not sign_of_zero_is_read(mutant.right, lambda one: one is place):
        return "the same up to signs of zeros, which nothing reads and XLA does not keep"
    return ""


def _is_splat(place: Instruction) -> bool:
    return place.opcode == "broadcast" and place.operands[0].array_shape.size == 1


def _fits_half(place: Instruction, ranges: MachineRanges) -> bool:
    """Whether all integers have half of the bits of their type."""
    kind = place.array_shape.element_type
    low, high = integer_limits(ElementType(f"{'s' if kind.is_signed else 'u'}{kind.bits // 2}"))
    return ranges.of(place).within(low, high)


#: Faults that put an element in the place of another one.
_MOVES: Final = frozenset(
    {"duplicated element", "reversed", "row repeats its neighbour", "shifted", "swapped blocks", "transposed"}
)
#: Faults that change certain numbers only: whether ranges say that there are none.
_LOSES: Final[Mapping[str, Callable[[Instruction, MachineRanges], bool]]] = {
    "NaN lost": lambda place, ranges: not ranges.of(place).nan,
    "infinity clamped": lambda place, ranges: ranges.of(place).within(-CLAMPED, CLAMPED),
    "negative zero lost": lambda place, ranges: not ranges.of(place).negative_zero,
    "remainder of the other sign": lambda place, ranges: (
        min(ranges.of(operand).low for operand in place.operands) >= 0
    ),
    "saturation": lambda place, ranges: ranges.of(place).high <= saturated_at(place.array_shape),
    "wraps at half the bits": _fits_half,
}


def _is_of_numbers(program: Program) -> bool:
    """Whether the field draws all that the program depends on; integers and preds it takes as they come."""
    shapes = (part for shape in program.runner.parameters for _, part in leaves(shape))
    return all(not isinstance(s, ArrayShape) or s.element_type.is_inexact for s in shapes)
