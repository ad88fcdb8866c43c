"""The numpy backend's plans, lowered to the field: words in place of floats, everything else as it is.

What follows from constants alone is folded as a compiler does it, in the declared types, and as what it
stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.backends.field.constants import Constants
from hlotool.backends.field.registry import MEANINGS, plain
from hlotool.backends.field.snapping import SMALL
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.unknown import BlackBox
from hlotool.backends.field.values import (
    held,
    held_in,
    is_complex,
    is_float,
    is_inexact,
    is_marked,
    pair,
)
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.executables import AroundRegions
from hlotool.backends.numpy.lowering import Lowering, literal_value
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling, Kernel, Reading, Rule
from hlotool.errors import HlotoolError
from hlotool.facts.signs import Law, Order, Signs
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType

Floats: TypeAlias = npt.NDArray[np.float64]

#: They repeat or regroup elements.
_MOVES = frozenset({"broadcast", "copy", "reshape", "transpose"})
#: What they make of constants is the same at every point, and exact.
RATIONAL = _MOVES | frozenset({"add", "convert", "divide", "multiply", "negate", "rsqrt", "sqrt", "subtract"})


@dataclass(frozen=True, slots=True)
class Folded:
    """A value that follows from constants.

    Attributes:
        value: in the declared type.
        off: by how much roundings on the way may have moved each element, to first order; 0 where none were.
        held: as the field holds it: words of floats, anything else as it is.
    """

    value: Array
    off: Floats
    held: Any


class Meaning(Protocol):
    """What a value that follows from constants stands for."""

    def __call__(
        self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]
    ) -> Any:
        """As the field holds it: words of floats, anything else as it is.

        Args:
            instruction: that computes it, or a constant.
            value: in the declared type.
            off: see `Folded`.
            operands: of the instruction.
        """


class Folding:
    """The folded values of the computation that is being compiled.

    Args:
        numbers: executes instructions in their declared types.
        meaning: of what they give.
        sizes: elements of the tables that are folded, too; larger arrays are not otherwise.
    """

    def __init__(self, numbers: Lowering, meaning: Meaning, sizes: frozenset[int]) -> None:
        self._numbers = numbers
        self._sizes = sizes
        self._meaning = meaning
        self._known: dict[Instruction, Folded] = {}

    @contextmanager
    def of(self, computation: Computation, arguments: Mapping[int, Folded]) -> Iterator[None]:
        """While it lasts, the other methods answer for `computation`, called with `arguments`, by number."""
        outer = self._known
        parameters = ((p, arguments.get(p.parameter_number or 0)) for p in computation.parameters)
        self._known = {p: value for p, value in parameters if value is not None}
        try:
            yield
        finally:
            self._known = outer

    def known(self, operands: Sequence[Instruction]) -> dict[int, Folded]:
        """The values of those operands that are known, by number."""
        return {n: self._known[o] for n, o in enumerate(operands) if o in self._known}

    def value(self, instruction: Instruction) -> Folded | None:
        """What `instruction` always is; None where that is not known."""
        if not self._is_wanted(instruction):
            return None
        if instruction.opcode == "constant":
            if instruction.literal is None or instruction.literal.has_elided:
                return None
            value = literal_value(instruction.literal)
            if is_marked(value):
                return None
            self._note(instruction, value, np.zeros(np.shape(value)), ())
        elif self._folds(instruction) and (kernel := self._kernel(instruction)) is not None:
            operands = [self._known[operand] for operand in instruction.operands]
            with np.errstate(all="ignore"):
                value = kernel(*(operand.value for operand in operands))
                off = _off(kernel, operands, value, instruction)
            self._note(instruction, value, off, operands)
        return self._known.get(instruction)

    def _note(self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]) -> None:
        self._known[instruction] = Folded(value, off, self._meaning(instruction, value, off, operands))

    def _is_wanted(self, instruction: Instruction) -> bool:
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or shape.element_type.is_complex:
            return False
        is_exact = instruction.opcode == "constant" or instruction.opcode in RATIONAL
        return shape.size <= SMALL or (is_exact and shape.size in self._sizes)

    def _folds(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        is_elementwise = instruction.row.opcode_class is Class.ELEMENTWISE and opcode != "map"
        if not instruction.operands or not (is_elementwise or opcode in _MOVES):
            return False
        return all(operand in self._known for operand in instruction.operands)

    def _kernel(self, instruction: Instruction) -> Callable[..., Array] | None:
        try:
            kernel = self._numbers.kernel(instruction)
        except HlotoolError:
            return None
        return None if isinstance(kernel, Calling | Reading) else kernel


def _off(
    kernel: Callable[..., Array], operands: Sequence[Folded], value: Array, instruction: Instruction
) -> Floats:
    """What becomes of the errors of the operands, one after the other, and an ulp of the operation's own."""
    if not instruction.element_type.is_floating:
        return np.zeros(np.shape(value))
    wide = np.asarray(value).astype(np.float64)
    info: Any = ml_dtypes.finfo(np.asarray(value).dtype)  # type: ignore[no-untyped-call]
    off = np.zeros(wide.shape) if instruction.opcode in _MOVES else np.abs(wide) * float(info.eps)
    values = [operand.value for operand in operands]
    for number, operand in enumerate(operands):
        if operand.off.any():
            moved = (np.asarray(operand.value).astype(np.float64) + operand.off).astype(operand.value.dtype)
            result = kernel(*values[:number], moved, *values[number + 1 :])
            off = off + np.abs(np.asarray(result).astype(np.float64) - wide)
    return np.where(np.isfinite(off), off, 0.0)


