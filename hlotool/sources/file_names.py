"""What the name of a file in a dump directory says.

`[TIMESTAMP.|PREFIX.]module_NNNN[.MODULE NAME][.cl_N].SUFFIX[.gz]`, where the module name may contain dots
(`SyncTensorsGraph.445`), and so may the suffix (`sm_9.0_gpu_after_optimizations.txt`). Names are therefore
split at known suffixes from the right, never at dots. XLA leaves the module name out when the file name would
exceed 255 characters.

Folders of a dump hold what a frontend handed over: `module_NNNN.MODULE NAME[.cl_N]`, or, from jaxlib 0.7 to
0.9, `MODULE NAME_MILLISECONDS`.

XLA: service/dump.cc (FilenameFor), gpu/compile_module_to_llvm_ir.cc (GetDumpName).
"""

from __future__ import annotations

import enum
import re

from msgspec import Struct
from msgspec.structs import replace


class Kind(enum.Enum):
    """What a file of a dump holds."""

    #: The program as the frontend gave it.
    BEFORE_OPTIMIZATIONS = "before optimizations"
    #: The program between two passes of a pipeline, or in the middle of a pass.
    PASS = "pass"
    #: The program at a named point of the compilation whose place between the passes the name does not tell.
    NAMED = "named stage"
    #: The program that is compiled to machine code.
    AFTER_OPTIMIZATIONS = "after optimizations"
    #: One fusion cut out by the compiler into a module of its own.
    FUSION = "extracted fusion"
    #: HLO that has no name of a dump.
    PLAIN = "plain module"
    #: A program with the arguments and the result of one execution.
    SNAPSHOT = "snapshot"
    #: The program before optimizations with the arguments of one execution.
    UNOPTIMIZED_SNAPSHOT = "unoptimized snapshot"
    #: What the frontend handed to XLA.
    STABLEHLO = "StableHLO"
    #: LLVM IR, object code, reports, options: nothing that can be replayed.
    ARTEFACT = "artefact"
    #: The name does not tell; the content may.
    UNKNOWN = "unknown"


class Format(enum.Enum):
    """How a file is written."""

    TEXT = "HLO text"
    PROTO = "binary proto"
    TEXT_PROTO = "text proto"
    MLIR = "StableHLO"
    OTHER = "other"


class DumpName(Struct, frozen=True):
    """A file name of a dump, taken apart.

    Attributes:
        text: the whole name.
        kind: what the file holds.
        format: how it is written, before compression.
        module_number: NNNN of `module_NNNN`, None for files that do not belong to a numbered module.
        module_name: may contain dots; empty when the name leaves it out or cannot be split with certainty.
        change: N of `cl_N`: the change list that a TPU's compiler was built from.
        rest: everything after `module_NNNN.`, for the cases that cannot be split.
        label: name of the stage, such as `before_optimizations` or `after_spmd_partitioner`.
        timestamp: microseconds of `--xla_dump_include_timestamp`.
        platform: `cpu`, `gpu`, `tpu`, `sm_9.0_gpu`, `gfx942_gpu`.
        sequence: number of a pass stage within its module.
        pipeline: of a pass stage; the pass itself for a stage in the middle of a pass.
        after_pass: the pass that has just run (or the step of it).
        before_pass: the pass that runs next.
        execution: number of the execution that a snapshot captured, which may begin anywhere, also below 0.
    """

    text: str
    kind: Kind
    format: Format = Format.OTHER
    module_number: int | None = None
    module_name: str = ""
    change: int | None = None
    rest: str = ""
    label: str = ""
    timestamp: int | None = None
    platform: str = ""
    sequence: int | None = None
    pipeline: str = ""
    after_pass: str = ""
    before_pass: str = ""
    execution: int | None = None


_COMPRESSION = re.compile(r"\.(gz|bz2|xz)$")
_HEAD = re.compile(r"^(?:(?P<prefix>.+?)\.)?module_(?P<number>\d{4,})(?:\.(?P<rest>.+))?$", re.DOTALL)
_UNNUMBERED_SNAPSHOT = re.compile(r"^module_(?P<name>.+)\.execution_(?P<execution>\d{4,})\.hlo_snapshot\.pb$")
#: A folder of jaxlib 0.7 to 0.9: a time in milliseconds has thirteen digits from 2001 to 2286.
_TIMED_FOLDER = re.compile(r"^(?P<name>.+)_(?P<milliseconds>\d{13})$", re.DOTALL)
#: What TPU dumps put after the module's name.
_CHANGELIST = re.compile(r"(?:^|\.)cl_(?P<change>\d+)$")
#: The same, where the suffix behind it is not known.
_CHANGELIST_WITHIN = re.compile(r"^(?P<name>.*?)\.cl_(?P<change>\d+)\.", re.DOTALL)

