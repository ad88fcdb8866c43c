"""Whole programs of the corpus, executed from their PTX. Expected values are the reference's."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.base import Value
from hlotool.backends.gpu_ptx.dump import read_dump
from hlotool.backends.gpu_ptx.executable import GpuExecutable
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.errors import DumpError, InputDataError, KernelFault, Unsupported, UsageError
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.recorded_values import Budget
from hlotool.interface.cli.main import main
from hlotool.ir.arrays import flatten
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.edit_calls import extract
from hlotool.ir.module import Module
from hlotool.judge.locate.isolation import Isolation
from hlotool.judge.locate.recording import execute, on_one_device
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[3] / "corpus" / "gpu_ptx"
#: What XLA:GPU of jaxlib 0.10.2 gets wrong, by name.
FAULTS: dict[str, dict[str, Any]] = {
    entry["program"]: entry["fault"]
    for entry in tomllib.loads((CORPUS.parent / "MANIFEST.toml").read_text(encoding="utf-8"))["directory"]
    if entry["path"].startswith("gpu_ptx/") and "fault" in entry
}
WRONG = "product_of_bytes"
DEVICES = "exchanges"


def stage(folder: Path, pattern: str) -> Module:
    [path] = folder.glob(pattern)
    return parse_module(path.read_text(), str(path))


def after(folder: Path) -> Module:
    return stage(folder, "*gpu_after_optimizations.txt")


def executed(folder: Path, arguments: list[Value]) -> tuple[GpuExecutable, Value]:
    executable = get_backend("gpu-ptx").compile(after(folder))
    assert isinstance(executable, GpuExecutable)
    return executable, executable.run(arguments)


def edited(tmp_path: Path, name: str, pattern: str, old: str, new: str) -> Path:
    """A copy of a dump in which one file is another one."""
    folder = Path(shutil.copytree(CORPUS / name, tmp_path / name))
    paths = [path for path in folder.glob(pattern) if old in path.read_text()]
    paths[0].write_text(paths[0].read_text().replace(old, new))
    return folder


@pytest.mark.parametrize(
    "name", sorted(path.name for path in CORPUS.iterdir() if path.name not in (*FAULTS, DEVICES))
)
def test_programs_compute_what_the_reference_computes(name: str) -> None:
    before = stage(CORPUS / name, "*.before_optimizations.txt")
    arguments = generate_inputs(before, 3).values
    executable, result = executed(CORPUS / name, list(arguments))
    expected = NumpyBackend().compile(before).run(arguments)
    shape = before.entry.root.shape
    for (_, _, actual), (_, _, wanted) in zip(flatten(shape, result), flatten(shape, expected)):
        one, other = np.asarray(actual), np.asarray(wanted)
        assert one.dtype == other.dtype
        assert np.allclose(one.astype(np.float64), other.astype(np.float64), rtol=2e-2, atol=2e-3)
    assert executable.counts.launches > 0


def test_arguments_are_not_changed_where_their_memory_is_donated() -> None:
    arguments = list(generate_inputs(after(CORPUS / "donated_scatter"), 3).values)
    kept = [np.array(argument) for argument in arguments]
    executed(CORPUS / "donated_scatter", arguments)
    assert all(map(np.array_equal, arguments, kept))


def test_what_libraries_do_is_said() -> None:
    arguments = list(generate_inputs(after(CORPUS / "library_calls"), 3).values)
    executable, _ = executed(CORPUS / "library_calls", arguments)
    [note] = executable.notes
    assert note.startswith("computed by the reference, as their code is no PTX: ")
    assert all(word in note for word in ("cholesky", "triangular-solve", "fft"))


def test_the_fault_is_in_the_code_and_not_in_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    """XLA of jaxlib 0.10.2 multiplies each fragment of eight-bit integers twice where there are 16 terms."""
    assert main(["run", str(CORPUS / WRONG), "--jobs", "1"]) == 0
    assert main(["run", str(CORPUS / WRONG), "--test", "gpu-ptx", "--jobs", "1", "--verbose"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "the values are 2 times what they should be" in said
    assert "this HLO is right on numpy" in said
    assert "the code that was generated of it is wrong" in said
    assert "kernel gemm_fusion_dot_general_1:" in said
    assert "fusion %gemm_fusion_dot_general.1" in said


def test_what_the_hardware_may_do_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(CORPUS / "library_calls")
    assert main(["run", folder, "--test", "gpu-ptx", "--jobs", "1", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["modules"]
    assert "TF32" in row["freedoms"]["products"]
    assert row["tested"].startswith("gpu-ptx ")


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_faults_of_xla_show_without_a_compiler(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of code generation in what is executed alone, that of a pass in the HLO, too."""
    fault, folder = FAULTS[name], str(CORPUS / name)
    of_code = fault["level"] == "codegen"
    assert main(["run", folder, "--jobs", "1"]) == (not of_code)
    assert main(["run", folder, "--test", "gpu-ptx", "--jobs", "1"]) == 1
    assert ("this HLO is right on numpy" in " ".join(capsys.readouterr().out.split())) == of_code
    assert main(["bisect", folder, "--backend", "gpu-ptx", "--no-repro", "--jobs", "1", "--json"]) == 1
    [culprit] = json.loads(capsys.readouterr().out)["culprits"]
    assert (culprit["level"], culprit["pass"]) == (fault["level"], fault.get("pass", ""))
    assert set(fault.get("opcodes", [])) <= set(culprit["opcodes"])


