"""Faults to plant in programs: what compilers really get wrong, as edits of a module.

    for kind in CATALOGUE:
        for site in kind.sites(module):
            wrong = kind.plant(module, site, seed=0)

Every planted module is valid HLO of the same interface. Whether the fault changes the result depends on the
program and its inputs. `DEVICES` holds the kinds that need a program for several devices, `DECISIONS` those
that show only where the inputs reach a corner of a decision, `BELOW_ROUNDING` those that no run shows.
"""

from __future__ import annotations

from hlotool.faults import (
    arithmetic,
    branches,
    constants,
    contractions,
    decisions,
    elements,
    exchanges,
    indexing,
    integers,
    loops,
    movement,
    precision,
    reductions,
    regions,
    small,
    sorting,
    specials,
)
from hlotool.faults.inputs import poisoned
from hlotool.faults.kind import FaultKind, Place, Site, places

__all__ = [
    "BELOW_ROUNDING",
    "CATALOGUE",
    "DECISIONS",
    "DEVICES",
    "FaultKind",
    "Place",
    "Site",
    "places",
    "poisoned",
]

CATALOGUE: tuple[FaultKind, ...] = (
    *elements.KINDS,
    *regions.KINDS,
    *movement.KINDS,
    *arithmetic.KINDS,
    *precision.KINDS,
    *constants.KINDS,
    *integers.KINDS,
    *specials.KINDS,
    *reductions.KINDS,
    *contractions.KINDS,
    *loops.KINDS,
    *branches.KINDS,
    *indexing.KINDS,
    *sorting.KINDS,
)

DEVICES: tuple[FaultKind, ...] = exchanges.KINDS

BELOW_ROUNDING: tuple[FaultKind, ...] = small.KINDS
DECISIONS: tuple[FaultKind, ...] = decisions.KINDS