_PLATFORM = r"_?(?:(?P<platform>sm_\d+\.\d+[a-z]?_gpu|(?:gfx\w+_)?gpu|[a-z]+)_)?"
_BEFORE = r"(?P<before>before_optimizations?)"
_AFTER = rf"(?P<after>{_PLATFORM}after_(?:optimizations?(?:_(?:before|after)_buffer_assignment)?|codegen))"
_PASS = (
    r"(?P<sequence>\d{4,})\.(?P<pipeline>[^.]+)\.after_(?P<after_pass>[^.]+)\.before_(?P<before_pass>[^.]+)"
)
_STEP = r"(?P<sequence>\d{4,})\.(?P<pipeline>[^.]+)\.after_(?P<after_pass>[^.]+)"
_NAMED = r"(?P<named>(?:before|after)_(?:auto_spmd_sharding|spmd_partitioner|spmd_calls))"
_FUSION = r"(?P<fusion>gemm_fusion_\d+\..+?(?:\.optimized)?|triton_fusion_numerics_verifier_failed_\d+)"
_EXECUTION = r"execution_(?P<execution>\d{4,})\."

_MODULE_EXTENSION = r"(?P<extension>\.txt|\.hlo\.pb|\.hlo)"
_PROTO_EXTENSION = r"(?P<extension>\.pb|\.txt)"
_REPORT = (
    r"(?:-(?:buffer-assignment(?:-values)?|live-range|memory-usage-report)\.(?:txt|pb)"
    r"|(?:\.top_level)?\.html|\.dot|\.url|\.fdo_profile)"
)
_MODULE_ARTEFACTS = (
    r"debug_options|config\.pbtxt|metadata\.textproto|_fusion\.html"
    r"|thunk_sequence(?:_after_thunk_passes)?\.txt|thunk_metadata\.(?:txt|pb)"
    r"|autotune_results\.pbtxt|gpu_target_config\.pbtxt|priority_fusion_dump\.(?:txt|pb)"
    r"|execution_options\.txt|hlo_module_config\.txt|target_arguments\.txt|tpu_comp_env\.txt|flagfile"
    r"|basic_compiler_metadata\.txt|transfer_stats\.txt"
)


def _suffix(pattern: str, kind: Kind) -> tuple[re.Pattern[str], Kind]:
    return re.compile(rf"^(?:(?P<name>.+?)\.)?{pattern}$", re.DOTALL), kind


#: Tried in this order: the more particular suffix first, because a module name may end in `.1234`, which
#: looks like the number of a pass stage.
_SUFFIXES = (
    _suffix(_PASS + _MODULE_EXTENSION, Kind.PASS),
    _suffix(_FUSION + _MODULE_EXTENSION, Kind.FUSION),
    _suffix(_BEFORE + _MODULE_EXTENSION, Kind.BEFORE_OPTIMIZATIONS),
    _suffix(_AFTER + _MODULE_EXTENSION, Kind.AFTER_OPTIMIZATIONS),
    _suffix(_NAMED + _MODULE_EXTENSION, Kind.NAMED),
    _suffix(_STEP + _MODULE_EXTENSION, Kind.PASS),
    _suffix(_EXECUTION + "hlo_unoptimized_snapshot" + _PROTO_EXTENSION, Kind.UNOPTIMIZED_SNAPSHOT),
    _suffix(_EXECUTION + r"hlo_snapshot(?P<extension>\.pb)", Kind.SNAPSHOT),
    # A number of 32 bits that begins anywhere and counts up.
    _suffix(r"snapshot\.(?P<execution>-?\d+)(?P<extension>\.pb)", Kind.SNAPSHOT),
    _suffix(rf"(?:{_PASS}|{_BEFORE}|{_AFTER}|{_NAMED}){_REPORT}", Kind.ARTEFACT),
    _suffix(f"(?:{_MODULE_ARTEFACTS})", Kind.ARTEFACT),
)

_FORMATS = {".txt": Format.TEXT, ".hlo": Format.TEXT, ".hlo.pb": Format.PROTO, ".pb": Format.PROTO}
_PLAIN_FORMATS = {".hlo": Format.TEXT, ".hlo.txt": Format.TEXT, ".hlo.pb": Format.PROTO}
#: Reports of differential testing attach `.ir`.
_MAYBE_FORMATS = dict.fromkeys((".txt", ".log", ".out", ".err", ".ir"), Format.TEXT)
_MAYBE_PROTOS = {".pb": Format.PROTO, ".pbtxt": Format.TEXT_PROTO, ".textproto": Format.TEXT_PROTO}
#: Graphs that TensorFlow writes beside the HLO, and the options that JAX writes.
_NEVER_HLO = re.compile(
    r"^(?:(?:before_)?mark_for_compilation|before_increase_dynamism|compile_options\.|topology\.)"
)


