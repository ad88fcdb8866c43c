"""`hlotool gradcheck`: is one program the gradient of another?"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import hlotool
from hlotool.errors import BackendUnavailable, DumpError, ExitCode, UsageError
from hlotool.interface.cli.main import main
from hlotool.ir.module import Module

#: The sum of tanh(x w), and what its derivatives are.
LOSS = """HloModule loss
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[3,4]{1,0} parameter(0)
  n = s32[] parameter(1)
  w = f32[4,2]{1,0} parameter(2)
  y = f32[3,2]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[3,2]{1,0} tanh(y)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(t, zero), dimensions={0,1}, to_apply=add
}
"""
GRADIENT = """HloModule gradient
ENTRY main {
  x = f32[3,4]{1,0} parameter(0)
  n = s32[] parameter(1)
  w = f32[4,2]{1,0} parameter(2)
  y = f32[3,2]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[3,2]{1,0} tanh(y)
  s = f32[3,2]{1,0} multiply(t, t)
  one = f32[] constant(1)
  ones = f32[3,2]{1,0} broadcast(one), dimensions={}
  d = f32[3,2]{1,0} subtract(ones, s)
  dx = f32[3,4]{1,0} dot(d, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  dw = f32[4,2]{1,0} dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[3,4]{1,0}, f32[4,2]{1,0}) tuple(dx, dw)
}
"""


def parsed(text: str) -> Module:
    return hlotool.parse(text)


def test_a_gradient_is_right() -> None:
    found = hlotool.gradcheck(parsed(LOSS), parsed(GRADIENT))
    assert [(row.parameter, row.verdict) for row in found] == [(0, "right"), (2, "right")]
    assert found.exit_code == ExitCode.AGREE


def test_one_wrong_component_is_found() -> None:
    spoiled = GRADIENT.replace(
        "  ROOT r = ",
        """  scale = f32[4,2]{1,0} constant({{1,1},{1,1},{1,0.99},{1,1}})
  ew = f32[4,2]{1,0} multiply(dw, scale)
  ROOT r = """,
    ).replace("tuple(dx, dw)", "tuple(dx, ew)")
    right, wrong = hlotool.gradcheck(parsed(LOSS), parsed(spoiled)).rows
    assert right.verdict == "right"
    assert (wrong.verdict, wrong.component, wrong.wrong, wrong.looked_at) == ("wrong", [2, 1], 1, 8)
    assert wrong.actual == pytest.approx(0.99 * (wrong.expected or 0), rel=1e-6)
    assert wrong.source is not None
    assert wrong.source.instruction == "ew"


def test_what_stands_before_the_derivatives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The value; and only some of the parameters."""
    alone = GRADIENT.replace(
        "(f32[3,4]{1,0}, f32[4,2]{1,0}) tuple(dx, dw)", "(f32[], f32[4,2]{1,0}) tuple(one, dw)"
    )
    assert [row.parameter for row in hlotool.gradcheck(parsed(LOSS), parsed(alone), wrt="2")] == [2]
    (tmp_path / "f.hlo").write_text(LOSS)
    (tmp_path / "g.hlo").write_text(alone.replace("multiply(t, t)", "add(t, t)"))
    assert (
        main(["gradcheck", str(tmp_path / "f.hlo"), str(tmp_path / "g.hlo"), "--wrt", "2"])
        == ExitCode.MISMATCH
    )
    shown = capsys.readouterr().out
    assert "✗ wrong  parameter 2, w f32[4,2]" in shown
    assert "8 of 8 components" in shown


def test_a_kink_says_nothing_and_is_stepped_over() -> None:
    """Inputs of the program are whole numbers, at which floor jumps; beside them its slope is 0."""
    text = """HloModule m
ENTRY main {
  x = f32[] parameter(0)
  f = f32[] floor(x)
  y = f32[] multiply(x, x)
  ROOT r = f32[] add(f, y)
}
"""
    twice = text.replace("ROOT r = f32[] add(f, y)", "ROOT r = f32[] add(x, x)")
    [row] = hlotool.gradcheck(parsed(text), parsed(twice))
    assert row.verdict == "right"


