"""The private parts of jaxlib that the backend needs, wherever a version keeps them.

Every version since 0.4.26, the first that goes with NumPy 2, has what is needed to compile StableHLO. Names
have moved: `xla_extension` became `_jax` (0.6.1), from which `_hlo` was split off (0.10). Version 0.10.2 let
programs in between its passes (`_xla`). Imported in the process that holds XLA only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

#: Where names live, newest place first.
_HOMES = ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension")

#: Under which programs are let in between XLA's passes.
_HOOK = "hlotool"

#: What JAX is told that the platform of a plug-in is called. Its own names would bring its own rules.
_PLUGIN = "hlotool_plugin"


def find(name: str) -> Any:
    """A class or function of jaxlib's extension module.

    Raises:
        ImportError: this version has none of that name.
    """
    for home in _HOMES:
        try:
            module = import_module(home)
        except ImportError:
            continue
        if hasattr(module, name):
            return getattr(module, name)
    raise ImportError(f"this jaxlib has no {name}")


class Refused(Exception):
    """XLA cannot make StableHLO of a program."""


def to_stablehlo(text: str) -> str:
    """StableHLO for HLO text.

    Raises:
        Refused: with XLA's reason.
    """
    try:
        computation = find("XlaComputation")(to_proto(text))
        found: str = find("mlir").xla_computation_to_mlir_module(computation)
    except Exception as error:
        raise Refused(str(error)) from error
    return found


def to_proto(text: str) -> bytes:
    """The serialized HloModuleProto of HLO text."""
    return bytes(find("hlo_module_from_text")(text).as_serialized_hlo_module_proto())


def compile_stablehlo(code: str, devices: list[Any], options: Any) -> Any:
    """A loaded executable."""
    client = devices[0].client
    if not hasattr(client, "compile_and_load"):
        return client.compile(code, options)
    return client.compile_and_load(code, find("DeviceList")(tuple(devices)), options)


def register_plugin(path: str) -> str:
    """Load a PJRT plug-in; returns the name of the platform that JAX knows its devices by.

    Args:
        path: of a library that exports `GetPjrtApi`.

    Raises:
        Exception: of jaxlib's, where it cannot be loaded, or speaks another version of the interface.
    """
    from jax._src import xla_bridge

    xla_bridge.register_plugin(_PLUGIN, library_path=path)
    return _PLUGIN


@contextmanager
def instead_of_what_is_compiled(proto: bytes, after_scheduler: bool, client: Any) -> Iterator[list[bool]]:
    """Meanwhile `proto` takes the place of what `client` compiles, before or after the scheduler.

    Gives:
        a list that gets an element each time that happens.

    Raises:
        NotImplementedError: this jaxlib, or the plug-in of the client's platform, lets no programs in.
    """
    try:
        from jaxlib import _xla
    except ImportError:
        raise NotImplementedError("only jaxlib 0.10.2 and newer run programs that are optimised") from None
    stage, used = int(after_scheduler), []

    def swap(_: bytes) -> bytes:
        used.append(True)
        return proto

    # What is built into jaxlib is asked directly, platforms that are plug-ins through their C interface.
    is_plugin = client.platform != "cpu"
    try:
        if is_plugin:
            _xla.register_xla_transform_c_api(client, _HOOK, stage, swap)
        else:
            _xla.register_xla_transform(_HOOK, stage, swap)
    except RuntimeError as error:
        raise NotImplementedError(f"XLA for {client.platform} lets no programs in: {error}") from None
    try:
        yield used
    finally:
        if is_plugin:
            _xla.clear_xla_transform_c_api(client, _HOOK, stage)
        else:
            _xla.clear_xla_transform(_HOOK, stage)


@cache
def knows_pass(name: str) -> bool:
    """Whether XLA, as built into jaxlib, seems to have an HLO pass of that name.

    XLA passes over names that it does not know. Most passes return theirs as a constant, which is somewhere
    in the library; few put theirs together.
    """
    folder = Path(import_module("jaxlib").__path__[0])
    libraries = [path for suffix in ("so", "pyd", "dll") for path in folder.glob(f"*.{suffix}")]
    largest = max(libraries, key=lambda path: path.stat().st_size)
    with largest.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(f"\0{name}\0".encode()) >= 0 or content.find(name.encode()) >= 0


def initialize_lapack() -> None:
    """Without it programs that call LAPACK crash."""
    from jaxlib.cpu import _lapack

    _lapack.initialize()
