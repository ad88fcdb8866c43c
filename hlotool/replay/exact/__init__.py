"""Two programs as functions of real numbers: the exact arbiter.

Both are evaluated at random points of a finite field (`backends.field`), where nothing is rounded. What is
equal there is the same function, up to a probability that is stated; what is not has a witness.
"""

from __future__ import annotations

from hlotool.replay.exact.arguments import Options, Side
from hlotool.replay.exact.compare import compare
from hlotool.replay.exact.result import ExactResult, LeafResult, Relation, Witness

__all__ = ["ExactResult", "LeafResult", "Options", "Relation", "Side", "Witness", "compare"]
