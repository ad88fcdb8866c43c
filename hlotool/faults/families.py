"""Kinds of fault by what inputs must reach to notice them."""

from __future__ import annotations

from hlotool.faults.kind import FaultKind

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
_FAMILY_OF = {kind: family for family, kinds in _NAMED.items() for kind in kinds}


def family_of(kind: FaultKind) -> str:
    """`tie`, `branch`, `loop bound`, …; of other kinds what they are about: `elements`, `precision`."""
    return _FAMILY_OF.get(kind.name) or kind.rewrite.__module__.rpartition(".")[2]
