"""Sets that need no look at what the program decides: seeds, ties, signs, corners, mixtures.

Those of ordinary values come first; legal, unusual ones (`odd`: NaN, positions out of range) follow, an array
at a time where one such value would hide another.

In mixed sets every array is of another kind. A NaN in the branch that is not taken by default, an index
beyond the end where it meets different values, a tie of two computed numbers: no set that changes all
arrays in the same way has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from hlotool.backends.base import Value
from hlotool.facts.demands import InRange
from hlotool.facts.ranges import ANY, Interval
from hlotool.inputs.adversarial import corners, odd_values
from hlotool.inputs.adversarial.corners import Rng, allows, cast
from hlotool.inputs.adversarial.sets import (
    OUT_OF_DOMAIN,
    OUT_OF_RANGE,
    Chooser,
    InputSet,
    Leaf,
    Range,
    leaves_of,
    scalar_constants,
    unspecified,
    with_chosen,
)
from hlotool.inputs.demand_rules import DOMAINS
from hlotool.inputs.generate import InputGenerator
from hlotool.inputs.generators import generator_of
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module

#: Places that the largest number of a row has in turn.
_PLACES = 12


class _Family(Struct, frozen=True):
    name: str
    make: Callable[[corners.Rng], Chooser]
    odd: tuple[str, ...] = ()
    #: One set for each array that it changes.
    apart: bool = False
    #: See `InputSet`.
    is_hard: bool = False


def quick_sets(module: Module, plain: Sequence[Value], seed: int, within: Range = None) -> Iterator[InputSet]:
    """The sets that show most of what the plain one does not, odd ones among them; equal seeds give equal
    sets.

    Args:
        module: the program.
        plain: its plain arguments.
        seed: of what is drawn.
        within: bounds of floats that no use bounds.
    """
    yield from _sets(module, plain, seed, _quick(scalar_constants(module)), within)


def early_sets(module: Module, plain: Sequence[Value], seed: int, within: Range = None) -> Iterator[InputSet]:
    """The next ones: numbers at the ends of types, NaN, infinity; see `quick_sets`."""
    yield from _sets(module, plain, seed, _SOON, within)


def ordinary_sets(
    module: Module, plain: Sequence[Value], seed: int, generator: InputGenerator, within: Range = None
) -> Iterator[InputSet]:
    """Further sets, almost all of values that any framework may pass; see `quick_sets`."""
    yield from _seeds(generator, plain, seed, 1)
    yield from _sets(module, plain, seed, _PLAIN_TO_SEE, within)
    yield from _seeds(generator, plain, seed, 2)
    yield from _sets(module, plain, seed, _ordinary(scalar_constants(module)), within)


def odd_sets(module: Module, plain: Sequence[Value], seed: int, within: Range = None) -> Iterator[InputSet]:
    """Further sets of what is legal and yet may never be passed; see `quick_sets`."""
    yield from _sets(module, plain, seed, _ODD, within)


def _seeds(generator: InputGenerator, plain: Sequence[Value], seed: int, step: int) -> Iterator[InputSet]:
    if plain:
        other: tuple[Any, ...] = generator.values(seed + step)
        yield InputSet(f"seed +{step}", other)


def _sets(
    module: Module, plain: Sequence[Value], seed: int, families: Sequence[_Family], within: Range
) -> Iterator[InputSet]:
    leaves = leaves_of(module, plain, within)
    banned = unspecified(module, within is not None)
    for family in families:
        if not banned.isdisjoint(family.odd):
            continue
        choose = family.make(generator_of(seed, *family.name.encode()))
        if not family.apart:
            yield from _set(module, plain, leaves, family, choose, family.name)
            continue
        for leaf in leaves:
            alone = corners.only(leaf, choose)
            yield from _set(module, plain, leaves, family, alone, f"{family.name} in {leaf.name}")


def _set(
    module: Module,
    plain: Sequence[Value],
    leaves: Sequence[Leaf],
    family: _Family,
    choose: Chooser,
    name: str,
) -> Iterator[InputSet]:
    values, changed = with_chosen(module, plain, leaves, choose)
    if changed:
        yield InputSet(name, values, family.odd, is_hard=family.is_hard)


def _quick(constants: Sequence[float]) -> list[_Family]:
    lengths = sorted(int(c) for c in constants if c > 1 and c == int(c))
    return [
        _Family("large numbers", corners.large, is_hard=True),
        _Family("positions beyond the end", lambda rng: odd_values.outside(rng, above=True), (OUT_OF_RANGE,)),
        _Family("both signs", corners.signed),
        _Family(
            "positions before the start", lambda rng: odd_values.outside(rng, above=False), (OUT_OF_RANGE,)
        ),
        _Family(
            "positions lengths before",
            lambda rng: odd_values.lengths_away(rng, above=False),
            (OUT_OF_RANGE,),
            is_hard=True,
        ),
        _Family(
            "positions lengths beyond",
            lambda rng: odd_values.lengths_away(rng, above=True),
            (OUT_OF_RANGE,),
            is_hard=True,
        ),
        _Family("positions from the end", lambda rng: odd_values.from_the_end(rng, lengths), (OUT_OF_RANGE,)),
        _Family("zeros", lambda _: corners.constant(0, of_integers=False), is_hard=True),
        _Family("numbers out of domains", outside_of_domains, (OUT_OF_DOMAIN,)),
        _Family("negative numbers", lambda rng: corners.one_sided(rng, -1), is_hard=True),
        _Family("numbers near 0", odd_values.near_zero, is_hard=True),
        _Family("numbers close together", odd_values.close_together, is_hard=True),
        _Family("numbers alike", lambda rng: corners.coincident(rng, constants), is_hard=True),
        _Family("ties", lambda rng: corners.ties(rng, constants)),
    ]


#: What follows soon: it shows as much of some programs, and nothing of most.
_SOON = (
    _Family("huge numbers", odd_values.huge, is_hard=True),
    _Family("tiny numbers", lambda rng: odd_values.near_zero(rng, odd_values.TINY), is_hard=True),
    _Family("NaN among numbers", lambda rng: corners.special(rng, np.nan), ("NaN",)),
    _Family("infinity among numbers", lambda rng: corners.special(rng, np.inf), ("infinity",)),
    _Family("both zeros", odd_values.both_zeros, ("negative zeros",)),
    _Family("exponents", odd_values.exponents, is_hard=True),
)


#: All of about one size, beyond what f16 holds but for the first.
_COMPARABLE = {"all negative": -12.0, "all large": 2e5, "all far below": -2e5}

#: The last of the sets of one size, in which integers are so, too.
_WITH_INTEGERS = 3

#: What one kind of value shows by itself.
_PLAIN_TO_SEE = (
    _Family("all magnitudes", corners.wide, is_hard=True),
    _Family("NaN", lambda rng: corners.special(rng, np.nan), ("NaN",), apart=True),
    _Family("NaN everywhere", lambda rng: corners.special(rng, np.nan, share=1.0), ("NaN",)),
)

_ODD = (
    _Family("positions far beyond", lambda _: odd_values.far_outside(above=True), (OUT_OF_RANGE,)),
    _Family("positions far before", lambda _: odd_values.far_outside(above=False), (OUT_OF_RANGE,)),
    _Family("negative zeros", lambda rng: corners.special(rng, -0.0), ("negative zeros",)),
    _Family("infinity", lambda rng: corners.special(rng, np.inf), ("infinity",), apart=True),
    _Family("extremes", corners.extreme, ("extreme numbers",)),
)


def _ordinary(constants: Sequence[float]) -> list[_Family]:
    return [
        _Family("positive numbers", lambda rng: corners.one_sided(rng, 1), is_hard=True),
        *_of_one_size(1),
        _Family("zeros everywhere", lambda _: corners.constant(0), is_hard=True),
        _Family("ones", lambda _: corners.constant(1), is_hard=True),
        _Family("minus ones", lambda _: corners.constant(-1), is_hard=True),
        _Family("ascending", lambda _: corners.ascending, is_hard=True),
        _Family("descending", lambda _: corners.descending, is_hard=True),
        _Family("more ties", lambda rng: corners.ties(rng, constants)),
        _Family("more signs", corners.signed),
        *(family for number in range(2, _WITH_INTEGERS + 1) for family in _of_one_size(number)),
        *(_Family(f"largest at {n}", lambda _, n=n: corners.peak(n)) for n in range(_PLACES)),  # type: ignore[misc]
    ]


def _of_one_size(number: int) -> Iterator[_Family]:
    def family(name: str, size: float) -> _Family:
        whole = number == _WITH_INTEGERS
        return _Family(f"{name} {number}", lambda rng: corners.comparable(rng, size, whole), is_hard=True)

    return (family(name, size) for name, size in _COMPARABLE.items())


# Numbers that functions are not made for, where HLO says what comes of them.
#
# A logarithm, a root, a quotient or a shift of them is defined, and a program that guards itself by a
# `where` must take the same way on both sides. Each function makes a `Chooser`.

#: Distances from the end of a domain, and from its one forbidden point.
_BEYOND: Final = (0.25, 1.0, 30.0)
#: Share of the floats that are outside: where all are, sums have nothing but NaN.
_SHARE: Final = 0.5


def outside_of_domains(rng: Rng) -> Chooser:
    """Half of the floats, and all integers, outside of what functions are made for, or on the edge of it."""

    def choose(leaf: Leaf) -> Array | None:
        domain = InRange(leaf.required.intervals).narrowest
        if leaf.needs_order or leaf.element_type.is_complex or not is_of_domains(leaf):
            return None
        numbers = [n for n in dict.fromkeys(_outside(domain)) if allows(leaf, n, ANY)]
        if not numbers:
            return None
        share = 1.0 if leaf.element_type.is_integer else _SHARE
        hit = np.asarray(rng.random(leaf.plain.shape) < share).reshape(-1)
        hit[int(rng.integers(hit.size))] = True
        # One of each, in an array that has room for them.
        drawn = np.resize(rng.permutation(len(numbers)), leaf.plain.size)
        result = np.array(leaf.plain).reshape(-1)
        result[hit] = cast(leaf, np.array(numbers)[drawn])[hit]
        return result.reshape(leaf.plain.shape)

    return choose


def is_of_domains(leaf: Leaf) -> bool:
    """Whether all that is required of a leaf is that it lies in the domain of functions."""
    asked = leaf.required
    roles = {purpose.partition(" of ")[0] for purpose in asked.purposes}
    return asked.is_bounded and roles <= DOMAINS


def _outside(domain: Interval) -> Iterator[float]:
    """The forbidden point, which is mostly 0, and numbers beyond both ends."""
    if domain.avoid is not None:
        yield domain.avoid
    for step in _BEYOND:
        if math.isfinite(domain.low):
            yield domain.low - step
        if math.isfinite(domain.high):
            yield domain.high + step


#: Sets of each sort, ordinary and odd, that take turns with all others.
FIRST: Final = range(1, 41)
#: Those that come last: where three things have to come together, few draws have them.
LAST: Final = range(41, 161)
#: Share of the arrays that stay as another seed makes them.
_AS_GENERATED: Final = 0.3
#: Places that the largest number of a row may have.
_MIXED_PLACES: Final = 16
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
    banned = unspecified(module, within is not None)
    constants = scalar_constants(module)
    for number in numbers:
        rng = generator_of(seed, 5 + odd, number)
        base: tuple[Any, ...] = generator.values(int(rng.integers(1 << 30)))
        leaves = leaves_of(module, base, within)
        # `odd` ones are for numbers that positions are made of, and come after sets of one unusual kind.
        is_alike = number % _COINCIDENT == (0 if odd else 1)
        has_use = not odd or any(leaf.is_index and leaf.is_free for leaf in leaves)
        coincident = corners.coincident(rng, constants) if is_alike and has_use else None
        mixture = _Mixture(rng, odd, banned, coincident)
        values, changed = with_chosen(module, base, leaves, mixture.choose)
        if changed and bool(mixture.odd) == odd:
            name = f"{'index ' if odd else ''}mixture {number}"
            yield InputSet(name, values, tuple(sorted(mixture.odd)), is_hard=True)


class _Mixture:
    """Chooses for each array what it holds.

    Attributes:
        odd: kinds of unusual values among the chosen ones.
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
            corners.peak(int(rng.integers(_MIXED_PLACES))),
        )

    def _odd_ones(self, leaf: Leaf) -> tuple[tuple[str, Chooser], ...]:
        rng = self._rng
        if leaf.is_index:
            above, wraps = bool(rng.integers(2)), bool(rng.integers(2))
            return (
                (OUT_OF_RANGE, odd_values.outside(rng, above)),
                (OUT_OF_RANGE, odd_values.outside(rng, above)),
                (OUT_OF_RANGE, odd_values.far_outside(above, wraps)),
                (OUT_OF_RANGE, odd_values.anywhere(rng)),
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
