"""Which tasks of a batch are the same: keys of programs, inputs, backends, versions and options.

A task has two keys. Tasks of one `exact` key have the same bytes; those of one `shared` key the same programs
under other names, from other source lines. Nothing is parsed for either.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest
from hlotool.dump.records import Stage
from hlotool.dump.source import Source, decode
from hlotool.errors import HlotoolError
from hlotool.fleet.normal_form import NormalForm, normal_form
from hlotool.replay.keys import context_key
from hlotool.replay.options import ReplayOptions, RunOptions
from hlotool.replay.stages import select_stages
from hlotool.replay.task import Task
from hlotool.workers.plain import encoded

#: What decides besides the text where it stands in one: values from elsewhere in the dump, devices.
_ELIDED = b"{...}"
_DEVICES = (b"num_partitions=", b"replica_count=", b"replica_groups=", b"sharding=")

#: Variables of the environment that numeric libraries and backends read, by how they begin.
_VARIABLES = ("XLA_", "JAX_", "TF_", "CUDA_", "OMP_", "MKL_", "OPENBLAS_", "NPY_", "NPROC", "HLOTOOL_THREADS")

#: Files of ours that decide: code, tables of the grammar, the schema of protos.
_CODE = frozenset({".py", ".bin", ".binpb", ".lark", ".h", ".toml"})

#: Packages that compute, by the backend that needs them.
_PACKAGES = {"": ("numpy", "ml_dtypes", "scipy"), "xla": ("jaxlib",), "stablehlo": ("jaxlib",)}

#: Backends whose answers are a function of what is in the keys: no device with a driver of its own.
_ON_THIS_PROCESSOR = frozenset({"numpy", "xla", "stablehlo", "cuda-emu"})
_DEVICE_WORDS = frozenset({"gpu", "tpu"})


@dataclass(frozen=True)
class Identity:
    """What tells a task from others.

    Attributes:
        exact: of the bytes; empty where these cannot be read, and no answer can be kept.
        lasts: the answer is a function of what the key holds, and may be kept for later commands.
        paths: of the files that rows name: first those of the texts, the reference first.
        contents: of the bytes alone, whatever replays them and how.
    """

    exact: str
    lasts: bool = False
    paths: tuple[str, ...] = ()
    contents: str = ""
    _texts: tuple[bytes, ...] = ()
    _other_texts: tuple[bytes, ...] = ()
    _context: tuple[str, ...] = ()
    _forms: list[NormalForm] = field(default_factory=list)

    @property
    def is_named(self) -> bool:
        """Whether names count: tasks of other names are never the same."""
        return not self._texts

    @cached_property
    def program(self) -> str:
        """The key of the programs alone: the same on every machine and with all options."""
        if self.is_named:
            return self.contents
        return digest("program", *(form.key for form in self.forms))

    @property
    def forms(self) -> Sequence[NormalForm]:
        """The normal forms of the texts; made when they are first asked for."""
        if not self._forms:
            self._forms.extend(normal_form(decode(text)) for text in self._texts)
        return self._forms

    @cached_property
    def shared(self) -> str:
        """The key of the same programs under other names; empty where names count."""
        if self.is_named:
            return ""
        beside = (normal_form(decode(text)) for text in self._other_texts)
        return digest("shared", *self._context, *(form.key for form in (*self.forms, *beside)))


def identity_of(task: Task) -> Identity:
    """The identity of a task; what cannot be read has none, and the worker will say why."""
    try:
        return _identity(task)
    except HlotoolError:
        return Identity("")


def _identity(task: Task) -> Identity:
    module, options = task.module, task.options
    selection = select_stages(module, options.stages)
    stages = [*([selection.reference] if selection.reference else []), *selection.tested]
    paths = (*(str(stage.source) for stage in stages), task.path)
    texts = tuple(stage.text.read_bytes() for stage in stages if stage.text is not None)
    labels = tuple(f"{stage.kind.value} {stage.label}" for stage in stages)
    context = (_context_of(options), *labels, *_about(task))
    is_whole = len(texts) == len(stages) > 0
    other_texts, others = _beside(task, stages, texts if is_whole else None)
    contents = (*texts, *other_texts, *others)
    alone = digest(*contents)
    if _is_personal(task):
        # The values, or where they are written, are found by the names of modules and files.
        own = context_key(module, options)
        return Identity(digest("own", *context, own, module.title, *contents), _lasts(options), paths, alone)
    exact = digest("exact", *context, *contents)
    if not is_whole or any(_ELIDED in text for text in texts):
        return Identity(exact, _lasts(options), paths, alone)
    return Identity(
        exact, _lasts(options), paths, alone, texts, other_texts, (*context, *map(digest, others))
    )


def _is_personal(task: Task) -> bool:
    """Whether a task has inputs or outputs of its own."""
    options, module = task.options, task.module
    given = (options.inputs, options.outputs, options.compare_with, module.arguments)
    saved = (options.save_outputs, options.save_values)
    return any(given) or any(saved) or bool(module.captures)


def _lasts(options: ReplayOptions) -> bool:
    """Whether a later command may believe the answer: no script of the user's and no device took part."""
    scripts = options.compare_with or ".py:" in f"{options.inputs or ''}{options.outputs or ''}"
    saves = options.save_outputs or options.save_values
    names = [backend.partition(":") for backend in (options.reference, options.backend)]
    here = all(n in _ON_THIS_PROCESSOR and not _DEVICE_WORDS & set(o.split(",")) for n, _, o in names)
    return here and not scripts and not saves


