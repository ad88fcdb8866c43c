"""What XLA accepts has no error: every program of the corpus, and the real ones beside the checkout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.programs import findings_of
from hlotool.checks.records import Finding, Severity
from hlotool.errors import HlotoolError
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RULES = [rule for rule in all_rules().values() if rule.check_module]

#: Errors that are right although XLA compiles the program for the CPU, which has no other memory than the
#: host's and ignores placements; two that XLA's own verifier refuses; what libtpu gets wrong (a folder).
EXPECTED = {
    "custom-call.annotate_device_placement.hlo": {"offload-output"},
    "cuda.offload_tuple.hlo.txt": {"offload-output"},
    "rocm.offload_tuple.hlo.txt": {"offload-output"},
    "tpu.offload_tuple.hlo.txt": {"offload-output"},
    "operand_upcaster.hlo": {"invalid-hlo"},
    "print_indexing_test.hlo": {"invalid-hlo"},
    "offloaded_row_of_ones": {"offload-lost-rows"},
}


def errors(path: Path) -> list[Finding]:
    try:
        module = parse_module(path.read_text(errors="replace", encoding="utf-8"), str(path))
    except HlotoolError:
        return []  # whether it is HLO at all, other tests ask
    return [f for f in findings_of(module, RULES) if f.severity is Severity.ERROR]


def unexpected(paths: Iterator[Path]) -> list[str]:
    return [
        f"{path.name}:{finding.line}: {finding.message} [{finding.rule}]"
        for path in sorted(paths)
        for finding in errors(path)
        if finding.rule not in EXPECTED.get(path.name, EXPECTED.get(path.parent.name, ()))
    ]


@pytest.mark.parametrize("folder", ["modules", "miscompiles"])
def test_modules_without_errors(folder: str) -> None:
    assert unexpected(p for p in (CORPUS / folder).rglob("*") if p.suffix in (".hlo", ".txt")) == []


def test_the_exceptions_are_found() -> None:
    name = "custom-call.annotate_device_placement.hlo"
    assert {finding.rule for finding in errors(CORPUS / "modules" / name)} == EXPECTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["jax", "tf", "tpu", "gpu"])
def test_every_stage_of_the_dumps(folder: str) -> None:
    assert unexpected((CORPUS / folder).rglob("*.txt")) == []


@pytest.mark.slow
def test_programs_beside_the_checkout(shared: Path) -> None:
    found = [
        *(shared / "hlo").rglob("*.hlo"),
        *(shared / "hlo").rglob("*.txt"),
        *(shared / "dumps").rglob("*.txt"),
    ]
    assert unexpected(iter(found)) == []
