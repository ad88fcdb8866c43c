"""Specs such as `xla:gpu,disable=algsimp+cse,opt=0`."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hlotool.backends.registry import get_backend, parse_spec
from hlotool.backends.xla import options as module
from hlotool.backends.xla.options import XlaOptions, parse_options
from hlotool.backends.xla.protocol import Route
from hlotool.errors import BackendUnavailable, UsageError


@pytest.fixture(autouse=True)
def _jaxlib_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())


def parsed(text: str) -> XlaOptions:
    return parse_options(parse_spec(text).options)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("xla", {}),
        ("xla:cpu", {}),
        ("xla:gpu", {"platform": "gpu"}),
        ("xla:tpu", {"platform": "tpu"}),
        ("xla:disable=algsimp+cse", {"flags": (("xla_disable_hlo_passes", ("algsimp", "cse")),)}),
        ("xla:only=dce", {"flags": (("xla_enable_hlo_passes_only", ("dce",)),)}),
        ("xla:opt=0", {"flags": (("xla_backend_optimization_level", 0),)}),
        ("xla:xla_cpu_enable_fast_math=true", {"flags": (("xla_cpu_enable_fast_math", True),)}),
        ("xla:xla_a=false,xla_b=-3", {"flags": (("xla_a", False), ("xla_b", -3))}),
        ("xla:xla_a=1.5,xla_b=2.", {"flags": (("xla_a", 1.5), ("xla_b", 2.0))}),
        ("xla:xla_a=1.5.2", {"flags": (("xla_a", "1.5.2"),)}),
        ("xla:route=auto", {}),
        ("xla:route=post", {"route": Route.POST_SCHEDULER}),
        ("xla:timeout=2.5", {"timeout": 2.5}),
    ],
)
def test_options_are_read(text: str, changed: dict[str, Any]) -> None:
    assert parsed(text) == XlaOptions(**changed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("xla:fast", r"no option 'fast'; it knows: cpu, gpu, .*xla_FLAG=VALUE"),
        ("xla:gpu,tpu", "gpu and tpu exclude each other"),
        ("xla:opt=4", "opt=4 is no level from 0 to 3"),
        ("xla:opt", "option 'opt' is written opt=LEVEL"),
        ("xla:route=mid", "route=mid: it is one of auto, mlir, pre, post"),
        ("xla:timeout=soon", "timeout=soon is no positive number"),
        ("xla:timeout=0", "timeout=0 is no positive number"),
        ("xla:xla_dump_to", "option 'xla_dump_to' is written xla_dump_to=VALUE"),
        ("xla:python=/no/such/python", "python=/no/such/python is not a program"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parsed(text)


def test_another_interpreter_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/somewhere/{name}")
    assert parsed("xla:python=python3.11").python == "python3.11"


def test_without_jaxlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"backend xla needs jax: pip install 'hlotool\[xla\]'"):
        get_backend("xla")
    assert parsed(f"xla:python={sys.executable}").python == sys.executable


def test_the_name_is_what_was_typed() -> None:
    assert get_backend("xla:disable=cse,opt=1").name == "xla:disable=cse,opt=1"
