"""Plants faults in programs for 2 to 8 devices and asks `bisect` which pass and which instruction it was.

    python -m benchmarks.blame.device_faults [--cases 60] [--seed 0] [--json FILE]

The programs of `benchmarks.common.device_programs` are compiled by jaxlib for virtual CPU devices, with a
dump after every pass. From a random pass on, the partitioner or one behind it, a fault is in the program for
each device: two of three are wrong exchanges (`faults.DEVICES`), the others are of the general catalogue, in
what the partitioner made. At the same instruction of later stages it is planted again as long as they have
it, and then the rest of the history stands still, as in `bisection.py`.

Whether a fault matters is not asked of what is measured: it does when some device returns something else, by
`_APART` or more. Of every such fault it is counted whether `bisect` names the planted pass alone, whether the
instructions named hold a planted one, how many are named, and whether the dump is called healthy; and of the
bundle of each culprit whether it fails in the same way.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT
from benchmarks.blame.bisection import (
    Planted,
    bisect,
    changed_names,
    command_line,
    loaded,
    named,
    opened,
    task_of,
)
from benchmarks.common.device_programs import PROGRAMS, REPLICAS
from hlotool.backends.registry import get_devices_backend
from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.bisection.stages import stage_program, stage_trials
from hlotool.blame.repro.bundle import write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.errors import HlotoolError, Unsupported
from hlotool.inputs.given import arrays_in, npz_bytes
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.verifier import verify_or_raise
from hlotool.lab.faults import CATALOGUE, DEVICES, FaultKind, Site
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import compile_program

#: Numbers of devices that each program is compiled for.
_DEVICES = (2, 4, 8)
#: Two of three faults are of an exchange.
_OF_EXCHANGES = 2 / 3
#: A result is another one when it is off by this share of its largest element: far more than rounding is.
_APART = 1e-2
#: Instructions that one device may execute; a fault may let a loop run for ever.
_PATIENCE = 100_000


@dataclass
class Results:
    """What the cases came to.

    Attributes:
        cases: faults that matter.
        right_pass: the planted pass is accused, and no other.
        right_instruction: moreover, a planted instruction is among those named.
        called_healthy: the dump is called healthy.
        confirmed: culprits that were right when they were asked again.
        named: how many instructions each culprit names.
        bundles: that were written.
        alike: bundles that fail in the same way.
        healthy: dumps without a fault.
        false_accusations: culprits found in them.
        without_effect: faults drawn that no device's result shows.
        kinds: faults by kind: how many, and how many of them were found.
        misses: what was not found, in words.
    """

    cases: int = 0
    right_pass: int = 0
    right_instruction: int = 0
    called_healthy: int = 0
    confirmed: int = 0
    named: list[int] = field(default_factory=list)
    bundles: int = 0
    alike: int = 0
    healthy: int = 0
    false_accusations: int = 0
    without_effect: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    devices: Counter[int] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)


def make_dumps(root: Path) -> list[Path]:
    """A dump of every program for every number of devices."""
    folders = []
    for name in (*PROGRAMS, REPLICAS):
        for count in _DEVICES:
            folder = root / f"{name}.{count}"
            command = [sys.executable, "-m", "benchmarks.common.device_programs", name, str(count), folder]
            subprocess.run(command, check=True, timeout=300, cwd=ROOT)
            folders.append(folder)
    return folders


@cache
def partitioned(folder: Path) -> int:
    """The number of the first stage that a pass has written for each device."""
    return next(n for n in range(1, len(opened(folder).stages)) if is_per_device(loaded(folder, n)))


def sites_of(kind: FaultKind, folder: Path, number: int) -> list[Site]:
    """Where a kind fits a stage: an exchange anywhere, others in what the partitioner made."""
    sites = kind.sites(loaded(folder, number))
    if kind in DEVICES:
        return sites
    given = {i.name for i in loaded(folder, partitioned(folder) - 1).instructions()}
    return [site for site in sites if site.instruction not in given]


def plant(kind: FaultKind, folder: Path, target: Path, rng: np.random.Generator) -> Planted | None:
    """A dump with a fault behind the partitioner; None when this kind fits nowhere or changes nothing."""
    stages = opened(folder).stages
    first = int(rng.integers(partitioned(folder), len(stages)))
    sites = sites_of(kind, folder, first)
    if not sites:
        return None
    site, seed = sites[int(rng.integers(len(sites)))], int(rng.integers(1 << 30))
    try:
        texts, names, last_names = planted_texts(kind, folder, first, site, seed)
    except (HlotoolError, KeyError, ValueError, TypeError):
        return None
    target.mkdir(parents=True)
    for number, stage in enumerate(stages):
        text = texts.get(number)
        (target / stage.source.name).write_bytes(stage.source.read_bytes() if text is None else text.encode())
    (target / "inputs.npz").write_bytes(npz_bytes(arguments_of(folder), copies_of(folder)))
    return Planted(target, folder.name, kind, stages[first].label, names, last_names)


def planted_texts(
    kind: FaultKind, folder: Path, first: int, site: Site, seed: int
) -> tuple[dict[int, str], frozenset[str], frozenset[str]]:
    """The texts of the stages from `first` on, and what the fault changed in the first and in the last one.

    Raises:
        ValueError: no device returns anything else.
    """
    texts: dict[int, str] = {}
    first_names: set[str] = set()
    names: set[str] = set()
    wanted: list[Any] | None = None
    last, stands_still = "", False
    for number in range(first, len(opened(folder).stages)):
        right = loaded(folder, number)
        if not stands_still and (number == first or site in kind.sites(right)):
            wrong = kind.plant(right, site, seed)
            verify_or_raise(wrong)
            made = returned(folder, wrong)
            if wanted is None:
                if not are_apart(returned(folder, right), made):
                    raise ValueError("the fault changes nothing")
                wanted = made
            if not are_apart(wanted, made):
                last, names = wrong.to_text(), changed_names(right, wrong) | {site.instruction}
                first_names = first_names or names
            else:
                # The same edit means another thing here.
                stands_still = True
        else:
            stands_still = True
        texts[number] = last
    return texts, frozenset(first_names), frozenset(names)


@cache
def arguments_of(folder: Path) -> tuple[Any, ...]:
    """The global arguments of a program, or those of each replica."""
    return stage_trials(task_of(folder))[0].arguments


def copies_of(folder: Path) -> int:
    """How many devices have arguments of their own."""
    return stage_program(task_of(folder), 0).runner.copies


def returned(folder: Path, module: Module) -> list[Any]:
    """What each device returns, one array after the other."""
    origin = stage_program(task_of(folder), 0)
    rows = compile_program("", "", module, "numpy", origin).runner.on_devices(arguments_of(folder))
    grid = DeviceGrid(module.replica_count, module.num_partitions)
    count = [0] * len(grid)

    def probe(device: int) -> Any:
        def see(instruction: Instruction, value: Any) -> None:
            count[device] += 1
            if count[device] > _PATIENCE:
                raise Unsupported("too many instructions are executed", instruction.name)

        return see

    executable = get_devices_backend("numpy").compile_devices(module, grid)
    return list(arrays_in(tuple(executable.run_devices(rows, [probe(d) for d in range(len(grid))]))))


def are_apart(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether some device returns something else."""
    return any(not _is_near(one, other) for one, other in zip(ones, others))


