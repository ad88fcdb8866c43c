"""What the values of options may be: numbers, sizes, names, paths, clusters; values in memory as files.

The files live as long as this process, so that what a report says to do next finds them. What only they need
is imported with the first of them: every command line imports this.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.errors import HlotoolError, UsageError
from hlotool.parser.jax_stages import is_stage, stage_proto
from hlotool.runs.options.declared import as_text, parser, path_text, several, words
from hlotool.system.files import passing_folder
from hlotool.system.urls import is_url, taken_in
from hlotool.system.user_input import complaint_about, size_of

if TYPE_CHECKING:
    from hlotool.ir.module import Module


#: Kinds of clusters that a package starts: its module, the class, what installs it, the option with the size.
STARTED = {
    "slurm": ("dask_jobqueue", "SLURMCluster", "dask-jobqueue", "jobs"),
    "k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes", "n_workers"),
}
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss|inproc)://\S+")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as the command line names it.

    Attributes:
        kind: `address`, `local`, `slurm`, `k8s`.
        address: of a scheduler.
        workers: how many are started; 0 for what the cluster's own configuration says.
        options: for the software that starts it.
    """

    kind: str
    address: str = ""
    workers: int = 0
    options: dict[str, Any] = field(default_factory=dict)


def cluster_spec(text: str) -> ClusterSpec:
    """What `tcp://HOST:PORT`, `local:N`, `slurm:jobs=N,…` or `k8s:n_workers=N,…` means; raises ValueError."""
    if _ADDRESS.fullmatch(text):
        return ClusterSpec("address", text)
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdigit() and int(rest):
        return ClusterSpec("local", workers=int(rest))
    if kind in STARTED:
        options = dict(_option(word) for word in rest.split(",") if word)
        return ClusterSpec(kind, "", int(options.pop(STARTED[kind][3], 0)), options)
    forms = "tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…"
    raise ValueError(f"{text!r} is no cluster; write {forms}")


def _option(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{word!r} is no option of a cluster; write NAME=VALUE")
    return name, int(value) if value.isdigit() else value


#: Where programs are: a dump directory, a file of HLO, an archive, a log; or a program itself, also one that
#: JAX has traced, lowered or compiled.
Program: TypeAlias = "str | os.PathLike[str] | Module | Any"
#: Arguments or results: a file, a folder, or `SCRIPT.py:FUNCTION`; or the arrays themselves, tuples nested.
Values: TypeAlias = "str | os.PathLike[str] | Sequence[Any]"


def path_of(program: Program) -> str:
    """The path of a program; one that is in memory is written to a file."""
    if isinstance(program, str | os.PathLike):
        return taken_in(os.fspath(program))
    if is_stage(program):
        from hlotool.parser.proto.module import parse_module_proto

        content = stage_proto(program)
        return _written(f"{_file_name(parse_module_proto(content).name)}.hlo.pb", content)
    # `m.path`, of a program that was read, is the text before whatever has been done to it since.
    return _written(f"{_file_name(program.name)}.hlo", program.to_text().encode("utf-8", "surrogateescape"))


def _file_name(name: str) -> str:
    """The name of a module as that of a file."""
    return re.sub(r"[^\w.+=-]|^\.+", "_", name)[:100] or "module"


def paths_of(programs: Program | Sequence[Program]) -> list[str]:
    """The paths of one program or of several."""
    if isinstance(programs, list | tuple):
        return [path_of(program) for program in programs]
    return [path_of(programs)]


def values_path(values: Values | None) -> str | None:
    """The file of arguments or results; those in memory are written to one."""
    if values is None or isinstance(values, str | os.PathLike):
        return None if values is None else taken_in(os.fspath(values))
    import numpy as np

    from hlotool.inputs.given import npz_bytes

    return _written("values.npz", npz_bytes([_arrays(value, np) for value in values]))


def _arrays(value: Any, np: Any) -> Any:
    return tuple(_arrays(part, np) for part in value) if isinstance(value, tuple) else np.asarray(value)


def _written(name: str, content: bytes) -> str:
    """A file of that name and content; the same content is the same file."""
    import hashlib

    folder = _folder() / hashlib.blake2b(content, digest_size=8).hexdigest()
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return str(path)


#: Of this process, made when it is needed.
_folder = cache(passing_folder)


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


@parser("SHAPES")
def shapes(text: str) -> str:
    """Shapes of arrays as HLO writes them, with commas between them."""
    for shape in split_shapes(text):
        if not re.fullmatch(r"[a-z][a-z0-9]*\[(\d+(,\d+)*)?\]", shape):
            raise argparse.ArgumentTypeError(f"{quoted(shape)} is no shape; write it like f32[8,128],s32[]")
    return text


@parser("CONDITIONS")
def conditions(text: str) -> str:
    """What makes an execution worth keeping: `nan|inf|jump:5|every:1000`, or some of it."""
    from hlotool.runs.capture.keeping import parse_conditions

    try:
        parse_conditions(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{quoted(text)}: {error}") from error
    return text


def split_shapes(text: str) -> tuple[str, ...]:
    """Each shape by itself; none of a text without any."""
    return tuple(part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip())


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
