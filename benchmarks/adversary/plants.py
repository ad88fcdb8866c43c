"""What a kind of fault is: a function from a text to the edits of it that plant one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.adversary.text import Text

#: Yields (what was done, the new text), one for each place; of a promise a third text as well, which does
#: what a backend that believes it may do, so that values show whether it is false.
Plant = Callable[[Text], Iterator[tuple[str, ...]]]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: of the function that plants it.
        row: the row of the table of kinds that it belongs to; empty for the reader's own.
        promise: values do not show it: a backend that believes the text is what goes wrong.
        exact: it shows on whole numbers, on which nothing is rounded (a tie, an index, a bit).
        after: it is a fault in the optimised text alone: where the text before has it, the other one is right
            to be more exact, or more careful.
        plant: yields all places.
    """

    name: str
    row: str
    promise: bool
    exact: bool
    after: bool
    plant: Plant


#: All kinds by name, in the order of their definition.
KINDS: dict[str, Kind] = {}


def kind(
    row: str = "", *, promise: bool = False, exact: bool = False, after: bool = False
) -> Callable[[Plant], Plant]:
    """Enter a kind under its function's name."""

    def enter(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        KINDS[name] = Kind(name, row, promise, exact, after or promise, plant)
        return plant

    return enter