def _beside(
    task: Task, stages: Sequence[Stage], texts: Sequence[bytes] | None
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """What else a replay may read of the module than the texts of its stages: other texts, and other files.

    Args:
        task: the module.
        stages: that are replayed.
        texts: of all of these; None where some have none.
    """
    module = task.module
    words = (_ELIDED, *_DEVICES)
    reads_more = texts is None or any(word in text for text in texts for word in words)
    others = [file.source for file in module.artefacts]
    if reads_more or task.options.devices is not None:
        known = [*module.stages, *module.others, *module.companions]
        others += [source for stage in known for source in (stage.proto, stage.mlir) if source is not None]
        others += [module.stablehlo] if module.stablehlo is not None else []
    else:
        known = list(module.stages[:1])
        others += [stage.source for stage in known if stage.text is None]
    besides = [stage.text for stage in known if stage.text is not None and stage not in stages]
    return _read(besides), _read(others)


def _read(sources: Iterable[Source]) -> tuple[bytes, ...]:
    return tuple(source.read_bytes() for source in sources)


def _about(task: Task) -> tuple[str, ...]:
    """What a dump says of a module beside its files."""
    module = task.module
    return (str(module.devices), str(module.takes_opaque), str(module.generates_elided))


@lru_cache(maxsize=64)
def _context_of(options: ReplayOptions) -> str:
    """What decides about all tasks with the same options."""
    deciding = options
    if isinstance(options, RunOptions):
        # Which modules, and how many at a time, is not what becomes of one.
        deciding = msgspec.structs.replace(options, only=None, jobs=0, shard=None, sample=0, max_failures=0)
    backends = tuple(sorted({name.partition(":")[0] for name in options.backends}))
    return digest(encoded(deciding, msgspec.json.encode), made_with(backends))


@lru_cache(maxsize=8)
def made_with(backends: tuple[str, ...] = (), aside: frozenset[str] = frozenset()) -> str:
    """A key of all that computes: hlotool itself, Python, packages, processor, environment.

    Args:
        backends: whose packages count, too.
        aside: variables of the environment that do not count.
    """
    packages = [name for backend in ("", *backends) for name in _PACKAGES.get(backend, ())]
    counting = (item for item in os.environ.items() if item[0].startswith(_VARIABLES))
    variables = sorted((name, value) for name, value in counting if name not in aside)
    return digest(
        __version__,
        own_code(),
        sys.version,
        *map(_version, packages),
        platform.machine(),
        processor_features(),
        *platform.libc_ver(),
        repr(variables),
    )


def made_with_any(aside: frozenset[str] = frozenset()) -> str:
    """The key that only machines share which find the same with any backend; see `made_with`."""
    return made_with(tuple(sorted(filter(None, _PACKAGES))), aside)


@lru_cache(maxsize=1)
def own_code() -> str:
    """A key of hlotool's own files: in a checkout these change without the version."""
    import hlotool.backends
    import hlotool.grammar

    packages = (
        Path(__file__).parents[1],
        *map(Path, hlotool.backends.__path__),
        *map(Path, hlotool.grammar.__path__),
    )
    files = [Path(at, name) for folder in packages for at, _, names in os.walk(folder) for name in names]
    return digest(*(file.read_bytes() for file in sorted(files) if file.suffix in _CODE))


def processor_features() -> str:
    """What the processor can do, on which libraries choose their code; its name where the system hides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"
