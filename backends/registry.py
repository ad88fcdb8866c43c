"""Backends by name, and how the command line names them: `NAME[:WORD or KEY=VALUE,…]`, as
`xla:disable=algsimp,opt=0`.

Built-in backends and those of the entry points of group `hlotool.backends` are found here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from hlotool.errors import BackendFailed, HlotoolError, Unsupported, UsageError
from hlotool.system.records import Record
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from hlotool.backends.base import Backend, DevicesBackend, Value
    from hlotool.ir.module import Module


#: Values by option; a bare word has the value "".
Options: TypeAlias = Mapping[str, str]

NO_OPTIONS: Final[Options] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A backend and how it is to be set up.

    Attributes:
        name: of the backend.
        options: in the order given.
    """

    name: str
    options: Options = field(default_factory=lambda: NO_OPTIONS)

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" if value else key for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


def parse_spec(text: str) -> BackendSpec:
    """The backend that `text` names.

    Raises:
        UsageError: it is not of the form `NAME[:WORD or KEY=VALUE,…]`, or says an option twice.
    """
    name, colon, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not key or (equals and not value):
            raise UsageError(f"backend {text!r}: {part!r} is not an option; write WORD or KEY=VALUE")
        if key in options:
            raise UsageError(f"backend {text!r}: option {key!r} is given twice")
        options[key] = value
    if not name:
        raise UsageError(f"backend {text!r} has no name")
    return BackendSpec(name, MappingProxyType(options))


#: Options that say where something lies on this machine.
PLACES = frozenset({"python", "libtpu"})


def portable(text: str) -> str:
    """A backend as it is called on any machine: where its parts lie is this one's matter."""
    spec = parse_spec(text)
    return str(replace(spec, options={k: v for k, v in spec.options.items() if k not in PLACES}))


def brief(text: str) -> str:
    """A backend with the device that it is for, and without its options: `aot:v5e`."""
    spec = parse_spec(text)
    return str(replace(spec, options={k: v for k, v in spec.options.items() if not v}))


def check_options(name: str, options: Options, known: Mapping[str, str]) -> None:
    """Refuse options that a backend does not know.

    Args:
        name: of the backend.
        options: as given.
        known: what each option means, by its form: `word`, or `key=VALUE` for one that needs a value.

    Raises:
        UsageError: an unknown option, one without its value, or a value where none belongs. It lists the
            known ones.
    """
    forms = {form.partition("=")[0]: form for form in known}
    for key, value in options.items():
        form = forms.get(key)
        if form is None:
            listed = ", ".join(known) or "none"
            meant = did_you_mean(key, forms)
            raise UsageError(f"backend {name} has no option {key!r}; it knows: {listed}{meant}")
        if ("=" in form) != bool(value):
            given = f"{key}={value}" if value else key
            raise UsageError(f"backend {name}: option {given!r} is written {form}")


GROUP = "hlotool.backends"

#: Takes the options of the spec; a factory of a backend without any may take no argument at all.
Factory: TypeAlias = "Callable[..., Backend]"

#: Factories as in entry points. Known without an installed distribution, so that a plain checkout works.
BUILT_IN: dict[str, str] = {
    "aot": "hlotool.backends.aot:create",
    "cuda": "hlotool.backends.cuda:create",
    "cuda-emu": "hlotool.backends.cuda_emu:create",
    "gpu-ptx": "hlotool.backends.gpu_ptx:create",
    "iree": "hlotool.backends.iree:create",
    "numpy": "hlotool.backends.numpy:create",
    "opt": "hlotool.backends.opt:create",
    "pjrt": "hlotool.backends.xla.plugin:create",
    "stablehlo": "hlotool.backends.stablehlo:create",
    "xla": "hlotool.backends.xla:create",
}


#: Backends that compile what a frontend writes for a target of their own (`takes_first_stage`).
COMPILERS = frozenset({"aot", "gpu-ptx"})
#: What executes the programs that they make.
RUNS_COMPILED = "numpy"

#: Backends that execute the code which a dump holds beside its programs, and can tell where it goes wrong.
EXECUTES_CODE = frozenset({"gpu-ptx"})

#: Options of built-in backends that choose the kind of device.
DEVICES = {"aot": ("v5e", "h100"), "gpu-ptx": ("h100",), "xla": ("gpu", "tpu")}


def takes_first_stage(backend: str) -> bool:
    """Whether a backend compiles the first stage of a dump, whatever another compiler has made of it.

    Without a target it compiles nothing.
    """
    spec = parse_spec(backend)
    return spec.name in COMPILERS and bool(spec.options.keys() - {"seed"})


