"""The compiler's word beside that of the rules."""

from __future__ import annotations

import pytest
from support import ahead

import hlotool
from hlotool.checks.records import Finding
from hlotool.errors import BackendCrashed, BackendUnavailable, Unsupported

#: A host tensor is returned as a device output (E1200).
RETURNED = """HloModule m
ENTRY main {
  x = f32[8] parameter(0)
  h = f32[8] custom-call(x), custom_call_target="MoveToHost"
  ROOT t = (f32[8]) tuple(h)
}
"""
E1200 = (
    "aot:v5e: INVALID_ARGUMENT: E1200: CompileTimeHostOffloadOutputLocationMismatch: "
    "Tensor which is moved to host (starting from tuple.1) is returned from the entry computation "
    "but the layout for this output is not set to host memory."
)


def _answer(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
    def ends_with(text: str) -> str:
        if error is not None:
            raise error
        return text

    ahead.use(monkeypatch, ahead.Compiler(ends_with))


def _check(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> list[Finding]:
    _answer(monkeypatch, error)
    from hlotool.checks.catalogue import all_rules
    from hlotool.checks.compiled import ask_compiler, beside_the_compiler
    from hlotool.checks.programs import findings_of

    module = hlotool.parse(RETURNED)
    answer = ask_compiler(module, "v5e")
    return beside_the_compiler(list(findings_of(module, list(all_rules().values()), answer=answer)), answer)


def test_what_the_compiler_takes_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {f.rule: f for f in _check(monkeypatch, None)}
    assert found["compiler"].severity.value == "note"
    assert found["offload-output"].severity.value == "note"
    assert "the compiler is right" in found["offload-output"].details[-1]


def test_what_a_rule_foresees_gets_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {f.rule: f for f in _check(monkeypatch, Unsupported(E1200))}
    assert "offload-output" not in found
    assert [step.instruction for step in found["compiler"].path][-1] == "t"
    assert "--fix" in found["compiler"].remedy


def test_what_no_rule_foresees_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {f.rule: f for f in _check(monkeypatch, BackendCrashed("aot", "Check failed: 1 == 2"))}
    assert "no rule of check foresees this" in found["compiler"].details[-1]
    assert found["offload-output"].severity.value == "warning"


def test_a_compiler_that_is_missing_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable):
        _check(monkeypatch, BackendUnavailable("there is no compiler for tpu here"))
