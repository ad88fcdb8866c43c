"""Roundings that only one of two programs does: width that the tested one lost, or kept.

A narrow type is no excuse for itself. A program that makes an f32 sum in bf16 is as far off as its own legal
executions, so these must not judge it. Both programs are executed in f64, where they compute the same values
whatever they round, and every value that the tested one rounds is looked for among those of the reference. A
value that the reference rounds as coarsely, too, wherever that is, may be rounded. One that it has in a wider
type only has lost its width, unless the target may round it (operands of default-precision products on a TPU,
those of an `algorithm`). What the reference never computes, a product in another order, says nothing.

The other way round, a value that only the reference rounds kept more than its type has: that is legal (excess
precision) unless the compiler was told not to (`xla_allow_excess_precision=false`).

Both count for a result only as far as they change it: the program is executed once more without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from hlotool.backends.numpy.executions.rounding_errors import has_default_precision
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.compiler_made import uncertain_values
from hlotool.facts.dataflow import source_of
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import origin_of
from hlotool.facts.retyping import Precision, precision_of
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, array_shapes
from hlotool.judge.reasons import named
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.freedoms import Freedoms
from hlotool.judge.rules.instructions import (
    Narrowing,
    Sampler,
    Searcher,
    feeds_products_only,
    narrowings,
    pieces,
    steps_of,
    terms_of,
)
from hlotool.judge.rules.judgement import Leaf


class Widths:
    """What only one of two programs rounds.

    Args:
        reference: executions of the program as it should be.
        tested: executions of the program in question; None: there is none.
        freedoms: what the target allows.
    """

    def __init__(self, reference: Ensemble, tested: Ensemble | None, freedoms: Freedoms) -> None:
        self._reference = reference
        self._tested = tested
        self._freedoms = freedoms
        self._runs: dict[tuple[bool, frozenset[Instruction]], list[Array] | None] = {}

    def lost(self, leaf: Leaf) -> str:
        """Why the tested program must not round what it rounds; empty where that does not change a leaf."""
        if self._tested is None or not self._narrower:
            return self._against_orders(leaf)
        if not self._changes(leaf, self._tested, self._narrower, leaf.actual):
            return self._against_orders(leaf)
        first = self._narrower[0]
        what = "adds up in" if first.adds else "rounds to"
        wide = self._held_in[first.instruction]
        text = f"the tested program {what} {first.type_text} at {origin_of(first.instruction)} what the "
        more = f", and {len(self._narrower) - 1} more values" if len(self._narrower) > 1 else ""
        return f"{text}reference has in {wide}{more}: the target may not lose width there"

    def removed(self, leaf: Leaf) -> str:
        """Which roundings of the reference the tested program left out, in words; empty where that does not
        change a leaf."""
        if self._tested is None or not self._wider:
            return ""
        if not self._changes(leaf, self._reference, self._wider, leaf.expected):
            return ""
        first = self._wider[0]
        cast = "the cast" if first.instruction.opcode == "convert" else "the rounding"
        others = len(self._wider) - 1
        gone = f"and {others} more are gone" if others else "is gone"
        source = source_of(self._reference.side.module, [first.instruction])
        where = source.user_line or f"{named(source)} of the reference"
        return f"excess precision: {cast} to {first.type_text} at {where} {gone}"

    def _against_orders(self, leaf: Leaf) -> str:
        if self._freedoms.excess_precision or not (removed := self.removed(leaf)):
            return ""
        return f"{removed}; xla_allow_excess_precision=false asks for every rounding"

    @cached_property
    def dropped(self) -> str:
        """The `reduce-precision` of the reference that the tested program has fewer of, in words."""
        if self._tested is None:
            return ""
        own, other = (_reductions(side.side.module) for side in (self._reference, self._tested))
        missing = [those[0] for bits, those in own.items() if len(those) > len(other.get(bits, ()))]
        return f"{origin_of(missing[0])} of the reference was dropped, which asks for it" if missing else ""

    def _changes(self, leaf: Leaf, side: Ensemble, those: Sequence[Narrowing], value: Array) -> bool:
        """Whether what some instructions round makes a good part of what a leaf is off by.

        Args:
            leaf: in question.
            side: whose program rounds.
            those: instructions of it.
            value: that it returned.
        """
        unrounded = self._unrounded(side, frozenset(one for n in those for one in _with_steps(n)))
        # Without narrow types sums of one are not rounded at each step, whatever rounds besides.
        plain = [] if any(n.adds for n in those) else self._unrounded(side, frozenset())
        if unrounded is None or plain is None:
            return False
        without, value = unrounded[leaf.number], plain[leaf.number] if plain else value
        if without.shape != value.shape or value.shape != leaf.expected.shape:
            return False
        if not leaf.is_inexact:
            return not np.array_equal(without, value)
        kind = np.complex128 if leaf.shape.element_type.is_complex else np.float64
        with np.errstate(all="ignore"):
            moved = np.abs(without.astype(kind) - value.astype(kind))
            off = np.abs(leaf.expected.astype(kind) - leaf.actual.astype(kind))
            if np.array_equal(np.isfinite(moved), np.isfinite(off)):
                moved, off = moved[np.isfinite(moved)], off[np.isfinite(off)]
            return bool(np.linalg.norm(moved) > thresholds.SHOWN.value * np.linalg.norm(off))

    def _unrounded(self, side: Ensemble, those: frozenset[Instruction]) -> list[Array] | None:
        """The leaves of one side where some instructions do not round; None where it cannot be executed."""
        key = side is self._tested, those
        if key not in self._runs:
            try:
                self._runs[key] = side.unrounded(those)
            except HlotoolError:
                self._runs[key] = None
        return self._runs[key]

    @cached_property
    def _narrower(self) -> list[Narrowing]:
        """What the tested program rounds, and the reference has in a wider type only."""
        if self._tested is None:
            return []
        taken_apart = frozenset(pieces(self._tested.side.module))
        own = [n for n in narrowings(self._tested.side.module) if n.instruction not in taken_apart]
        found = self._found(own, self._tested, self._reference)
        if found is None:
            return []
        asked = _asked(self._reference.side.module)
        lost = []
        for narrowing in own:
            instruction = narrowing.instruction
            whole, part = found.whole.get(instruction, {}), found.part.get(instruction, {})
            is_wide_sum = self._freedoms.sums_are_wide and narrowing.is_of_narrow_type
            adds = narrowing.adds and not is_wide_sum
            is_known = any(
                unit >= narrowing.unit and (not adds or i in found.adds) for i, unit in part.items()
            )
            if is_known or not whole:
                continue
            if not adds and self._may_round(narrowing, part, asked):
                continue
            self._held_in[instruction] = _type_text(min(whole, key=lambda i: whole[i]))
            lost.append(narrowing)
        return lost

    @cached_property
    def _held_in(self) -> dict[Instruction, str]:
        return {}

    def _may_round(
        self, narrowing: Narrowing, part: Mapping[Instruction, float], asked: Mapping[Instruction, float]
    ) -> bool:
        """Whether the target may round a value, since nothing but products reads it."""
        assert self._tested is not None
        module, instruction = self._tested.side.module, narrowing.instruction
        if any(asked.get(one, 0.0) >= narrowing.unit for one in part):
            return feeds_products_only(module, instruction, _is_product)
        if self._freedoms.product.unit < narrowing.unit:
            return False
        return feeds_products_only(module, instruction, has_default_precision)

    @cached_property
    def _wider(self) -> list[Narrowing]:
        """What the reference rounds, and the tested program has in a wider type only."""
        if self._tested is None:
            return []
        own = [n for n in narrowings(self._reference.side.module) if not n.adds]
        own = [n for n in own if n.instruction.opcode != "reduce-precision"]
        found = self._found(own, self._reference, self._tested)
        if found is None:
            return []
        return [
            n
            for n in own
            if found.whole.get(n.instruction)
            and all(unit < n.unit for unit in found.part.get(n.instruction, {}).values())
        ]

    @cached_property
    def _folded(self) -> float:
        """One ulp at 1 of the coarsest type in which constants of one program were made of the other's."""
        assert self._tested is not None
        one, other = self._reference.side.module, self._tested.side.module
        made = uncertain_values(one, other) | uncertain_values(other, one)
        literals = [i for i in made if i.opcode == "constant"]
        return max(
            (epsilon(part.element_type) for i in literals for part in array_shapes(i.shape)), default=0.0
        )

    def _found(self, own: Iterable[Narrowing], side: Ensemble, other: Ensemble) -> Searcher | None:
        """Where `other` has the values that `side` rounds; None where they cannot be looked at."""
        wanted = {narrowing.instruction: narrowing for narrowing in own}
        if not wanted or side.side.watch is None or other.side.watch is None:
            return None
        sampler = Sampler(wanted, terms_of(side.side.module, wanted))
        rounded = narrowings(other.side.module)
        try:
            side.watch_plainly(sampler, wide=True)
            units = {n.instruction: n.unit for n in rounded}
            adds = frozenset(n.instruction for n in rounded if n.adds)
            searcher = Searcher(sampler.samples, units, adds, wanted, self._folded)
            other.watch_plainly(searcher, wide=True)
        except (HlotoolError, MemoryError):
            return None
        return searcher


