"""What the normal form of a text leaves out, and what it does not."""

from __future__ import annotations

import pytest
from support.renaming import renamed

from hlotool.runs.fleet.normal_form import normal_form

TEXT = """\
HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

FileNames
1 "train.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=4 end_column=10}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add.1 (x.2: f32[], y.3: f32[]) -> f32[] {
  %x.2 = f32[] parameter(0)
  %y.3 = f32[] parameter(1)
  ROOT %add.4 = f32[] add(%x.2, %y.3), metadata={op_name="jit(f)/add" stack_frame_id=1}
}

ENTRY %main.9 (x.5: f32[4]) -> f32[4] {
  %x.5 = f32[4]{0} parameter(0)
  %all.6 = f32[4]{0} all-reduce(%x.5), channel_id=7, replica_groups={}, to_apply=%add.1
  ROOT %call.7 = f32[4]{0} custom-call(%all.6), custom_call_target="the %x.5 target"
}
"""


def key(text: str) -> str:
    return normal_form(text).key


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jit_f", "jit_g"),
        ("%add.1", "%sum"),
        ("%x.2", "%x.9"),
        ("x.2: ", "other: "),
        ("channel_id=7", "channel_id=3"),
        (', metadata={op_name="jit(f)/add" stack_frame_id=1}', ""),
        ('op_name="jit(f)/add"', 'op_name="a } brace"'),
        ("train.py", "eval.py"),
        ("line=12", "line=13"),
        ("parameter(0)", "parameter(0) /* the first */"),
        ("  %x.5 =", "    %x.5  ="),
        ("add(%x.2, %y.3)", "add(%x.2,%y.3)"),
    ],
)
def test_left_out(old: str, new: str) -> None:
    assert old in TEXT
    assert key(TEXT.replace(old, new)) == key(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add(%x.2, %y.3)", "add(%y.3, %x.2)"),
        ("add(%x.2, %y.3)", "add(%x.2, %x.2)"),
        ("ROOT %add.4 = f32[] add", "ROOT %add.4 = f32[] multiply"),
        ("f32[4]{0} parameter", "f32[4] parameter"),
        ("the %x.5 target", "the %x.6 target"),
        ("the %x.5 target", "the  %x.5 target"),
        ("replica_groups={}", "replica_groups={{0}}"),
        ("channel_id=7, ", ""),
        ("entry_computation_layout", "is_scheduled=true, entry_computation_layout"),
    ],
)
def test_kept(old: str, new: str) -> None:
    assert old in TEXT
    assert key(TEXT.replace(old, new)) != key(TEXT)


def test_names_without_a_sign_are_not_told_from_opcodes() -> None:
    bare = TEXT.replace("%", "")
    assert key(bare.replace("LT", "GT")) == key(bare)
    assert key(bare.replace("add(x.2, y.3)", "multiply(x.2, y.3)")) != key(bare)


def test_another_writing_is_understood() -> None:
    other = normal_form(renamed(TEXT, "other", 3))
    assert other.key == key(TEXT)
    assert other.names != normal_form(TEXT).names
    told = other.told(0)
    assert told.op_name == "jit(other_f)/add"
    assert told.position[0] == "other/train.py"
    assert [name for name, _ in other.definitions][-1] == other.names[-1]
    assert [line for _, line in other.definitions] == [17, 18, 19, 23, 24, 25]
