"""The same for XLA's own test modules, where they lie beside the checkout: run by hand, prints a table.

python -m pytest -m slow tests/differential/test_shared_on_xla.py -s
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.against_xla import against_xla, reason_not_to_run
from support.xla import XlaError, oracle

from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError
from hlotool.numerics.verdict import Verdict

pytestmark = [pytest.mark.xla, pytest.mark.slow]

#: Elements of all parameters together beyond which a module is left out: models of several gigabytes.
LARGEST = 1 << 26

#: Where XLA's result is another one for a reason, by the end of the source's name.
EXPLAINED = {
    "import_emit_stablehlo.hlo@50599": "the sort is not stable: payloads of equal keys may come in any order",
    "sorting.hlo@104650": "the sort is not stable: payloads of equal keys may come in any order",
    "import_emit_stablehlo.hlo@73476": "jaxlib reads a dynamic result with the strides of its bound",
    "import_emit_stablehlo.hlo@114743": "jaxlib reads a dynamic result with the strides of its bound",
    "import_emit_stablehlo.hlo@104186": "a scatter that takes one operand twice: XLA mixes up its results, "
    "and crashes on smaller ones",
}


def test_modules_of_xla(shared: Path) -> None:
    """No module that both can run gives different results."""
    counts: Counter[str] = Counter()
    wrong = []
    for found in open_dump(shared / "hlo" / "xla").modules:
        for stage in (*found.stages, *found.others):
            outcome = judge(found, stage)
            counts[outcome.split(":")[0]] += 1
            if outcome.startswith("differs"):
                wrong.append(f"{stage.source}: {outcome}")
    print(dict(counts))
    assert not wrong, "\n".join(wrong)


def judge(found: DumpModule, stage: Stage) -> str:
    """What became of one module."""
    text = stage.source.read_text()
    if reason := reason_not_to_run(text):
        return f"left out: {reason}"
    try:
        module = load_stage(found, stage)
        if sum(getattr(p.shape, "size", 0) for p in module.entry.parameters) > LARGEST:
            return "left out: too large"
        oracle().canonical(text)
        comparison = against_xla(module, text)
    except XlaError as error:
        return f"XLA cannot run it: {error}"
    except HlotoolError as error:
        return f"we cannot run it: {error}"
    return f"differs: {comparison.reason}" if comparison.verdict is Verdict.DIFFERS else "same"
