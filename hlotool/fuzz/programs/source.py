"""Programs by number: from random graphs, from real programs that are changed, from patterns of rewrites."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hlotool.fuzz.programs.drawn import Drawn, words_of
from hlotool.fuzz.programs.random_graph import idiom_graph, random_graph
from hlotool.fuzz.programs.taste import Taste
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify_or_raise

#: How often each source is drawn from.
ORIGINS: Mapping[str, float] = {"graph": 1.0, "mutation": 1.0, "idioms": 1.0}


class Source:
    """Draws programs; the same seed, options and pool give the same program for the same index.

    Args:
        seed: of all choices.
        origins: how often each of `graph`, `mutation`, `idioms` is drawn from; equally when None.
        integers_only: only programs without floats, where every difference counts; else one in three is.
        devices: that programs run on.
        seeds_of_mutation: real programs to change; without any, graphs and idioms are changed.
        max_instructions: of a program, in all its computations.
    """

    def __init__(
        self,
        seed: int,
        *,
        origins: Mapping[str, float] | None = None,
        integers_only: bool = False,
        devices: int = 1,
        seeds_of_mutation: Sequence[Module] = (),
        max_instructions: int = 40,
    ) -> None:
        self.seed = seed
        self._origins = dict(ORIGINS if origins is None else origins)
        if unknown := self._origins.keys() - ORIGINS:
            raise ValueError(f"there is no origin {unknown}: {', '.join(ORIGINS)}")
        self._integers_only = integers_only
        self._devices = devices
        self._seeds = tuple(seeds_of_mutation)
        self._max_instructions = max_instructions

    def draw(self, index: int) -> Drawn:
        """Program `index`."""
        rng = random.Random(f"{self.seed} {index}")
        taste = Taste(self._integers_only or rng.random() < 1 / 3, self._devices)
        origin = rng.choices(list(self._origins), list(self._origins.values()))[0]
        make = idiom_graph if origin == "idioms" else random_graph
        module, idioms = make(rng, taste, self._max_instructions)
        module.name = f"fuzz_{self.seed}_{index}"
        verify_or_raise(module)
        features = words_of(module) | {f"idiom:{name}" for name in idioms}
        return Drawn(module, origin, self.seed, index, features)
