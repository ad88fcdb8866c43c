"""The options of the backend's spec, such as `xla:gpu,disable=algsimp+cse,opt=0`, and their forms for help
and errors.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from hlotool.backends.registry import Options, check_options
from hlotool.backends.xla.protocol import Flag, Route
from hlotool.errors import BackendUnavailable, UsageError

#: By form, with their meaning; besides, every debug option of XLA: `xla_NAME=VALUE`.
OPTIONS = {
    "cpu": "run on the CPU, the default",
    "gpu": "run on a GPU",
    "tpu": "run on a TPU",
    "disable=PASS+PASS": "HLO passes that must not run",
    "only=PASS+PASS": "the only HLO passes that may run",
    "opt=LEVEL": "optimisation level of the code generator, 0 to 3",
    "route=auto|mlir|pre|post": "how programs get into XLA: as StableHLO, before or after its scheduler",
    "python=PATH": "interpreter whose jaxlib is used; it needs jax, too",
    "timeout=SECONDS": "for each compilation and each run",
    "xla_FLAG=VALUE": "any debug option of XLA",
}


PLATFORMS: Final = ("cpu", "gpu", "tpu")

#: Seconds; what XLA compiles longer has most likely run wild.
DEFAULT_TIMEOUT: Final = 300.0

_ROUTES = {"auto": None, **{route.value: route for route in Route}}


@dataclass(frozen=True, slots=True)
class XlaOptions:
    """How programs are compiled and run.

    Attributes:
        platform: `cpu`, `gpu`, `tpu`, or the path of a PJRT plug-in.
        flags: debug options of XLA for every compilation.
        route: into the compiler; None for the one that suits the program.
        python: path of the interpreter whose jaxlib is used, empty for this one's.
        timeout: seconds for each compilation and each run.
    """

    platform: str = "cpu"
    flags: tuple[Flag, ...] = ()
    route: Route | None = None
    python: str = ""
    timeout: float = DEFAULT_TIMEOUT


def parse_options(options: Options) -> XlaOptions:
    """The options of a spec.

    Raises:
        UsageError: unknown ones, or values that make no sense.
        BackendUnavailable: jaxlib is not installed.
    """
    known = {key: value for key, value in options.items() if not key.startswith("xla_")}
    check_options("xla", known, OPTIONS)
    flags = [(key, flag_value(key, value)) for key, value in options.items() if key.startswith("xla_")]
    parsed = XlaOptions(
        platform=_platform(known),
        flags=(*_named_flags(known), *flags),
        route=_choice("route", known.get("route", "auto")),
        python=interpreter(known.get("python", "")),
        timeout=seconds("timeout", known.get("timeout", str(DEFAULT_TIMEOUT))),
    )
    if not parsed.python:
        _require_jaxlib()
    return parsed


def _platform(options: Options) -> str:
    named = [platform for platform in PLATFORMS if platform in options]
    if len(named) > 1:
        raise UsageError(f"backend xla: {' and '.join(named)} exclude each other")
    return named[0] if named else "cpu"


def _named_flags(options: Options) -> list[Flag]:
    flags: list[Flag] = []
    if "disable" in options:
        flags.append(("xla_disable_hlo_passes", tuple(options["disable"].split("+"))))
    if "only" in options:
        flags.append(("xla_enable_hlo_passes_only", tuple(options["only"].split("+"))))
    if "opt" in options:
        if options["opt"] not in ("0", "1", "2", "3"):
            raise UsageError(f"backend xla: opt={options['opt']} is no level from 0 to 3")
        flags.append(("xla_backend_optimization_level", int(options["opt"])))
    return flags


def flag_value(name: str, text: str, backend: str = "xla") -> bool | int | float | str:
    """The value of a flag in the type that its text shows; XLA's options are strict about types.

    Raises:
        UsageError: there is no value.
    """
    if not text:
        raise UsageError(f"backend {backend}: option {name!r} is written {name}=VALUE")
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", text):
        return float(text)
    return text


def _choice(key: str, text: str) -> Route | None:
    if text not in _ROUTES:
        raise UsageError(f"backend xla: {key}={text}: it is one of {', '.join(_ROUTES)}")
    return _ROUTES[text]


def interpreter(path: str, backend: str = "xla") -> str:
    """The path of an interpreter, empty for this one; raises UsageError where there is none."""
    if path and not shutil.which(path):
        raise UsageError(f"backend {backend}: python={path} is not a program")
    return os.path.abspath(path) if os.path.dirname(path) else path


def _require_jaxlib() -> None:
    missing = [name for name in ("jax", "jaxlib") if not find_spec(name)]
    if missing:
        raise BackendUnavailable(f"backend xla needs {missing[0]}: pip install 'hlotool[xla]'")


def seconds(key: str, text: str, backend: str = "xla") -> float:
    """A number of seconds above 0; raises UsageError for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise UsageError(f"backend {backend}: {key}={text} is no positive number of seconds")
    return number
