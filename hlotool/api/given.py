"""Values of options: which ones are possible, whether they come from a command line or from Python.

The functions take text and raise `argparse.ArgumentTypeError`, as argparse wants them; `checked` asks them
about the arguments of a call.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from hlotool.api.numbers import (
    byte_size,
    confidence,
    devices,
    distance,
    modules,
    number,
    processes,
    quoted,
    repetitions,
    seconds,
    seed,
    shard,
    tolerance,
)
from hlotool.errors import HlotoolError, UsageError
from hlotool.names import complaint_about
from hlotool.stores.masks import taken_in
from hlotool.stores.urls import is_url

#: What `--fail-on` may make a finding: values in results, and verdicts as they are written there.
FINDING_KINDS = ("nan", "inf", "unstable", "unsupported", "not-compared")


def words(text: str) -> tuple[str, ...]:
    """`A,B,...`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def several(given: str | Sequence[str]) -> tuple[str, ...]:
    """Words: several, or one text as a command line has it, in which commas separate them."""
    return words(given) if isinstance(given, str) else tuple(given)


def budget(text: str) -> str:
    """What judging may take: seconds, or a multiple of the runs that are compared (`5x`)."""
    complaint = "is no budget; write seconds (30) or a multiple of the runs (5x)"
    number(text.removesuffix("x"), lambda value: 0 <= value < inf, complaint)
    return text


def values_file(text: str) -> str:
    """A file or folder of values that is there, or `SCRIPT.py:FUNCTION`: known before anything runs."""
    path, colon, _ = text.rpartition(":")
    if (is_url(text) and text.endswith(".py")) or (is_url(path) and path.endswith(".py")):
        raise argparse.ArgumentTypeError(f"{text}: scripts are not run from a URL; fetch it, read it")
    if is_url(text):
        return _values_url(text)
    if not os.path.exists(path if colon and path.endswith(".py") else text):
        raise argparse.ArgumentTypeError(f"{text}: no such file")
    return text


def _values_url(text: str) -> str:
    from hlotool.stores.paths import exists

    try:
        if not exists(url := taken_in(text)):
            raise argparse.ArgumentTypeError(f"{url}: no such file")
    except HlotoolError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return url


def script_function(text: str) -> str:
    """`SCRIPT.py:FUNCTION`, of a file that is there."""
    path, colon, function = text.rpartition(":")
    if not colon or not path.endswith(".py") or not function.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is no function; write it like compare.py:close")
    return values_file(text)


def finding_kinds(text: str) -> tuple[str, ...]:
    """Some of `FINDING_KINDS`, with commas between them."""
    kinds = words(text)
    if not kinds or not set(kinds) <= set(FINDING_KINDS):
        known = f"{', '.join(FINDING_KINDS[:-1])} or {FINDING_KINDS[-1]}"
        raise argparse.ArgumentTypeError(f"{text!r}: write {known}, several with commas between them")
    return kinds


def regex(text: str) -> str:
    """A regular expression."""
    if complaint := complaint_about(text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {complaint}")
    return text


def value_range(text: str) -> tuple[float, float]:
    """`LO,HI` with LO < HI."""
    low, comma, high = text.partition(",")
    bounds = (number(low), number(high)) if comma else (0.0, 0.0)
    if not -inf < bounds[0] < bounds[1] < inf:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no range; write it like --input-range=-1,1")
    return bounds


def cluster(text: str) -> str:
    """A cluster of Dask: `tcp://HOST:8786`, `local:N`, `slurm:…`, `k8s:…`."""
    from hlotool.fleet.clusters import cluster_spec

    try:
        cluster_spec(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def scale(text: str) -> str:
    """`auto`, `never`, sizes like `4096=7,512=3`, or memory like `8G`."""
    from hlotool.scale.wish import NEVER, wish_of

    if text == NEVER:
        return text
    try:
        wish_of(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def architecture(text: str) -> str:
    """An architecture of NVIDIA's GPUs, such as `sm_90`."""
    if not re.fullmatch(r"sm_[0-9]{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no architecture; write it like sm_90")
    return text


#: What looks at the argument of a name, as text. 0 and the empty text, where they mean "nothing given", pass.
_CHECKS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("only", "values", "fail_regex"), regex),
    **dict.fromkeys(("inputs", "outputs"), values_file),
    **dict.fromkeys(("replicas", "partitions"), devices),
    **dict.fromkeys(("repeats", "trials", "cases"), repetitions),
    **dict.fromkeys(("context", "height", "call"), distance),
    **dict.fromkeys(("rtol", "atol"), tolerance),
    **dict.fromkeys(("sample", "max_failures"), modules),
    "arch": architecture,
    "budget": budget,
    "compare_with": script_function,
    "confidence": confidence,
    "input_range": value_range,
    "jobs": processes,
    "scale": scale,
    "seed": seed,
    "shard": shard,
    "size": byte_size,
    "timeout": seconds,
}
_FREE_WHEN_FALSE = frozenset(
    {"only", "values", "fail_regex", "replicas", "partitions", "jobs", "sample", "max_failures"}
)
#: Options that take one of a few words.
CHOICES = {
    "elided": ("refuse", "generate"),
    "emit": ("text", "hlo", "proto", "stablehlo", "filecheck"),
    "form": ("text", "proto"),
    "precision": ("hlo", "wide"),
}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call in the types that records have.

    Raises:
        UsageError: one of them is impossible; the message names it.
    """
    found = dict(given)
    for name in ("compare_with", "save_outputs", "save_values"):
        if isinstance(found.get(name), str | os.PathLike):
            found[name] = taken_in(os.fspath(found[name]))
    for name, check in _CHECKS.items():
        value = found.get(name)
        if value is not None and (value or name not in _FREE_WHEN_FALSE):
            _ask(name, value, check)
    if isinstance(limit := found.get("memory_limit"), str) or limit:
        found["memory_limit"] = _ask("memory_limit", limit, byte_size)
    if found.get("input_range") is not None:
        low, high = found["input_range"]
        found["input_range"] = float(low), float(high)
    for name in ("output_rtol", "output_atol"):
        if name in found:
            found[name] = _by_output(name, found[name] or ())
    if "stages" in found:
        found["stages"] = several(found["stages"])
    if found.get("fail_on"):
        found["fail_on"] = _ask("fail_on", found["fail_on"], finding_kinds)
    for name, choices in CHOICES.items():
        if found.get(name) is not None and found[name] not in choices:
            raise UsageError(f"{name}={found[name]!r}: it is one of {', '.join(choices)}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def _ask(name: str, value: Any, check: Callable[[str], Any]) -> Any:
    """What `check` makes of an argument."""
    try:
        return check(_text(value))
    except (argparse.ArgumentTypeError, TypeError, ValueError) as error:
        raise UsageError(f"{name}={value!r}: {error}") from error


def _text(value: Any) -> str:
    """The argument as a command line has it."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple | list):
        return ",".join(map(_text, value))
    whole = isinstance(value, int) or hasattr(value, "__index__")
    return str(int(value)) if whole else repr(float(value))


def _by_output(name: str, given: Any) -> tuple[tuple[str, float], ...]:
    """Tolerances of single outputs, from a mapping or from pairs."""
    from hlotool.findings.outputs import output_index

    pairs = list(given.items() if isinstance(given, Mapping) else given)
    for output, value in pairs:
        _ask(f"{name}[{output!r}]", value, tolerance)
        try:
            output_index(output)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from error
    return tuple((output, float(value)) for output, value in pairs)