def test_it_is_found_by_bisection_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bisect", str(CORPUS / WRONG), "--backend", "gpu-ptx", "--no-repro", "--jobs", "1"]
    assert main(arguments) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "code generation" in said
    assert "fusion %gemm_fusion_dot_general.1, line 14 of the HLO text" in said
    assert "kernel gemm_fusion_dot_general_1: " in said
    assert ".1.ptx:12" in said
    assert "repairs the result by its absence" not in said


def test_an_instruction_alone() -> None:
    module = after(CORPUS / "product_softmax")
    fusion = next(i for i in module.entry.instructions if i.name.startswith("gemm_fusion"))
    cut = extract(module, [fusion], [fusion])
    arguments = generate_inputs(cut.module, 3).values
    executable = get_backend("gpu-ptx").compile(cut.module)
    actual, wanted = (each.run(arguments) for each in (executable, NumpyBackend().compile(cut.module)))
    assert np.allclose(np.asarray(actual, np.float64), np.asarray(wanted, np.float64), rtol=1e-2, atol=1e-2)


def test_products_of_tf32_are_not_blamed() -> None:
    """Tensor cores round the operands of an f32 product to TF32, which is no fault of the instruction."""
    module = after(CORPUS / "library_calls")
    arguments = generate_inputs(module, 3).values
    with closing(execute(on_one_device(module, arguments), Budget())) as execution:
        isolation = Isolation(execution, "gpu-ptx", 60.0)
        assert isolation.first() is None
        assert isolation.compared >= 6


def test_a_wrong_grid_is_seen(tmp_path: Path) -> None:
    """Two blocks of three: a third of the transpose is never written."""
    [text] = [p.read_text() for p in (CORPUS / "column_sums").glob("*thunk_sequence.txt")]
    [line] = [line for line in text.splitlines() if "transpose" in line]
    grid = line[line.index("grid") :].partition("]")[0]
    folder = edited(
        tmp_path, "column_sums", "*thunk_sequence.txt", line, line.replace(grid, "grid: [1, 1, 1")
    )
    assert main(["run", str(folder), "--test", "gpu-ptx", "--jobs", "1"]) == 1


def test_a_value_that_does_not_fit_into_its_memory(tmp_path: Path) -> None:
    folder = edited(tmp_path, "column_sums", "*buffer-assignment.txt", "size 7680,", "size 8,")
    with pytest.raises(DumpError, match="is larger than allocation"):
        get_backend("gpu-ptx").compile(after(folder))


def test_blocks_beyond_the_result_are_a_fault(tmp_path: Path) -> None:
    """Three times as many blocks as there are tiles for, of a kernel that does not ask: what lies behind a
    row for one of them is the next row, which another one writes.
    """
    old, new = "grid: [2, 1, 1]", "grid: [6, 1, 1]"
    folder = edited(tmp_path, "product_softmax", "*thunk_sequence.txt", old, new)
    module = after(folder)
    with pytest.raises(KernelFault, match="another block writes another value"):
        get_backend("gpu-ptx").compile(module).run(generate_inputs(module, 3).values)


@pytest.mark.parametrize("pattern", ["*.ptx", "*buffer-assignment.txt", "*thunk_sequence.txt"])
def test_a_file_that_is_missing_is_said(tmp_path: Path, pattern: str) -> None:
    folder = Path(shutil.copytree(CORPUS / "product_softmax", tmp_path / "dump"))
    for path in folder.glob(pattern):
        path.unlink()
    with pytest.raises(Unsupported, match=r"no PTX|is not in the dump"):
        get_backend("gpu-ptx").compile(after(folder))


