"""Other versions of jaxlib, each in an interpreter of its own.

    HLOTOOL_JAXLIBS=/envs/0.4.26/bin/python:/envs/0.10.2/bin/python python -m pytest -m slow THIS_FILE

Each interpreter needs jax, jaxlib and msgspec.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.disasters import GOOD

from hlotool.backends.base import notes_of
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.backends.xla.backend import LETS_PROGRAMS_IN, OLDEST, XlaBackend
from hlotool.backends.xla.process import key_for, shared_process
from hlotool.errors import BackendCrashed, Unsupported
from hlotool.facts.dataflow import leaf_facts
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.judge.comparison import compare_values
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

pytestmark = [pytest.mark.xla, pytest.mark.slow]

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

INTERPRETERS = [path for path in os.environ.get("HLOTOOL_JAXLIBS", "").split(os.pathsep) if path]

HEALTHY = (Verdict.IDENTICAL, Verdict.AGREE, Verdict.NOT_COMPARABLE)

#: Older versions lack attributes and library calls of the programs.
KNOWS_ALL = (0, 6)

PROGRAMS = (
    "fizzbuzz",
    "cholesky_solve",
    "dynamic_rnn_gradient",
    "train_mnist_mlp",
    "transformer",
    "int8_dot",
    "scatters",
    "sorts",
)


@pytest.fixture(scope="module", params=INTERPRETERS or [None], ids=str)
def python(request: pytest.FixtureRequest) -> str:
    if request.param is None:
        pytest.skip("HLOTOOL_JAXLIBS names no interpreters")
    return str(request.param)


def backend_of(python: str, options: str = "opt=0") -> XlaBackend:
    backend = get_backend(f"xla:python={python},{options}")
    assert isinstance(backend, XlaBackend)
    return backend


def test_it_is_supported(python: str) -> None:
    assert backend_of(python).version_number >= OLDEST


def test_it_computes(python: str) -> None:
    value = np.arange(8, dtype=np.float32)
    for options in ("opt=0", "disable=algsimp+cse", "xla_cpu_enable_fast_math=true"):
        result = backend_of(python, options).compile(parse_module(GOOD)).run([value])
        np.testing.assert_array_equal(result, 2 * value)


def test_a_dead_process_is_replaced(python: str) -> None:
    backend = backend_of(python)
    executable = backend.compile(parse_module(GOOD))
    process = shared_process(key_for("cpu", python, 1, backend.options.timeout))
    with pytest.raises(BackendCrashed, match="exit status 7"):
        process.call("os:_exit", 7, int)
    np.testing.assert_array_equal(executable.run([np.ones(8, np.float32)]), 2 * np.ones(8))


def test_devices(python: str) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
}"""
    executable = backend_of(python).compile_devices(parse_module(text), DeviceGrid(1, 2))
    one, other = np.float32([1, 2]), np.float32([3, 4])
    results: Any = executable.run_devices([[one], [other]])
    np.testing.assert_array_equal(results[0], other)
    np.testing.assert_array_equal(results[1], one)


def test_dumps(python: str, tmp_path: Path) -> None:
    backend_of(python).dumping(tmp_path).compile(parse_module(GOOD))
    assert len(list(tmp_path.glob("*.txt"))) > 10


@pytest.mark.parametrize("stage", ["before", "cpu_after"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_todays_jax(python: str, name: str, stage: str) -> None:
    backend = backend_of(python)
    path = next((CORPUS / "jax" / name).glob(f"*.{stage}_optimizations.txt"))
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    arguments = generate_inputs(module, seed=1).values
    expected = NumpyBackend().compile(module).run(arguments)
    try:
        executable = backend.compile(module)
        result = executable.run(arguments)
    except Unsupported as error:
        if backend.version_number >= KNOWS_ALL:
            raise
        pytest.skip(f"newer than this version: {error}")
    shape = module.entry.root.shape
    comparison = compare_values(shape, expected, result, facts=leaf_facts(module))
    assert comparison.verdict in HEALTHY, comparison.reason
    rewritten = any("written as StableHLO" in note for note in notes_of(executable))
    assert rewritten == (stage == "cpu_after" and backend.version_number < LETS_PROGRAMS_IN)
