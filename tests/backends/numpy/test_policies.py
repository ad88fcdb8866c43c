"""Other legal executions: near the default one, reproducible, exact where everything is exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.noise import Member
from hlotool.backends.numpy.executions.policy import Policy
from hlotool.backends.numpy.executions.rounding_errors import ROWS
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import UsageError
from hlotool.facts.result_facts import EXACT
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
VARIANTS = ["numpy:wide", "numpy:perturbed=1", "numpy:flush", "numpy:excess"]

DOT = """ENTRY e {
  x = f32[20,300] parameter(0)
  y = f32[300,30] parameter(1)
  d = f32[20,30] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[20,30] tanh(d)
}"""


def _inputs(*dims: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(d).astype(np.float32) for d in dims]


def _run(backend: str, text: str, arguments: list[Any]) -> Any:
    return get_backend(backend).compile(parse_module(text)).run(arguments)


@pytest.mark.parametrize("backend", VARIANTS)
def test_variants_return_declared_types_near_the_default(backend: str) -> None:
    arguments = _inputs((20, 300), (300, 30))
    expected, actual = _run("numpy", DOT, arguments), _run(backend, DOT, arguments)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_seeds_tell_executions_apart_and_repeat_them() -> None:
    arguments = _inputs((20, 300), (300, 30))
    first, again, other = (_run(f"numpy:perturbed={s}", DOT, arguments) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_one_executable_repeats_its_runs_and_follows_its_member() -> None:
    arguments = _inputs((20, 300), (300, 30))
    backend = VariedBackend(Policy(varied=True), Member(1))
    executable = backend.compile(parse_module(DOT))
    first = executable.run(arguments)
    np.testing.assert_array_equal(executable.run(arguments), first)
    backend.noise.member = Member(2)
    assert (executable.run(arguments) != first).any()


COUNTING = """ENTRY e {
  x = f32[1000] parameter(0)
  one = f32[] constant(1)
  ones = f32[1000] broadcast(one), dimensions={}
  more = f32[1000] add(x, ones)
  half = f32[] constant(0.5)
  halves = f32[1000] broadcast(half), dimensions={}
  less = f32[1000] multiply(more, halves)
  back = f32[1000] subtract(less, x)
  ROOT n = f32[1000] negate(back)
}"""


def test_exact_arithmetic_stays_exact() -> None:
    """Counters, masks and small integers are the same in every execution."""
    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(_run("numpy:perturbed=5", COUNTING, [x]), _run("numpy", COUNTING, [x]))


def test_a_factorisation_of_whole_numbers_is_not_exact() -> None:
    """The last pivot is 768 - 1/768 - (768 - 1/768): what is left of it, rounding decides."""
    text = "ENTRY e { x = f32[3,3] parameter(0) ROOT c = f32[3,3] cholesky(x), lower=true }"
    x = np.float32([[768, 1, 1], [1, 768, 1], [1, 768, 768]])
    found = {bool(np.isnan(_run(f"numpy:perturbed={seed}", text, [x])).any()) for seed in range(8)}
    assert found == {True, False}


def test_a_variance_may_be_made_of_squares() -> None:
    """Of a feature whose values are equal nothing but rounding is left; of another one a few ulps are off."""
    text = """ENTRY e {
      x = f32[4,2] parameter(0)
      s = f32[2] parameter(1)
      ROOT r = (f32[4,2], f32[2], f32[2]) batch-norm-training(x, s, s), epsilon=0.25, feature_index=1
    }"""
    x = np.float32([[1, 1], [1, -2], [1, 3], [1, 0]])
    variances = [_run(f"numpy:perturbed={seed}", text, [x, np.ones(2, np.float32)])[2] for seed in range(6)]
    assert 1e-8 < max(abs(v[0]) for v in variances) < 1e-6
    np.testing.assert_allclose([v[1] for v in variances], 3.25, rtol=1e-5)


def test_functions_that_xla_expands_are_rounded_in_f16() -> None:
    """1 / (1 + exp(-x)) is 1.94 units off; tanh, which is computed in f32, half of one."""
    x = np.linspace(-8, 8, 999).astype(np.float16)
    units = {}
    for opcode in ("logistic", "tanh"):
        text = f"ENTRY e {{ x = f16[999] parameter(0) ROOT r = f16[999] {opcode}(x) }}"
        exact = _run("numpy", text, [x])
        off = [_run(f"numpy:perturbed={seed}", text, [x]) for seed in range(6)]
        units[opcode] = max(np.abs(y.view(np.int16) - exact.view(np.int16)).max() for y in off)
    assert units["logistic"] > units["tanh"] >= 1


def test_a_quotient_by_a_constant_is_not_taken_for_exact() -> None:
    text = """ENTRY e {
      x = f32[1000] parameter(0)
      c = f32[] constant(41)
      d = f32[1000] broadcast(c), dimensions={}
      q = f32[1000] divide(x, d)
      ROOT f = f32[1000] floor(q)
    }"""
    x = np.arange(1000, dtype=np.float32) * 41
    flipped = _run("numpy:perturbed=5", text, [x]) != np.arange(1000)
    assert 0.1 < flipped.mean() < 0.6
    by_two = text.replace("constant(41)", "constant(64)")
    exact = np.arange(1000, dtype=np.float32) * 64
    np.testing.assert_array_equal(_run("numpy:perturbed=5", by_two, [exact]), np.arange(1000))


def test_longer_sums_spread_more() -> None:
    def spread(length: int) -> float:
        text = DOT.replace("300", str(length))
        arguments = _inputs((20, length), (length, 30))
        arguments[0] *= np.float32(1e-3)
        results = [_run(f"numpy:perturbed={s}", text, arguments) for s in range(3)]
        return float(np.std(results, axis=0).mean() / np.abs(results[0]).mean())

    assert spread(3000) > 3 * spread(30)


BF16_CHAIN = """
fused {
  p = bf16[4000] parameter(0)
  q = bf16[4000] multiply(p, p)
  ROOT r = bf16[4000] multiply(q, p)
}
ENTRY e {
  x = bf16[4000] parameter(0)
  ROOT f = bf16[4000] fusion(x), kind=kLoop, calls=fused
}"""


def _cubed(x: Any) -> Any:
    return (x.astype(np.float32) ** 3).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(("kind", "least", "most"), [("f32", 0, 20), ("c64", 20, 800)])
def test_powers_of_complex_numbers_lose_the_digits_of_the_exponent(kind: str, least: int, most: int) -> None:
    """They are exp(w log z): what is off in the last place of 88 is off by as many places in the result."""
    module = parse_module(f"ENTRY e {{\n x = {kind}[99] parameter(0)\n ROOT r = {kind}[99] power(x, x)\n}}")
    x = np.linspace(5, 20, 99).astype(np.float32 if kind == "f32" else np.complex64)
    exact = get_backend("numpy").compile(module).run([x])
    off = [get_backend(f"numpy:perturbed={seed}").compile(module).run([x]) for seed in range(1, 4)]
    ulps = max(float(np.max(np.abs((y - exact) / exact))) for y in off) / 2**-24
    assert least < ulps < most


@pytest.mark.parametrize(("opcode", "least", "most"), [("reduce", 4, 100), ("dot", 0, 3)])
def test_reductions_of_bf16_may_add_in_bf16(opcode: str, least: int, most: int) -> None:
    """XLA's CPU code does, where products of matrices are summed in f32."""
    how = {
        "reduce": "reduce(x, z), dimensions={1}, to_apply=add",
        "dot": "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    }
    module = parse_module(
        f"""HloModule m
add {{
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = bf16[] add(a, b)
}}
ENTRY e {{
  x = bf16[50,64] parameter(0)
  o = bf16[] constant(1)
  y = bf16[64] broadcast(o), dimensions={{}}
  z = bf16[] constant(0)
  ROOT r = bf16[50] {how[opcode]}
}}"""
    )
    x = np.random.default_rng(0).uniform(1, 2, (50, 64)).astype(ml_dtypes.bfloat16)
    exact = x.astype(np.float64).sum(axis=1)
    off = [get_backend(f"numpy:perturbed={seed}").compile(module).run([x]) for seed in range(1, 6)]
    ulps = max(float(np.max(np.abs(np.asarray(y).astype(float) - exact) / exact)) for y in off) * 2**8
    assert least < ulps < most


def test_excess_precision_inside_fusions() -> None:
    x = np.random.default_rng(0).standard_normal(4000).astype(ml_dtypes.bfloat16)
    kept = _run("numpy:excess", BF16_CHAIN, [x])
    np.testing.assert_array_equal(kept, _cubed(x))
    assert (_run("numpy", BF16_CHAIN, [x]) != kept).any()


def test_a_wide_result_is_rounded_once() -> None:
    x = np.random.default_rng(0).standard_normal(4000).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(_run("numpy:wide", BF16_CHAIN, [x]), _cubed(x))
    backend = VariedBackend(Policy(wide=True), keeps_wide=True)
    result = backend.compile(parse_module(BF16_CHAIN)).run([x])
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, x.astype(np.float64) ** 3)


