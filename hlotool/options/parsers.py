"""Values of options: which ones are possible, whether they come from a command line or from Python.

What takes text raises `argparse.ArgumentTypeError`, as argparse wants it; what takes values of Python makes
of them what the same option on a command line comes to, or raises that, or a UsageError.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from math import inf

from hlotool.errors import HlotoolError, UsageError
from hlotool.names import complaint_about
from hlotool.options.declared import as_text, parser, path_text, several, words
from hlotool.options.numbers import number, quoted, tolerance
from hlotool.options.spool import values_path
from hlotool.stores.masks import taken_in
from hlotool.stores.urls import is_url

#: What `--fail-on` may make a finding: values in results, and verdicts as they are written there.
FINDING_KINDS = ("nan", "inf", "unstable", "unsupported", "not-compared")


@parser("SECONDS|FACTORx")
def budget(text: str) -> str:
    """What judging may take: seconds, or a multiple of the runs that are compared (`5x`)."""
    complaint = "is no budget; write seconds (30) or a multiple of the runs (5x)"
    number(text.removesuffix("x"), lambda value: 0 <= value < inf, complaint)
    return text


@parser("FILE", convert=values_path, grave=True)
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


@parser("SCRIPT.py:FUNCTION", convert=path_text, grave=True)
def script_function(text: str) -> str:
    """`SCRIPT.py:FUNCTION`, of a file that is there."""
    path, colon, function = text.rpartition(":")
    if not colon or not path.endswith(".py") or not function.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is no function; write it like compare.py:close")
    return values_file(text)


@parser(",".join(FINDING_KINDS), convert=several)
def finding_kinds(text: str) -> tuple[str, ...]:
    """Some of `FINDING_KINDS`, with commas between them."""
    kinds = words(text)
    if not kinds or not set(kinds) <= set(FINDING_KINDS):
        known = f"{', '.join(FINDING_KINDS[:-1])} or {FINDING_KINDS[-1]}"
        raise argparse.ArgumentTypeError(f"{text!r}: write {known}, several with commas between them")
    return kinds


@parser("REGEX")
def regex(text: str) -> str:
    """A regular expression."""
    if complaint := complaint_about(text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {complaint}")
    return text


@parser("LO,HI")
def value_range(text: str) -> tuple[float, float]:
    """`LO,HI` with LO < HI."""
    low, comma, high = text.partition(",")
    bounds = (number(low), number(high)) if comma else (0.0, 0.0)
    if not -inf < bounds[0] < bounds[1] < inf:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no range; write it like --input-range=-1,1")
    return bounds


@parser("ADDRESS|local:N", grave=True)
def cluster(text: str) -> str:
    """A cluster of Dask: `tcp://HOST:8786`, `local:N`, `slurm:…`, `k8s:…`."""
    from hlotool.options.clusters import cluster_spec

    try:
        cluster_spec(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


@parser("auto|never|PLAN")
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


@parser("SM")
def architecture(text: str) -> str:
    """An architecture of NVIDIA's GPUs, such as `sm_90`."""
    if not re.fullmatch(r"sm_[0-9]{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no architecture; write it like sm_90")
    return text


def paths_text(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """One path or several."""
    return tuple(map(path_text, [paths] if isinstance(paths, str | os.PathLike) else paths))


def by_output(given: Mapping[str, float] | Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Tolerances of single outputs, from a mapping or from pairs."""
    from hlotool.findings.outputs import output_index

    pairs = list(given.items() if isinstance(given, Mapping) else given)
    for output, value in pairs:
        output_index(output)
        tolerance(as_text(value))
    return tuple((output, float(value)) for output, value in pairs)
