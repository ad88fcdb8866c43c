"""Kinds of faults, where each fits in a program, and the edits that plant one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from hlotool.ir.arrays import Array, Literal, dtype_of, element_type_of
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.edit_programs import clone_module, remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ArrayShape, ElementType, Layout, Shape
from hlotool.ir.walk import call_sites, reachable


class Edit:
    """One fault in the making.

    New instructions go before the target until `after` is called, then behind it.

    Args:
        editor: of the computation, which is changed.
        target: the instruction that goes wrong.
        rng: source of all choices.
    """

    def __init__(self, editor: Editor, target: Instruction, rng: np.random.Generator) -> None:
        self.computation = editor.computation
        self.rng = rng
        self._editor = editor
        self._target = target
        self._has_layouts = any(_layout(i.shape) is not None for i in self.computation.instructions)
        self._own: list[Instruction] = []
        self._before: Instruction | None = target

    def after(self) -> None:
        """What is made from now on follows the target."""
        following = list(self._editor)
        position = following.index(self._target) + 1
        self._before = following[position] if position < len(following) else None

    def op(
        self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attributes: AttributeValue
    ) -> Instruction:
        """A new instruction; its shape is inferred when None."""
        result = infer_shape(opcode, [o.shape for o in operands], attributes) if shape is None else shape
        return self._insert(
            Instruction("fault", opcode, self._laid_out(result, operands), operands, attributes)
        )

    def constant(self, value: Any, like: ArrayShape) -> Instruction:
        """A scalar constant of the element type of `like`."""
        held = np.full((), value, dtype_of(like.element_type))
        shape = ArrayShape(like.element_type, (), layout=_descending(0) if self._has_layouts else None)
        return self._insert(Instruction("fault", "constant", shape, literal=Literal(shape, held)))

    def filled(self, value: Any, like: ArrayShape) -> Instruction:
        """An array of the shape of `like` that holds `value` everywhere."""
        scalar = self.constant(value, like)
        return self.op("broadcast", scalar, shape=like, dimensions=()) if like.rank else scalar

    def index(self, shape: ArrayShape, dimension: int) -> Instruction:
        """The s32 array of the dimensions of `shape` that holds the index along `dimension`."""
        return self.op("iota", shape=of_type(shape, ElementType.S32), iota_dimension=dimension)

    def where(self, condition: Instruction, chosen: Instruction, otherwise: Instruction) -> Instruction:
        """`select`, with the shape of what is chosen."""
        return self.op("select", condition, chosen, otherwise, shape=chosen.shape)

    def is_at(self, shape: ArrayShape, dimension: int, position: int, direction: str = "EQ") -> Instruction:
        """Whether the index along `dimension` compares with `position`."""
        indices = self.index(shape, dimension)
        limit = self.filled(position, of_type(shape, ElementType.S32))
        return self.op("compare", indices, limit, direction=direction)

    def element(self, shape: ArrayShape) -> Instruction:
        """True at one element of an array of `shape`, drawn at random; the array is no scalar."""
        position = [int(self.rng.integers(size)) for size in shape.dims]
        mask = self.is_at(shape, 0, position[0])
        for dimension in range(1, shape.rank):
            mask = self.op("and", mask, self.is_at(shape, dimension, position[dimension]))
        return mask

    def choose(self, options: Sequence[Any]) -> Any:
        """One of several, at random."""
        return options[int(self.rng.integers(len(options)))]

    def replace(self, new: Instruction) -> None:
        """Let everybody who read the target read `new`, but for what this edit made."""
        self._editor.replace_uses(self._target, new, but=self._own)

    def set_operand(self, number: int, new: Instruction) -> None:
        """Give the target another operand."""
        operands = list(self._target.operands)
        operands[number] = new
        self.set_operands(operands)

    def set_operands(self, operands: Sequence[Instruction]) -> None:
        """Give the target other operands."""
        self._editor.set_operands(self._target, operands)

    def set_root(self, new: Instruction) -> None:
        """Return another instruction."""
        self._editor.set_root(new)

    def set_attributes(self, **attributes: AttributeValue) -> None:
        """Change attributes of the target."""
        self._target.attributes = with_attributes(self._target.attributes, **attributes)

    def _insert(self, instruction: Instruction) -> Instruction:
        self._own.append(instruction)
        return self._editor.add(instruction, self._before)

    def _laid_out(self, shape: Shape, operands: Sequence[Instruction]) -> Shape:
        """With a layout where the module has layouts: the operand's when it has the same dimensions."""
        if not isinstance(shape, ArrayShape) or not self._has_layouts or shape.layout is not None:
            return shape
        for operand in (*operands, self._target):
            if isinstance(operand.shape, ArrayShape) and operand.shape.dims == shape.dims:
                return replace(shape, layout=operand.shape.layout)
        return replace(shape, layout=_descending(shape.rank))