def test_programs_that_do_not_fit() -> None:
    result = hlotool.gradcheck(
        parsed(LOSS), parsed(GRADIENT.replace("f32[4,2]", "f32[4,3]").replace("f32[3,2]", "f32[3,3]"))
    )
    assert result.record.error is not None
    assert "the same arguments" in result.record.error.message
    assert result.exit_code == ExitCode.USAGE
    swapped = hlotool.gradcheck(parsed(GRADIENT), parsed(GRADIENT))
    assert swapped.record.error is not None
    assert "one real number" in swapped.record.error.message
    with pytest.raises(UsageError, match="numbers of parameters"):
        hlotool.gradcheck(parsed(LOSS), parsed(GRADIENT), wrt=("x",))


@pytest.mark.xla
def test_what_jax_differentiates() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(w, b, x, labels):  # type: ignore[no-untyped-def]
        logits = jax.nn.relu(x @ w + b)
        return -jax.nn.log_softmax(logits)[jnp.arange(4), labels].mean()

    given = (jnp.ones((6, 3)), jnp.ones(3), jnp.ones((4, 6)), jnp.array([0, 1, 2, 1]))

    def text(function):  # type: ignore[no-untyped-def]
        return parsed(jax.jit(function).lower(*given).compiler_ir("hlo").as_hlo_text())

    def stopped(w, b, x, labels):  # type: ignore[no-untyped-def]
        return loss(w, jax.lax.stop_gradient(b), x, labels)

    both = (0, 1)
    right = hlotool.gradcheck(text(loss), text(jax.value_and_grad(loss, both)))
    assert [row.verdict for row in right] == ["right", "right"]
    wrong = hlotool.gradcheck(text(loss), text(jax.grad(stopped, both)))
    assert [row.verdict for row in wrong] == ["right", "wrong"]
    assert np.isclose(wrong.rows[1].actual or 0, 0)


SCRIPT = """import jax, jax.numpy as jnp

def loss(x):
    return jnp.sum(x * x)

def grad(x):
    return 3 * x

example_args = (jnp.ones(4),)
"""


@pytest.mark.xla
def test_functions_of_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(SCRIPT, encoding="utf-8")
    assert main(["gradcheck", "own.py:loss", "own.py:grad"]) == ExitCode.MISMATCH
    shown = capsys.readouterr()
    assert "✗ wrong  parameter 0" in shown.out
    assert "own.py:7" in shown.out
    assert "as_text" not in shown.err
    [row] = hlotool.gradcheck("own.py:loss", "own.py:grad", args="f32[2,3]")
    assert row.shape.startswith("f32[2,3]")
    with pytest.raises(UsageError, match="no function gard; it has: grad, loss"):
        hlotool.gradcheck("own.py:loss", "own.py:gard")


def test_functions_of_a_script_need_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jax.py").write_text("raise ModuleNotFoundError(\"No module named 'jax'\")", encoding="utf-8")
    (tmp_path / "own.py").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(BackendUnavailable, match="needs jax: pip install"):
        hlotool.gradcheck(f"{tmp_path}/own.py:loss", f"{tmp_path}/own.py:grad")
    with pytest.raises(UsageError, match="--args are of a function"):
        hlotool.gradcheck(parsed(LOSS), parsed(GRADIENT), args="f32[2]")
    with pytest.raises(DumpError, match=r"absent\.py: no such file"):
        hlotool.gradcheck("absent.py:loss", "absent.py:grad")


@pytest.mark.xla
def test_a_line_of_the_text_is_no_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """StableHLO without locations: XLA's importer says `-:4` of it."""
    text = """module @m {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<f32>
    %1 = stablehlo.add %0, %arg0 : tensor<f32>
    return %1 : tensor<f32>
  }
}
"""
    path = tmp_path / "f.mlir"
    path.write_text(text, encoding="utf-8")
    assert main(["gradcheck", str(path), str(path)]) == ExitCode.MISMATCH
    shown = capsys.readouterr()
    assert "-:4" not in shown.out
    assert "f.mlir: no source lines: write it with" in shown.err
