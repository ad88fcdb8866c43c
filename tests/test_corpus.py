"""The corpus is what its manifest says, holds nothing of the machine that made it, and XLA agrees with it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.oracle import OracleUnable
from support.xla import JAXLIB, NEWER_TEXT, XlaError, oracle

from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ElementType

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
MANIFEST: list[dict[str, Any]] = tomllib.loads((CORPUS / "MANIFEST.toml").read_text(encoding="utf-8"))[
    "directory"
]
MODULES = sorted((CORPUS / "modules").glob("*.hlo"))
REFUSED = sorted((CORPUS / "malformed").glob("*.hlo"))
INVALID = sorted((CORPUS / "malformed" / "verifier").glob("*.hlo"))

MEGABYTE = 1 << 20
MACHINE_PATH = re.compile(rb"/(?:tmp|work|home|root|Users|usr|opt)/|[A-Z]:\\\\|\.venv|/bin/python")
MODULE_TEXT = re.compile(r"(?:\.before_optimizations|_after_optimizations|\.after_codegen|\.\d{4}\..*)\.txt$")
RUNS_NOT = "// XLA on CPU: "
#: jaxlib compiles MLIR, into which the layout in the header is not carried over.
LOST_IN_MLIR = {"entry_layout_disagrees"}


def directories() -> list[Any]:
    return [pytest.param(entry, id=entry["path"]) for entry in MANIFEST]


def stems(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in paths]


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("entry", directories())
def test_a_directory_is_what_the_manifest_says(entry: dict[str, Any]) -> None:
    files = files_of(CORPUS / entry["path"])
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())]
    assert len(files) == entry["files"]
    assert sum(map(len, files.values())) == entry["bytes"]
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == entry["sha256"]


def test_the_manifest_lists_every_directory() -> None:
    made = {
        path.relative_to(CORPUS).as_posix()
        for framework in ("jax", "tf", "tpu", "gpu", "gpu_ptx", "planted", "below_rounding", "miscompiles")
        for path in (CORPUS / framework).iterdir()
    }
    assert {entry["path"] for entry in MANIFEST} == made | {
        "demo",
        "found",
        "malformed",
        "modules",
        "undumped",
        "verdicts",
    }


def test_the_manifest_says_how_each_dump_was_made() -> None:
    for entry in MANIFEST:
        if entry["path"].startswith(("jax/", "tf/")):
            assert entry["program"]
            assert entry["features"]
            assert entry["xla_flags"]
            assert entry["versions"]
        if entry["path"].startswith(("tpu/", "gpu/", "gpu_ptx/")):
            assert entry["features"]
            assert entry["target"]
            assert entry["versions"].keys() & {"libtpu", "jax-cuda12-pjrt"}
            is_wrong = entry.get("fault", {}).get("level") == "pass"
            right = ("identical", "agree", "rounding", "unsupported")
            assert entry["verdict"] in (("wrong",) if is_wrong else right)
        assert entry["about"]


def test_the_corpus_stays_small() -> None:
    """Two thirds are the compiler of CPUs, a quarter those of TPUs and GPUs."""
    assert sum(entry["bytes"] for entry in MANIFEST) <= 17 * MEGABYTE


@pytest.mark.parametrize("entry", directories())
def test_no_file_holds_a_path_of_the_machine(entry: dict[str, Any]) -> None:
    for name, data in files_of(CORPUS / entry["path"]).items():
        if name != "binary.hlo":
            assert not MACHINE_PATH.search(data), name


@pytest.mark.parametrize("entry", directories())
def test_every_module_text_holds_a_module(entry: dict[str, Any]) -> None:
    for name, data in files_of(CORPUS / entry["path"]).items():
        if MODULE_TEXT.search(name):
            assert data.startswith(b"HloModule "), name
            assert b"\nENTRY " in data, name


def test_a_planted_fault_begins_where_the_manifest_says() -> None:
    for entry in MANIFEST:
        if "first_wrong" not in entry:
            continue
        planted, source = CORPUS / entry["path"], CORPUS / entry["source"]
        for path in planted.glob("*.txt"):
            is_wrong = path.read_text(encoding="utf-8") != (source / path.name).read_text(encoding="utf-8")
            comes_after = (
                not path.name.endswith("before_optimizations.txt") and path.name >= entry["first_wrong"]
            )
            assert is_wrong == comes_after, path.name


def test_malformed_files_say_what_is_wrong() -> None:
    silent = {path.stem for path in REFUSED + INVALID if not path.read_bytes().startswith(b"// expect: ")}
    assert silent == {"binary", "empty"}


def ones(canonical: str) -> list[npt.NDArray[Any]]:
    """An array of ones for each leaf of each entry parameter, read from XLA's own print of the module."""
    entry = canonical[canonical.index("\nENTRY ") :]
    parameters = re.findall(r" = (\S.*?) parameter\((\d+)\)", entry)
    leaves = [
        leaf
        for shape, _ in sorted(parameters, key=lambda parameter: int(parameter[1]))
        for leaf in re.findall(r"([a-z]\w*)\[([\d,]*)\]", shape)
    ]
    return [
        np.ones([int(size) for size in sizes.split(",") if size], dtype_of(ElementType(name)))
        for name, sizes in leaves
    ]


@pytest.mark.xla
@pytest.mark.parametrize("path", stems(MODULES))
def test_xla_reads_each_module(path: Path) -> None:
    assert "\nENTRY " in oracle().canonical(path.read_text(encoding="utf-8"))


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize("path", stems([p for p in MODULES if RUNS_NOT not in p.read_text(encoding="utf-8")]))
def test_xla_runs_each_module_that_does_not_say_otherwise(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert oracle().run(text, ones(oracle().canonical(text)))


@pytest.mark.xla
@pytest.mark.parametrize("path", stems(REFUSED))
def test_xla_refuses_each_malformed_text(path: Path) -> None:
    if path.stem == "layout_empty_with_tiles" and JAXLIB >= NEWER_TEXT:
        pytest.skip("this XLA takes a layout without an order for none")
    with pytest.raises(XlaError):
        oracle().canonical(path.read_bytes().decode("latin-1"))


@pytest.mark.xla
@pytest.mark.parametrize("path", stems([path for path in INVALID if path.stem not in LOST_IN_MLIR]))
def test_xla_compiles_nothing_that_a_verifier_must_refuse(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    with pytest.raises((XlaError, OracleUnable)):
        oracle().run(text, ones(oracle().canonical(text)))
