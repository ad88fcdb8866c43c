"""The adversary's benchmark draws the same programs and faults for a seed, and its witnesses show them."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import hlotool

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.adversary.cases import Planter, Subject, cases
from benchmarks.adversary.plants import KINDS
from benchmarks.adversary.text import Text, swept

_TEXT = """HloModule jit_clip, entry_computation_layout={(f32[6]{0}, s32[])->f32[6]{0}}

ENTRY %main (x: f32[6], i: s32[]) -> f32[6] {
  %x = f32[6]{0} parameter(0)
  %i = s32[] parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[6]{0} broadcast(%zero), dimensions={}
  %max.1 = f32[6]{0} maximum(%x, %zeros)
  %part.1 = f32[2]{0} dynamic-slice(%max.1, %i), dynamic_slice_sizes={2}
  ROOT %out.1 = f32[6]{0} dynamic-update-slice(%max.1, %part.1, %i)
}
"""


@pytest.fixture
def subject() -> Subject:
    after = _TEXT.replace("jit_clip,", "jit_clip, is_scheduled=true,")
    return Subject("clip.0", _TEXT, after, "", [["float", [6], "float32", 0], ["index", [], "int32", 5]], 1)


def test_a_line_reads_as_it_is_written() -> None:
    text = Text(_TEXT)
    lines = [line for line in _TEXT.splitlines() if " = " in line]
    assert [str(place.line) for place in text.places] == lines
    assert text.constant(text.operand(text.of("maximum")[0], 1)) == 0
    assert swept(_TEXT) == _TEXT


def test_a_lost_guard_has_a_witness(subject):
    planter = Planter(subject, random.Random(0), Counter())
    said, text, style, outputs = planter.plant(KINDS["guard-extremum"], "after")
    assert "%max.1 maximum dropped" in said
    assert style
    assert outputs == [0]
    x = np.array([-1, 2, -3, 4, -5, 6], np.float32)
    (right,), (wrong,) = (hlotool.run(hlotool.parse(t), [x, 4]) for t in (_TEXT, text))
    assert (right != wrong).any()


def test_what_changes_nothing_has_none(subject):
    lost: Counter[str] = Counter()
    planter = Planter(subject, random.Random(0), lost)
    # What is written back at a position is what was read there, but for positions that are clamped otherwise.
    assert planter.plant(KINDS["nan-direction"], "after") is None
    module = hlotool.parse(_TEXT)
    assert planter.witness(KINDS["index-abs"], "after", module) is None


def test_a_fault_that_the_text_before_may_have_is_not_planted_there(subject):
    planter = Planter(subject, random.Random(0), Counter())
    assert planter.plant(KINDS["middle-bf16"], "before") is None
    assert planter.plant(KINDS["middle-bf16"], "after") is not None


def test_a_seed_draws_the_same(subject):
    def drawn() -> list[tuple[str, str, str, str]]:
        found = cases([subject], 5, 6, Counter())
        return [(case.kind, case.stage, case.said, case.style) for case in found]

    first = drawn()
    assert len(first) == 6
    assert len({kind for kind, *_ in first}) == 6
    assert drawn() == first