def parse_name(name: str) -> DumpName:
    """Take the file name `name` (without directories) apart; never fails, at worst the kind is UNKNOWN."""
    bare = _COMPRESSION.sub("", name)
    if head := _HEAD.match(bare):
        return _numbered(name, head["prefix"] or "", int(head["number"]), head["rest"] or "")
    if snapshot := _UNNUMBERED_SNAPSHOT.match(bare):
        return DumpName(
            name,
            Kind.SNAPSHOT,
            Format.PROTO,
            module_name=snapshot["name"],
            execution=int(snapshot["execution"]),
        )
    return DumpName(name, *_by_extension(bare))


def promises_hlo(name: str) -> bool:
    """Whether a file of that name is expected to hold HLO, so that one without any is broken."""
    return _COMPRESSION.sub("", name).endswith(tuple(_PLAIN_FORMATS))


def parse_folder(name: str) -> DumpName:
    """The same for the name of a folder: of one without a number, the module's name and the time."""
    if timed := _TIMED_FOLDER.match(name):
        microseconds = 1000 * int(timed["milliseconds"])
        return DumpName(name, Kind.ARTEFACT, module_name=timed["name"], timestamp=microseconds)
    folder = parse_name(name)
    own_name, change = _without_change(folder.rest)
    return replace(folder, module_name=own_name, change=change)


def _without_change(name: str) -> tuple[str, int | None]:
    """A module's name without the change list that stands behind it, and that."""
    found = _CHANGELIST.search(name)
    return (name[: found.start()], int(found["change"])) if found else (name, None)


def _numbered(text: str, prefix: str, number: int, rest: str) -> DumpName:
    kind, fields = _split(rest)
    form = _FORMATS.get(fields.get("extension", ""), Format.OTHER)
    if kind is Kind.UNOPTIMIZED_SNAPSHOT and form is Format.TEXT:
        form = Format.TEXT_PROTO
    if kind is Kind.UNKNOWN:
        kind, form = _by_extension(rest)
        if kind is Kind.PLAIN:
            kind = Kind.UNKNOWN
        elif form is Format.OTHER or rest.endswith(".log"):
            kind = Kind.ARTEFACT
    own_name, change = _without_change(fields.get("name", ""))
    if not fields and (within := _CHANGELIST_WITHIN.match(rest)):
        own_name, change = within["name"], int(within["change"])
    return DumpName(
        text,
        kind,
        form,
        module_number=number,
        module_name=own_name,
        change=change,
        rest=rest,
        label=_label(fields),
        timestamp=int(prefix) if prefix.isdigit() else None,
        platform=fields.get("platform", ""),
        sequence=int(fields["sequence"]) if "sequence" in fields else None,
        pipeline=fields.get("pipeline", ""),
        after_pass=fields.get("after_pass", ""),
        before_pass=fields.get("before_pass", ""),
        execution=int(fields["execution"]) if "execution" in fields else None,
    )


def _split(rest: str) -> tuple[Kind, dict[str, str]]:
    """Kind and named parts of what follows `module_NNNN.`."""
    for pattern, kind in _SUFFIXES:
        if found := pattern.match(rest):
            return kind, {key: value for key, value in found.groupdict().items() if value}
    return Kind.UNKNOWN, {}


def _label(fields: dict[str, str]) -> str:
    """The stage's own words, whichever suffix matched."""
    for key in ("before", "after", "named", "fusion"):
        if key in fields:
            return fields[key]
    if "after_pass" not in fields:
        return ""
    step = f"{fields['pipeline']}.after_{fields['after_pass']}"
    return f"{step}.before_{fields['before_pass']}" if "before_pass" in fields else step


def _by_extension(name: str) -> tuple[Kind, Format]:
    """Kind and format of a file that carries no known suffix of a dump."""
    if _NEVER_HLO.match(name):
        return Kind.ARTEFACT, Format.OTHER
    for extension, form in _PLAIN_FORMATS.items():
        if name.endswith(extension):
            return Kind.PLAIN, form
    for extension, form in (_MAYBE_FORMATS | _MAYBE_PROTOS).items():
        if name.endswith(extension):
            return Kind.UNKNOWN, form
    if name == "module.mlir":
        return Kind.STABLEHLO, Format.OTHER
    return (Kind.UNKNOWN if "." not in name else Kind.ARTEFACT), Format.OTHER
