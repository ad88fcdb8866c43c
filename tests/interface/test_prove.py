"""`hlotool prove`: reports, records, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs import BROKEN, DOUBLE, SQUARE, SUM, UNKNOWN_CALL
from support.shell import Shell

from hlotool.errors import ExitCode

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


@pytest.fixture
def prove(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("prove", "prove-1.json", capsys)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"double": DOUBLE, "sum": SUM, "square": SQUARE, "broken": BROKEN, "call": UNKNOWN_CALL}
    for name, text in texts.items():
        (tmp_path / f"{name}.hlo").write_text(text, encoding="utf-8")
    return {name: tmp_path / f"{name}.hlo" for name in texts}


def test_equal_programs(prove: Shell, files: dict[str, Path]) -> None:
    assert prove(files["double"], files["sum"]) == ExitCode.AGREE
    assert "1 pair of programs: 1 equal" in prove.out
    assert "evaluated at 2 random points" in prove.out


def test_unequal_programs_have_a_witness(prove: Shell, files: dict[str, Path]) -> None:
    record = prove.json(files["double"], files["square"], "--trials", 3, "--seed", 7)
    [pair] = record["pairs"]
    assert record["exit_code"] == ExitCode.MISMATCH
    # One point shows every output to be unequal: there are no more.
    assert (pair["relation"], pair["trials"]) == ("unequal", 1)
    [leaf] = pair["leaves"]
    assert (leaf["differing"], leaf["total"], leaf["witness"]["index"]) == (4, 4, [0])
    assert leaf["witness"]["seed"] == 7
    assert "multiply(%x, %x)" in pair["divergence"]["text"]
    assert pair["divergence"]["finding"] == "suspected"


def test_the_instruction_at_which_programs_part(prove: Shell) -> None:
    """In a dump with a changed `slice`, beside the line of the program that it was made of."""
    assert prove(CORPUS / "planted" / "slices_off_by_one") == ExitCode.MISMATCH
    assert "jax_indexing.py:110" in prove.out
    assert "repairs the output" in prove.out


def test_an_unknown_call_of_both_is_the_same_function(prove: Shell, files: dict[str, Path]) -> None:
    assert prove(files["call"], files["call"], "--explain") == ExitCode.AGREE
    assert "✓ equal" in prove.out
    assert "unknown function  my_kernel (%y of the first, line 5)" in prove.out


def test_an_unknown_call_of_one_proves_nothing(prove: Shell, files: dict[str, Path]) -> None:
    record = prove.json(files["sum"], files["call"])
    [pair] = record["pairs"]
    assert (record["exit_code"], pair["relation"]) == (ExitCode.NOTHING_COMPARED, "refused")
    assert "my_kernel" in pair["leaves"][0]["reason"]


def test_a_dump_before_and_after(prove: Shell) -> None:
    assert prove(CORPUS / "jax" / "model_fn", "--explain") == ExitCode.AGREE
    assert "✓ equal" in prove.out
    assert prove(CORPUS / "jax" / "train_mnist_mlp") == ExitCode.INCONCLUSIVE
    assert "is never of equal numbers" in prove.out


def test_given_integers(prove: Shell) -> None:
    """XLA drops a clamp of indices (a real miscompile): unseen where they are in range."""
    dump = CORPUS / "miscompiles" / "nested_dynamic_slice"
    assert prove(dump, "--no-further-sets") == ExitCode.AGREE
    assert prove(dump) == ExitCode.MISMATCH
    assert "indices out of range" in prove.out
    assert prove(dump, "--inputs", dump / "inputs.npz") == ExitCode.MISMATCH
    assert "✗ unequal: 2 of 2 (100 %); expected " in prove.out


def test_broken_hlo(prove: Shell, files: dict[str, Path]) -> None:
    record = prove.json(files["sum"], files["broken"])
    [pair] = record["pairs"]
    assert (record["exit_code"], pair["error"]["kind"]) == (ExitCode.USAGE, "HloSyntaxError")


def test_one_program_alone(prove: Shell, files: dict[str, Path]) -> None:
    assert prove(files["sum"]) == ExitCode.USAGE
    assert "give the other program, too" in prove.error
