"""What the numbers mean: shares of the ceiling, targets, and the table for results/gpu.md."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.gpu.rulers import COPY
from benchmarks.gpu.table import markdown
from benchmarks.gpu.targets import share, speedup, targets

#: 1 GB/s.
_ABOUT = {
    "is_hardware": True,
    "xla_platform": "gpu",
    "device": "some device",
    "basics": {COPY: {"seconds": 2.0, "moved": 2_000_000_000}},
}


def _found(group: str = "elementwise", median: float = 1.0, **more: Any) -> dict[str, Any]:
    """A case that moved 0.9 GB in a second and 45 % of the time of XLA."""
    return {
        "group": group, "traffic": 900_000_000, "operations": 0, "median": median, "least": 0.5, "most": 2.0,
        "compile_cold": 0.25, "compile_cached": 0.001, "launches": 1, "registers": 24, "spilled": 0,
        "notes": [], "repeats_bits": True, "relative": 0.0, "ulps": 0, "misfits": 0,
        "xla": {
            "median": 2.0, "ours": 0.9, "speedup": 2.0 / 0.9, "launches": 1, "relative": 0.0, "misfits": 0,
        },
        **more,
    }  # fmt: skip


def _verdicts(cases: dict[str, Any], about: dict[str, Any] | None = None) -> dict[str, str]:
    return {t.name: t.verdict for t in targets(cases, _ABOUT if about is None else about)}


def test_share_and_speedup() -> None:
    assert share(_found(), _ABOUT) == pytest.approx(0.9)
    assert share(_found(), {}) is None
    assert share({"group": "elementwise"}, _ABOUT) is None
    assert speedup(_found()) == pytest.approx(2.222, rel=1e-3)
    assert speedup({"xla": {"missing": "why"}}) is None


def test_targets_are_met() -> None:
    cases = {"a_f32": _found(), "b_bf16": _found("column reduction", median=1.2)}
    verdicts = _verdicts(cases)
    assert verdicts["elementwise: at least 85% of the copy ceiling"] == "met"
    assert verdicts["column reduction: at least 70% of the copy ceiling"] == "met"
    assert verdicts["transpose: at least 70% of the copy ceiling"] == "not judged"
    assert {v for n, v in verdicts.items() if "ceiling" not in n} == {"met"}


@pytest.mark.parametrize(
    ("wrong", "target"),
    [
        ({"median": 1.1}, "elementwise: at least 85% of the copy ceiling"),
        ({"xla": {"speedup": 0.9}}, "at least 1.0 x XLA's speed, median of the fused cases"),
        (
            {"xla": {"relative": 3e-4, "misfits": 0}},
            "results of the fused cases agree with XLA's at full size",
        ),
        ({"relative": 2e-4}, "results agree with the numpy reference"),
        ({"misfits": 1}, "results agree with the numpy reference"),
        ({"repeats_bits": False}, "the same bits again over poisoned memory"),
        ({"spilled": 8}, "no registers spilled"),
        ({"failed": "it died"}, "every case was measured"),
    ],
)
def test_targets_are_missed(wrong: dict[str, Any], target: str) -> None:
    verdicts = _verdicts({"a_f32": _found(**wrong), "good_f32": _found(xla={})})
    assert [name for name, verdict in verdicts.items() if verdict == "MISSED"] == [target]


def test_bf16_may_be_further_off() -> None:
    assert _verdicts({"a_bf16": _found(relative=1e-2)})["results agree with the numpy reference"] == "met"


def test_speed_is_judged_on_hardware_only() -> None:
    verdicts = _verdicts({"a_f32": _found(median=9.0)}, {**_ABOUT, "is_hardware": False})
    judged = {name for name, verdict in verdicts.items() if verdict != "not judged"}
    assert not [name for name in judged if "ceiling" in name or "XLA's speed" in name]
    assert "results agree with the numpy reference" in judged


def test_speed_against_another_platform_of_xla_is_not_judged() -> None:
    verdicts = _verdicts({"a_f32": _found()}, {**_ABOUT, "xla_platform": "cpu"})
    assert verdicts["at least 1.0 x XLA's speed, median of the fused cases"] == "not judged"


def test_library_calls_do_not_count_against_xla() -> None:
    cases = {"sort_f32": _found("library or host", xla={"speedup": 0.01}), "a_f32": _found()}
    assert _verdicts(cases)["at least 1.0 x XLA's speed, median of the fused cases"] == "met"


def _results(cases: dict[str, Any]) -> dict[str, Any]:
    rows = {
        "context": {"state": "passed", "said": "some device"},
        "xla": {"state": "failed", "said": "no | news"},
    }
    return {
        "title": "`gpu-suite`",
        "options": {},
        "machine": {"GPU": "", "nvcc": "13.0"},
        "about": _ABOUT,
        "cases": cases,
        "parts": {
            "smoke": {"state": "failed", "reason": "xla: no news", "rows": rows},
            "speed": {"state": "passed", "reason": None, "seconds": 12.3},
            "tests": {"state": "skipped", "reason": "there is no | here\nat all"},
        },
    }


def test_the_table() -> None:
    product = _found("library or host", operations=3_000_000_000_000, xla={"missing": "no jaxlib"})
    lines = markdown(_results({"a_f32": _found(), "matmul_f32": product, "b_f32": {"failed": "died"}}))
    assert "| a_f32 | 1000.0000 | 500.0000–2000.0000 | 1 | 90% | 1 | 24 | 0.25, 0.001 | 0.0e+00 | 0 " in lines
    assert "| 2000.0000 | 1 | 2.22 | 0.0e+00 |" in lines
    assert "1 (3.0 TFLOP/s)" in lines
    assert "* matmul_f32: XLA: no jaxlib" in lines
    assert "* b_f32: FAILED: died" in lines
    assert "| tests | skipped: there is no / here at all | 0 |" in lines
    assert "* nvcc 13.0\n" in lines
    assert "| context | passed | some device |" in lines
    assert "| xla | failed | no / news |" in lines
    rows = [line for line in lines.splitlines() if line.startswith(("| case", "| a_f32", "| b_f32"))]
    assert len({row.count("|") for row in rows}) == 1


def test_a_table_of_nothing() -> None:
    nothing = {"options": {}, "machine": {}, "about": {}, "cases": {}, "parts": {}}
    assert "nothing ran" in markdown({"title": "t", **nothing})
