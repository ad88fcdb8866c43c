"""Bundles: what is written is read, runs again, and says whether it fails as it did."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.bisection import bisected, workers

from hlotool.blame.bisection.records import TriggerRecord
from hlotool.blame.repro.bundle import Bundle, read_bundle, write_bundle
from hlotool.blame.repro.making import bundle_of, trigger_on
from hlotool.blame.repro.verify import objection, verify
from hlotool.errors import DumpError, ExitCode
from hlotool.inputs.given import npz_bytes
from hlotool.runs.options.kept import ReplayOptions
from hlotool.system.pool import Pool

ADD = "HloModule m\nENTRY main { p = f32[2] parameter(0) ROOT s = f32[2] add(p, p) }\n"
VALUE = np.array([1, 2], np.float32)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers() as started:
        yield started


@pytest.fixture(scope="module")
def stages(pool: Pool, corpus: Path) -> Bundle:
    """The bundle of a pass that changes a result."""
    [culprit] = bisected(corpus / "planted/model_fn_opcode", pool).culprits
    bundle = bundle_of(culprit, ReplayOptions(), {"hlotool": "0"})
    assert bundle is not None
    return bundle


@pytest.fixture(scope="module")
def result(pool: Pool, corpus: Path) -> Bundle:
    """The bundle of a kernel that returned something wrong."""
    [culprit] = bisected(corpus / "miscompiles/atan2_of_zeros", pool, results=True).culprits
    bundle = bundle_of(culprit, ReplayOptions(), {"hlotool": "0"})
    assert bundle is not None
    return bundle


def check(command: str = "false") -> Bundle:
    title, reason, inputs = 'says "no"\n', "it\tsaid so", npz_bytes([VALUE])
    return Bundle("check", title, "bad", "bad", reason, ADD, command=command, inputs=inputs)


def test_what_is_written_is_read(tmp_path: Path, stages: Bundle, result: Bundle) -> None:
    for bundle in (stages, result, check()):
        write_bundle(bundle, tmp_path / bundle.kind)
        again = read_bundle(tmp_path / bundle.kind)
        culprit = {key: value for key, value in bundle.culprit.items() if value != ""}
        assert again == replace(bundle, culprit=culprit)


def test_a_pass_still_changes_the_result(tmp_path: Path, stages: Bundle) -> None:
    write_bundle(stages, tmp_path)
    found = verify(tmp_path)
    assert (found.fails, found.same, found.exit_code) == (True, True, ExitCode.MISMATCH)


def test_a_repaired_program_does_not_fail(tmp_path: Path, stages: Bundle) -> None:
    write_bundle(replace(stages, after=stages.program), tmp_path)
    found = verify(tmp_path)
    assert (found.fails, found.exit_code) == (False, ExitCode.AGREE)


def test_another_failure_is_told_apart(tmp_path: Path, stages: Bundle) -> None:
    """The kind of a failure and the outputs that are wrong both count."""
    for other in (replace(stages, signature="structural"), replace(stages, wrong=((7,),))):
        write_bundle(other, tmp_path)
        found = verify(tmp_path)
        assert (found.fails, found.same, found.exit_code) == (True, False, ExitCode.INCONCLUSIVE)


def test_a_result_is_still_wrong(tmp_path: Path, result: Bundle) -> None:
    write_bundle(result, tmp_path)
    assert (tmp_path / "kernel.hlo").read_text(encoding="utf-8").startswith("HloModule")
    found = verify(tmp_path)
    assert found.same
    assert "no compiler was asked" in found.compared


def test_a_command_is_asked_again(tmp_path: Path) -> None:
    write_bundle(check(), tmp_path / "bad")
    write_bundle(check("true"), tmp_path / "good")
    write_bundle(check("sh -c 'exit 125'"), tmp_path / "skip")
    assert [verify(tmp_path / name, trust=True).exit_code for name in ("bad", "good", "skip")] == [
        ExitCode.MISMATCH,
        ExitCode.AGREE,
        ExitCode.NOTHING_COMPARED,
    ]


def test_nothing_but_programs_is_run_of_a_bundle_that_is_not_trusted(tmp_path: Path) -> None:
    """Neither its command, nor the interpreter and the files that the options of a backend name."""
    witness = tmp_path / "witness"
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\ntouch {witness}\n", encoding="utf-8")
    script.chmod(0o755)
    inputs = npz_bytes([VALUE])
    program = Bundle("backend", "t", "wrong", "wrong", "r", ADD, inputs=inputs, backend="xla")
    bundles = {
        "command": check(f"touch {witness}"),
        "interpreter": replace(program, backend=f"xla:python={script}"),
        "plug-in": replace(program, backend=f"pjrt:{script}"),
        "compiler": replace(program, backend=f"aot:v5e,libtpu={script}"),
        "reference": replace(program, reference=f"xla:python={script}"),
        "flag": replace(program, backend=f"xla:xla_dump_to={witness}"),
    }
    for name, bundle in bundles.items():
        write_bundle(bundle, tmp_path / name)
        found = verify(tmp_path / name)
        assert found.exit_code is ExitCode.NOTHING_COMPARED
        assert "--trust" in found.reason
        assert not witness.exists()
    verify(tmp_path / "command", trust=True)
    assert witness.exists()


def test_options_that_only_choose_how_to_compute_need_no_trust() -> None:
    for backend in ("numpy:wide", "xla:disable=algsimp+cse,opt=0", "xla:gpu", "cuda-emu"):
        assert not objection(Bundle("backend", "t", "wrong", "wrong", "r", ADD, backend=backend), None)
    foreign = Bundle("backend", "t", "wrong", "wrong", "r", ADD, backend="xla:python=/bin/sh")
    assert objection(foreign, None)
    assert not objection(foreign, "xla:python=/usr/bin/python3")


def test_the_tolerance_of_the_user_decides_again(tmp_path: Path, stages: Bundle) -> None:
    write_bundle(replace(stages, tolerance={"rtol": 1e9, "atol": 1e9}), tmp_path)
    assert verify(tmp_path).exit_code is ExitCode.AGREE


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (TriggerRecord.of("triggers", "jaxlib 0.10.2"), "Triggers on jaxlib 0.10.2."),
        (
            TriggerRecord.of("does not trigger", "jaxlib 0.10.2"),
            "Does not trigger on jaxlib 0.10.2.",
        ),
        (TriggerRecord.of("not checked", reason="no jaxlib"), "Not checked on XLA: no jaxlib."),
    ],
)
def test_every_text_says_whether_it_triggers(
    trigger: TriggerRecord, words: str, stages: Bundle, tmp_path: Path
) -> None:
    write_bundle(replace(stages, trigger=trigger), tmp_path)
    for name in ("README.md", "issue.md"):
        assert words in (tmp_path / name).read_text(encoding="utf-8")
    assert words[1:-1] in (tmp_path / "repro.toml").read_text(encoding="utf-8")


def test_a_compiler_without_a_device_is_named_with_the_command_that_shows_it(tmp_path: Path) -> None:
    """XLA's own tools do not run it; where it lies on this machine stays here."""
    backend = "aot:v5e,libtpu=/here/libtpu.so,disable=cse"
    trigger = trigger_on(backend, "libtpu 0.0.42 for TPU v5e (disable=cse)")
    assert trigger is not None
    assert trigger.summary == "triggers on libtpu 0.0.42 (v5e, disable=cse)"
    bundle = Bundle("backend", "t", "wrong", "wrong", "r", ADD, inputs=npz_bytes([VALUE]), trigger=trigger)
    write_bundle(replace(bundle, backend=trigger.backend, culprit={"pass": "algsimp"}), tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "hlotool run repro.hlo --test aot:v5e,disable=cse --inputs inputs.npz" in readme
    for absent in ("run_hlo_module", "hlo-opt", "/here"):
        assert absent not in readme
    assert not (tmp_path / "inputs.pb").exists()


def test_a_backend_is_asked_again(tmp_path: Path) -> None:
    bundle = Bundle("backend", "t", "wrong", "wrong", "r", ADD, inputs=npz_bytes([VALUE]))
    write_bundle(bundle, tmp_path)
    assert verify(tmp_path).exit_code is ExitCode.AGREE
    write_bundle(replace(bundle, backend="nobody"), tmp_path)
    assert verify(tmp_path).exit_code is ExitCode.NOTHING_COMPARED


def test_the_issue_says_what_why_and_how(tmp_path: Path, stages: Bundle) -> None:
    write_bundle(stages, tmp_path)
    issue = (tmp_path / "issue.md").read_text(encoding="utf-8")
    for part in (
        "# fusion changes",
        "run_hlo_module",
        "hlo-opt --passes=fusion",
        "hlotool: 0",
        "To blame is `%mul.0`",
    ):
        assert part in issue


def test_the_issue_has_the_numbers(tmp_path: Path, stages: Bundle) -> None:
    write_bundle(stages, tmp_path)
    for name in ("README.md", "issue.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert re.search(r"Worst element of out: expected \d+\.\d+, actual \d+\.\d+\.\n", text)
    assert read_bundle(tmp_path).element == stages.element != ""


def test_the_issue_has_small_arguments_whole_and_the_range_of_others(tmp_path: Path) -> None:
    write_bundle(check(), tmp_path)
    assert "p = f32[2] {1, 2}\n" in (tmp_path / "issue.md").read_text(encoding="utf-8")
    large = np.arange(-3, 97, dtype=np.float32)
    large[50] = np.nan
    bundle = replace(check(), program=ADD.replace("f32[2]", "f32[100]"), inputs=npz_bytes([large]))
    write_bundle(bundle, tmp_path)
    issue = (tmp_path / "issue.md").read_text(encoding="utf-8")
    assert "p = f32[100] from -3 to 96, 1 NaN, see inputs.npz\n" in issue
    two = replace(bundle, program=ADD.replace("m\n", "m, replica_count=2\n"))
    write_bundle(replace(two, inputs=npz_bytes([(VALUE,), (2 * VALUE,)], 2)), tmp_path)
    assert "p on device 1 = f32[2] {2, 4}\n" in (tmp_path / "issue.md").read_text(encoding="utf-8")


def test_the_regression_test_passes_while_the_fault_is_there(tmp_path: Path, stages: Bundle) -> None:
    """In a process of its own, as on another machine: once with the fault and once without."""
    write_bundle(stages, tmp_path / "faulty")
    write_bundle(replace(stages, after=stages.program), tmp_path / "repaired")
    for name, words in (("faulty", "1 xfailed"), ("repaired", "XPASS(strict)")):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)],
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
        )
        assert words in done.stdout, done.stdout


@pytest.mark.parametrize("text", ["", "kind = 'odd'", "not toml"])
def test_what_is_no_bundle_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError):
        read_bundle(tmp_path)
    (tmp_path / "repro.hlo").write_text(ADD, encoding="utf-8")
    (tmp_path / "repro.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DumpError):
        read_bundle(tmp_path)