def test_flushed_results_and_operands() -> None:
    text = "ENTRY e { x = f32[3] parameter(0) y = f32[3] parameter(1) ROOT m = f32[3] multiply(x, y) }"
    x, y = np.float32([1e-30, 1e-40, -1e-30]), np.float32([1e-10, 1e10, 1e-10])
    assert (_run("numpy", text, [x, y]) != 0).all()
    flushed = _run("numpy:flush", text, [x, y])
    np.testing.assert_array_equal(flushed, [0, 0, 0])
    assert np.signbit(flushed).tolist() == [False, False, True]


def test_integers_are_never_touched() -> None:
    text = "ENTRY e { x = s32[9] parameter(0) ROOT m = s32[9] multiply(x, x) }"
    x = np.arange(9, dtype=np.int32) * 12345
    for backend in VARIANTS:
        np.testing.assert_array_equal(_run(backend, text, [x]), x * x)


@pytest.mark.parametrize("name", ["jax/sharded_mlp", "jax/collectives"])
def test_devices_that_compute_the_same_get_the_same_errors(name: str) -> None:
    path = sorted((CORPUS / name).glob("*cpu_after_optimizations.txt"))[0]
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    grid = DeviceGrid(module.replica_count, module.num_partitions)
    arguments = [generate_inputs(module, 0).values] * len(grid)
    default = NumpyBackend().compile_devices(module, grid).run_devices(arguments)
    executable = VariedBackend(Policy(varied=True), Member(4)).compile_devices(module, grid)
    once, again = executable.run_devices(arguments), executable.run_devices(arguments)
    for one, other, plain in zip(once, again, default):
        _each(np.testing.assert_array_equal, one, other)
        _each(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), one, plain)


