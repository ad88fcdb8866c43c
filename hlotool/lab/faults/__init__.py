"""Faults to plant in programs: what compilers really get wrong, as edits of a module.

    for kind in CATALOGUE:
        for site in kind.sites(module):
            wrong = kind.plant(module, site, seed=0)

Every planted module is valid HLO of the same interface. Whether the fault changes the result depends on the
program and its inputs. `DEVICES` holds the kinds that need a program for several devices, `DECISIONS` those
that show only where the inputs reach a corner of a decision, `BELOW_ROUNDING` those that no run shows.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.lab.faults.arithmetic import ARITHMETIC, CONSTANTS, SPECIALS
from hlotool.lab.faults.decisions import BRANCHES, DECISIONS, LOOPS
from hlotool.lab.faults.edit import FaultKind, Place, Site, places, poisoned
from hlotool.lab.faults.exchanges import DEVICES, INDEXING
from hlotool.lab.faults.movement import ELEMENTS, MOVEMENT, REGIONS
from hlotool.lab.faults.reductions import CONTRACTIONS, REDUCTIONS, SORTING
from hlotool.lab.faults.rounding import BELOW_ROUNDING, INTEGER_WIDTHS, PRECISION

__all__ = [
    "BELOW_ROUNDING",
    "CATALOGUE",
    "DECISIONS",
    "DEVICES",
    "FaultKind",
    "Place",
    "Site",
    "family_of",
    "places",
    "poisoned",
]

_FAMILIES: Mapping[str, tuple[FaultKind, ...]] = {
    "elements": ELEMENTS,
    "regions": REGIONS,
    "movement": MOVEMENT,
    "arithmetic": ARITHMETIC,
    "precision": PRECISION,
    "constants": CONSTANTS,
    "integers": INTEGER_WIDTHS,
    "specials": SPECIALS,
    "reductions": REDUCTIONS,
    "contractions": CONTRACTIONS,
    "loops": LOOPS,
    "branches": BRANCHES,
    "indexing": INDEXING,
    "sorting": SORTING,
}
CATALOGUE: tuple[FaultKind, ...] = tuple(kind for kinds in _FAMILIES.values() for kind in kinds)

#: Kinds that have a family by what inputs must reach to notice them.
_NAMED = {
    "clamped index": ("index wraps instead of clamping", "gather index wraps"),
    "loop bound": ("loop bound off by one",),
    "branch": (
        "wrong branch", "negated comparison", "mirrored comparison", "swapped sides of a select",
        "select without its mask",
    ),
    "tie": ("tie decided the other way", "equal keys in the other order"),
    "sign of remainder": ("remainder of the other sign", "quotient rounded down"),
}  # fmt: skip
_FAMILY_OF = {
    **{kind.name: family for family, kinds in _FAMILIES.items() for kind in kinds},
    **{kind: family for family, kinds in _NAMED.items() for kind in kinds},
}


def family_of(kind: FaultKind) -> str:
    """`tie`, `branch`, `loop bound`, …; of other kinds what they are about: `elements`, `precision`."""
    return _FAMILY_OF[kind.name]
