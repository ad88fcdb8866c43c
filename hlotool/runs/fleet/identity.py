"""Which tasks of a batch are the same: keys of programs, inputs, backends, versions and options.

A task has two keys. Tasks of one `exact` key have the same bytes; those of one `shared` key the same programs
under other names, from other source lines. Nothing is parsed for either.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hlotool._version import __version__
from hlotool.errors import DumpError, HlotoolError
from hlotool.runs.fleet.contents import Content, Contents, context_key
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.task import Task, select_stages
from hlotool.sources.locations import Source, decode
from hlotool.sources.records import Stage
from hlotool.system.files import digest, processor_features
from hlotool.system.packages import version_of
from hlotool.system.records import encoded

if TYPE_CHECKING:
    from hlotool.runs.fleet.normal_form import NormalForm

#: Variables of the environment that numeric libraries and backends read, by how they begin.
_VARIABLES = ("XLA_", "JAX_", "TF_", "CUDA_", "OMP_", "MKL_", "OPENBLAS_", "NPY_", "NPROC", "HLOTOOL_THREADS")

#: Files of ours that decide: code, tables of the grammar, the schema of protos.
_CODE = (".py", ".bin", ".binpb", ".lark", ".h", ".toml")

#: Packages that compute, by the backend that needs them.
_PACKAGES = {
    "": ("numpy", "ml_dtypes", "scipy"),
    "xla": ("jaxlib",),
    "stablehlo": ("jaxlib",),
    "iree": ("jaxlib", "iree-base-compiler", "iree-base-runtime"),
}

#: Backends whose answers are a function of what is in the keys: no device with a driver of its own.
_ON_THIS_PROCESSOR = frozenset({"numpy", "xla", "stablehlo", "iree", "cuda-emu"})
_DEVICE_WORDS = frozenset({"gpu", "tpu"})


@dataclass(frozen=True)
class Identity:
    """What tells a task from others.

    Attributes:
        exact: of the bytes; empty where these cannot be read, and no answer can be kept.
        lasts: the answer is a function of what the key holds, and may be kept for later commands.
        paths: of the files that rows name: first those of the texts, the reference first.
    """

    exact: str
    lasts: bool = False
    paths: tuple[str, ...] = ()
    _keys: tuple[str, ...] = ()
    _texts: tuple[Content, ...] = ()
    _other_texts: tuple[Content, ...] = ()
    _context: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether names count: tasks of other names are never the same."""
        return not self._texts

    @property
    def contents(self) -> str:
        """The key of the bytes alone, whatever replays them and how."""
        return digest(*self._keys)

    @cached_property
    def program(self) -> str:
        """The key of the programs alone: the same on every machine and with all options."""
        if self.is_named:
            return self.contents
        try:
            return digest("program", *(form.key for form in self.forms))
        except DumpError:
            return self.contents

    @cached_property
    def forms(self) -> Sequence[NormalForm]:
        """The normal forms of the texts; made when they are first asked for.

        Raises:
            DumpError: a text has changed since.
        """
        return list(map(_form, self._texts))

    @cached_property
    def shared(self) -> str:
        """The key of the same programs under other names; empty where names count, or a text has changed."""
        if self.is_named:
            return ""
        try:
            beside = [_form(text).key for text in self._other_texts]
            return digest("shared", *self._context, *(form.key for form in self.forms), *beside)
        except DumpError:
            return ""

    @property
    def size(self) -> int:
        """Bytes of the texts that it holds."""
        held = sum(text.size for text in (*self._texts, *self._other_texts))
        return held + sum(len(form.text) for form in self.__dict__.get("forms", ()))


def _form(text: Content) -> NormalForm:
    from hlotool.runs.fleet.normal_form import normal_form

    form = normal_form(decode(text.read()))
    text.let_go()
    return form


def identity_of(task: Task, contents: Contents | None = None) -> Identity:
    """The identity of a task; what cannot be read has none, and the worker will say why.

    Args:
        task: a module to replay.
        contents: of files, of which some are known.
    """
    try:
        return _identity(task, contents or Contents())
    except HlotoolError:
        return Identity("")


