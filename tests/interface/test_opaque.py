"""`--opaque`, and devices that headers do not name: programs of PyTorch/XLA and others' kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

CALL = 'custom-call(sum, i), custom_call_target="tpu_custom_call", backend_config="kernel"'
BEFORE = f"""HloModule jit_f
ENTRY main {{
  x = f32[40] parameter(0)
  y = f32[40] parameter(1)
  i = s32[3] parameter(2)
  sum = f32[40] add(x, y)
  k = (f32[40], f32[3]) {CALL}
  a = f32[40] get-tuple-element(k), index=0
  ROOT r = f32[40] multiply(a, x)
}}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


def row(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    main(["run", *map(str, arguments), "--json"])
    [found] = json.loads(capsys.readouterr().out)["modules"]
    return dict(found)


def dumped(folder: Path, after: str) -> Path:
    folder.mkdir()
    (folder / "module_0000.jit_f.before_optimizations.txt").write_text(BEFORE)
    (folder / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(after)
    return folder


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (("", ""), "identical"),
        (("multiply(a, x)", "multiply(x, a)"), "identical"),
        # Behind the call, before it, and what it is given.
        (("multiply(a, x)", "multiply(a, y)"), "wrong"),
        (("add(x, y)", "subtract(x, y)"), "wrong"),
        (("custom-call(sum, i)", "custom-call(y, i)"), "wrong"),
        # Another kernel may compute the same.
        (('"kernel"', '"fused kernel"'), "unsupported"),
    ],
)
def test_what_is_around_an_opaque_call_is_compared(
    change: tuple[str, str], verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dumped(tmp_path / "d", BEFORE.replace(*change))
    assert row(capsys, folder)["verdict"] == "unsupported"
    found = row(capsys, folder, "--opaque")
    assert found["verdict"] == verdict, found["reason"]
    if verdict != "unsupported":
        assert found["opaque_calls"] == 1


@pytest.mark.parametrize(("body", "verdict"), [("TUzvUg==", "identical"), ("TUzvUh==", "unsupported")])
def test_kernels_of_a_tpu_are_compared_by_their_bodies(
    body: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compiler adds to the rest of the configuration; another kernel is another one."""
    given = 'backend_config={"custom_call_config": {"body": "TUzvUg==", "cost_estimate": {"flops": 3}}}'
    made = (
        'backend_config={"flag_configs":[],"custom_call_config":{"body":"BODY","needs_layout_passes":true}}'
    )
    folder = dumped(tmp_path / "d", BEFORE.replace('backend_config="kernel"', made.replace("BODY", body)))
    (folder / "module_0000.jit_f.before_optimizations.txt").write_text(
        BEFORE.replace('backend_config="kernel"', given)
    )
    assert row(capsys, folder, "--opaque")["verdict"] == verdict


def test_a_bundle_keeps_the_stand_ins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The call itself is part of the bundle, or what it returned; both can be run again."""
    folder = dumped(tmp_path / "d", BEFORE.replace("custom-call(sum, i)", "custom-call(y, i)"))
    repro = tmp_path / "repro"
    command = ["bisect", str(folder), "--opaque", "--repro", str(repro), "--try-on", "none"]
    assert main(command) == ExitCode.MISMATCH
    assert "1 custom calls are replaced by stand-ins" in capsys.readouterr().out
    assert main(["repro", "verify", *map(str, repro.iterdir())]) == ExitCode.MISMATCH


def test_rounding_before_an_opaque_call_stays_rounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sum in another order moves the stand-in's result as little as its operand."""
    three = "sum = f32[40] add(x, y)\n  one = f32[40] add(x, sum)\n  two = f32[40] add(one, y)"
    other = "sum = f32[40] add(x, y)\n  one = f32[40] add(y, sum)\n  two = f32[40] add(one, x)"
    texts = [
        BEFORE.replace("sum = f32[40] add(x, y)", lines).replace("custom-call(sum, i)", "custom-call(two, i)")
        for lines in (three, other)
    ]
    folder = dumped(tmp_path / "d", texts[1])
    (folder / "module_0000.jit_f.before_optimizations.txt").write_text(texts[0])
    assert row(capsys, folder, "--opaque")["verdict"] in ("identical", "agree", "rounding")


def test_agreement_says_what_it_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(dumped(tmp_path / "d", BEFORE)), "--opaque"]) == ExitCode.AGREE
    shown = capsys.readouterr().out
    assert "; stand-ins for 1 opaque call; reference" in shown
    assert "1 replaced by stand-ins" in shown


REDUCED = """HloModule IrToHlo.3
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  t = token[] after-all()
  r = (f32[4], token[]) all-reduce(x, t), replica_groups={{0,1,2}}, to_apply=add
  ROOT y = f32[4] get-tuple-element(r), index=0
}
"""


@pytest.mark.parametrize(
    ("text", "options", "results"),
    [
        (REDUCED, [], 3),
        (REDUCED, ["--replicas", "3"], 3),
        (REDUCED.replace("{{0,1,2}}", "{}"), ["--replicas", "2"], 2),
        (REDUCED.replace("{{0,1,2}}", "{}"), [], 1),
        (REDUCED.replace("{{0,1,2}}", "{{0,1}}"), ["--replicas", "2", "--partitions", "2"], 4),
        (REDUCED.replace("IrToHlo.3", "IrToHlo.3, replica_count=3"), [], 3),
    ],
)
def test_devices_follow_from_the_groups_or_the_options(
    text: str, options: list[str], results: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(text)
    found = row(capsys, path, *options)
    assert found["verdict"] == "not compared", found["reason"]
    assert len(found["outputs"]) == results


def test_a_token_is_handed_on_beside_what_is_gathered_and_scattered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(
        """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  t = token[] after-all()
  g = (f32[8], token[]) all-gather(x, t), replica_groups={{0,1}}, dimensions={0}
  u = f32[8] get-tuple-element(g), index=0
  v = token[] get-tuple-element(g), index=1
  s = (f32[4], token[]) reduce-scatter(u, v), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  ROOT y = f32[4] get-tuple-element(s), index=0
}
"""
    )
    found = row(capsys, path, "--input-range=1,2")
    assert len(found["outputs"]) == 2
