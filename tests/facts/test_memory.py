"""Which values are alive at once: by hand, and against what XLA allocates."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support.xla import oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.memory import INTERPRETER, Memory, all_values, memory_of
from hlotool.parser.reader import parse_module

ROOT = Path(__file__).resolve().parents[2]
#: Bytes of f32[256].
K = 1024


def memory(body: str, before: str = "", header: str = "") -> Memory:
    return memory_of(parse_module(f"HloModule m{header}\n{before}ENTRY main {{\n{body}\n}}\n"))


def test_a_value_lives_until_it_is_read_for_the_last_time() -> None:
    found = memory(
        "x = f32[256] parameter(0)\n"
        "a = f32[512] concatenate(x, x), dimensions={0}\n"
        "b = f32[256] slice(a), slice={[0:256]}\n"
        "c = f32[512] concatenate(b, b), dimensions={0}\n"
        "ROOT d = f32[256] slice(c), slice={[0:256]}"
    )
    # Beside x: a and b, then b and c; never a and c.
    assert found == Memory(arguments=K, results=K, constants=0, peak=K + 3 * K)


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("negate(a)", 0),
        ("multiply(a, x)", 0),
        ("reverse(a), dimensions={0}", K),
        ("copy(a)", K),
    ],
)
def test_elementwise_operations_take_over_memory(operation: str, more: int) -> None:
    body = (
        f"x = f32[256] parameter(0)\na = f32[256] reverse(x), dimensions={{0}}\nROOT b = f32[256] {operation}"
    )
    assert memory(body).peak == 2 * K + more


def test_no_peak_is_more_than_all_values_together() -> None:
    paths = sorted((ROOT / "corpus").glob("*/*/*_optimizations.txt"))[::3]
    assert len(paths) > 100
    for path in paths:
        module = parse_module(path.read_text(encoding="utf-8"))
        assert memory_of(module, INTERPRETER).peak <= all_values(module), path


def test_arguments_are_not_overwritten() -> None:
    assert memory("x = f32[256] parameter(0)\nROOT y = f32[256] negate(x)").peak == 2 * K


def test_donated_arguments_are() -> None:
    header = ", input_output_alias={ {}: (0, {}, may-alias) }"
    assert memory("x = f32[256] parameter(0)\nROOT y = f32[256] negate(x)", header=header).peak == K


@pytest.mark.parametrize(
    "operation",
    ["bitcast(a)", "reshape(a)", "opt-barrier(a)", "tuple(a)", "tuple(a, a)"],
)
def test_what_hands_values_on_takes_nothing(operation: str) -> None:
    shape = {"tuple(a)": "(f32[256])", "tuple(a, a)": "(f32[256], f32[256])"}.get(operation, "f32[256]")
    body = f"x = f32[256] parameter(0)\na = f32[256] copy(x)\nROOT b = {shape} {operation}"
    assert memory(body).peak == 2 * K


def test_asynchronous_operations_own_their_result_once() -> None:
    body = (
        "x = f32[256] parameter(0)\ns = (f32[256], f32[256], u32[]) copy-start(x)\n"
        "ROOT d = f32[256] copy-done(s)"
    )
    # And the context of four bytes.
    assert memory(body).peak == 2 * K + 4
    gather = (
        "x = f32[256] parameter(0)\ns = (f32[256], f32[512]) all-gather-start(x), dimensions={0}, "
        "replica_groups={{0,1}}\nROOT d = f32[512] all-gather-done(s)"
    )
    assert memory(gather).peak == 3 * K


LOOP = """body {
  p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[256] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[256] STEP
  ROOT t = (s32[], f32[256]) tuple(j, y)
}
condition {
  p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
"""
ENTERED = """zero = s32[] constant(0)
x = f32[256] parameter(0)
z = f32[256] copy(x)
t = (s32[], f32[256]) tuple(zero, z)
w = (s32[], f32[256]) while(t), condition=condition, body=body
ROOT r = f32[256] get-tuple-element(w), index=1"""


def test_a_loop_works_in_the_memory_of_its_values() -> None:
    # The argument, its copy, three constants.
    assert memory(ENTERED, LOOP.replace("STEP", "multiply(x, x)")).peak == 2 * K + 3 * 4
    twice = "v = f32[512] concatenate(x, x), dimensions={0}\n  y = f32[256] slice(v), slice={[0:256]}"
    assert memory(ENTERED, LOOP.replace("y = f32[256] STEP", twice)).peak == 2 * K + 3 * 4 + 2 * K


def test_a_loop_in_a_call_works_there_too() -> None:
    called = (
        LOOP.replace("STEP", "multiply(x, x)")
        + """looped {
  s = (s32[], f32[256]) parameter(0)
  ROOT w = (s32[], f32[256]) while(s), condition=condition, body=body
}
"""
    )
    entry = ENTERED.replace("while(t), condition=condition, body=body", "call(t), to_apply=looped")
    assert memory(entry, called).peak == memory(ENTERED, LOOP.replace("STEP", "multiply(x, x)")).peak


BRANCH = """NAME {
  v = f32[256] parameter(0)
  w = f32[512] concatenate(v, v), dimensions={0}
  ROOT r = f32[256] slice(w), slice={[0:256]}
}
"""


def test_branches_are_not_taken_together() -> None:
    body = (
        "i = s32[] parameter(0)\nx = f32[256] parameter(1)\n"
        "ROOT y = f32[256] conditional(i, x, x), branch_computations={one, two}"
    )
    branches = BRANCH.replace("NAME", "one") + BRANCH.replace("NAME", "two")
    # The arguments, the result, and what one branch needs.
    assert memory(body, branches).peak == 4 + K + K + 2 * K


@pytest.mark.xla
@pytest.mark.parametrize(
    "name",
    [
        "training", "training, donated", "gradient of a scan", "update in a loop", "attention", "branches",
        "sort",
    ],
)  # fmt: skip
def test_the_estimate_is_near_what_xla_allocates(name: str) -> None:
    """XLA gives results memory before they are made, and so needs more; it never needs less."""
    text, allocated = oracle().allocated(name)
    assert 0.85 * allocated <= memory_of(parse_module(text)).peak <= 1.01 * allocated


#: Programs on arrays of 4 MiB: beside them, blocks of elementwise work count for little.
INTERPRETED = {
    "views": "b = f32[1024,1024] transpose(x), dimensions={1,0}\nc = f32[1024,1024] copy(b)\n"
    "ROOT r = f32[1024,1024] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "in place": "a = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "b = f32[1024,1024] negate(a)\nc = f32[1024,1024] multiply(b, x)\nROOT r = f32[1024,1024] subtract(c, x)",
    "held": "a = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "b = f32[1024,1024] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "c = f32[1024,1024] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "ROOT r = f32[1024,1024] add(c, a)",
    "fusion": "ROOT r = f32[1024,1024] fusion(x), kind=kOutput, calls=inner",
}
INNER = """inner {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT b = f32[1024,1024] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("name", INTERPRETED)
def test_the_estimate_is_near_what_the_interpreter_allocates(name: str) -> None:
    body = "x = f32[1024,1024] parameter(0)\n" + INTERPRETED[name]
    module = parse_module(f"HloModule m\n{INNER if name == 'fusion' else ''}ENTRY main {{\n{body}\n}}\n")
    executable = NumpyBackend().compile(module)
    argument = np.ones((1024, 1024), np.float32)
    executable.run([argument])
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    executable.run([argument])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    measured = argument.nbytes + peak - before
    assert 0.75 * measured <= memory_of(module, INTERPRETER).peak <= 1.1 * measured
