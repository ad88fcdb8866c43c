"""Programs by number: from random graphs, from real programs that are changed, from patterns of rewrites."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hlotool.ir.module import Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.lab.fuzz.programs.drawn import (
    Drawn,
    idiom_graph,
    large_graph,
    random_graph,
    tiled_graph,
    words_of,
)
from hlotool.lab.fuzz.programs.limits import Preferences
from hlotool.lab.fuzz.programs.mutation import holds_floats, mutated

#: How often each source is drawn from: random graphs, real programs that are changed, patterns of rewrites,
#: short programs on large arrays, and those in tiles, which are for GPUs.
ORIGINS: Mapping[str, float] = {"graph": 1.0, "mutation": 1.0, "idioms": 1.0, "large": 0.5, "tiles": 0.0}
FOR_GPUS: Mapping[str, float] = {**ORIGINS, "tiles": 1.0}


#: How many programs are without floats.
_INTEGERS = 1 / 3
#: How many devices a program may be for.
_DEVICES = (2, 3, 4, 6, 8)
#: How many programs for several devices are divided by XLA, rather than by what they say themselves.
_PARTITIONED = 0.4
#: How many mutants are of programs that were given, where there are any.
_OF_SEEDS = 0.85
#: Mutants that are drawn until one is valid; one in ten is not. The second half is of new programs: nothing
#: valid may come of those that were given.
_TRIES = 50


class Source:
    """Draws programs; the same seed, options and pool give the same program for the same index.

    Args:
        seed: of all choices.
        origins: how often each of `ORIGINS` is drawn from; as that says when None.
        integers_only: only programs without floats, where every difference counts; else one in three is.
        devices: that programs run on.
        offloads: the compiler in question knows the host's memory.
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
        offloads: bool = False,
        seeds_of_mutation: Sequence[Module] = (),
        max_instructions: int = 40,
    ) -> None:
        self.seed = seed
        self._origins = dict(ORIGINS if origins is None else origins)
        if unknown := self._origins.keys() - ORIGINS:
            raise ValueError(f"there is no origin {unknown}: {', '.join(ORIGINS)}")
        self._integers_only = integers_only
        self._devices = devices
        self._offloads = offloads
        self._seeds = tuple(seeds_of_mutation)
        self._know(self._seeds)
        self._max_instructions = max_instructions
        self._weights: Mapping[str, float] = {}

    def tell(self, weights: Mapping[str, float], pool: Sequence[Module]) -> None:
        """What to draw more often from now on, and programs to change besides the seeds (see `guidance`)."""
        self._weights = dict(weights)
        self._know((*self._seeds, *pool))

    def _know(self, programs: tuple[Module, ...]) -> None:
        self._all_seeds = programs
        self._integer_seeds = tuple(p for p in programs if not holds_floats(p))

    def draw(self, index: int) -> Drawn:
        """Program `index`."""
        rng = random.Random(f"{self.seed} {index}")
        preferences = self._preferences(rng)
        origin = rng.choices(list(self._origins), list(self._origins.values()))[0]
        module, idioms = self._made(rng, origin, preferences)
        module.name = f"fuzz_{self.seed}_{index}"
        verify_or_raise(module)
        features = words_of(module) | {f"idiom:{name}" for name in idioms}
        return Drawn(module, origin, self.seed, index, features)

    def _made(
        self, rng: random.Random, origin: str, preferences: Preferences
    ) -> tuple[Module, frozenset[str]]:
        if origin == "idioms":
            return idiom_graph(rng, preferences, self._max_instructions)
        if origin == "large":
            return large_graph(rng, replace(preferences, large=True), self._max_instructions)
        if origin == "tiles":
            return tiled_graph(rng, preferences, self._max_instructions)
        if origin == "graph":
            return random_graph(rng, preferences, self._max_instructions)
        for attempt in range(_TRIES):
            seed, *donors = self._parents(rng, preferences, attempt < _TRIES // 2)
            made = mutated(rng, preferences, self._max_instructions, seed, donors)
            if made is not None:
                return made
        raise RuntimeError(f"none of {_TRIES} mutants is a valid program")

    def _preferences(self, rng: random.Random) -> Preferences:
        integers = self._integers_only or rng.random() < _INTEGERS
        devices = rng.choice([n for n in _DEVICES if n <= self._devices] or [1])
        partitioned = devices > 1 and rng.random() < _PARTITIONED
        return Preferences(integers, devices, partitioned, self._weights, offloads=self._offloads)

    def _parents(self, rng: random.Random, preferences: Preferences, given: bool) -> list[Module]:
        """A program to change, and others that parts may come from: those that were given, or new ones."""
        known = self._integer_seeds if preferences.integers_only else self._all_seeds
        if given and known and rng.random() < _OF_SEEDS:
            return rng.choices(known, k=3)
        makers = [rng.choice([random_graph, idiom_graph]) for _ in range(2)]
        return [make(rng, preferences, self._max_instructions * 2 // 3)[0] for make in makers]