def _is_near(one: Any, other: Any) -> bool:
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    scale = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return bool(np.allclose(one, other, rtol=0, atol=_APART * scale, equal_nan=True))


def judge(case: Planted, results: Results) -> None:
    """Bisect a case and count what came out."""
    results.cases += 1
    results.kinds[case.kind.name] += 1
    results.devices[int(case.source.rpartition(".")[2])] += 1
    title = f"{case.source}, {case.kind.name}, {case.stage}, {sorted(case.names)[:4]}"
    findings = bisect(case.folder)
    if not findings.culprits:
        results.called_healthy += bool(findings.healthy)
        reasons = [module.reason for module in findings.modules]
        _miss(results, f"{title}: {'called healthy' if findings.healthy else reasons}")
        return
    culprit = findings.culprits[0]
    is_pass = len(findings.culprits) == 1 and culprit.stage == case.stage
    is_instruction = is_pass and bool(named(culprit) & case.names)
    results.right_pass += is_pass
    results.right_instruction += is_instruction
    results.confirmed += is_pass and culprit.confirmed
    results.found[case.kind.name] += is_instruction
    results.named.append(len(culprit.instructions))
    try_bundle(culprit, case.folder / "bundle", results, title)
    if not is_instruction:
        stages = [one.stage for one in findings.culprits]
        _miss(results, f"{title}: {stages} {culprit.instructions[-4:]} {culprit.evidence[-1][:90]}")


