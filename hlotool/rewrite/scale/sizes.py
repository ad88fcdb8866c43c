"""Sizes of all dimensions of a program, and what rules by opcode see of an instruction.

Every dimension of every value is a `Size`. What an opcode says of the dimensions of its operands and its
result makes sizes equal (`Sizes.unify`), cuts them into factors (`Sizes.same_elements`, a reshape) or into
parts (`Sizes.same_sum`, a concatenation or a slice). A cut is made once, for everything that has the size:
two ways of cutting it are refined to one that both follow. Where that is impossible the sizes are frozen:
they keep their numbers, which satisfy every relation, for the program has them. The same is done for what a
rule does not understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import by_opcode
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.rewrite.scale.terms import Dims, Form, Size, Unification, Unlike, as_many, runs


class Sizes(Unification):
    """The sizes of one or more programs, and how they hang together."""

    def __init__(self) -> None:
        #: Pairs of which the first is no larger than the second, and must not become larger.
        self.orders: list[tuple[Size, Size]] = []
        #: Sizes whose elements a reshape mixes: which ones stay is not the same before and after it.
        self.mixed: list[Size] = []
        self._reshaped: list[tuple[Sequence[Size], Sequence[Size], str]] = []

    # Relations

    def unify(self, one: Size, other: Size, why: str = "sizes that are equal here differ") -> None:
        """Two sizes are the same."""
        self._guarded([one], [other], why, lambda: self._unify(one, other, 0))

    def unify_all(self, ones: Sequence[Size], others: Sequence[Size]) -> None:
        """Dimension by dimension; arrays of other ranks are frozen."""
        if len(ones) != len(others):
            self.freeze_all((*ones, *others), "equal arrays of different ranks")
            return
        for one, other in zip(ones, others):
            self.unify(one, other)

    def same_product(self, ones: Sequence[Size], others: Sequence[Size], why: str) -> None:
        """The product of sizes is that of others, the major one first."""
        for run, other_run in self._unlike_runs(ones, others):
            self._commuted(run, other_run, why)

    def same_elements(self, ones: Sequence[Size], others: Sequence[Size], why: str) -> None:
        """The elements of two arrays are the same, in row-major order: a reshape.

        What is no matter of factors in this order is left to `settle`: everything has to be related first to
        see whether it is the same factors in another order.
        """
        self._reshaped += [(*unlike, why) for unlike in self._unlike_runs(ones, others)]

    def _unlike_runs(
        self, ones: Sequence[Size], others: Sequence[Size]
    ) -> Iterator[tuple[Sequence[Size], Sequence[Size]]]:
        """Relate the factors of two equal products; the runs of them that have none in common.

        Runs of dimensions that hold the same number of elements are told apart first, so that a run that
        cannot be understood freezes nothing else.
        """
        if not as_many(ones, others):
            yield ones, others
            return
        for run, other_run in runs([s for s in ones if s.value != 1], [s for s in others if s.value != 1]):
            try:
                self._match(run, other_run, Form.PRODUCT, 0, in_order=True)
            except Unlike:
                yield run, other_run

    def _commuted(self, ones: Sequence[Size], others: Sequence[Size], why: str) -> None:
        """Relate the factors of two equal products in any order, or freeze them."""
        if not as_many(ones, others):
            self.freeze_all((*ones, *others), why)
            return
        self._guarded(ones, others, why, partial(self._commute, ones, others, 0))

    def same_sum(self, whole: Size, parts: Sequence[Size], why: str) -> None:
        """A size is the sum of others, in this order."""
        summands = [part for part in parts if part.value]
        self._guarded([whole], summands, why, partial(self._match, [whole], summands, Form.SUM, 0))

    def same_multiple(self, large: Size, small: Size, step: int, why: str) -> None:
        """The larger size is `step` times the smaller one, and more or less by a number that stays."""
        if step == 1 and large.value == small.value:
            self.unify(large, small)
            return
        multiple = self._product([self.root(small), self.fixed(step, "a step")])
        offset = large.value - multiple.value
        rest = self.fixed(abs(offset), "a rest of steps")
        one, other = (large, multiple) if offset >= 0 else (multiple, large)
        self.same_sum(one, [other, rest], why)

    def no_larger(self, one: Size, other: Size) -> None:
        """The first must not become larger than the second."""
        self.orders.append((one, other))

    # What follows

    def is_cut(self, size: Size, at: int) -> bool:
        """Whether one of the parts that a size is made of begins at its element `at`, not the first one."""
        whole = self.root(size)
        if whole.form is Form.SUM:
            begin = 0
            for part in self._parts([whole], Form.SUM):
                if begin < at < begin + part.value:
                    return self.is_cut(part, at - begin)
                begin += part.value
            return at < begin
        if whole.form is Form.PRODUCT:
            major = self._parts([whole], Form.PRODUCT)[0]
            rows, within = divmod(at, whole.value // major.value)
            return within == 0 and major is not whole and self.is_cut(major, rows)
        return False

    def mixed_atoms(self) -> set[Size]:
        """What those sizes are made of now whose elements a reshape mixes."""
        return {atom for one in self.mixed for atom in self.atoms(one)}

    def settle(self) -> None:
        """Say what could not be said before everything was related.

        A reshape with the same factors in another order keeps the number of elements whatever they are,
        though it mixes them: a matrix that is read in the wrong order. Other reshapes that could not be told
        share what their factors have in common, or freeze their sizes. And a size that is no larger than a
        sum with one part like it is that part: what a loop takes of a dimension in windows, but for the rest
        that it leaves.
        """
        for ones, others, why in self._reshaped:
            self._commuted(ones, others, why)
            self.mixed += ones
        self._reshaped.clear()
        for small, large in self.orders:
            whole, part = self.root(large), self.root(small)
            if whole.form is Form.SUM and part.form is Form.ATOM:
                same = [one for one in self._parts([whole], Form.SUM) if one.value == part.value]
                if len(same) == 1:
                    self.unify(part, same[0])

    # How

    def _guarded(
        self, ones: Sequence[Size], others: Sequence[Size], why: str, relate: Callable[[], None]
    ) -> None:
        """Relate sizes; where that cannot be done, freeze them. What was related before stays right."""
        try:
            relate()
        except Unlike:
            self.freeze_all((*ones, *others), why)


#: Gives the new number of a size.
Number = Callable[[Size], int]
#: Attributes of an instruction that speak of sizes, as they are when sizes are other numbers.
Restated = Callable[[Number], Mapping[str, AttributeValue]]


class Unseen(NamedTuple):
    """A number along a dimension that one program has alone and that follows nothing.

    Attributes:
        size: of the dimension.
        number: that lies behind the end once the size is no larger.
        text: what it is, in words.
    """

    size: Size
    number: int
    text: str


@dataclass
class Relations:
    """The sizes in programs, and what is known of them.

    Attributes:
        sizes: the terms.
        dims: of the array at an index of each instruction's result.
        restated: attributes that follow from sizes.
        unseen: numbers along sizes that one program has alone.
    """

    sizes: Sizes = field(default_factory=Sizes)
    dims: dict[Instruction, dict[ShapeIndex, Dims]] = field(default_factory=dict)
    restated: dict[Instruction, Restated] = field(default_factory=dict)
    unseen: list[Unseen] = field(default_factory=list)

    def add(self, instruction: Instruction) -> None:
        """Give every dimension of a result a size of its own."""
        self.dims[instruction] = {
            index: tuple(map(self.sizes.new, shape.dims))
            for index, shape in leaves(instruction.shape)
            if isinstance(shape, ArrayShape)
        }

    def of(self, instruction: Instruction) -> Dims:
        """The sizes of an array."""
        return self.dims[instruction][()]

    def leaves(self, instruction: Instruction) -> Sequence[Dims]:
        """The sizes of all arrays of a result, depth first."""
        return list(self.dims[instruction].values())

    def equal(self, one: Instruction, other: Instruction) -> None:
        """Two values have the same shape, leaf by leaf."""
        mine, others = self.dims[one], self.dims[other]
        if mine.keys() != others.keys():
            self.freeze(one, f"{one.opcode} hands on another tuple")
            self.freeze(other, f"{one.opcode} hands on another tuple")
            return
        for index, dims in mine.items():
            self.sizes.unify_all(dims, others[index])

    def divide(self, whole: Size, part: Size, why: str) -> None:
        """A dimension, and what one device has of it: all, or one of equal parts; else both stay."""
        if whole.value == part.value:
            self.sizes.unify(whole, part)
        elif part.value and whole.value % part.value == 0:
            devices = self.sizes.fixed(whole.value // part.value, "devices")
            self.sizes.same_product([whole], [devices, part], why)
        else:
            self.sizes.freeze_all((whole, part), why)

    def freeze(self, instruction: Instruction, why: str) -> None:
        """All dimensions of a result keep their sizes."""
        for dims in self.dims[instruction].values():
            self.sizes.freeze_all(dims, why)

    def freeze_around(self, instruction: Instruction, why: str) -> None:
        """All dimensions of a result, of the operands and of what is called keep their sizes."""
        for one in (instruction, *instruction.operands):
            self.freeze(one, why)
        for called in instruction.called:
            self.freeze_inside(called, why)

    def freeze_inside(self, computation: Computation, why: str) -> None:
        """What a computation takes and returns keeps its sizes."""
        for one in (*computation.parameters, computation.root):
            self.freeze(one, why)


Rule = Callable[[Relations, Instruction], Restated | None]
RULES: dict[str, Rule] = {}


def relates(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule that relates the sizes around instructions of `opcodes`."""
    return by_opcode(RULES, opcodes)


def place(instruction: Instruction) -> str:
    """An instruction in words, with its line."""
    line = f" (line {instruction.line})" if instruction.line else ""
    return f"{instruction.opcode} %{instruction.name}{line}"
