"""The same for XLA's own test modules, where they lie beside the checkout: run by hand, prints a table.

python -m pytest -m slow tests/differential/test_shared_on_xla.py -s
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support.against_xla import against_xla, against_xla_on_devices, reason_not_to_run, run_on_xla
from support.oracle import OracleUnable
from support.xla import XlaError, oracle

from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import inferred_grid
from hlotool.ir.verifier import verify_or_raise
from hlotool.judge.comparison import Comparison
from hlotool.judge.verdicts import Verdict
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage

pytestmark = [pytest.mark.xla, pytest.mark.slow]

#: Elements of all parameters together beyond which a module is left out: models of several gigabytes.
LARGEST = 1 << 26

#: Where XLA's result is another one for a reason, by the end of the source's name.
DIFFERENT = {
    "import_emit_stablehlo.hlo@50599": "the sort is not stable: payloads of equal keys may come in any order",
    "sorting.hlo@104650": "the sort is not stable: payloads of equal keys may come in any order",
    "import_emit_stablehlo.hlo@73476": "jaxlib reads a dynamic result with the strides of its bound",
    "import_emit_stablehlo.hlo@114743": "jaxlib reads a dynamic result with the strides of its bound",
    "import_emit_stablehlo.hlo@104186": "a scatter that takes one operand twice: XLA mixes up its results, "
    "and crashes on smaller ones",
}

#: On some runs XLA dies of it instead.
UNSTEADY = {"import_emit_stablehlo.hlo@104186"}

#: What XLA runs and we refuse: its verifier refuses it too, but jaxlib goes by way of MLIR, which mends it.
ONLY_XLA = {
    **dict.fromkeys(
        ("rng_expander.hlo", *(f"rng_expander.hlo@{at}" for at in (31212, 64474, 98365, 132361, 165934))),
        "rng with a third operand, which it does not have",
    ),
    "import_async.hlo@11754": "an all-reduce-start that gives a pair",
    "import_async.hlo@4340": "a collective-permute-start that gives no pair",
}


def test_modules_of_xla(shared: Path) -> None:
    """What both can run gives the same results, and we can run what XLA can."""
    counts: Counter[str] = Counter()
    outcomes: dict[str, dict[str, str]] = {"differs": {}, "only XLA runs it": {}}
    for found in open_dump(shared / "hlo" / "xla").modules:
        for stage in (*found.stages, *found.others):
            outcome, _, reason = judge(found, stage).partition(": ")
            counts[outcome] += 1
            if outcome in outcomes:
                outcomes[outcome][str(stage.source).rpartition("/")[2]] = reason
    print(dict(counts))
    assert outcomes["differs"].keys() | UNSTEADY == DIFFERENT.keys(), outcomes["differs"]
    assert outcomes["only XLA runs it"].keys() == ONLY_XLA.keys(), outcomes["only XLA runs it"]


def judge(found: DumpModule, stage: Stage) -> str:
    """What became of one module, and why."""
    text = stage.source.read_text()
    if reason := reason_not_to_run(text):
        return f"left out: {reason}"
    try:
        oracle().canonical(text)
    except XlaError as error:
        return f"XLA cannot run it: {error}"
    try:
        module = load_stage(found, stage)
    except HlotoolError as error:
        return f"only XLA runs it: {error}"
    if sum(getattr(p.shape, "size", 0) for p in module.entry.parameters) > LARGEST:
        return "left out: too large"
    try:
        comparisons = compare(module, text)
    except (XlaError, OracleUnable) as error:
        return f"XLA cannot run it: {error}"
    except HlotoolError as error:
        return who_runs_it(module, text, error)
    worst = next((c for c in comparisons if c.verdict is Verdict.WRONG), None)
    place = "on one device" if len(comparisons) == 1 else "on several devices"
    return f"differs: {worst.reason}" if worst else f"same {place}"


def compare(module: Module, text: str) -> list[Comparison]:
    """On one device, or on as many replicas or partitions as the collectives name."""
    verify_or_raise(module)
    try:
        return [against_xla(module, text)]
    except Unsupported as error:
        grid = inferred_grid(module)
        if "one device is executed" not in error.reason or len(grid) < 2:
            raise
    try:
        return against_xla_on_devices(module, text, grid)
    except HlotoolError:
        return against_xla_on_devices(module, text, DeviceGrid(grid.partitions, grid.replicas))


def who_runs_it(module: Module, text: str, error: HlotoolError) -> str:
    """Whether XLA runs what we cannot."""
    try:
        run_on_xla(module, text)
    except (XlaError, OracleUnable, HlotoolError):
        return f"neither runs it: {re.sub('^.*?: ', '', str(error))}"
    return f"only XLA runs it: {error}"
