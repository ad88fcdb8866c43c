"""Sets in which every array is of another kind: what shows only where two things come together.

A NaN in the branch that is not taken by default, an index beyond the end where it meets different values, a
tie of two computed numbers: no set that changes all arrays in the same way has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from hlotool.directed import corners, positions
from hlotool.directed.constants import scalar_constants
from hlotool.directed.leaves import Chooser, Leaf, Range, leaves_of, with_chosen
from hlotool.directed.sets import OUT_OF_RANGE, InputSet, left_open
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.values.generate import InputGenerator

#: Sets of each sort, ordinary and odd, that take turns with all others.
FIRST: Final = range(1, 41)
#: Those that come last: where three things have to come together, few draws have them.
LAST: Final = range(41, 161)
#: Share of the arrays that stay as another seed makes them.
_AS_GENERATED: Final = 0.3
#: Places that the largest number of a row may have.
_PLACES: Final = 16
#: One in so many sets has the same few numbers in almost all arrays: each array on its own draws them too
#: seldom for two to meet.
_COINCIDENT: Final = 4


def mixed_sets(
    module: Module,
    generator: InputGenerator,
    seed: int,
    odd: bool,
    within: Range = None,
    numbers: range = FIRST,
) -> Iterator[InputSet]:
    """Sets of values of other seeds, some arrays of which are replaced; equal seeds give equal sets.

    Args:
        module: a program for one device.
        generator: of plain arguments for it.
        seed: of what is drawn.
        odd: whether values that frameworks may never pass are among them.
        within: bounds of floats that no use bounds.
        numbers: of the sets, each of which depends on its number alone.
    """
    banned = left_open(module, within is not None)
    constants = scalar_constants(module)
    for number in numbers:
        rng = np.random.default_rng([seed, 5 + odd, number])
        base: tuple[Any, ...] = generator.draw(int(rng.integers(1 << 30))).values
        leaves = leaves_of(module, base, within)
        # Odd ones are for numbers that positions are made of, and come later than what is odd by itself.
        is_alike = number % _COINCIDENT == (0 if odd else 1)
        has_use = not odd or any(leaf.is_index and leaf.is_free for leaf in leaves)
        coincident = corners.coincident(rng, constants) if is_alike and has_use else None
        mixture = _Mixture(rng, odd, banned, coincident)
        values, changed = with_chosen(module, base, leaves, mixture.choose)
        if changed and bool(mixture.odd) == odd:
            name = f"{'odd ' if odd else ''}mixture {number}"
            yield InputSet(name, values, tuple(sorted(mixture.odd)), is_hard=True)


class _Mixture:
    """Chooses for each array what it holds.

    Attributes:
        odd: what is odd about the chosen values.
    """

    def __init__(
        self, rng: corners.Rng, is_odd: bool, banned: frozenset[str], coincident: Chooser | None
    ) -> None:
        self._rng = rng
        self._coincident = coincident
        self._is_odd = is_odd
        self._banned = banned
        self.odd: set[str] = set()

    def choose(self, leaf: Leaf) -> Array | None:
        """See `Chooser`."""
        if self._coincident is not None and (not leaf.is_index or self._is_odd):
            return self._coincide(leaf, self._coincident)
        if self._rng.random() < _AS_GENERATED:
            return None
        usual = self._pick(self._usual())(leaf)
        if not self._is_odd or self._rng.random() < 0.5:
            return usual
        name, chooser = self._odd_ones(leaf)[int(self._rng.integers(len(self._odd_ones(leaf))))]
        if name in self._banned or (found := chooser(leaf)) is None:
            return usual
        self.odd.add(name)
        return found

    def _coincide(self, leaf: Leaf, coincident: Chooser) -> Array | None:
        """In odd sets numbers that positions are made of need not lead to a place in range."""
        if not leaf.is_index:
            return coincident(leaf)
        self.odd.add(OUT_OF_RANGE)
        return coincident(leaf.as_required)

    def _pick(self, choosers: Sequence[Chooser]) -> Chooser:
        return choosers[int(self._rng.integers(len(choosers)))]

    def _usual(self) -> tuple[Chooser, ...]:
        rng = self._rng
        return (
            corners.whole(rng),
            corners.whole(rng),
            corners.ties(rng),
            corners.signed(rng),
            corners.signed(rng),
            corners.wide(rng),
            corners.large(rng),
            corners.one_sided(rng, 1),
            corners.one_sided(rng, -1),
            corners.constant(float(rng.integers(-1, 2))),
            corners.peak(int(rng.integers(_PLACES))),
        )

    def _odd_ones(self, leaf: Leaf) -> tuple[tuple[str, Chooser], ...]:
        rng = self._rng
        if leaf.is_index:
            above, wraps = bool(rng.integers(2)), bool(rng.integers(2))
            return (
                (OUT_OF_RANGE, positions.outside(rng, above)),
                (OUT_OF_RANGE, positions.outside(rng, above)),
                (OUT_OF_RANGE, positions.far_outside(above, wraps)),
                (OUT_OF_RANGE, positions.anywhere(rng)),
            )
        if leaf.element_type.is_integer:
            return (("extreme numbers", corners.extreme(rng)),)
        return (
            ("NaN", corners.special(rng, np.nan)),
            ("NaN", corners.special(rng, np.nan)),
            ("negative zeros", corners.special(rng, -0.0)),
            ("infinity", corners.special(rng, np.inf)),
            ("infinity", corners.special(rng, -np.inf)),
            ("extreme numbers", corners.extreme(rng)),
        )