def test_other_sizes_have_no_ptx() -> None:
    module = after(CORPUS / "column_sums")
    other = parse_module(Path(module.path or "").read_text().replace("96,40", "48,40"), module.path)
    with pytest.raises(Unsupported, match="of other sizes"):
        get_backend("gpu-ptx").compile(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("triton=off", "backend gpu-ptx: triton=off is all|say for which GPU"),
        ("v5e", "has no option 'v5e'"),
        ("h100,autotune=64", "MxNxK"),
        ("seed=x", "is no number"),
        ("autotune=64x64x32", "say for which GPU"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_backend(f"gpu-ptx:{options}")


def test_dumps_that_differ_in_their_code_alone_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, new in (("right", "add.rn.f32"), ("wrong", "sub.rn.f32")):
        edited(tmp_path / name, "product_softmax", "*.ptx", "add.rn.f32", new)
    assert main(["run", str(tmp_path), "--test", "gpu-ptx", "--jobs", "1", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["modules"]
    assert [row["verdict"] == "wrong" for row in rows] == [False, True]


def test_what_is_typed_next_is_a_bisection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(CORPUS / WRONG), "--test", "gpu-ptx", "--jobs", "1"]) == 1
    assert f"next: hlotool bisect {CORPUS / WRONG} --backend gpu-ptx" in capsys.readouterr().out


def test_devices_exchange_values() -> None:
    module = after(CORPUS / DEVICES)
    grid = DeviceGrid(1, 2)
    arguments = [list(generate_inputs(module, seed).values) for seed in range(2)]
    executable = get_devices_backend("gpu-ptx").compile_devices(module, grid)
    expected = NumpyBackend().compile_devices(module, grid).run_devices(arguments)
    for found, wanted in zip(executable.run_devices(arguments), expected):
        for (_, _, one), (_, _, other) in zip(
            flatten(module.entry.root.shape, found), flatten(module.entry.root.shape, wanted)
        ):
            assert np.allclose(np.asarray(one), np.asarray(other), rtol=1e-5)
    assert "all-gather" in str(executable.notes)  # type: ignore[attr-defined]


def test_arguments_for_another_number_of_devices() -> None:
    module = after(CORPUS / DEVICES)
    executable = get_devices_backend("gpu-ptx").compile_devices(module, DeviceGrid(1, 2))
    with pytest.raises(InputDataError, match="2 devices take 1 arguments"):
        executable.run_devices([list(generate_inputs(module, 1).values)])


@pytest.mark.parametrize("numbered", [True, False], ids=["0.8", "0.7"])
@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_what_steps_are_for_follows_from_the_schedule(name: str, numbered: bool, tmp_path: Path) -> None:
    """Of dumps of jaxlib before 0.9, which have no names of instructions and say of launches less."""
    folder = Path(shutil.copytree(CORPUS / name, tmp_path / name))
    path = str(next(folder.glob("*gpu_after_optimizations.txt")))
    named = read_dump(path)
    next(folder.glob("*thunk_metadata.txt")).unlink()
    steps = next(folder.glob("*thunk_sequence.txt"))
    launch = r" grid: \[(\d+, \d+, \d+)\] threads: \[(\d+, \d+, \d+)\].*"
    old = r", launch dimensions = blocks: {\1}, threads/block: {\2}, cluster_dim = nullopt"
    text = re.sub(launch, old, steps.read_text())
    steps.write_text(re.sub(r"(kCustomKernel) *\[.*?\] (\S+), launch", r"\1 , kernel = \2, launch", text))
    if not numbered and "kSequential" not in text:
        steps.write_text(re.sub(r"(?m)^( *)\d+: (k\w+) ", r"\1\2\t", steps.read_text()))
    derived = read_dump(path)
    pairs = zip(
        (step for top in named.steps for step in top.all()),
        (step for top in derived.steps for step in top.all()),
        strict=True,
    )
    for one, other in pairs:
        assert (one.launch is None) == (other.launch is None)
        assert other.launch is None or other.launch.shared is None
        if one.instruction and not one.kind.endswith("Done"):
            assert (one.kind, one.instruction, one.ordinal) == (
                other.kind,
                other.instruction,
                other.ordinal,
            )


def test_steps_that_do_not_fit_the_program(tmp_path: Path) -> None:
    folder = edited(tmp_path, "sorted_pairs", "*thunk_sequence.txt", "kCopy", "kCollectivePermute")
    next(folder.glob("*thunk_metadata.txt")).unlink()
    with pytest.raises(Unsupported, match="does not follow from what"):
        read_dump(str(next(folder.glob("*gpu_after_optimizations.txt"))))