def _with_steps(narrowing: Narrowing) -> Iterator[Instruction]:
    """What rounds, and what does so at every step of it."""
    yield narrowing.instruction
    if narrowing.adds:
        yield from steps_of(narrowing.instruction)


def _reductions(module: Module) -> dict[Precision, list[Instruction]]:
    """Each `reduce-precision`, by the bits that it leaves."""
    found: dict[Precision, list[Instruction]] = {}
    for instruction in module.instructions():
        if instruction.opcode == "reduce-precision":
            found.setdefault(precision_of(instruction), []).append(instruction)
    return found


def _is_product(instruction: Instruction) -> bool:
    return instruction.row.opcode_class is Class.CONTRACTION


def _asked(module: Module) -> dict[Instruction, float]:
    """The operands of products that ask for an algorithm in bf16 or TF32."""
    found: dict[Instruction, float] = {}
    for instruction in module.instructions():
        algorithm = str(instruction.attributes.get("algorithm", "")).lower()
        if _is_product(instruction) and algorithm:
            unit = {"bf16": 2.0**-7, "tf32": 2.0**-10, "f16": 2.0**-10}
            known = [value for name, value in unit.items() if name in algorithm]
            found |= {operand: max(known, default=0.0) for operand in instruction.operands}
    return found


def _type_text(instruction: Instruction) -> str:
    shape = instruction.shape
    return str(shape.element_type) if isinstance(shape, ArrayShape) else "a wider type"
