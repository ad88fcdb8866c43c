"""`hlotool.jax.check` on real JAX: four sides of one call, whatever its arguments are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlotool
from hlotool.errors import Miscompiled, Unsupported

pytestmark = pytest.mark.xla


@pytest.fixture(scope="module")
def jax() -> Any:
    """JAX, on the CPU."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JAX_PLATFORMS", "cpu")
    module = pytest.importorskip("jax")
    yield module
    patch.undo()


def verdicts(result: hlotool.Result[Any]) -> dict[str, str]:
    """By who is judged."""
    return {row.tested if row.stage_tested == "result" else "compiled": row.verdict.value for row in result}


def nested(x: Any, start: Any, inner_start: Any) -> Any:
    """A dynamic slice of a dynamic slice, which jaxlib 0.10.2 clamps wrongly (corpus/miscompiles)."""
    from jax import lax

    rows = lax.dynamic_slice(x, (start,), (4,))
    return lax.dynamic_slice(rows, (inner_start,), (2,)) * 2.0


NESTED = (np.arange(10, dtype=np.float32), np.int32(8), np.int32(0))


def is_wrong(jax: Any) -> bool:
    """Whether the installed jaxlib has the fault: rows 6 and 7 are what the clamped slice begins with."""
    return bool(jax.jit(nested)(*NESTED)[0] != 12)


def test_all_sides_of_a_healthy_function(jax: Any) -> None:
    """Static, unused and donated arguments, a key, a keyword; the donated array can be used afterwards."""

    def function(x: Any, count: int, key: Any, unused: Any, *, scale: Any) -> Any:
        return {"sum": x * scale + count, "noise": jax.random.bits(key, (2,))}

    jitted = jax.jit(function, static_argnums=1, donate_argnums=0)
    x, key = jax.numpy.arange(4.0), jax.random.key(7)
    result = hlotool.jax.check(jitted, x, 3, key, np.zeros(5), scale=2.0)
    assert verdicts(result) == dict.fromkeys(("compiled", "on cpu", "op by op"), "identical")
    assert (float(result.value["sum"][3]), float(x[3]), int(result.exit_code)) == (9.0, 3.0, 0)
    assert result.lowered_module.entry.root.opcode == "tuple"
    assert result.compiled is result.rows[0]
    assert [result.device, result.op_by_op] == result.rows[1:]
    assert "jit_function" in str(result)


def test_a_miscompiled_function(jax: Any) -> None:
    if not is_wrong(jax):
        pytest.skip("this jaxlib compiles it rightly")
    result = hlotool.jax.check(nested, *NESTED)
    assert verdicts(result) == {"compiled": "wrong", "on cpu": "wrong", "op by op": "identical"}
    with pytest.raises(Miscompiled, match=r" became | returns "):
        hlotool.jax.Checker(op_by_op=False).checked(nested)(*NESTED)


def test_a_checked_function_is_checked_once_for_arguments_of_a_kind(
    jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = hlotool.jax.Checker.check

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(hlotool.jax.Checker, "check", counting)
    double = hlotool.jax.Checker(op_by_op=False).checked(lambda x: x * 2)
    assert [float(double(np.float32(v))) for v in (1, 2)] == [2.0, 4.0]
    assert len(calls) == 1


def test_what_fails_without_jit_is_said(jax: Any) -> None:
    def function(x: Any) -> Any:
        if not isinstance(x, jax.core.Tracer):
            raise ValueError("only under jit")
        return x

    result = hlotool.jax.check(function, np.float32(1))
    assert result.op_by_op is None
    assert result.notes == ["op by op: ValueError: only under jit"]


def test_static_arguments_that_cannot_be_told(jax: Any) -> None:
    """Which of two equal numbers was static leaves no trace; by keyword it is clear."""
    jitted = jax.jit(lambda x, n: x + n, static_argnames="n")
    with pytest.raises(Unsupported, match="by keyword"):
        hlotool.jax.check(jitted, 1, 2)
    assert hlotool.jax.Checker(op_by_op=False).check(jitted, 1, n=2).exit_code == 0


def test_capture(jax: Any) -> None:
    """What was compiled before is compiled again; XLA itself writes down arguments and results."""
    function = jax.jit(jax.vmap(jax.grad(lambda x: (x**3).sum())))
    function(np.ones((2, 3), np.float32))
    with hlotool.jax.capture() as programs:
        function(np.ones((2, 3), np.float32))
        assert [len(module.captures) for module in programs] == [1]
    function(np.ones((2, 3), np.float32))
    result = programs.replay()
    assert [(row.stage_tested, row.inputs.origin) for row in result] == [
        ("cpu_after_optimizations", "captured"),
        ("result", "captured"),
    ]
    assert result.exit_code == 0


def test_stages_are_programs(jax: Any, tmp_path: Path) -> None:
    """Wherever a program is taken: traced and lowered as the frontend made it, compiled as XLA did."""
    jitted = jax.jit(lambda x: x * 2 + 1)
    x = np.float32([1, 2])
    lowered = jitted.lower(x)
    for stage in (jitted.trace(x), lowered, lowered.compile()):
        [result] = hlotool.run(stage, [x])
        np.testing.assert_array_equal(result, [3, 5])
    assert hlotool.parse(lowered).entry.root.opcode == "add"
    assert hlotool.prove(lowered, lowered.compile()).exit_code == 0