def of_type(shape: ArrayShape, element_type: ElementType) -> ArrayShape:
    """The same dimensions and layout with another element type."""
    return replace(shape, element_type=element_type)


def _descending(rank: int) -> Layout:
    """The row-major layout."""
    return Layout(tuple(range(rank - 1, -1, -1)))


def _layout(shape: Shape) -> Layout | None:
    return shape.layout if isinstance(shape, ArrayShape) else None


#: Callers that need their computation as it is: XLA recognises it, or its misbehaviour has no meaning.
_PARTICULAR = frozenset({"sort", "custom-call", "topk", "select-and-scatter", "async-start"})


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """An instruction, by names, so that it is found in a copy of its module, too."""

    computation: str
    instruction: str

    def __str__(self) -> str:
        return f"%{self.computation}/%{self.instruction}"


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction where a fault might go.

    Attributes:
        computation: that it stands in.
        instruction: the instruction.
        callers: opcodes that call the computation; empty for the entry.
    """

    computation: Computation
    instruction: Instruction
    callers: frozenset[str]

    @property
    def array(self) -> ArrayShape | None:
        """The shape of its result, if that is an array of fixed size."""
        shape = self.instruction.shape
        return shape if isinstance(shape, ArrayShape) and not shape.is_dynamic else None


Fits: TypeAlias = Callable[[Place], bool]
Rewrite: TypeAlias = Callable[[Edit, Instruction], None]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One way in which a compiler makes a program wrong.

    Attributes:
        name: short, for tables.
        imitates: the compiler bug that it stands for.
        fits: whether it can be planted at a place.
        rewrite: plants it; every random choice comes from the edit's generator.
        pattern: what the damage looks like in the value that it is planted in, in the words of the verdicts;
            None where it looks like nothing in particular.
        poison: what arguments must hold for the fault to show: a float in some elements of float arrays, or
            an integer in scalar integers (see `inputs.poisoned`).
    """

    name: str
    imitates: str
    fits: Fits
    rewrite: Rewrite
    pattern: str | None = None
    poison: float | int | None = None

    def sites(self, module: Module) -> list[Site]:
        """Where it can be planted, in the order of execution: entry first, then what it calls."""
        return [Site(p.computation.name, p.instruction.name) for p in places(module) if self.fits(p)]

    def plant(self, module: Module, site: Site, seed: int = 0) -> Module:
        """A copy of `module` with the fault; equal seeds give equal modules.

        Raises:
            KeyError: the module has no such site.
        """
        copy = clone_module(module).module
        target = find(copy, site)
        with editing(target[0]) as editor:
            self.rewrite(Edit(editor, target[1], np.random.default_rng(seed)), target[1])
        remove_dead_code(copy)
        return copy


def find(module: Module, site: Site) -> tuple[Computation, Instruction]:
    """The computation and the instruction at a site; raises KeyError where there is none."""
    for computation in module.computations:
        for instruction in computation.instructions:
            if (computation.name, instruction.name) == (site.computation, site.instruction):
                return computation, instruction
    raise KeyError(f"{module.name} has no {site}")


def places(module: Module) -> Iterator[Place]:
    """All instructions that run, except in computations that their callers need as they are."""
    sites = call_sites(module)
    for computation in reversed(reachable(module.entry)):
        callers = frozenset(site.instruction.opcode for site in sites.get(computation, ()))
        if callers & _PARTICULAR or any(name.startswith(("all-", "reduce-scatter")) for name in callers):
            continue
        for instruction in computation.instructions:
            yield Place(computation, instruction, callers)


#: Share of the elements of a float array that are replaced; the first always is.
_SHARE = 0.1


def poisoned(arguments: Sequence[Any], poison: float | None, seed: int = 7) -> list[Any]:
    """The arguments with some values replaced by `poison`, as `FaultKind.poison` says."""
    if poison is None:
        return list(arguments)
    rng = np.random.default_rng(seed)
    return [_poisoned(value, poison, rng) for value in arguments]


def _poisoned(value: Any, poison: float, rng: np.random.Generator) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_poisoned(part, poison, rng) for part in value)
    element_type = element_type_of(value.dtype) if isinstance(value, np.ndarray | np.generic) else None
    if element_type is None:
        return value
    array: Array = np.array(value)
    if isinstance(poison, int):
        is_index = element_type.is_integer and element_type.bits >= 8 and array.ndim == 0
        return np.asarray(poison, array.dtype) if is_index else value
    if not element_type.is_floating:
        return value
    mask = rng.random(array.shape) < _SHARE
    mask.reshape(-1)[:1] = True
    array[mask] = np.asarray(poison).astype(array.dtype)
    return array
