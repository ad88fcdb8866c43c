"""Every case of `hlotool/lab/conformance/spec/*.hlo` on the numpy backend, and on real XLA.

See `hlotool.lab.conformance.spec_files` for the format.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.differential import Array, leaves
from support.oracle import OracleUnable
from support.xla import JAXLIB, XlaError, oracle

from hlotool import errors
from hlotool.backends.base import TOKEN
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ArrayShape, Shape
from hlotool.lab.conformance.agreement import DEPARTURES, EXACT, wrong
from hlotool.lab.conformance.generators.cases import Case
from hlotool.lab.conformance.judging import OPEN
from hlotool.lab.conformance.running import bind, merge
from hlotool.lab.conformance.spec_files import (
    SOURCES,
    SpecCase,
    flat_arrays,
    read_spec,
    result_leaves,
    spec_files,
)
from hlotool.lab.conformance.trials import Difference

CASES = [case for path in spec_files() for case in read_spec(path)]


def on_numpy(case: SpecCase) -> list[list[Any]]:
    """Per device, the leaves of the result, tokens included."""
    module = case.module
    if len(case.grid) == 1:
        return [_leaves(NumpyBackend().compile(module).run(case.arguments(module)))]
    arguments = [case.arguments(module, device) for device in range(len(case.grid))]
    results = NumpyBackend().compile_devices(module, case.grid).run_devices(arguments)
    return [_leaves(result) for result in results]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in _leaves(element)]
    return [value if value is TOKEN else leaves(value)[0]]


def differences(case: SpecCase, device: int, actual: list[Any], shapes: list[Shape]) -> list[str]:
    """What is not as expected, in words; a token must be a token."""
    expected = case.expected(case.module, device)
    assert len(actual) == len(expected)
    found = []
    for number, (value, wanted, shape) in enumerate(zip(actual, expected, shapes)):
        if not isinstance(shape, ArrayShape):
            assert value is wanted
        elif _wrong(case, shape, value, wanted).any():
            found.append(f"device {device}, leaf {number}: {value} instead of {wanted}")
    return found


def _wrong(case: SpecCase, shape: ArrayShape, value: Array, wanted: Any) -> Array:
    (array,) = leaves(wanted)
    return wrong(array, value, shape.element_type, case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_numpy(case: SpecCase) -> None:
    if case.error is not None:
        name, message = case.error
        with pytest.raises(getattr(errors, name), match=re.escape(message)):
            on_numpy(case)
        return
    shapes = result_leaves(case.module)
    for device, actual in enumerate(on_numpy(case)):
        assert not (found := differences(case, device, actual, shapes)), found


def by_processor(case: SpecCase, shape: ArrayShape, value: Array, wanted: Any) -> Array:
    """Where XLA converts at once, or by way of f16, because the processor can (AVX512-FP16)."""
    if case.opcode != "convert":
        return np.zeros(value.shape, np.bool_)
    module = case.module
    known = Case(case.line, case.opcode, module, flat_arrays(case.arguments(module)))
    difference = Difference(known, 0, shape.element_type, np.asarray(wanted), value)
    return OPEN["conversion-by-way-of-another-type"].explains(difference)


def runs_on_xla(case: SpecCase) -> bool:
    return case.error is None and case.cannot_run_on_xla is None


@cache
def xla_leaves(opcode: str) -> dict[int, list[Array]]:
    """Results of the cases of one file that need one device, by line; all compiled as one module.

    Empty when XLA refuses or dies of one of them: then each has to run alone.
    """
    cases = [c for c in CASES if c.opcode == opcode and runs_on_xla(c) and len(c.grid) == 1]
    modules = [case.module for case in cases]
    arguments = [a for case, module in zip(cases, modules) for a in flat_arrays(case.arguments(module))]
    try:
        outputs = run_on_xla(merge(modules).to_text(), arguments)
    except (XlaError, OracleUnable):
        return {}
    found = {}
    for case, module in zip(cases, modules):
        count = sum(isinstance(shape, ArrayShape) for shape in result_leaves(module))
        found[case.line], outputs = outputs[:count], outputs[count:]
    return found


def run_on_xla(text: str, arguments: list[Array]) -> list[Array]:
    # Less work for LLVM; the HLO passes and so the meaning stay the same.
    return oracle().run(text, arguments, xla_backend_optimization_level=0)


def on_xla(case: SpecCase) -> list[list[Array]]:
    """Per device, the array leaves of the result."""
    together = xla_leaves(case.opcode) if len(case.grid) == 1 else {}
    return [together[case.line]] if case.line in together else alone_on_xla(case)


def alone_on_xla(case: SpecCase) -> list[list[Array]]:
    """The same, compiled for itself."""
    module, grid = case.module, case.grid
    arguments = [flat_arrays(case.arguments(module, device)) for device in range(len(grid))]
    if len(grid) == 1:
        return [run_on_xla(case.text, arguments[0])]
    return oracle(8).run_devices(case.text, arguments, grid.replicas, grid.partitions)


@pytest.mark.xla
@pytest.mark.parametrize("case", [c for c in CASES if runs_on_xla(c)], ids=str)
def test_on_xla(case: SpecCase) -> None:
    shapes = [shape for shape in result_leaves(case.module) if isinstance(shape, ArrayShape)]
    found = []
    for device, actual in enumerate(on_xla(case)):
        tokens_left_out = [v for v in case.expected(case.module, device) if v is not TOKEN]
        for shape, value, wanted in zip(shapes, actual, tokens_left_out):
            if (_wrong(case, shape, value, wanted) & ~by_processor(case, shape, value, wanted)).any():
                found.append(f"device {device}: {value} instead of {wanted}")
    until = DEPARTURES[case.rule].until if case.rule is not None else None
    if until is not None and until <= JAXLIB:
        return  # some cases of the rule are as ours by then, others are not
    if case.rule is not None:
        assert found, f"rule {case.rule} explains nothing here"
        assert departs_as_measured(case)
        return
    assert not found, found


def departs_as_measured(case: SpecCase) -> bool:
    """Whether XLA gives the values that the spec has of it, where it has any."""
    shapes = [shape for shape in result_leaves(case.module) if isinstance(shape, ArrayShape)]
    for device, actual in enumerate(on_xla(case)):
        departing = case.departing(case.module, device)
        if departing is None:
            return True
        measured = [value for value in departing if value is not TOKEN]
        if any(_wrong(case, *leaf).any() for leaf in zip(shapes, actual, measured)):
            return False
    return True


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.cannot_run_on_xla], ids=str)
def test_xla_still_cannot_run(case: SpecCase) -> None:
    """It says so, it dies, or the result has another type."""
    expected = [a.dtype for a in flat_arrays(case.expected(case.module))]
    try:
        (actual, *_) = alone_on_xla(case)
    except (XlaError, OracleUnable):
        return
    assert [a.dtype for a in actual] != expected


@pytest.mark.xla
@pytest.mark.parametrize("case", [c for c in CASES if c.is_from_evaluator], ids=str)
def test_on_evaluator(case: SpecCase) -> None:
    """Constants are folded by XLA's evaluator."""
    module = case.module
    actual = oracle().run(bind(module, case.arguments(module)).to_text(), [])
    assert not (found := differences(case, 0, actual, result_leaves(module))), found


def test_every_opcode_has_a_file() -> None:
    assert {path.stem for path in spec_files()} == set(OPCODES)


@pytest.mark.parametrize("path", spec_files(), ids=lambda path: path.stem)
def test_a_file_is_about_its_opcode(path: Any) -> None:
    cases = read_spec(path)
    assert cases
    titles = [case.title for case in cases]
    assert len(set(titles)) == len(titles)
    for case in cases:
        assert path.stem in {i.opcode for i in case.module.instructions()}, case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_says_what_it_must(case: SpecCase) -> None:
    source = case.one("source")
    assert source is not None
    anchor = OPCODES[case.opcode].anchor
    documents = {f"operation_semantics.md#{anchor}", anchor}
    for part in source.split("; "):
        assert part in documents or part in SOURCES, part
    assert (case.error is None) == any(key.startswith("expect[") or key == "expect" for key in case.fields)
    assert case.rule is None or case.rule in DEPARTURES
    assert case.one("xla") is None or case.cannot_run_on_xla or case.rule
    assert case.tolerance == EXACT or case.error is None
