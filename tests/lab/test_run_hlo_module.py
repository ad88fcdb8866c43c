"""`run_hlo_module`: what it prints, writes and returns; stdout, stderr and status are those of XLA's tool."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.oracle import need_xla

from hlotool.ir.arrays import Literal, from_literal
from hlotool.ir.types import Shape
from hlotool.lab.xla_tools.run_hlo_module import main
from hlotool.parser.proto.executions import ToolLiterals, read_executions, write_executions
from hlotool.parser.reader import parse_module

PROGRAM = """HloModule m, entry_computation_layout={(f32[3]{0}, s32[])->(f32[3]{0}, s32[])}
ENTRY e {
  x = f32[3]{0} parameter(0)
  n = s32[] parameter(1)
  y = f32[3]{0} exponential(x)
  z = f32[3]{0} exponential(y)
  ROOT t = (f32[3]{0}, s32[]) tuple(z, n)
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(PROGRAM)
    return path


def literals(*values: np.ndarray) -> bytes:
    parameters = parse_module(PROGRAM).entry.parameters
    return write_executions([ToolLiterals(tuple(Literal(p.shape, v) for p, v in zip(parameters, values)))])


def test_without_a_reference(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments from a file, results printed and written; exp(exp(0)) = e."""
    given, kept = tmp_path / "in.pb", tmp_path / "out.pb"
    given.write_bytes(literals(np.float32([0, 1, -np.inf]), np.array(7, np.int32)))
    status = main(
        [
            "--platform=Interpreter",
            "--reference_platform=",
            "--print_literals",
            f"--input_literals_file={given}",
            f"--output_literals_file={kept}",
            str(program),
        ]
    )
    out, err = capsys.readouterr()
    assert status == 0
    assert out.startswith(f"\n ** Running {program}** \n")
    assert "** Argument 1 **\ns32[] 7\n" in out
    assert "Skipping reference runner" in err
    assert "0/1 runs failed." in err
    [execution] = read_executions(kept.read_bytes(), "out.pb")
    assert execution.result is not None
    assert execution.reference is None
    z, n = from_literal(execution.result)
    np.testing.assert_allclose(z, [np.e, np.exp(np.e), 1], rtol=1e-6)
    assert n == 7


def test_several_runs_on_xla(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_xla()
    kept = tmp_path / "out.pb"
    arguments = ["--platform=CPU", "--iterations=2", f"--output_literals_file={kept}", str(program)]
    assert main(arguments) == 0
    err = capsys.readouterr().err
    assert "=== Iteration 2" in err
    assert err.count("** Results on CPU and default are close enough. **") == 2
    assert "0/2 runs failed." in err
    first, second = read_executions(kept.read_bytes(), "out.pb")
    assert first.arguments[0].array.tolist() != second.arguments[0].array.tolist()
    for execution in (first, second):
        assert execution.result is not None
        assert execution.reference is not None
        results = execution.result, execution.reference
        np.testing.assert_allclose(*(from_literal(result)[0] for result in results), rtol=1e-6)


def test_an_element_must_be_beyond_both_bounds(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two roundings apart: no bound of 0 on one side alone makes that wrong, as in literal_comparison.cc."""
    need_xla()
    given = tmp_path / "in.pb"
    given.write_bytes(literals(np.float32([0.3, 1.3, 2.1]), np.array(1, np.int32)))
    command = ["--platform=CPU", f"--input_literals_file={given}", str(program)]
    assert main([*command, "--rel_error_bound=0", "--abs_error_bound=1"]) == 0
    assert main([*command, "--abs_error_bound=0", "--rel_error_bound=1"]) == 0
    capsys.readouterr()


def test_a_mismatch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No two libraries round 4,096 tangents alike: with bounds of 0 that is a failure."""
    need_xla()
    program = tmp_path / "m.hlo"
    program.write_text(
        "HloModule m\nENTRY e {\n  x = f32[4096] parameter(0)\n  ROOT y = f32[4096] tan(x)\n}\n"
    )
    command = ["--platform=CPU", str(program)]
    assert main(command) == 0
    assert main([*command, "--abs_error_bound=0", "--rel_error_bound=0"]) == 255
    err = capsys.readouterr().err
    assert "1/1 runs failed." in err
    assert f"next: hlotool run {program} --backend xla\n" in err


def test_every_instruction_alone(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_xla()
    assert main(["--platform=CPU", "--isolate_instructions", str(program)]) == 0
    out = capsys.readouterr().out
    # Both exponentials are one module: the same operation on the same shape.
    assert out.count("MATCHED") == 2
    assert " 1 MATCHED" in out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--platform=CPU"], 1, "no HLO file is given"),
        (["--platform=Interpreter", "nowhere.hlo"], 255, "nowhere.hlo"),
        (["--platform=nothing", "f.hlo"], 1, "nothing"),
    ],
)
def test_what_cannot_be_run(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert message in capsys.readouterr().err


def test_arguments_that_do_not_fit(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "in.pb"
    given.write_bytes(b"")
    command = ["--platform=Interpreter", "--reference_platform=", f"--input_literals_file={given}"]
    assert main([*command, str(program)]) == 255
    assert "holds no arguments" in capsys.readouterr().err
    wrong = Literal(parse_module(PROGRAM).entry.parameters[1].shape, np.array(1, np.int32))
    given.write_bytes(write_executions([ToolLiterals((wrong, wrong))]))
    assert main([*command, str(program)]) == 255
    assert "parameter 0 (%x): expected f32[3], got dimensions []" in capsys.readouterr().err
    given.write_bytes(_without_values(parse_module(PROGRAM).entry.parameters[0].shape))
    assert main([*command, str(program)]) == 255
    assert "an argument has a shape, and no values" in capsys.readouterr().err


def _without_values(shape: Shape) -> bytes:
    """An argument of which the file says the shape only."""
    from hlotool.parser.proto.schema import message_class
    from hlotool.parser.proto.values import write_shape

    message = message_class("RunHloModuleLiterals")()
    write_shape(message.iterations.add().arguments.add().shape, shape)
    return bytes(message.SerializeToString())
