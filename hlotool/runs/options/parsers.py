"""What the values of options may be: numbers, sizes, names, paths; a reason where one may not."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from math import inf

from hlotool.errors import HlotoolError, UsageError
from hlotool.runs.options.declared import as_text, parser, path_text, several, words
from hlotool.runs.options.spool import values_path
from hlotool.system.urls import is_url, taken_in
from hlotool.system.user_input import complaint_about, size_of

#: Python takes `1_0`, `٣`, `nan` and blanks around for numbers, too.
_NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")
#: The system's limits are C longs, and no process does anything with less than a megabyte.
_LEAST_SIZE, _GREATEST_SIZE = 1 << 20, 1 << 60
#: What `--memory-limit` takes for "no limit".
NO_LIMIT = "none"

#: The longest wait that every platform's clocks can hold is 49 days.
_LONGEST = 4e6
#: A command line may have megabytes; a message quotes no more than this.
_QUOTED = 40


def whole_number(least: int, most: int, metavar: str = "N") -> Callable[[str], int]:
    """A parser of whole numbers in decimal, from `least` to `most`, which `--help` calls `metavar`."""

    @parser(metavar)
    def parse(text: str) -> int:
        # Longer ones are out of range whatever they are, and Python takes long over thousands of digits.
        is_decimal = re.fullmatch(r"[0-9]{1,30}", text) is not None
        value = int(text) if is_decimal else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{quoted(text)} is no whole number from {least} to {most}")
        return value

    return parse


#: Of random numbers. Records hold it as 64 bits with a sign.
seed = whole_number(0, (1 << 63) - 1, "SEED")
#: Of worker processes.
processes = whole_number(1, 1024)
#: Replicas or partitions, each of which is run.
devices = whole_number(1, 1024)
#: How often something is done again.
repetitions = whole_number(1, 10_000)
#: Modules.
modules = whole_number(1, 1_000_000_000)
#: Captured executions, or none.
executions = whole_number(0, 10_000)
#: Steps, lines, iterations: as many as there are.
distance = whole_number(0, (1 << 63) - 1)


@parser("I/N")
def shard(text: str) -> str:
    """`I/N` with 1 <= I <= N."""
    number, slash, count = text.partition("/")
    try:
        parts = (modules(number), modules(count)) if slash else (1, 0)
    except argparse.ArgumentTypeError:
        parts = (1, 0)
    if parts[0] > parts[1]:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no shard; write it like 2/8, from 1/8 to 8/8")
    return f"{parts[0]}/{parts[1]}"


def memory(size: int | str) -> int:
    """Bytes; 0 for no limit."""
    return byte_size(as_text(size)) if size else 0


@parser("SIZE", convert=memory, grave=True)
def byte_size(text: str) -> int:
    """`8G`, `512M`, `1.5GiB` or plain bytes; `none`, which is 0."""
    if text.strip().lower() == NO_LIMIT:
        return 0
    size = size_of(text)
    if size is None or not _LEAST_SIZE <= size <= _GREATEST_SIZE:
        wanted = f"write it like 8G or 512M, at least 1M; or {NO_LIMIT}"
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no size of a memory: {wanted}")
    return size


@parser("SECONDS")
def seconds(text: str) -> float:
    """A positive number of seconds, at most 46 days."""
    complaint = f"is no positive number of seconds, at most {_LONGEST:,.0f}"
    return number(text, lambda value: 0 < value <= _LONGEST, complaint)


@parser("N")
def minutes(text: str) -> float:
    """A positive number of minutes, at most 46 days."""
    most = _LONGEST / 60
    return number(
        text, lambda value: 0 < value <= most, f"is no positive number of minutes, at most {most:,.0f}"
    )


def tolerance(text: str) -> float:
    """A tolerance: a number, not negative."""
    return number(text, lambda value: 0 <= value < inf, "is no tolerance; write it like 1e-3")


@parser("P")
def confidence(text: str) -> float:
    """A probability from 0.5 up to, but not, 1."""
    return number(text, lambda value: 0.5 <= value < 1, "is no confidence; write it like 0.99")


def number(text: str, holds: Callable[[float], bool] = lambda value: True, complaint: str = "") -> float:
    """A number for which `holds` is true; the refusal of others says `complaint`."""
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no number")
    value = float(text)
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {complaint}")
    return value


def quoted(text: str) -> str:
    """`text` in quotes, cut to a length that a message can bear."""
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


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
    from hlotool.system.paths import exists

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
    from hlotool.runs.options.clusters import cluster_spec

    try:
        cluster_spec(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


@parser("auto|never|PLAN")
def scale(text: str) -> str:
    """`auto`, `never`, sizes like `4096=7,512=3`, or memory like `8G`."""
    from hlotool.rewrite.scale.records import NEVER, wish_of

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
    from hlotool.judge.records import output_index

    pairs = list(given.items() if isinstance(given, Mapping) else given)
    for output, value in pairs:
        output_index(output)
        tolerance(as_text(value))
    return tuple((output, float(value)) for output, value in pairs)
