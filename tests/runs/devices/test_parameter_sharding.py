"""Parameters of partitioned programs that do not say how they are spread, as those of jaxlib 0.12."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs import AFTER, BEFORE

from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import parameter_shardings
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump

#: The second device holds the first half.
TURNED = "{devices=[2]1,0}"
WHOLE = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0)OWN
  LINES
  i = f32[4] iota(), iota_dimension=0
  ROOT y = f32[4] add(x, i)
}
"""
PART = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[2] parameter(0)OWN
  p = u32[] partition-id()
  one = u32[] constant(1)
  n = u32[] FIRST
  two = u32[] constant(2)
  s = u32[] multiply(n, two)
  i = f32[4] iota(), iota_dimension=0
  j = f32[2] dynamic-slice(i, s), dynamic_slice_sizes={2}
  ROOT y = f32[2] add(x, j)
}
"""
#: Each device adds the offsets of its own half.
TURNED_PART = PART.replace("FIRST", "subtract(one, p)")


def _annotation(name: str, sharding: str) -> str:
    return f'{name} = f32[4] custom-call(x), custom_call_target="Sharding", sharding={sharding}\n  '


def row(folder: Path, own: str, lines: str = "", part: str = TURNED_PART, part_own: str = "") -> ModuleRecord:
    title = folder / "module_0000.jit_f"
    before = WHOLE.replace("OWN", own).replace("LINES", lines)
    Path(f"{title}.{BEFORE}.txt").write_text(before, "utf-8")
    Path(f"{title}.{AFTER}.txt").write_text(part.replace("OWN", part_own), "utf-8")
    [module] = open_dump(str(folder)).modules
    [found] = replay_module(Task(module, ReplayOptions()))
    return found


def test_the_parameter_that_it_is_a_part_of_says_it(tmp_path: Path) -> None:
    assert row(tmp_path, f", sharding={TURNED}").verdict is Verdict.IDENTICAL
    # Told otherwise, the same program adds the offsets of the other half.
    assert row(tmp_path, ", sharding={devices=[2]<=[2]}").verdict is Verdict.WRONG


def test_what_is_made_of_it_at_once_says_it(tmp_path: Path) -> None:
    assert row(tmp_path, "", _annotation("z", TURNED)).verdict is Verdict.IDENTICAL
    assert row(tmp_path, "", _annotation("z", "{devices=[2]<=[2]}")).verdict is Verdict.WRONG


def test_its_own_word_counts(tmp_path: Path) -> None:
    own = ", sharding={devices=[2]<=[2]}"
    assert row(tmp_path, own, part_own=f", sharding={TURNED}").verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(
    "lines",
    ["", _annotation("z", TURNED) + _annotation("w", "{devices=[2]<=[2]}"), _annotation("z", "{replicated}")],
)
def test_where_nothing_says_it_nothing_is_compared(tmp_path: Path, lines: str) -> None:
    found = row(tmp_path, "", lines)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "the dump does not say which part is on which device" in found.reason


def test_what_is_no_part_is_another_structure(tmp_path: Path) -> None:
    longer = "w = f32[7] parameter(0)\n  x = f32[2] slice(w), slice={[0:2]}"
    found = row(tmp_path, "", part=TURNED_PART.replace("x = f32[2] parameter(0)OWN", longer))
    assert found.verdict is Verdict.STRUCTURAL
    assert found.reason == "parameter 0: expected f32[4], got f32[7]"


def test_elements_of_a_tuple() -> None:
    whole = parse_module(
        "HloModule m, num_partitions=2\nENTRY e {\n  ROOT t = (f32[4], f32[3]) parameter(0), "
        "sharding={{devices=[2]<=[2]}, {replicated}}\n}"
    )
    part = parse_module(
        "HloModule m, num_partitions=2\nENTRY e {\n  ROOT t = (f32[2], f32[3]) parameter(0)\n}"
    )
    [[first, second]] = parameter_shardings(part, whole)
    assert first is not None
    assert first.kind == "tiled"
    assert second is not None
    assert second.kind == "replicated"