def _identity(task: Task, contents: Contents) -> Identity:
    module, options = task.module, task.options
    selection = select_stages(module, options.stages)
    stages = [*([selection.reference] if selection.reference else []), *selection.tested]
    paths = (*(str(stage.source) for stage in stages), task.path)
    texts = tuple(contents.of(stage.text) for stage in stages if stage.text is not None)
    labels = tuple(f"{stage.kind.value} {stage.label}" for stage in stages)
    context = (_context_of(options), *labels, *_about(task))
    is_whole = len(texts) == len(stages) > 0
    other_texts, others = (
        tuple(map(contents.of, sources)) for sources in _beside(task, stages, texts if is_whole else None)
    )
    keys = tuple(content.facts.key for content in (*texts, *other_texts, *others))
    lasts = _lasts(options)
    if is_personal(task):
        # The values, or where they are written, are found by the names of modules and files.
        own = context_key(module, options)
        return Identity(digest("own", *context, own, module.title, *keys), lasts, paths, keys)
    exact = digest("exact", *context, *keys)
    if not is_whole or any(text.facts.is_elided for text in texts):
        return Identity(exact, lasts, paths, keys)
    of_others = (content.facts.key for content in others)
    return Identity(exact, lasts, paths, keys, texts, other_texts, (*context, *of_others))


def is_personal(task: Task) -> bool:
    """Whether a task has inputs or outputs of its own: no other module of a dump has the same."""
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
    task: Task, stages: Sequence[Stage], texts: Sequence[Content] | None
) -> tuple[list[Source], list[Source]]:
    """What else a replay may read of the module than the texts of its stages: other texts, and other files.

    Args:
        task: the module.
        stages: that are replayed.
        texts: of all of these; None where some have none.
    """
    module = task.module
    reads_more = texts is None or any(text.facts.is_elided or text.facts.speaks_of_devices for text in texts)
    others = [file.source for file in module.artefacts]
    if reads_more or task.options.devices is not None:
        known = [*module.stages, *module.others, *module.companions]
        others += [source for stage in known for source in (stage.proto, stage.mlir) if source is not None]
        others += [module.stablehlo] if module.stablehlo is not None else []
    else:
        known = list(module.stages[:1])
        others += [stage.source for stage in known if stage.text is None]
    besides = [stage.text for stage in known if stage.text is not None and stage not in stages]
    return besides, others


def _about(task: Task) -> tuple[str, ...]:
    """What a dump says of a module beside its files."""
    module = task.module
    return (
        *(str(module.devices), str(module.takes_opaque), str(module.generates_elided)),
        module.entry,
        module.unfinished,
    )


def _context_of(options: ReplayOptions) -> str:
    """What decides about all tasks with the same options."""
    backends = tuple(sorted({name.partition(":")[0] for name in options.backends}))
    return digest(_options_key(options), made_with(backends))


@lru_cache(maxsize=64)
def _options_key(options: ReplayOptions) -> str:
    deciding = options
    if isinstance(options, RunOptions):
        # Which modules, and how many at a time, is not what becomes of one.
        chosen: dict[str, Any] = {"only": None, "last_failed": False, "shard": None, "sample": 0}
        deciding = msgspec.structs.replace(options, jobs=0, max_failures=0, **chosen)
    return digest(encoded(deciding, msgspec.json.encode))


def made_with(backends: tuple[str, ...] = (), aside: frozenset[str] = frozenset()) -> str:
    """A key of all that computes: hlotool itself, Python, packages, processor, environment.

    Args:
        backends: whose packages count, too.
        aside: variables of the environment that do not count.
    """
    # Asked each time: a process may change its environment between two commands.
    counting = (item for item in os.environ.items() if item[0].startswith(_VARIABLES))
    return _made_with(backends, tuple(sorted(item for item in counting if item[0] not in aside)))


@lru_cache(maxsize=8)
def _made_with(backends: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> str:
    packages = [name for backend in ("", *backends) for name in _PACKAGES.get(backend, ())]
    return digest(
        __version__,
        own_code(),
        sys.version,
        *(f"{package} {version_of(package)}" for package in packages),
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

    packages = (str(Path(__file__).parents[2]), *hlotool.backends.__path__, *hlotool.grammar.__path__)
    walked = (found for folder in packages for found in os.walk(folder))
    files = [os.path.join(at, name) for at, _, names in walked for name in names if name.endswith(_CODE)]
    return digest(*map(_bytes_of, sorted(files)))


def _bytes_of(file: str) -> bytes:
    # A thousand files: without buffers, each takes half as long.
    with open(file, "rb", buffering=0) as opened:
        return opened.read()