def executes_code(backend: str) -> bool:
    """Whether a backend executes what a compiler has generated, read from files of the dump."""
    return parse_spec(backend).name in EXECUTES_CODE


def backend_names() -> list[str]:
    """All names that `get_backend` accepts, without options."""
    return sorted(set(BUILT_IN) | {entry.name for entry in _entry_points()})


def listed_backends() -> list[str]:
    """What `hlotool backends` shows: all names, and variants for devices of their own."""
    listed: list[str] = []
    for name in backend_names():
        listed += [] if name in COMPILERS else [name]
        listed += [f"{name}:{device}" for device in DEVICES.get(name, ())]
    return listed


def _entry_points() -> EntryPoints:
    """Those of installed packages. The import takes longer than a small program, and built-ins need none."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def get_backend(text: str) -> Backend:
    """The backend that `text` names: `NAME`, or `NAME:OPTIONS` as in `xla:disable=algsimp,opt=0`.

    Raises:
        UsageError: there is none of that name, or it does not take these options.
    """
    spec = parse_spec(text)
    factory = _factory(spec.name)
    if inspect.signature(factory).parameters:
        return factory(spec.options)
    if spec.options:
        raise UsageError(f"backend {spec.name} takes no options, got {text!r}")
    return factory()


def is_flag(option: str) -> bool:
    """Whether an option of a backend is told to XLA's compiler."""
    return option.startswith("xla_") or option in ("disable", "opt")


def without_flags(backend: str) -> str:
    """The backend without any flag."""
    spec = parse_spec(backend)
    return str(BackendSpec(spec.name, {k: v for k, v in spec.options.items() if not is_flag(k)}))


def with_flags(backend: str, flags: Sequence[str]) -> str:
    """A backend with these flags; passes that are to be left out are joined."""
    spec = parse_spec(backend)
    options = dict(spec.options)
    for name, _, value in (flag.partition("=") for flag in flags):
        options[name] = f"{options[name]}+{value}" if name == "disable" and name in options else value
    return str(BackendSpec(spec.name, options))


def split_specs(text: str) -> list[str]:
    """The backends of a list such as `numpy,xla:gpu,opt=0,cuda`: what names none is an option of the last.

    Raises:
        UsageError: a part names no backend, and there is none before it that has options.
    """
    known = backend_names()
    specs: list[str] = []
    for part in text.split(","):
        name = part.partition(":")[0]
        if name in known:
            specs.append(part)
        elif specs and ":" in specs[-1]:
            specs[-1] += f",{part}"
        else:
            raise _unknown(name)
    return specs


def _unknown(name: str) -> UsageError:
    names = backend_names()
    return UsageError(f"no backend {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def backend_options(text: str) -> Mapping[str, str]:
    """The options of a backend by form, with their meaning: `OPTIONS` in the module of its factory."""
    factory = _factory(parse_spec(text).name)
    options: Mapping[str, str] = getattr(sys.modules[factory.__module__], "OPTIONS", {})
    return options


def _factory(name: str) -> Factory:
    if place := BUILT_IN.get(name):
        module, _, function = place.partition(":")
        built_in: Factory = getattr(import_module(module), function)
        return built_in
    for entry in _entry_points():
        if entry.name == name:
            loaded: Factory = entry.load()
            return loaded
    raise _unknown(name)


def get_devices_backend(text: str) -> DevicesBackend:
    """The backend that `text` names, which must execute programs for several devices.

    Raises:
        UsageError: there is none of that name, or it does not take these options.
        Unsupported: it executes programs for one device only.
    """
    from hlotool.backends.base import DevicesBackend

    backend = get_backend(text)
    if not isinstance(backend, DevicesBackend):
        raise Unsupported(f"backend {text} runs programs for one device")
    return backend


class Description(Record, frozen=True, kw_only=True):
    """A backend: its version, device and options, or the reason why it cannot be used."""

    version: str = ""
    device: str = ""
    options: dict[str, str] = {}
    reason: str = ""


def describe_backend(name: str) -> Description:
    """Load the backend called `name`, in a worker, because that can crash.

    An exception that is not ours says that it is broken.
    """
    try:
        backend = get_backend(name)
        device = getattr(backend, "device", "cpu")
        return Description(version=backend.version, device=device, options=dict(backend_options(name)))
    except HlotoolError as error:
        return Description(reason=error.message if isinstance(error, BackendFailed) else str(error))


def evaluate_constant(module: Module) -> Value:
    """What a module without parameters returns.

    Raises:
        Unsupported: the reference cannot execute it.
        HlotoolError: it failed.
    """
    return get_backend("numpy").compile(module).run([])
