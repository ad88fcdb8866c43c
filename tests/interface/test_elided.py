"""`--elided generate`: constants whose values the dump leaves out get the same values on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlotool
from hlotool.errors import ElidedConstant, ExitCode
from hlotool.interface.cli.main import main

BEFORE = """HloModule jit_f
ENTRY main {
  x = f32[16] parameter(0)
  table = f32[16] constant({...})
  more = f32[16] constant({...})
  sum = f32[16] add(x, table)
  ROOT y = f32[16] multiply(sum, more)
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


def dumped(folder: Path, after: str) -> Path:
    folder.mkdir()
    (folder / "module_0000.jit_f.before_optimizations.txt").write_text(BEFORE)
    (folder / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(after)
    return folder


def row(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    main(["run", *map(str, arguments), "--json"])
    [found] = json.loads(capsys.readouterr().out)["modules"]
    return dict(found)


def test_without_the_option_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = row(capsys, dumped(tmp_path / "d", BEFORE))
    assert found["verdict"] == "unsupported"
    assert "elided in the dump" in found["reason"]
    assert found["generated_constants"] == 0


def test_agreement_says_what_it_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = BEFORE.replace("multiply(sum, more)", "multiply(more, sum)")
    folder = dumped(tmp_path / "d", after)
    assert main(["run", str(folder), "--elided", "generate", "--no-further-sets"]) == ExitCode.AGREE
    shown = capsys.readouterr().out
    assert "checked with: inputs generated with seed 0; 2 generated constants; reference" in shown
    assert "2 generated: their values are not in the dump" in shown


def test_a_difference_is_seen_and_its_command_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dumped(tmp_path / "d", BEFORE.replace("add(x, table)", "subtract(x, table)"))
    assert main(["run", str(folder), "--elided", "generate"]) == ExitCode.MISMATCH
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"next: hlotool bisect {folder} --elided generate"
    repro = tmp_path / "repro"
    assert main([*last.split()[2:], "--repro", str(repro), "--try-on", "none"]) == ExitCode.MISMATCH
    shown = capsys.readouterr().out
    assert "2 constants are generated: the dump leaves their values out" in shown
    # The bundle holds the generated values, so it fails without the option, too.
    assert main(["repro", "verify", *map(str, repro.iterdir())]) == ExitCode.MISMATCH


@pytest.mark.parametrize(
    ("command", "code"), [("bisect", ExitCode.INCONCLUSIVE), ("prove", ExitCode.NOTHING_COMPARED)]
)
def test_a_search_accuses_nobody_of_what_true_constants_explain(
    command: str, code: ExitCode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compiler knew `more`: what it made of that is not what the generated value makes."""
    known = "two = f32[] constant(2)\n  more = f32[16] broadcast(two), dimensions={}"
    folder = dumped(tmp_path / "d", BEFORE.replace("more = f32[16] constant({...})", known))
    assert main([command, str(folder), "--elided", "generate"]) == code
    assert "generated here" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["mutate", "extract"])
def test_commands_that_execute_take_the_option(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(BEFORE)
    given = {"mutate": [str(path), "--cases", "2"], "extract": [str(path), "y", "-o", str(tmp_path / "x")]}
    if command == "extract":
        assert main([command, *given[command]]) == ExitCode.NOTHING_COMPARED
        assert "elided" in capsys.readouterr().err
    assert main([command, *given[command], "--elided", "generate"]) == ExitCode.AGREE


def test_values_follow_from_name_shape_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other names of instructions around them change nothing, another seed does."""
    folder = dumped(tmp_path / "d", BEFORE.replace("sum", "total"))
    results = []
    for seed in (0, 0, 1):
        path = folder / "module_0000.jit_f.before_optimizations.txt"
        found = row(capsys, path, "--elided", "generate", "--seed", seed, "--input-range=1,1.0001")
        results.append(found["outputs"][0]["first"])
    assert results[0] == results[1] != results[2]
    assert row(capsys, folder, "--elided", "generate")["verdict"] == "identical"


TABLE = "  table = f32[16] constant({...})\n"
SPLAT = "  c = f32[] constant(1)\n  table = f32[16] broadcast(c), dimensions={}\n"


@pytest.mark.parametrize(
    ("after", "why"),
    [
        # The pass folded a constant away: the difference is of our values, not the compiler's.
        (BEFORE.replace(TABLE, SPLAT), "may be computed from the true value"),
        # It made a constant, which is elided, too.
        (BEFORE.replace("table", "folded"), "no generated value can stand for it"),
        # It computed with one that is gone.
        (BEFORE.replace("add(x, table)", "add(x, more)").replace(TABLE, ""), "which is generated here"),
    ],
)
def test_what_may_be_the_fault_of_generated_values_is_no_verdict(
    after: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = row(capsys, dumped(tmp_path / "d", after), "--elided", "generate")
    assert found["verdict"] == "unsupported"
    assert why in found["reason"]


def test_a_real_result_is_not_compared_with_generated_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dumped(tmp_path / "d", BEFORE)
    np.savez(tmp_path / "in.npz", x=np.ones(16, np.float32))
    np.savez(tmp_path / "out.npz", y=np.ones(16, np.float32))
    values = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
    main(["run", str(folder), "--elided", "generate", *values, "--json"])
    verdicts = [found["verdict"] for found in json.loads(capsys.readouterr().out)["modules"]]
    assert verdicts == ["identical", "unsupported"]


def test_indices_make_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of indices gets indices in range, and both are generated alike."""
    text = """HloModule m
    ENTRY e {
      x = f32[40] parameter(0)
      i = s32[20,1] constant({...})
      ROOT y = f32[20] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1}
    }"""
    path = tmp_path / "a.hlo"
    path.write_text(text)
    from dataclasses import replace

    from hlotool.sources.directory import open_dump
    from hlotool.sources.loading import load_stage

    [owner] = open_dump(path).modules
    module = load_stage(replace(owner, generates_elided=3), owner.stages[0])
    [indices] = [i for i in module.instructions() if i.name == "i"]
    assert indices.literal is not None
    assert module.generated == ("i",)
    values = indices.literal.array
    assert values.min() >= 0
    assert values.max() < 40
    assert len(np.unique(values)) > 5


def test_a_module_with_elided_constants_is_loaded_and_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(BEFORE)
    module = hlotool.load(path)
    assert "constant({...})" in module.to_text()
    with pytest.raises(ElidedConstant):
        hlotool.run(module, [np.zeros(16, np.float32)])
    assert main(["diff", str(path), str(path)]) == ExitCode.AGREE
    assert main(["inspect", str(path)]) == ExitCode.AGREE
    assert main(["opt", str(path), "--passes", "cse"]) == ExitCode.AGREE
    assert capsys.readouterr().out.count("constant({...})") == 2
    main(["check", str(path)])
    assert "elided" in capsys.readouterr().out


@pytest.mark.xla
def test_xla_gets_the_same_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(BEFORE)
    found = row(capsys, path, "--elided", "generate", "--backend", "xla")
    assert found["verdict"] in ("identical", "agree", "rounding")
    assert found["generated_constants"] == 2
