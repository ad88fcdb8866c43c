"""The table of idioms: patterns that algebraic rewrites look for, each a small function that emits one.

A rewrite's mistakes are at the edges of its condition. Each idiom therefore draws shapes, constants and
attributes around what the rewrite wants, so that it sometimes applies and sometimes just does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TypeClass
from hlotool.lab.fuzz.programs.draft import Declined
from hlotool.lab.fuzz.programs.graph import Graph

#: Emits the pattern on an array; the values that it adds are what others may go on with.
Emit: TypeAlias = Callable[[Graph, Instruction], object]

INTEGERS = frozenset({TypeClass.SIGNED, TypeClass.UNSIGNED})
FLOATS = frozenset({TypeClass.FLOATING})
NUMBERS = INTEGERS | FLOATS
BITS = INTEGERS | {TypeClass.PRED}
EVERYTHING = frozenset(TypeClass)


@dataclass(frozen=True)
class Idiom:
    """One pattern.

    Attributes:
        name: in words.
        emit: adds it to a graph.
        low_rank: dimensions that its array has at least.
        families: of the array's type.
        several: whether it needs several devices.
        bits: of the array's type at least.
        offloads: whether it needs a compiler that knows the host's memory.
    """

    name: str
    emit: Emit
    low_rank: int
    families: frozenset[TypeClass]
    several: bool
    bits: int
    offloads: bool

    def fits(self, shape: ArrayShape) -> bool:
        """Whether the pattern may be on an array of this shape."""
        return (
            self.low_rank <= shape.rank <= 4
            and shape.element_type.family in self.families
            and shape.element_type.bits >= self.bits
            and shape.element_type is not ElementType.F8E8M0FNU
            and (shape.size > 0 or not self.low_rank)
        )


IDIOMS: dict[str, Idiom] = {}


def idiom(
    name: str,
    low_rank: int = 0,
    families: frozenset[TypeClass] = EVERYTHING,
    *,
    several: bool = False,
    bits: int = 4,
    offloads: bool = False,
) -> Callable[[Emit], Emit]:
    """Register a pattern under its name; ValueError where there is one."""

    def register(emit: Emit) -> Emit:
        if name in IDIOMS:
            raise ValueError(f"{name!r} is there already")
        IDIOMS[name] = Idiom(name, emit, low_rank, families, several, bits, offloads)
        return emit

    return register


def emit_one(graph: Graph, about: Collection[str] = ()) -> None:
    """Emit one of the idioms, on an array that is there or a new one; raises Declined.

    Args:
        graph: that takes it.
        about: words one of which is in its name, where some are given.
    """
    several = graph.preferences.exchanges
    names = {
        n: 3.0 if i.several or i.offloads else 1.0
        for n, i in IDIOMS.items()
        if (several or not i.several)
        and (graph.preferences.offloads or not i.offloads)
        and (not about or any(word in n for word in about))
    }
    chosen = IDIOMS[graph.preferences.one_of(graph.rng, names)]
    if not graph.is_entry and chosen.several:
        raise Declined("not all devices come by")
    x = graph.pick(chosen.fits)
    if x is None or graph.chance(0.15):
        kind = graph.kind(chosen.families)
        if kind.bits < chosen.bits or kind is ElementType.F8E8M0FNU:
            raise Declined("the type has no such pattern")
        x = graph.fresh(kind, graph.preferences.dims(graph.rng, chosen.low_rank, may_be_empty=False))
    chosen.emit(graph, x)
    graph.shared.idioms.add(chosen.name)
