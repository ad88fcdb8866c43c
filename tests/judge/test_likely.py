"""The search for what goes wrong first where no name survived: from clear outputs, past masks, its end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import hlotool
from hlotool.inputs.frames import Node
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.locate.flow import Flow
from hlotool.judge.locate.identity import by_name
from hlotool.judge.locate.recording import Subject, on_one_device, trace
from hlotool.judge.locate.report import first_divergence
from hlotool.judge.records import DivergenceRecord

#: A layer whose result is masked with numbers that hide all others, and a step so small that what it is added
#: to hides it.
STEP = """HloModule m
ENTRY e {
  X0 = f32[16] parameter(0)
  X1 = f32[16] parameter(1)
  X2 = f32[16] multiply(X0, X1)
  X3 = f32[16] CHANGED(X2)DIMENSIONS
  X4 = f32[16] tanh(X3)
  X5 = f32[] constant(-1e9)
  X6 = f32[16] broadcast(X5), dimensions={}
  X7 = pred[16] compare(X0, X1), direction=LT
  X8 = f32[16] select(X7, X6, X4)
  DIFFERENCE
  X10 = f32[16] exponential(X9)
  X11 = f32[16] sine(X4)
  SUM
  X13 = f32[16] cosine(X12)
  X14 = f32[] constant(1e-5)
  X15 = f32[16] broadcast(X14), dimensions={}
  X16 = f32[16] multiply(X13, X15)
  X17 = f32[16] add(X0, X16)
  ROOT X18 = (f32[16], f32[16]) tuple(X17, X13)
}"""

X: npt.NDArray[np.float32] = np.linspace(-1, 2, 16, dtype=np.float32)
Y: npt.NDArray[np.float32] = np.cos(5 * X).astype(np.float32)


def _program(name: str, changed: str, is_rewritten: bool = False) -> str:
    dimensions = ", dimensions={0}" if changed == "reverse" else ""
    difference, total = "X9 = f32[16] subtract(X8, X0)", "X12 = f32[16] add(X10, X11)"
    if is_rewritten:
        difference = "X21 = f32[16] negate(X0)\n  X9 = f32[16] add(X21, X8)"
        total = "X22 = f32[16] negate(X10)\n  X12 = f32[16] subtract(X11, X22)"
    text = STEP.replace("DIFFERENCE", difference).replace("SUM", total)
    return text.replace("X", name).replace("CHANGED", changed).replace("DIMENSIONS", dimensions)


def _subject(text: str) -> Subject:
    return on_one_device(hlotool.parse(text), [X, Y], lambda seed: [X * (seed + 1), Y])


def _located(budget: Budget) -> DivergenceRecord:
    sides = _subject(_program("one.", "copy")), _subject(_program("two.", "reverse", True))
    return first_divergence(*sides, [(0,), (1,)], budget)


def test_the_right_value_is_tried_where_it_goes_wrong_however_much_masks_hide() -> None:
    """Both outputs are apart by the reversal alone, and the first one by less than 1e-5 of its size."""
    found = _located(Budget())
    assert (found.source.instruction, found.repaired, found.outputs) == ("two.3", 2, 2)
    assert not any("trials" in note for note in found.notes)


def test_a_search_whose_work_is_spent_says_so() -> None:
    found = _located(Budget(work=0))
    assert found.source.instruction != "two.3"
    assert any(note.startswith("stopped after 0 trials") for note in found.notes)


def test_what_values_are_made_of_and_make() -> None:
    """Read off the text."""
    entry = trace(hlotool.parse(_program("v", "copy")), [X, Y])
    named = {nodes[0].instruction.name: nodes[0] for nodes in by_name(entry).values()}
    flow = Flow(named.values())

    def names(nodes: set[Node]) -> set[str]:
        return {node.instruction.name for node in nodes}

    assert names(flow.beyond(named["v8"])) == {"v9", "v10", "v12", "v13", "v16", "v17"}
    reach = flow.reach([named["v9"], named["v12"]])
    assert {name for name, node in named.items() if reach.get(node) == 0b10} == {"v10", "v11", "v12"}
    none = {name for name, node in named.items() if node not in reach}
    assert none == {"v13", "v14", "v15", "v16", "v17"}
    assert reach[named["v0"]] == reach[named["v4"]] == reach[named["v9"]] == 0b11
