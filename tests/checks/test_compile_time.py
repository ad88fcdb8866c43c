"""Where the time of a compilation went: a dump with times, a log, a dump that was copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shell import Shell

from hlotool.checks.inspect.compile_time import alarms_in, compile_time_of
from hlotool.sources.directory import open_dump

#: The program as given, after its window over a constant was computed, after its loop was unrolled, in the
#: end.
GIVEN = """HloModule jit_f
FileNames
1 "f.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=8 end_line=8 column=0 end_column=1}
StackFrames
1 {file_location_id=1 parent_frame_id=1}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

body {
  s = f32[32,32] parameter(0)
  ROOT t = f32[32,32] add(s, s)
}

cond {
  c = f32[32,32] parameter(0)
  ROOT p = pred[] constant(false)
}

ENTRY e {
  x = f32[32,32] parameter(0)
  zero = f32[] constant(0)
  ones = f32[32,32] broadcast(zero), dimensions={}
  w = f32[32,32] reduce-window(ones, zero), WINDOW, metadata={op_name="jit(f)/max" stack_frame_id=1}
  v = f32[32,32] while(x), condition=cond, body=body, metadata={op_name="jit(f)/while" stack_frame_id=1}
  ROOT r = f32[32,32] add(v, w)
}
""".replace("WINDOW", "window={size=5x5 pad=2_2x2_2}, to_apply=max")
FOLDED = GIVEN.replace(
    "  ones = f32[32,32] broadcast(zero), dimensions={}\n  w = f32[32,32] reduce-window(ones, zero), "
    "window={size=5x5 pad=2_2x2_2}, to_apply=max,",
    "  w2 = f32[32,32] constant({...}),",
).replace("add(v, w)", "add(v, w2)")
UNROLLED = FOLDED.replace(
    "  v = f32[32,32] while(x), condition=cond, body=body,",
    "  add.1 = f32[32,32] add(x, x)\n  add.2 = f32[32,32] add(add.1, add.1)\n"
    "  add.3 = f32[32,32] add(add.2, add.2),",
).replace("add(v, w2)", "add(add.3, w2)")
STAGES = {
    "before_optimizations": (GIVEN, 0.0),
    "0000.simplification.after_pipeline-start.before_algsimp": (GIVEN, 0.0005),
    "0001.simplification.after_constant_folding.before_dce": (FOLDED, 40.0),
    "0002.simplification.after_while_loop_unroller.before_dce": (UNROLLED, 41.5),
    "cpu_after_optimizations": (UNROLLED, 41.6),
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    for name, (text, at) in STAGES.items():
        path = folder / f"module_0000.jit_f.{name}.txt"
        path.write_text(text)
        os.utime(path, (0, 1e9 + at))
    code = folder / "module_0000.jit_f.obj-file.o"
    code.write_bytes(b"\x7fELF")
    os.utime(code, (0, 1e9 + 45.6))
    return folder


def test_passes_by_time(dump: Path) -> None:
    found = compile_time_of(open_dump(dump).modules[0])
    assert found.seconds == pytest.approx(45.6)
    assert (found.first, found.last) == (13, 14)
    passes = {one.name: (round(one.seconds or 0, 3), one.added, one.removed) for one in found.passes}
    assert passes == {
        "constant_folding": (39.999, 1, 2),
        "code generation": (4.0, 0, 0),
        "while_loop_unroller": (1.5, 3, 1),
        "what follows the last pass that left a file": (0.1, 0, 0),
    }
    assert found.passes[0].name == "constant_folding"
    [constant] = found.folded
    assert (constant.by, constant.bytes, constant.source.opcode) == (
        "constant_folding",
        4096,
        "reduce-window",
    )
    assert constant.source.place.endswith("f.py:8")
    [loop] = found.unrolled
    assert (loop.by, loop.added, loop.source.opcode) == ("while_loop_unroller", 3, "while")


def test_of_a_copy_changes_are_known_and_no_times(dump: Path) -> None:
    for path in dump.iterdir():
        os.utime(path, (0, 1e9))
    found = compile_time_of(open_dump(dump).modules[0])
    assert found.seconds is None
    assert [(one.name, one.seconds) for one in found.passes] == [
        ("while_loop_unroller", None),
        ("constant_folding", None),
    ]


INSTRUCTION = '%w = f32[32,32]{1,0} reduce-window(%ones, %zero), metadata={op_name="jit(f)/max"}'
FOLDING = (
    f"Constant folding an instruction is taking > 1s:\n\n  {INSTRUCTION}\n\nThis isn't necessarily a bug.\n"
)
COMPILING = (
    f"{'*' * 32}\n[Compiling module jit_f] Very slow compile? If you want to file a bug, …\n{'*' * 32}\n"
)
LOG = f"""E1129 13:14:51.250787   21093 slow_operation_alarm.cc:73] {FOLDING}
E1129 13:15:32.5   21093 slow_operation_alarm.cc:140] The operation took 41.25s
{FOLDING}
E1129 13:17:51.2   21093 slow_operation_alarm.cc:73] \n{COMPILING}
E1129 13:18:02.1   21093 slow_operation_alarm.cc:140] The operation took 2m11.5s

{COMPILING}
"""


def test_what_a_log_says() -> None:
    folding, compiling = alarms_in("log", LOG)
    assert (folding.what, folding.seconds, folding.is_over) == ("constant folding", 41.25, True)
    assert folding.instruction.startswith("%w = f32[32,32]")
    assert (compiling.what, compiling.seconds, compiling.module) == ("compilation", 131.5, "jit_f")
    [so_far] = alarms_in("log", LOG[:200])
    assert (so_far.seconds, so_far.is_over) == (1.0, False)
    assert alarms_in("log", "The operation took 3s") == []


def test_the_command(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is a log is none that holds no HLO."""
    log = tmp_path / "train.log"
    log.write_text(LOG)
    inspect = Shell("inspect", "inspect-1.json", capsys)
    record = inspect.json(dump, log, "--compile-time", "--jobs", "1")
    assert record["failures"] == []
    assert [alarm["module"] for alarm in record["alarms"]] == ["module_0000.jit_f", "jit_f"]
    assert record["alarms"][0]["source"]["file_line"] == 8
    assert inspect(dump, log, "--compile-time", "--jobs", "1") == 0
    text = " ".join(inspect.out.split())
    assert "compilation of module_0000.jit_f: 45.6 s by the clock of its files, 13 → 14 instructions" in text
    assert "constant_folding computed f32[32,32]" in text
    assert "constant folding took 41.2 s: %w = " in text
    assert record["modules"][0]["compile_time"]["passes"][0]["name"] == "constant_folding"
    assert inspect.json(dump, "--jobs", "1")["modules"][0]["compile_time"] is None
