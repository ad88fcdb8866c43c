"""The numpy backend gives what XLA's CPU compiler gives, for every corpus module that XLA can run.

Integers and preds must be equal to the bit, floats within the tolerance that `hlotool run` derives.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.against_xla import against_xla, reason_not_to_run

from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

pytestmark = pytest.mark.xla

#: Modules on which XLA and the text disagree, with the reason. Each is a rule, not an excuse.
DEPARTURES = {
    "multiply.s4_widened": "XLA drops the wrap-around to four bits (a fault of XLA's)",
    "module_0000.jit_int4_product": "XLA drops the wrap-around to four bits (a fault of XLA's)",
    "compare.totalorder": "XLA folds a comparison of constants in IEEE order, at run time in total order",
}

#: Programs that need particular inputs.
INPUT_RANGES = {
    # Newton iteration for the root of a negative number is chaotic: one ulp decides where it ends.
    "module_0000.jit_newton_roots": (0.5, 2.0),
}

HEALTHY = (Verdict.IDENTICAL, Verdict.AGREE, Verdict.NOT_COMPARABLE)


def module_files() -> list[Path]:
    """Single-instruction modules, and the programs that the frontends gave to XLA."""
    programs = [
        *CORPUS.glob("jax/**/*before_optimizations.txt"),
        *CORPUS.glob("tf/**/*before_optimizations.txt"),
    ]
    return [*sorted(CORPUS.glob("modules/*.hlo")), *sorted(programs)]


def name_of(path: Path) -> str:
    """The module's name without the stage."""
    return path.name.removesuffix(".hlo").removesuffix(".before_optimizations.txt")


def short_id(path: Path) -> str:
    """Short, and unique."""
    return name_of(path) if path.suffix == ".hlo" else f"{path.parent.name}/{name_of(path)[:60]}"


@pytest.mark.parametrize("path", module_files(), ids=short_id)
def test_same_as_xla(path: Path) -> None:
    text, name = path.read_text(encoding="utf-8"), name_of(path)
    if reason := reason_not_to_run(text):
        pytest.skip(reason)
    comparison = against_xla(parse_module(text, str(path)), text, value_range=INPUT_RANGES.get(name))
    if name in DEPARTURES:
        assert comparison.verdict is Verdict.WRONG, "the rule that explains a difference has none"
        return
    assert comparison.verdict in HEALTHY, [(leaf.index, leaf.reason) for leaf in comparison.leaves]
