"""Programs through real XLA, as `compile` and `run` see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.xla import JAXLIB

from hlotool.backends.base import TOKEN, notes_of
from hlotool.backends.registry import get_backend
from hlotool.errors import InputDataError, Unsupported, UsageError
from hlotool.ir.module import Instruction
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla


def run(text: str, *arguments: Any, backend: str = "xla:opt=0") -> Any:
    return get_backend(backend).compile(parse_module(text)).run(list(arguments))


def entry(*lines: str, header: str = "") -> str:
    body = "\n  ".join(lines)
    return f"HloModule m{header}\nENTRY e {{\n  {body}\n}}\n"


def test_version_and_device_are_known() -> None:
    import jaxlib.version

    backend = get_backend("xla:opt=0")
    assert backend.version == f"jaxlib {jaxlib.version.__version__} (opt=0)"
    assert getattr(backend, "device", "") == "cpu"


def test_an_executable_runs_as_often_as_wanted() -> None:
    text = entry("x = f32[3] parameter(0)", "ROOT y = f32[3] add(x, x)")
    executable = get_backend("xla:opt=0").compile(parse_module(text))
    for factor in (1, 2):
        argument = np.float32([1, 2, 3]) * factor
        np.testing.assert_array_equal(executable.run([argument]), 2 * argument)
        np.testing.assert_array_equal(argument, np.float32([1, 2, 3]) * factor)


def test_tuples_of_every_form() -> None:
    text = entry(
        "p = (f32[2], (s32[], f32[2])) parameter(0)",
        "u = (s32[], f32[2]) get-tuple-element(p), index=1",
        "a = f32[2] get-tuple-element(p), index=0",
        "b = f32[2] get-tuple-element(u), index=1",
        "c = f32[2] add(a, b)",
        "k = token[] after-all()",
        "one = (f32[2]) tuple(c)",
        "ROOT r = ((f32[2]), (s32[], f32[2]), token[], ()) tuple(one, u, k, none)",
    ).replace("  ROOT", "  none = () tuple()\n  ROOT")
    result = run(text, (np.float32([1, 2]), (np.int32(7), np.float32([3, 4]))))
    np.testing.assert_array_equal(result[0][0], np.float32([4, 6]))
    assert result[1][0] == 7
    assert result[2] is TOKEN
    assert result[3] == ()


def test_a_tuple_of_one() -> None:
    text = entry("x = f32[2] parameter(0)", "ROOT r = (f32[2]) tuple(x)")
    [value] = run(text, np.float32([1, 2]))
    np.testing.assert_array_equal(value, np.float32([1, 2]))


TYPES = {
    "pred": np.bool_,
    "s4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "s8": np.int8,
    "u64": np.uint64,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "c128": np.complex128,
}


@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type_go_in_and_out(name: str) -> None:
    value = np.array([[1, 0, 1], [1, 1, 0]]).astype(TYPES[name])
    text = entry(f"x = {name}[2,3] parameter(0)", f"ROOT y = {name}[3,2] transpose(x), dimensions={{1,0}}")
    result = run(text, value)
    assert result.dtype == value.dtype
    assert result.tobytes() == value.T.tobytes()


def test_arrays_without_elements_and_programs_without_parameters() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert run(entry("x = f32[0,3] parameter(0)", "ROOT y = f32[0,3] negate(x)"), empty).shape == (0, 3)
    assert run(entry("ROOT c = s64[] constant(123456789012)")) == 123456789012


def test_sizes_of_dynamic_arrays() -> None:
    text = entry(
        "x = f32[<=5,2] parameter(0)",
        "y = f32[<=5,2] negate(x)",
        "n = s32[] constant(1)",
        "ROOT r = (f32[<=5,2], f32[<=5,2]) tuple(y, x)",
    )
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    negative, same = run(text, value)
    np.testing.assert_array_equal(negative, -value)
    np.testing.assert_array_equal(same, value)


def test_layouts_of_the_entry_do_not_change_values() -> None:
    text = entry("x = f32[2,3]{0,1} parameter(0)", "ROOT y = f32[3,2]{0,1} transpose(x), dimensions={1,0}")
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(text, value), value.T)


def test_lapack_is_ready() -> None:
    text = entry(
        "x = f64[2,2]{0,1} parameter(0)",
        'c = (f64[2,2]{0,1}, s32[]) custom-call(x), custom_call_target="lapack_dpotrf_ffi",'
        " operand_layout_constraints={f64[2,2]{0,1}}, api_version=API_VERSION_TYPED_FFI,"
        " output_to_operand_aliasing={{0}: (0, {})}, backend_config={uplo = 76 : ui8}",
        "ROOT r = f64[2,2]{0,1} get-tuple-element(c), index=0",
    )
    result = run(text, np.array([[4.0, 2.0], [2.0, 5.0]]))
    np.testing.assert_allclose(np.tril(result), [[2, 0], [1, 2]])


def test_aliased_arguments_are_not_modified() -> None:
    text = entry(
        "x = f32[64] parameter(0)",
        "y = f32[64] add(x, x)",
        "ROOT r = (f32[64]) tuple(y)",
        header=", input_output_alias={ {0}: (0, {}, must-alias) }",
    )
    value = np.ones(64, np.float32)
    run(text, value)
    np.testing.assert_array_equal(value, np.ones(64))


@pytest.mark.parametrize(("options", "reverses"), [("opt=0", 0), ("disable=algsimp", 2)])
def test_options_reach_the_compiler(options: str, reverses: int, tmp_path: Path) -> None:
    lines = [f"{name} = f32[4] reverse({of}), dimensions={{0}}" for name, of in (("y", "x"), ("ROOT z", "y"))]
    text = entry("x = f32[4] parameter(0)", *lines)
    spec = f"xla:{options},xla_dump_to={tmp_path},xla_dump_hlo_as_text=true"
    get_backend(spec).compile(parse_module(text))
    [final] = tmp_path.glob("*cpu_after_optimizations.txt")
    assert final.read_text(encoding="utf-8").count(" reverse(") == reverses


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("xla:xla_no_such_flag=1", "No such compile option: 'xla_no_such_flag'"),
        ("xla:xla_cpu_enable_fast_math=maybe", "xla_cpu_enable_fast_math"),
    ],
)
def test_wrong_flags_are_the_users_mistake(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(entry("ROOT c = f32[] constant(1)"), backend=spec)


def test_a_pass_that_does_not_exist_is_noted() -> None:
    executable = get_backend("xla:disable=cse+algsimpp").compile(
        parse_module(entry("ROOT c = f32[] constant(1)"))
    )
    assert notes_of(executable) == ("this XLA seems to have no pass called 'algsimpp'",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('ROOT y = f32[] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback"', "calls back"),
        ('ROOT y = f32[] custom-call(x), custom_call_target="unknown_to_all"', "unknown_to_all"),
        pytest.param(
            *("ROOT y = f32[] acos(x)", "XLA: UNIMPLEMENTED: acos"),
            marks=pytest.mark.skipif(JAXLIB >= (0, 12, 0), reason="this XLA has it"),
        ),
        ("ROOT y = f32[] get-tuple-element(i), index=0", "exchanges data with the host"),
        ("ROOT y = f6e2m3fn[] constant(7.5)", "no constants of f6"),
    ],
)
def test_what_xla_cannot_run_is_unsupported(line: str, message: str) -> None:
    lines = ["x = f32[] parameter(0)", line]
    if "index=0" in line:
        lines[1:1] = ["k = token[] after-all()", "i = (f32[], token[]) infeed(k)"]
    with pytest.raises(Unsupported, match=message):
        run(entry(*lines), np.float32(1))


def test_nobody_can_watch() -> None:
    executable = get_backend("xla:opt=0").compile(parse_module(entry("ROOT c = f32[] constant(1)")))

    def probe(instruction: Instruction, value: Any) -> None:
        raise AssertionError

    with pytest.raises(Unsupported, match="does not show"):
        executable.run([], probe)


def test_the_number_of_arguments_counts() -> None:
    with pytest.raises(InputDataError, match="m takes 1 arguments, got 0"):
        run(entry("ROOT x = f32[] parameter(0)"))
