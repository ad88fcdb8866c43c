"""StableHLO's interpreter: every type goes in and out, and results are those of the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.backends.registry import get_backend
from hlotool.errors import BackendCrashed, Unsupported, UsageError
from hlotool.facts.dataflow import leaf_facts
from hlotool.inputs.generate import generate_inputs
from hlotool.judge.comparison import compare_values
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

#: What the interpreter computes otherwise than XLA's documents say. Faults of its own.
DEPARTURES = {
    "compare.totalorder": "compares as for IEEE order",
    "sort.totalorder": "compares as for IEEE order",
    "convolution.s8_to_s32": "accumulates in s8",
    "dynamic-slice.u8_index": "reads an unsigned index as a signed one",
    "scatter.overwrite": "several updates of one element, in an order of its own",
}

#: In the default run.
QUICK = {"compare.totalorder", "dot.batched", "fusion.nested", "reduce.sum", "while.counter"}


def run(text: str, *arguments: Any) -> Any:
    return get_backend("stablehlo").compile(parse_module(text)).run(list(arguments))


def entry(*lines: str) -> str:
    body = "\n  ".join(lines)
    return f"HloModule m\nENTRY e {{\n  {body}\n}}\n"


TYPES = {
    "pred": np.bool_,
    "s2": ml_dtypes.int2,
    "u4": ml_dtypes.uint4,
    "s8": np.int8,
    "u32": np.uint32,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type_go_in_and_out(name: str) -> None:
    value = np.array([[1, 0, 1], [1, 1, 0]]).astype(TYPES[name])
    lines = [f"x = {name}[2,3] parameter(0)", f"y = {name}[3,2] transpose(x), dimensions={{1,0}}"]
    turned, same = run(entry(*lines, f"ROOT r = ({name}[3,2], {name}[2,3]) tuple(y, x)"), value)
    assert turned.dtype == same.dtype == value.dtype
    assert turned.tobytes() == value.T.tobytes()
    assert same.tobytes() == value.tobytes()


def test_plain_products() -> None:
    """XLA's importer writes a dot that the interpreter does not know."""
    matrix, vector = np.float32([[1, 2], [3, 4]]), np.float32([5, 6])
    lines = [
        "a = f32[2,2] parameter(0)",
        "v = f32[2] parameter(1)",
        "b = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "c = f32[2] dot(b, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "ROOT d = f32[] dot(c, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ]
    assert run(entry(*lines), matrix, vector) == vector @ (matrix @ matrix @ vector)


def test_optimised_programs_run_as_the_frontend_wrote_them() -> None:
    text = """HloModule m, is_scheduled=true
double {
  p = f32[6]{0} parameter(0)
  ROOT s = f32[6]{0} add(p, p)
}
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  c = f32[2,3]{0,1} copy(x)
  b = f32[6]{0} bitcast(c)
  ROOT f = f32[6]{0} fusion(b), kind=kLoop, calls=double
}"""
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(text, value), 2 * value.T.ravel())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x = f32[2] parameter(0)", "ROOT y = f32[2] erf(x)"], "Unsupported op: .*erf"),
        (
            ["x = f32[] parameter(0)", "ROOT y = f32[2] rng(x, x), distribution=rng_normal"],
            "rng is unsupported",
        ),
        (["x = u32[] parameter(0)", "p = u32[] partition-id()", "ROOT y = u32[] add(x, p)"], "run_parallel"),
    ],
)
def test_what_it_does_not_know_is_unsupported(lines: list[str], message: str) -> None:
    value = np.ones(2 if "[2] parameter" in lines[0] else (), np.float32 if "f32" in lines[0] else np.uint32)
    with pytest.raises(Unsupported, match=message):
        run(entry(*lines), value)
    assert run(entry("ROOT c = s32[] constant(3)")) == 3


def test_its_options() -> None:
    assert "StableHLO of jaxlib" in get_backend("stablehlo:timeout=60").version
    with pytest.raises(
        UsageError, match="backend stablehlo has no option 'opt'; it knows: python=PATH, timeout"
    ):
        get_backend("stablehlo:opt=0")


def modules() -> list[Any]:
    paths = sorted(CORPUS.glob("modules/*.hlo"))
    return [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.slow])
        for path in paths
    ]


@pytest.mark.parametrize("path", modules())
def test_it_agrees_with_the_reference(path: Path) -> None:
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    arguments = generate_inputs(module, seed=1).values
    try:
        expected = get_backend("numpy").compile(module).run(arguments)
        actual = get_backend("stablehlo:timeout=60").compile(module).run(arguments)
    except Unsupported as error:
        pytest.skip(str(error))
    except BackendCrashed as error:
        pytest.fail(str(error))
    shape = module.entry.root.shape
    verdict = compare_values(shape, expected, actual, facts=leaf_facts(module)).verdict
    is_healthy = verdict in (Verdict.IDENTICAL, Verdict.AGREE, Verdict.NOT_COMPARABLE)
    assert is_healthy == (path.stem not in DEPARTURES)