def try_bundle(culprit: CulpritRecord, folder: Path, results: Results, title: str) -> None:
    """Write the culprit's bundle and run it."""
    bundle = bundle_of(culprit, ReplayOptions(), {})
    if bundle is None:
        _miss(results, f"{title}: no bundle")
        return
    results.bundles += 1
    write_bundle(bundle, folder)
    found = verify(folder)
    results.alike += found.same
    if not found.same:
        _miss(results, f"{title}: its bundle: {found.reason}")


def _miss(results: Results, text: str) -> None:
    results.misses.append(text)
    print("miss:", text, file=sys.stderr, flush=True)


def run(cases: int, seed: int) -> Results:
    results = Results()
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as root:
        folders = make_dumps(Path(root, "dumps"))
        for folder in folders:
            found = bisect(folder, exhaustive=True)
            results.healthy += len(found.healthy)
            results.false_accusations += len(found.culprits)
        number = 0
        while results.cases < cases:
            number += 1
            catalogue = DEVICES if rng.random() < _OF_EXCHANGES else CATALOGUE
            kind = catalogue[int(rng.integers(len(catalogue)))]
            folder = folders[int(rng.integers(len(folders)))]
            case = plant(kind, folder, Path(root, str(number)), rng)
            if case is None:
                results.without_effect += 1
            else:
                judge(case, results)
    return results


def summary(results: Results) -> str:
    """Two tables in Markdown: the shares, and what was found of each kind."""

    def share(count: int) -> str:
        return f"{count} of {results.cases} ({100 * count / max(results.cases, 1):.1f} %)"

    devices = ", ".join(f"{n} with {count}" for count, n in sorted(results.devices.items()))
    lines = [
        "| | |",
        "|---|---|",
        f"| faults, by devices | {results.cases}: {devices} |",
        f"| pass named | {share(results.right_pass)} |",
        f"| pass and instruction named | {share(results.right_instruction)} |",
        f"| instructions named | median {statistics.median(results.named or [0]):g}, three or fewer in "
        f"{share(sum(n <= 3 for n in results.named))}, at most {max(results.named, default=0)} |",
        f"| bundles written | {share(results.bundles)} |",
        f"| bundles that fail in the same way | {share(results.alike)} |",
        f"| called healthy | {share(results.called_healthy)} |",
        f"| sound dumps: called healthy, accused | {results.healthy}, {results.false_accusations} |",
        "",
        "| kind of fault | found |",
        "|---|---|",
        *(f"| {name} | {results.found[name]} of {n} |" for name, n in sorted(results.kinds.items())),
    ]
    return "\n".join(lines)


def shares_of(results: Results) -> dict[str, float]:
    """What the goals are stated in."""
    cases = max(results.cases, 1)
    return {
        "right_pass_share": results.right_pass / cases,
        "right_instruction_share": results.right_instruction / cases,
    }


if __name__ == "__main__":
    command_line(__doc__, 60, run, summary, shares_of)
