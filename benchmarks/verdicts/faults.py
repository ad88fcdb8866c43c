"""Planted faults that count: each changes a well-conditioned output by more than its legal spread."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdicts.programs import Subject, subjects
from benchmarks.verdicts.runs import PLAIN, Leaves, Runs, cut, leaves_of
from benchmarks.verdicts.truth import FACTOR, LeafSpread, legal_spread
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Instruction, Module
from hlotool.ir.verifier import verify
from hlotool.lab.faults import FaultKind, Site, poisoned
from hlotool.system.resources import TooSlow, time_limit

#: Sites tried per program and kind, half of them in what the entry calls where there is any.
_SITES = 4

#: Seconds for a run of a faulty program: some loops never end.
_SECONDS = 5.0

#: Faults per kind that XLA is asked about, where nothing else is said: each costs a compilation.
ON_XLA = 8


@dataclass(frozen=True, eq=False)
class PlantedFault:
    """A faulty program and its result.

    Attributes:
        kind: of the fault.
        subject: the program without it.
        module: the program without it, as text says: before optimisation or after.
        stage: `before` or `after`.
        site: where it is.
        seed: that it was planted with.
        is_deep: the site is not in the entry computation.
        at_output: the value at the site is a result of the program, at most moved.
        planted: the program with it.
        arguments: of both.
        expected: of the right program.
        actual: of the faulty program on the numpy backend.
        ratio: largest change over the legal spread.
        on_xla: what XLA gives for the faulty program; why there is nothing.
    """

    kind: FaultKind
    subject: Subject
    module: Module
    stage: str
    site: Site
    seed: int
    is_deep: bool
    at_output: bool
    planted: Module
    arguments: list[Any]
    expected: Leaves
    actual: Leaves
    ratio: float
    on_xla: Leaves | str

    @property
    def counts(self) -> bool:
        """Whether it must be found."""
        return self.ratio > FACTOR


def fault_subjects() -> list[Subject]:
    """Programs whose results two runs agree on."""
    return [s for s in subjects() if not re.search(r"\brng(-get-and-update-state)?\(|rng_default", s.text)]


class Planter:
    """Plants faults and knows what legal executions look like.

    Args:
        runs: executions on XLA.
        folder: where legal spreads are kept.
        seed: of the inputs and of what is planted where.
        on_xla: faults per kind that XLA is asked about: each costs a compilation.
    """

    def __init__(self, runs: Runs, folder: Path, seed: int = 0, on_xla: int = ON_XLA) -> None:
        self._runs = runs
        self._on_xla = on_xla
        self._folder = folder
        self._seed = seed
        self._seed_names = (str(seed),) if seed else ()
        self._spreads: dict[str, list[LeafSpread]] = {}
        self._compiled: Counter[str] = Counter()

    def faults(self, kind: FaultKind, subjects: list[Subject]) -> Iterator[PlantedFault]:
        """Faults of one kind that change something; which ones depends on names and the seed only."""
        for subject in sorted(subjects, key=lambda s: _number(kind.name, s.name, *self._seed_names)):
            number = _number(kind.name, subject.name, *self._seed_names)
            stage, module = "before", subject.module
            # Every third program in its optimised form: that is where fusions are.
            if number % 3 == 0 and subject.optimized_module is not None:
                stage, module = "after", subject.optimized_module
            yield from self._in_program(
                kind,
                subject,
                stage,
                module,
                np.random.default_rng(number),
            )

    def _in_program(
        self, kind: FaultKind, subject: Subject, stage: str, module: Module, rng: np.random.Generator
    ) -> Iterator[PlantedFault]:
        sites = kind.sites(module)
        if not sites:
            return
        try:
            arguments = poisoned(subject.arguments(self._seed), kind.poison)
            spread = self._spread(subject, stage, module, arguments, kind.poison)
        except HlotoolError:
            return
        if all(leaf.limit is None for leaf in spread):
            return
        for site in _chosen(sites, module, rng):
            fault = self._plant(
                kind, subject, stage, module, site, arguments, spread, int(rng.integers(1000))
            )
            if fault is not None:
                yield fault

    def _plant(
        self,
        kind: FaultKind,
        subject: Subject,
        stage: str,
        module: Module,
        site: Site,
        arguments: list[Any],
        spread: list[LeafSpread],
        seed: int,
    ) -> PlantedFault | None:
        planted = kind.plant(module, site, seed)
        if errors := verify(planted):
            raise AssertionError(f"{kind.name} at {site} of {subject.name} is not valid: {errors[0]}")
        try:
            with time_limit(_SECONDS):
                actual = leaves_of(planted, NumpyBackend().compile(planted).run(arguments))
        except (HlotoolError, TooSlow):
            return None
        ratio = max(leaf.ratio(a) for leaf, a in zip(spread, actual))
        if ratio <= 1:
            return None
        spec = PLAIN if stage == "before" else "xla:route=pre"
        on_xla: Leaves | str = ""
        if ratio > FACTOR and self._compiled[kind.name] < self._on_xla:
            self._compiled[kind.name] += 1
            result = self._runs.result(planted, planted.to_text(), spec, arguments)
            on_xla = result if isinstance(result, str) else _shown(cut(result, actual), spread)
        return PlantedFault(
            kind,
            subject,
            module,
            stage,
            site,
            seed,
            site.computation != module.entry.name,
            site in _output_sites(module),
            planted,
            arguments,
            [leaf.reference for leaf in spread],
            actual,
            ratio,
            on_xla,
        )

    def _spread(
        self, subject: Subject, stage: str, module: Module, arguments: list[Any], poison: float | None
    ) -> list[LeafSpread]:
        names = (stage, str(poison), subject.name, module.to_text(), *self._seed_names)
        key = hashlib.sha256(" ".join(names).encode()).hexdigest()[:20]
        if key not in self._spreads:
            path = self._folder / f"{key}.pickle"
            if path.exists():
                self._spreads[key] = pickle.loads(path.read_bytes())
            else:
                seen = [] if poison is not None else self._seen(subject, arguments)
                self._spreads[key] = legal_spread(module, arguments, seen)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(pickle.dumps(self._spreads[key]))
        return self._spreads[key]

    def _seen(self, subject: Subject, arguments: list[Any]) -> list[Leaves]:
        """What XLA returns for the right program, for inputs that it was run on for the legal pairs."""
        found = [
            self._runs.result(subject.module, subject.text, spec, arguments)
            for spec in (PLAIN, f"{PLAIN},opt=0")
        ]
        return [one for one in found if not isinstance(one, str)]


def _shown(result: Leaves, spread: list[LeafSpread]) -> Leaves | str:
    """XLA's result, if the fault is still there: a pass may remove it."""
    shows = max(leaf.ratio(a) for leaf, a in zip(spread, result)) > FACTOR
    return result if shows else "not in XLA's result: its passes remove the fault"


