"""A random search for outcomes that no other set has, guided by coverage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hlotool.backends.base import Value
from hlotool.coverage.coverage import Coverage
from hlotool.coverage.observer import Instrumented
from hlotool.directed import corners
from hlotool.directed.leaves import Chooser, Leaf, Range, leaves_of, with_chosen
from hlotool.directed.sets import InputSet
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module

#: Draws, and draws without anything new after which the search is given up.
_MOST_DRAWS: Final = 60
_PATIENCE: Final = 20


def searched_sets(
    module: Module, plain: Sequence[Value], known: Sequence[InputSet], seed: int, within: Range = None
) -> Iterator[InputSet]:
    """Sets that have outcomes which neither the plain one nor `known` ones have; equal seeds give equal sets.

    Every draw changes some arrays of a set that was worth keeping.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        known: sets of ordinary values.
        seed: of what is drawn.
        within: bounds of floats that no use bounds.
    """
    search = _Search(module, seed)
    for values in (plain, *(one.values for one in known)):
        search.gain(values)
    leaves = [leaf for leaf in leaves_of(module, plain, within) if leaf.is_free]
    kept: list[Sequence[Value]] = [plain]
    found = idle = 0
    for _ in range(_MOST_DRAWS):
        if not leaves or not search.is_open or idle >= _PATIENCE:
            return
        base = kept[int(search.rng.integers(len(kept)))]
        values, changed = with_chosen(module, base, leaves_of(module, base, within), search.chooser(leaves))
        gained = search.gain(values) if changed else ()
        idle = 0 if gained else idle + 1
        if gained:
            found += 1
            kept.append(values)
            yield InputSet(f"found {found}", values, aims=gained)


class _Search:
    def __init__(self, module: Module, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 4])
        self._instrumented = Instrumented(module)
        self._coverage: Coverage | None = None

    @property
    def is_open(self) -> bool:
        """Some outcome is still missing."""
        return self._coverage is not None and any(True for _ in self._coverage.never())

    def gain(self, values: Sequence[Value]) -> tuple[str, ...]:
        """The outcomes that arguments show for the first time."""
        try:
            seen = self._instrumented.run(values)
        except HlotoolError:
            return ()
        before = dict(self._coverage.never()) if self._coverage is not None else {}
        self._coverage = seen if self._coverage is None else self._coverage.merge(seen)
        after = dict(self._coverage.never())
        return tuple(
            f"{outcome} at {decision.instruction.opcode} %{decision.instruction.name}"
            for decision, missing in before.items()
            for outcome in missing
            if outcome not in after.get(decision, ())
        )

    def chooser(self, leaves: Sequence[Leaf]) -> Chooser:
        """Other values for one or some arrays, each of another kind."""
        share = self.rng.choice([1 / len(leaves), 0.5, 1.0])
        places = {(leaf.parameter, leaf.index) for leaf in leaves if self.rng.random() < share}
        kinds = (
            corners.ties(self.rng),
            corners.whole(self.rng),
            corners.signed(self.rng),
            corners.wide(self.rng),
            corners.one_sided(self.rng, 1),
            corners.one_sided(self.rng, -1),
            corners.constant(float(self.rng.integers(-2, 3))),
            corners.peak(int(self.rng.integers(16))),
        )

        def choose(leaf: Leaf) -> Array | None:
            if (leaf.parameter, leaf.index) not in places:
                return None
            return kinds[int(self.rng.integers(len(kinds)))](leaf)

        return choose
