"""`hlotool inspect`: what is printed, exit codes, choices, files that cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.programs import BROKEN, DOUBLE, PAIR, SUM, write_module
from support.shell import Shell

import hlotool
from hlotool.errors import ExitCode


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("inspect", "inspect-1.json", capsys)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    write_module(folder, 0, DOUBLE, SUM)
    write_module(folder, 1, PAIR, PAIR, "jit_g")
    return folder


def test_a_module_in_detail(inspect: Shell, corpus: Path) -> None:
    assert inspect(corpus / "jax" / "model_fn") == ExitCode.AGREE
    assert "module_0000.jit_model_fn  jax function model_fn" in inspect.out
    assert "stages  22, 20 of them between passes" in inspect.out
    assert (
        "fusion %add_reduce_fusion  corpus/generate/jax_programs.py:25    383         1.5 KiB" in inspect.out
    )
    assert "KERNEL" not in inspect.out
    assert inspect.error == ""


def test_a_directory_is_one_line_per_function(inspect: Shell, dump: Path) -> None:
    write_module(dump, 2, DOUBLE, SUM)
    assert inspect(dump) == ExitCode.AGREE
    lines = inspect.out.splitlines()
    assert lines[1].split()[:2] == ["g", "1×"]
    assert lines[2].split()[:4] == ["f", "2×", "(1", "program)"]
    assert lines[-1].startswith("2 functions, 3 modules, 6 stages")
    assert f"1 function compiled more than once: hlotool check {dump} says why" in inspect.out
    assert "opcode" not in inspect.out


def test_verbose_shows_every_module(inspect: Shell, dump: Path) -> None:
    assert inspect(dump, "--verbose") == ExitCode.AGREE
    assert inspect.out.count("before_optimizations  cpu_after_optimizations") == 2 * 2
    assert "module_0001.jit_g  jax function g" in inspect.out


def test_quiet_leaves_out_the_details(inspect: Shell, dump: Path) -> None:
    assert inspect(dump, "--only", "jit_f", "-q") == ExitCode.AGREE
    assert inspect.out.startswith("1 function, 1 module, 2 stages")


def test_the_record_follows_its_schema(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--only", "jit_f")
    [module] = record["modules"]
    assert [stage["label"] for stage in module["stages"]] == [
        "before_optimizations",
        "cpu_after_optimizations",
    ]
    assert module["stages"][1]["opcodes"] == {"parameter": 1, "add": 1}
    assert module["kernels"] is None
    [function] = record["functions"]
    assert (function["function"], function["modules"]) == ("f", [0])


def test_chosen_stages(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--stages", "*after*")
    assert [len(module["stages"]) for module in record["modules"]] == [1, 1]
    assert inspect(dump, "--stages", "nothing") == ExitCode.USAGE
    assert "no stage matches --stages 'nothing'" in inspect.error


def test_a_broken_file_is_one_row(inspect: Shell, dump: Path) -> None:
    write_module(dump, 2, BROKEN, BROKEN, "jit_h")
    assert inspect(dump) == ExitCode.USAGE
    rows = [line for line in inspect.out.splitlines() if line.startswith("! ")]
    assert len(rows) == 2
    assert "jit_h.before_optimizations.txt:5:1:" in rows[0]
    assert inspect.out.splitlines()[-1].startswith(
        "3 functions, 3 modules, 6 stages, 2 files could not be read"
    )
    record = inspect.json(dump)
    assert [len(module["failures"]) for module in record["modules"]] == [0, 0, 2]


def test_a_path_without_hlo_among_others(inspect: Shell, dump: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert inspect(tmp_path / "empty", dump) == ExitCode.USAGE
    assert inspect.out.splitlines()[-2].startswith(f"! {tmp_path}/empty: empty;")
    assert inspect(tmp_path / "empty") == ExitCode.USAGE
    assert inspect.out == ""
    assert inspect.error.startswith(f"hlotool: error: {tmp_path}/empty: empty;")


def test_archives_and_files(inspect: Shell, dump: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", dump)
    assert inspect(archive) == ExitCode.AGREE
    assert "2 functions, 2 modules, 4 stages" in inspect.out
    file = next(dump.glob("*jit_g.before*"))
    assert inspect(file) == ExitCode.AGREE
    assert "out[1]  f32[4]{0}" in inspect.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nothing"], "no module matches --only 'nothing'; there are: module_0000.jit_f"),
        (["--kernels", "--arch", "hopper"], "'hopper' is no architecture; write it like sm_90"),
        (["--only", "("], "'(' is no regular expression"),
    ],
)
def test_wrong_usage_is_one_line(inspect: Shell, dump: Path, arguments: list[str], message: str) -> None:
    assert inspect(dump, *arguments) == ExitCode.USAGE
    assert message in inspect.error


def test_kernels(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--kernels", "--only", "jit_f")
    [module] = record["modules"]
    kernels = module["kernels"]
    assert kernels["label"] == "cpu_after_optimizations"
    [launch] = kernels["launches"]
    assert launch["source"]["instruction"] == "y"
    assert (launch["source"]["file"], launch["source"]["file_line"]) == ("model.py", 7)
    [kernel] = kernels["kernels"]
    assert launch["kernels"] == [kernel["name"]]
    assert "// %y = add" in kernel["source"]
    # Compiled once, and found again.
    assert inspect(dump, "--kernels", "--only", "jit_f") == ExitCode.AGREE
    assert "1 launch of 1 kernel" in inspect.out
    assert f"  KERNEL({kernel['name']}" in inspect.out
    assert inspect(dump, "--kernels", "--only", "jit_f", "--quiet") == ExitCode.AGREE
    assert "1 launch of 1 kernel" in inspect.out
    assert "KERNEL(k" not in inspect.out


#: `d` lies where the result will be: of two values of that size, it comes first on the way.
HELD = """HloModule jit_f, is_scheduled=true