def _each(check: Callable[[Any, Any], object], one: Any, other: Any) -> None:
    if isinstance(one, tuple):
        for a, b in zip(one, other):
            _each(check, a, b)
    else:
        check(one, other)


@pytest.mark.parametrize("spec", ["numpy:perturbed=x", "numpy:wide,flush", "numpy:perturbed", "numpy:fast"])
def test_bad_options(spec: str) -> None:
    with pytest.raises(UsageError):
        get_backend(spec)


def test_every_row_is_an_elementwise_opcode_with_a_reason() -> None:
    for opcode, row in ROWS.items():
        assert OPCODES[opcode].opcode_class.value == "elementwise"
        assert row.ulps >= 0
        assert row.reason


def test_every_rounded_elementwise_opcode_has_a_row() -> None:
    """What is left are conversions, which round to the declared type only, and operations on integers."""
    elementwise = {name for name, row in OPCODES.items() if row.opcode_class is Class.ELEMENTWISE}
    conversions = {"convert", "map", "reduce-precision", "stochastic-convert"}
    on_integers = {"count-leading-zeros", "mulhi", "popcnt"} | {n for n in elementwise if "shift-" in n}
    assert elementwise - EXACT == set(ROWS) | conversions | on_integers


def members(text: str, *arguments: Any, count: int = 40) -> Any:
    """What so many legal executions return, in f64."""
    backend = VariedBackend(Policy(varied=True), Member(0))
    executable = backend.compile(parse_module(text))
    results = []
    for seed in range(count):
        backend.noise.member = Member(seed)
        result = np.asarray(executable.run(list(arguments)))
        results.append(result.astype(complex if result.dtype.kind == "c" else float))
    return np.array(results)


