"""Draws single faults at random places of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlotool.faults import CATALOGUE, DECISIONS, FaultKind, Site
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify

#: Every way to be wrong that needs one device.
KINDS = (*CATALOGUE, *DECISIONS)
#: Draws for one mutant before a program is taken to have no more places.
_TRIES = 20


@dataclass(frozen=True)
class Mutant:
    """A program with one fault.

    Attributes:
        right: the program without it.
        kind: of the fault.
        site: where it is.
        seed: of the choices that the kind makes.
    """

    right: Module
    kind: FaultKind
    site: Site
    seed: int

    @cached_property
    def module(self) -> Module:
        """The program with the fault."""
        return self.kind.plant(self.right, self.site, self.seed)

    @property
    def is_valid(self) -> bool:
        """Whether it is HLO: of rare forms of an instruction not every kind knows."""
        try:
            return not verify(self.module)
        except (KeyError, TypeError, ValueError, IndexError):
            return False


def draw(right: Module, count: int, seed: int, kinds: Sequence[FaultKind] = KINDS) -> Iterator[Mutant]:
    """Up to `count` mutants of a program, no two alike; which ones depends on the seed only.

    The kind is drawn first, of those that fit somewhere: rare kinds are as frequent as others.
    """
    rng = np.random.default_rng(seed)
    places = {kind: sites for kind in kinds if (sites := kind.sites(right))}
    fitting, seen = list(places), set[tuple[str, Site]]()
    if not fitting:
        return
    found = tries = 0
    while found < count and tries < _TRIES * count:
        tries += 1
        kind = fitting[int(rng.integers(len(fitting)))]
        site = places[kind][int(rng.integers(len(places[kind])))]
        mutant = Mutant(right, kind, site, int(rng.integers(1 << 30)))
        if (kind.name, site) not in seen and mutant.is_valid:
            seen.add((kind.name, site))
            found += 1
            yield mutant