def _number(*names: str) -> int:
    """A large number that depends on names only."""
    return int(hashlib.sha256("/".join(names).encode()).hexdigest()[:12], 16)


def _chosen(sites: list[Site], module: Module, rng: np.random.Generator) -> list[Site]:
    shuffled = [sites[n] for n in rng.permutation(len(sites))]
    top = [s for s in shuffled if s.computation == module.entry.name]
    deep = [s for s in shuffled if s.computation != module.entry.name]
    half = _SITES // 2
    # Deep ones first: the limit on tries must not fall on them.
    return [*deep[: max(half, _SITES - len(top))], *top[: max(half, _SITES - len(deep))]]


#: They hand a value on as it is, or moved.
_TRANSPARENT = frozenset(
    {"tuple", "get-tuple-element", "copy", "bitcast", "reshape", "fusion", "call", "opt-barrier"}
)


def _output_sites(module: Module) -> set[Site]:
    """Instructions whose value the program returns as it is."""
    found: set[Site] = set()
    pending: list[tuple[str, Instruction]] = [(module.entry.name, module.entry.root)]
    while pending:
        computation, instruction = pending.pop()
        site = Site(computation, instruction.name)
        if site in found:
            continue
        found.add(site)
        if instruction.opcode in ("fusion", "call"):
            pending += [(c.name, c.root) for c in instruction.called]
        elif instruction.opcode in _TRANSPARENT:
            pending += [(computation, o) for o in instruction.operands]
    return found
