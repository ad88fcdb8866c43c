"""Numbers that functions are not made for, where HLO says what comes of them.

A logarithm, a root, a quotient or a shift of them is defined, and a program that guards itself by a `where`
must take the same way on both sides. Each function makes a `Chooser`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from hlotool.analysis.interval import ANY, Interval
from hlotool.directed.corners import Rng, allows, cast
from hlotool.directed.leaves import Chooser, Leaf
from hlotool.ir.dtypes import Array
from hlotool.values.demand_rules import DOMAINS
from hlotool.values.demands import InRange

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