ENTRY main.1 {
  x = f32[256]{0} parameter(0), metadata={op_name="batch"}
  w = f32[1024]{0} parameter(1), metadata={op_name="state['w']"}
  two = f32[] constant(2)
  a = f32[256]{0:S(1)} slice(w), slice={[0:256]},
    metadata={op_name="jit(f)/s" source_file="model.py" source_line=6}
  twos = f32[1024]{0} broadcast(two), dimensions={},
    metadata={op_name="jit(f)/b" source_file="model.py" source_line=5}
  big = f32[4096]{0} concatenate(a, a, a, a, x, x, x, x, a, a, a, a, x, x, x, x), dimensions={0},
    metadata={op_name="jit(f)/c" source_file="model.py" source_line=7}
  d = f32[1024]{0} slice(big), slice={[0:1024]},
    metadata={op_name="jit(f)/d" source_file="model.py" source_line=7}
  ROOT y = f32[1024]{0} add(d, twos), metadata={op_name="jit(f)/add" source_file="model.py" source_line=8}
}
"""


@pytest.fixture
def held(tmp_path: Path) -> Path:
    folder = tmp_path / "held"
    folder.mkdir()
    title = write_module(folder, 0, HELD, HELD)
    report = "Total bytes: 40964 (40.0KiB)\n"
    (folder / f"{title}.cpu_after_optimizations-memory-usage-report.txt").write_text(report)
    return folder


def test_memory_at_the_peak(inspect: Shell, held: Path) -> None:
    assert inspect(held, "--memory") == ExitCode.AGREE
    lines = [" ".join(line.split()) for line in inspect.out.partition("memory of ")[2].splitlines()]
    assert lines[1:10] == [
        "allocated by XLA 40 KiB",
        "peak, about 29 KiB at concatenate %big model.py:7",
        "arguments 5 KiB, 17.2%",
        "results 4 KiB, 13.8%",
        "constants 4 B, 0.0135%",
        "temporaries 20 KiB, 69%",
        "memory space 1 1 KiB",
        "",
        "alive then shape name bytes share",
    ]
    assert lines[10:13] == [
        "model.py:7 16 KiB 55.2%",
        "concatenate %big f32[4096]{0} jit(f)/c 16 KiB 55.2%",
        "state['w'] 4 KiB 13.8%",
    ]
    assert "slice %a f32[256]{0:S(1)} jit(f)/s 1 KiB" in lines  # not of the memory that is counted
    at = lines.index("would lower it source frees peak then")
    assert lines[at + 1 : at + 3] == [
        "rematerialize broadcast %twos: unused for 2 instructions model.py:5 4 KiB 25 KiB",
        "donate parameter %w: out can lie there state['w'] 4 KiB 25 KiB",
    ]
    assert inspect(held, "--memory", "-q") == ExitCode.AGREE
    assert "peak, about" in inspect.out
    assert "alive then" not in inspect.out


def test_memory_at_the_peak_for_programs(inspect: Shell, held: Path) -> None:
    [module] = inspect.json(held, "--memory")["modules"]
    before, after = (stage["memory"] for stage in module["stages"])
    assert before["at_peak"] is None
    peak = after["at_peak"]
    in_memory = [live["bytes"] for live in peak["live"] if not live["space"]]
    assert sum(in_memory) == after["peak"] == 29 * 1024 + 4
    assert (peak["at"]["instruction"], peak["within"]) == ("big", [])
    assert [saving["change"] for saving in peak["savings"]] == ["rematerialize", "donate"]
    [row] = hlotool.inspect(held, memory=True).rows
    found = row.stages[-1].memory.at_peak
    assert found is not None
    assert found.live[0].source.instruction == "big"


def test_memory_spaces_and_what_is_not_listed(inspect: Shell, tmp_path: Path) -> None:
    values = "".join(f"  v{n} = f32[8]{{0:S(1)}} copy(x)\n" for n in range(6))
    places = "".join(f'  p{n} = f32[4] parameter({n + 1}), metadata={{op_name="p{n}"}}\n' for n in range(12))
    text = (
        f"HloModule m\nENTRY main {{\n  x = f32[8]{{0}} parameter(0)\n{places}{values}"
        "  ROOT r = (f32[8], f32[8], f32[8], f32[8], f32[8], f32[8]) tuple(v0, v1, v2, v3, v4, v5)\n}\n"
    )
    (tmp_path / "m.hlo").write_text(text)
    assert inspect(tmp_path / "m.hlo", "--memory") == ExitCode.AGREE
    said = " ".join(inspect.out.partition("memory of ")[2].split())
    assert "not scheduled: in the order of the text" in said
    assert "memory space 1 192 B" in said
    assert "… and 3 more values (--verbose)" in said
    assert "… and 3 more lines (--verbose)" in said
    assert inspect(tmp_path / "m.hlo", "--memory", "--verbose") == ExitCode.AGREE
    assert "--verbose" not in inspect.out.partition("memory of ")[2]


def test_a_program_that_breaks_a_rule_is_named_with_the_rule(inspect: Shell, tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text("ENTRY e { p = f32[2,3] parameter(0) ROOT t = f32[3,2] transpose(p), dimensions={0} }\n")
    assert inspect(path) == ExitCode.USAGE
    assert "dimensions must be a permutation of the operand's 2, not (0,)" in inspect.out + inspect.error
    assert "IndexError" not in inspect.out + inspect.error
