"""From computations to plans: slots, constants, last uses, and the kernels that the rules return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.blocks import Unit, code_of
from hlotool.backends.numpy.grouping import fused, is_member
from hlotool.backends.numpy.inlining import Body, distinct, inlined
from hlotool.backends.numpy.plan import Code, Plan
from hlotool.backends.numpy.registry import RULES, Kernel, Reading, Rule
from hlotool.errors import ElidedConstant, Unsupported, VerificationError
from hlotool.facts.work import Prices
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import MISFITS, Computation, Instruction, Module
from hlotool.ir.shapes.base import implied_source
from hlotool.ir.types import ElementType
from hlotool.ir.walk import has_side_effect

if TYPE_CHECKING:
    from hlotool.backends.numpy.executions.policy import KernelPolicy


class Lowering:
    """Compiles the computations of one module, each once.

    Attributes:
        module: what is being compiled.
        grid: the devices that will execute it.
    """

    def __init__(
        self, module: Module, grid: DeviceGrid = ONE_DEVICE, policy: KernelPolicy | None = None
    ) -> None:
        self.module = module
        self.grid = grid
        self._policy = policy
        self._plans: dict[Computation, Plan] = {}
        self._bodies: dict[Any, Body] = {}
        self._prices = Prices()

    @property
    def is_exact(self) -> bool:
        """Whether kernels do what the program says, the same in every call, and no policy varies them."""
        return self._policy is None

    @property
    def fuses_loops(self) -> bool:
        """Whether elementwise kernels may be put together block by block (`loop_fusion`)."""
        return self._policy is None

    def held_in(self, element_type: ElementType) -> ElementType:
        """The type whose arrays hold values of `element_type` at run time."""
        return element_type

    def plan(self, computation: Computation) -> Plan:
        """The plan of `computation`.

        Raises:
            Unsupported: one of its instructions has no lowering.
        """
        if computation not in self._plans:
            self._plans[computation] = self.build(computation, self.kernel)
        return self._plans[computation]

    def rule(self, instruction: Instruction) -> Rule:
        """What makes the kernel of one instruction.

        Raises:
            Unsupported: there is none.
        """
        rule = RULES.get(instruction.opcode)
        if rule is None:
            raise self.unsupported(instruction, "the numpy backend has no kernel for this opcode")
        return rule

    def kernel(self, instruction: Instruction) -> Kernel:
        """The kernel of one instruction."""
        rule = self.rule(instruction)
        try:
            made = self._converting(instruction, rule(instruction, self))
            return made if self._policy is None else self._policy.kernel(instruction, made)
        except VerificationError as error:
            if error.rule not in MISFITS:
                raise
            raise self.unsupported(instruction, error.message) from None

    def _converting(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """The kernel, with its result in the type that is stated: floats of several widths may meet in it."""
        if implied_source(instruction) is None or not callable(kernel):
            return kernel
        dtype = dtype_of(self.held_in(instruction.element_type))
        return lambda *operands: np.asarray(kernel(*operands)).astype(dtype, copy=False)

    def unsupported(self, instruction: Instruction, reason: str) -> Unsupported:
        """The error that says why `instruction` cannot be executed."""
        return self.module.unsupported(instruction, reason)

    def build(self, computation: Computation, kernel: Callable[[Instruction], Kernel]) -> Plan:
        """A plan whose kernels come from `kernel` (vectorised evaluation of scalar computations)."""
        known: dict[Instruction, Any] = {}
        units = []
        left_out: set[Instruction] = set()
        for instruction in _execution_order(computation):
            value = self.known_value(instruction)
            if value is not None:
                known[instruction] = value
            elif not left_out.isdisjoint(instruction.operands):
                element = _tuple_element(instruction)
                if element is None or element in left_out:
                    left_out.add(instruction)
                else:
                    units.append(Unit(instruction, (element,), _as_it_is))
            elif instruction.opcode != "parameter":
                try:
                    units.append(_unit(instruction, kernel(instruction)))
                except Unsupported:
                    if instruction in _needed(computation):
                        raise
                    left_out.add(instruction)
        parameters = computation.parameters
        seen = code_of(units, parameters, known, computation.root)
        if not self.fuses_loops:
            return Plan(computation, seen, prices=self._prices)
        body = inlined(computation, units, known, self._bodies)
        if not any(map(is_member, body.units)):
            return Plan(computation, seen, prices=self._prices)

        def quick() -> Code:
            return code_of(fused(list(distinct(body)), body.root), parameters, body.known, body.root)

        plan = Plan(computation, seen, quick, body.called, self._prices)
        self._bodies[plan] = body
        return plan

    def known_value(self, instruction: Instruction) -> Any:
        """The value of a constant; None for what has to be executed."""
        return literal_value(self.literal(instruction)) if instruction.opcode == "constant" else None

    def literal(self, constant: Instruction) -> Literal:
        """The literal of a constant.

        Raises:
            Unsupported: the dump does not hold it.
        """
        if constant.literal is None:
            raise self.unsupported(constant, "constant without a value")
        if constant.literal.has_elided:
            raise ElidedConstant(constant.name, self.module.location(constant))
        return constant.literal


def _unit(instruction: Instruction, kernel: Kernel) -> Unit:
    if isinstance(kernel, Reading):
        return Unit(instruction, kernel.operands, kernel.function)
    return Unit(instruction, instruction.operands, kernel)


def _needed(computation: Computation) -> set[Instruction]:
    """What the result depends on, and what acts on the outside: all that must be executed.

    A reader of one element of a tuple does not need the others. XLA: HloDCE, TupleSimplifier.
    """
    needed: set[Instruction] = set()
    waiting = [computation.root, *filter(has_side_effect, computation.instructions)]
    while waiting:
        instruction = waiting.pop()
        if instruction not in needed:
            needed.add(instruction)
            element = _tuple_element(instruction)
            waiting.extend(instruction.operands if element is None else [element])
    return needed


def _tuple_element(instruction: Instruction) -> Instruction | None:
    """What a get-tuple-element takes out of a tuple made here, perhaps of one that lies in another."""
    if instruction.opcode != "get-tuple-element":
        return None
    (source,) = instruction.operands
    source = _tuple_element(source) or source
    elements = source.operands if source.opcode == "tuple" else ()
    number = instruction.integer("index")
    return elements[number] if 0 <= number < len(elements) else None


def _as_it_is(value: Any) -> Any:
    return value


def literal_value(literal: Literal) -> Any:
    """The runtime value of a literal; arrays are made read-only since all runs share them.

    Scalars become NumPy scalars, which are several times faster than arrays of rank 0 where programs loop.
    """
    if isinstance(literal.value, tuple):
        return tuple(literal_value(e) for e in literal.value)
    if literal.value is None:
        return TOKEN
    if literal.value.ndim == 0:
        return literal.value[()]
    array = literal.value.view()
    array.flags.writeable = False
    return array


def _execution_order(computation: Computation) -> list[Instruction]:
    """Textual order, except that tuples are taken apart at once.

    A tuple holds its elements: only when it is gone can they be updated in place.
    """
    readers: dict[Instruction, list[Instruction]] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "get-tuple-element":
            readers.setdefault(instruction.operands[0], []).append(instruction)
    order: list[Instruction] = []

    def emit(instruction: Instruction) -> None:
        order.append(instruction)
        for reader in readers.get(instruction, ()):
            emit(reader)

    for instruction in computation.instructions:
        if instruction.opcode != "get-tuple-element":
            emit(instruction)
    return order