class FieldLowering(Lowering):
    """Compiles the computations of one module for the field.

    Args:
        module: what is compiled.
        trial: at which point the kernels will evaluate; they ask it anew in every call.
        grid: the devices that will execute it.
        is_reference: what it computes from constants explains those of the other program.
        signs: inequalities of the program that hold for real numbers, where they are to count: kappa knows
            nothing of them.

    Attributes:
        trial: see above.
        constants: how the constants of both programs of a pair are read.
        is_reference: see above.
        numbers: the numpy backend's own lowering, for what is executed on numbers.
        boxes: the operations that are unknown functions here.
        laws: by which orders and signs were known.
    """

    def __init__(
        self,
        module: Module,
        trial: Trial,
        grid: DeviceGrid = ONE_DEVICE,
        is_reference: bool = True,
        signs: Signs | None = None,
    ) -> None:
        super().__init__(module, grid)
        self.trial = trial
        self.constants: Constants = trial.constants
        self.numbers = Lowering(module, grid)
        self.is_reference = is_reference
        self.boxes: list[BlackBox] = []
        self.laws: set[Law] = set()
        self.signs = signs
        self._folding = Folding(self.numbers, self._constant, self.constants.tables.sizes)
        self._arguments: Mapping[int, Folded] = {}
        self._orders_totally = any(i.attributes.get("type") == "TOTALORDER" for i in module.instructions())

    @property
    def fuses_loops(self) -> bool:
        """Kernels on words work on whole arrays."""
        return False

    def use_box(self, instruction: Instruction, name: str, is_function: bool = False) -> None:
        """Note that `instruction` is an unknown function called `name`; each is noted once."""
        if all(box.name != name for box in self.boxes):
            self.boxes.append(BlackBox(name, instruction.name, instruction.line, is_function))

    def order(self, a: Instruction, b: Instruction) -> Order | None:
        """How all elements of `a` compare with those of `b`, where an inequality says so."""
        found = self.signs.order(a, b) if self.signs is not None else None
        if found is None:
            return None
        self.laws |= found[1]
        return found[0]

    def sign(self, instruction: Instruction) -> Order | None:
        """How all elements of a value compare with 0, where an inequality says so."""
        if self.signs is None:
            return None
        fact = self.signs.of(instruction)
        if fact.interval.low < 0 < fact.interval.high:
            return None
        self.laws |= fact.laws
        return Order.AT_LEAST if fact.interval.low >= 0 else Order.AT_MOST

    def held_in(self, element_type: ElementType) -> ElementType:
        """See `held`."""
        return held_in(element_type)

    def rule(self, instruction: Instruction) -> Rule:
        """The numpy backend's where no floats are concerned, else the meaning of the opcode."""
        concerns_floats = any(is_inexact(i.shape) for i in (instruction, *instruction.operands))
        if not concerns_floats and instruction.opcode != "rng":
            return super().rule(instruction)
        meaning = MEANINGS.get(instruction.opcode)
        if meaning is None:
            raise self.unsupported(instruction, "the field has no meaning for this opcode on floats")
        return lambda one, _: meaning(one, self)

    def build(self, computation: Computation, kernel: Callable[[Instruction], Kernel]) -> Plan:
        """See `Lowering`; what a compiler would fold is folded first, and is a step that a probe sees."""
        arguments, self._arguments = self._arguments, {}

        def kernel_of(instruction: Instruction) -> Kernel:
            folded = self._folding.value(instruction)
            if folded is None:
                return kernel(instruction)
            return Reading(lambda: folded.held, ())

        with self._folding.of(computation, arguments):
            return super().build(computation, kernel_of)

    def called_plan(self, computation: Computation, operands: Sequence[Instruction]) -> Plan:
        """The plan of what an instruction calls; operands that are constants are so inside, too."""
        self._arguments = self._folding.known(operands)
        return self.build(computation, self.kernel) if self._arguments else self.plan(computation)

    def known_value(self, instruction: Instruction) -> Any:
        """The words of constants."""
        if instruction.opcode != "constant":
            return None
        if self._orders_totally and _has_signs_of_nothing(instruction):
            raise self.unsupported(
                instruction, "the order of NaN and -NaN, of 0 and -0, is not one of numbers"
            )
        folded = self._folding.value(instruction)
        return self.words_of(self.literal(instruction)) if folded is None else folded.held

    def words_of(self, literal: Literal) -> Any:
        """The value of a literal as the field holds it; words that are marked as such are themselves."""
        if isinstance(literal.value, tuple):
            return tuple(map(self.words_of, literal.value))
        value = literal_value(literal)
        if is_marked(value):
            return held(value)
        if is_float(literal.shape):
            return self._written(value)
        if is_complex(literal.shape):
            return pair(self._written(np.real(value)), self._written(np.imag(value)))
        return value

    def _written(self, value: Array) -> Words:
        return self.constants.words(value, is_written=self.is_reference)

    def _constant(
        self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]
    ) -> Any:
        """What follows from constants, as the field holds it (`folding.Meaning`)."""
        words = self._exact(instruction, value, off, operands)
        if isinstance(words, np.ndarray):
            words.flags.writeable = False  # all runs share it
        return words

    def _exact(self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]) -> Any:
        if not is_float(instruction.shape):
            return value
        if instruction.opcode == "constant":
            return self._written(value)
        if instruction.opcode in RATIONAL:
            exact = plain(self.kernel(instruction))(*(operand.held for operand in operands))
            if value.size > SMALL:
                exact = np.array(np.broadcast_to(exact, value.shape))
                if self.is_reference:
                    self.constants.tables.note(value, off, exact)
                return exact
            return self.constants.derived(value, exact, self.is_reference, off)
        if self.is_reference:
            self.constants.folded(value, off)
        return self.constants.words(value)


def _has_signs_of_nothing(constant: Instruction) -> bool:
    """Whether a literal has values that only a total order tells apart: a negative NaN, or 0 and -0."""
    literal = constant.literal
    if literal is None or literal.has_elided or not is_float(constant.shape):
        return False
    value = literal_value(literal)
    if is_marked(value):
        return False
    wide = np.asarray(value).astype(np.float64)
    signs = np.signbit(wide)
    zeros = signs[wide == 0]
    return bool(np.any(signs & np.isnan(wide)) or (zeros.any() and not zeros.all()))


class LogicalFieldLowering(AroundRegions, FieldLowering):
    """Compiles what lies around the manual regions that `inside` compiles."""

    def __init__(self, inside: FieldLowering) -> None:
        super().__init__(inside.module, inside.trial, is_reference=inside.is_reference, signs=inside.signs)
        self.inside = inside
        self.boxes, self.laws = inside.boxes, inside.laws