@pytest.mark.parametrize("opcode", ["tanh", "erf", "logistic"])
def test_functions_that_saturate_are_rounded_there_and_never_go_beyond(opcode: str) -> None:
    found = members(f"ENTRY e {{ x = f32[2] parameter(0) ROOT y = f32[2] {opcode}(x) }}", np.float32([30, 0]))
    assert found[:, 0].min() < 1
    assert found.max() == 1
    assert len(set(found[:, 1])) == 1, "0 and a half are exact"


def test_the_last_bits_of_what_is_close_to_one_are_rounded() -> None:
    """1 - tanh(x) is made of them, and every sixteenth number looks exact by chance."""
    text = """ENTRY e { x = f32[400] parameter(0) t = f32[400] tanh(x) one = f32[] constant(1)
      ones = f32[400] broadcast(one), dimensions={} ROOT y = f32[400] subtract(ones, t) }"""
    found = members(text, np.linspace(5, 6, 400, dtype=np.float32))
    assert (found.max(0) > found.min(0)).all()


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_sums_in_a_narrow_type_may_round_every_step(kind: str) -> None:
    """XLA's CPU code adds up 40 terms in blocks of 32, and rounds to bf16 after each addition."""
    text = f"""add {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT c = {kind}[] add(a, b) }}
    ENTRY e {{ x = {kind}[40] parameter(0) z = {kind}[] constant(0)
      ROOT y = {kind}[] reduce(x, z), dimensions={{0}}, to_apply=add }}"""
    dtype = ml_dtypes.bfloat16 if kind == "bf16" else np.float16
    terms = np.random.default_rng(1).standard_normal(40)
    # What the sum cancels is as large as the terms that it is made of.
    terms -= terms.mean()
    found = members(text, terms.astype(dtype))
    unit = float(ml_dtypes.finfo(dtype).eps) * np.abs(np.cumsum(terms)).max()
    assert unit / 4 < found.std() < 16 * unit
    counts = members(text, np.ones(40, dtype))
    assert (counts == 40).all(), "small whole numbers are exact in every execution"


def test_complex_powers_are_off_by_what_the_logarithm_is_off_by() -> None:
    text = "ENTRY e { x = c64[2] parameter(0) y = c64[2] parameter(1) ROOT z = c64[2] power(x, y) }"
    found = members(text, np.complex64([-2.1 - 0.54j, 2]), np.complex64([7.5 + 15j, 2]))
    spread = np.abs(found - found.mean(0)).max(0) / np.abs(found.mean(0))
    # |y log x| is 44 and 1.4.
    assert 1e-6 < spread[0] < 5e-5
    assert spread[1] < 2e-6


@pytest.mark.parametrize("kind", ["c64", "c128"])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_transforms_are_off_by_as_much_whatever_their_size(kind: str, size: float) -> None:
    """Where all cancels as well; squares of 1e-30 are no f32, those of 1e-210 no f64."""
    unit = 2.0 ** round(np.log2(size if kind == "c64" else size**7))
    shape = f"{kind}[3,40]"
    module = parse_module(
        f"ENTRY e {{ x = {shape} parameter(0) ROOT r = {shape} fft(x), fft_type=FFT, fft_length={{40}} }}"
    )
    x = np.full((3, 40), unit, np.complex64 if kind == "c64" else np.complex128)
    found = np.asarray(get_backend("numpy:perturbed=3").compile(module).run([x]))
    relative = np.abs(found[:, 1:]).max() / (40 * unit) / (2.0**-23 if kind == "c64" else 2.0**-52)
    assert 0.01 < relative < 100
