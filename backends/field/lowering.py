"""The numpy backend's plans, lowered to the field: words in place of floats, everything else as it is.

Integers, preds, data movement and control flow run on the numpy backend's own kernels. Where floats are
concerned, an opcode has a meaning of its own (`registry`, `rules/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlotool.analysis.inequalities import Law
from hlotool.analysis.signs import Order, Signs
from hlotool.backends.field.black_boxes import BlackBox
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.folding import RATIONAL, Floats, Folded, Folding
from hlotool.backends.field.held import held_in, is_complex, is_float, is_inexact, pair
from hlotool.backends.field.marked import held, is_marked
from hlotool.backends.field.registry import MEANINGS, plain
from hlotool.backends.field.tables import SMALL
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.lowering import Lowering, literal_value
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.region_programs import AroundRegions
from hlotool.backends.numpy.registry import Kernel, Reading, Rule
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ElementType


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
