"""Planted faults for the exact arbiter: those of the catalogue, and those that rounding hides.

A fault below rounding counts if it changes what the program computes in f64, where its change stands out from
rounding by far, and changes no well-conditioned output by more than legal executions do (`verdicts.truth`).
The arbiter is given the program before optimisation and the faulty one, which every second time is what XLA
made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.exact.legal import Compilations, signature
from benchmarks.exact.records import FaultRecord, Proof, Unseen
from benchmarks.exact.subjects import Subject
from benchmarks.exact.subjects import subjects as exact_subjects
from benchmarks.verdicts.faults import PlantedFault, Planter, fault_subjects
from benchmarks.verdicts.judge import judged
from benchmarks.verdicts.runs import Leaves, Runs, leaves_of
from benchmarks.verdicts.truth import FACTOR, legal_spread
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE, FaultKind, Site, poisoned
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.task import compare_modules
from hlotool.system.resources import TooSlow, time_limit

#: Seconds for a run.
_SECONDS = 10.0
#: Sites tried per program and kind.
_SITES = 2
#: By how much, relatively, an f64 result must change for the fault to be one: well above its rounding.
_SHOWS = 1e-12
#: Instructions of the largest program in which faults are planted.
_LARGEST = 2500


def catalogue_records(name: str, folder: Path, wanted: int, seed: int) -> list[FaultRecord]:
    """Faults of one kind of the catalogue that must be found, with both verdicts."""
    kind = next(k for k in CATALOGUE if k.name == name)
    planter = Planter(Runs(folder / "runs"), folder / "spreads", seed, on_xla=0)
    found: list[FaultRecord] = []
    for fault in planter.faults(kind, fault_subjects()):
        if not fault.counts:
            continue
        verdict = judged(fault.module, fault.arguments, fault.expected, fault.actual, fault.planted)
        proof = Proof.of(compare_modules(fault.module, fault.planted))
        found.append(
            FaultRecord(
                name,
                fault.subject.name,
                fault.stage,
                str(fault.site),
                fault.seed,
                False,
                min(fault.ratio, 1e300),
                verdict.verdict,
                proof,
                _unseen(fault, seed) if proof.relation == "equal" else None,
            )
        )
        if len(found) == wanted:
            break
    return found


def _unseen(fault: PlantedFault, seed: int) -> Unseen:
    """What shows a fault whose program is called equal: no residue shows a rounding, a NaN or an infinity.

    A fault of these, or of indices out of range, has arguments with some of them; others must show nothing.
    """
    poison = fault.kind.poison
    arguments = fault.arguments if poison is None else fault.subject.arguments(seed)
    try:
        with time_limit(2 * _SECONDS):
            sides = [_in_f64(module, arguments) for module in (fault.module, fault.planted)]
    except (HlotoolError, TooSlow):
        return Unseen.OTHER
    kinds = {_unseen_in(one, other) for one, other in zip(*sides)} | {Unseen.ROUNDING}
    worst = next(kind for kind in (Unseen.OTHER, Unseen.SPECIALS, Unseen.ROUNDING) if kind in kinds)
    if poison is None or worst is not Unseen.ROUNDING:
        return worst
    return Unseen.INDICES if isinstance(poison, int) else Unseen.SPECIALS


def _unseen_in(one: Array, other: Array) -> Unseen:
    """The same of one output."""
    if one.dtype.kind not in "fc":
        return Unseen.ROUNDING if np.array_equal(one, other) else Unseen.OTHER
    both = np.isfinite(one) & np.isfinite(other)
    if _differ([np.where(both, one, 0)], [np.where(both, other, 0)]):
        return Unseen.OTHER
    same = both | (one == other) | (np.isnan(one) & np.isnan(other))
    return Unseen.ROUNDING if same.all() else Unseen.SPECIALS


def small_records(name: str, folder: Path, wanted: int, seed: int) -> list[FaultRecord]:
    """Faults of one kind that rounding hides, with both verdicts."""
    kind = next(k for k in BELOW_ROUNDING if k.name == name)
    compilations = Compilations(folder / "stages")
    groups = ("corpus dumps", "new JAX programs", "shared dumps")
    subjects = [s for s in exact_subjects(seed) if s.group in groups]
    order = sorted(subjects, key=lambda s: crc32(f"{seed} {name} {s.name}".encode()))
    found: list[FaultRecord] = []
    for subject in order:
        try:
            found += _in_program(kind, subject, compilations, seed)
        except HlotoolError:
            continue  # it cannot be read
        if len(found) >= wanted:
            break
    return found[:wanted]


def _in_program(
    kind: FaultKind, subject: Subject, compilations: Compilations, seed: int
) -> Iterator[FaultRecord]:
    number = crc32(f"{kind.name} {subject.name} {seed}".encode())
    rng = np.random.default_rng(number)
    reference, stage, module = subject.module, "before", subject.module
    if reference.num_partitions * reference.replica_count > 1:
        return
    if number % 2:
        stages = compilations.stages(reference, "xla", ".*")
        if isinstance(stages, str):
            return
        stage, module = "after", parse_module(stages[-1][1], subject.name)
        if signature(module) != signature(reference):
            return
    if sum(1 for _ in module.instructions()) > _LARGEST:
        return
    sites = kind.sites(module)
    if not sites:
        return
    try:
        arguments = poisoned(generate_inputs(reference, seed).values, kind.poison)
        with time_limit(_SECONDS):
            right = _in_f64(module, arguments)
        spread = legal_spread(reference, arguments, [])
    except (HlotoolError, TooSlow, ValueError):
        return
    for site in [sites[n] for n in rng.permutation(len(sites))[:_SITES]]:
        planted = kind.plant(module, site, int(rng.integers(1000)))
        if errors := verify(planted):
            raise AssertionError(f"{kind.name} at {site} of {subject.name} is not valid: {errors[0]}")
        record = _record(kind, subject.name, stage, site, reference, planted, arguments, right, spread)
        if record is not None:
            yield record


def _record(
    kind: FaultKind,
    program: str,
    stage: str,
    site: Site,
    reference: Module,
    planted: Module,
    arguments: list[Any],
    right: Leaves,
    spread: Sequence[Any],
) -> FaultRecord | None:
    try:
        with time_limit(_SECONDS):
            if not _differ(right, _in_f64(planted, arguments)):
                return None
            expected, actual = (
                leaves_of(m, NumpyBackend().compile(m).run(arguments)) for m in (reference, planted)
            )
    except (HlotoolError, TooSlow):
        return None
    known = [leaf.ratio(a) for leaf, a in zip(spread, actual) if leaf.limit is not None]
    ratio = max(known, default=None)
    if ratio is not None and ratio > FACTOR:
        return None
    verdict = judged(reference, arguments, expected, actual, planted)
    proof = Proof.of(compare_modules(reference, planted))
    return FaultRecord(kind.name, program, stage, str(site), 0, True, ratio, verdict.verdict, proof)


def _in_f64(module: Module, arguments: Sequence[Any]) -> Leaves:
    return leaves_of(module, get_backend("numpy:wide").compile(module).run(list(arguments)))


def _differ(one: Leaves, other: Leaves) -> bool:
    """Whether some float output changes by more than f64 rounds."""
    for a, b in zip(one, other):
        if a.dtype.kind not in "fc":
            continue
        with np.errstate(all="ignore"):
            distance = np.abs(np.asarray(a - b, np.complex128))
            size = float(np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)), initial=0.0))
        if float(np.nanmax(np.where(np.isfinite(distance), distance, 0), initial=0.0)) > _SHOWS * size > 0:
            return True
    return False
