"""The process that holds a compiler for TPUs or GPUs; it has no device, and executes nothing.

Compilers end their process where a check of theirs fails, so that none runs in the user's. Nothing of hlotool
is imported here but the protocol and what asks jaxlib: the interpreter may be another one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from hlotool.backends.aot.protocol import (
    COUNTED,
    EXTRAS,
    LIBRARY,
    LOG,
    AheadRequest,
    AheadResult,
    CompilerSetup,
    Grid,
    TargetRequest,
)
from hlotool.backends.xla import jaxlib_api
from hlotool.backends.xla.child import NoPlugin, TooFewDevices, on_devices

#: The texts that compilers end with, the last one first: a TPU's, a GPU's.
_FINAL = ("*after_codegen.txt", "*after_optimizations.txt")

#: Packages that bring the compilers.
_PACKAGES = {"tpu": ("libtpu",), "cuda": ("jax-cuda13-pjrt", "jax-cuda12-pjrt")}


@cache
def _devices(platform: str, topology: str, facts: str) -> list[Any]:
    """The devices of a topology; the first call loads the compiler.

    Raises:
        NoPlugin: it is missing, or knows no such topology.
    """
    from jax.experimental import topologies

    given = {"target_config": facts} if facts else {"topology_name": topology}
    if facts:
        given["topology"] = topology
    try:
        described = topologies.get_topology_desc(platform=platform, **given)
    except Exception as error:
        raise NoPlugin(_why_not(platform, topology, error)) from error
    return list(described.devices)


def _why_not(platform: str, topology: str, error: Exception) -> str:
    reason = " ".join(str(error).split())
    library = os.environ.get(LIBRARY, "") if platform == "tpu" else ""
    if library and "Failed to open" in reason:
        return f"libtpu={library} cannot be loaded ({reason})"
    is_missing = not library and not any(map(_version, _PACKAGES[platform])) and "libtpu" not in reason
    if is_missing or "not implemented" in reason or "not find" in reason:
        return (
            f"there is no compiler for {platform} here: pip install 'hlotool[{EXTRAS[platform]}]' ({reason})"
        )
    return f"topology {topology}: {reason}"


def describe(target: TargetRequest) -> CompilerSetup:
    """The compiler for a target."""
    import jaxlib.version

    found = _devices(target.platform, target.topology, target.facts)
    packages = {package: _version(package) for package in _PACKAGES[target.platform]}
    if target.platform == "tpu" and LIBRARY in os.environ:
        packages = {"libtpu": _version_beside(Path(os.environ[LIBRARY]))}
    named = (f"{package} {version}" for package, version in packages.items() if version)
    build = re.search(r"cl/\d+", str(getattr(found[0].client, "platform_version", "")))
    compiler = next(named, "") or (f"libtpu {build[0]}" if build else "a compiler")
    return CompilerSetup(jaxlib.version.__version__, compiler, found[0].device_kind, len(found))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _version_beside(library: Path) -> str:
    """The version of the package that a libtpu.so was installed with; empty where it lies there alone."""
    found = metadata.distributions(name=library.parent.name, path=[str(library.parent.parent)])
    return next((package.version for package in found), "")


def compile_ahead(request: AheadRequest) -> AheadResult:
    """Compile, and say where the text is that the compiler ends with."""
    target, count = request.target, request.replicas * request.partitions
    devices = _devices(target.platform, target.topology, target.facts)[:count]
    if len(devices) < count:
        raise TooFewDevices(f"the program needs {count} devices, {target.topology} has {len(devices)}")
    folder = Path(request.folder)
    program = Path(request.program).read_bytes() if request.program else None
    code = jaxlib_api.to_stablehlo(request.text) if program is None else program
    with _stderr_in(folder / LOG):
        executable = _compiled(code, request, devices)
    found = next((paths for pattern in _FINAL if (paths := list(folder.glob(pattern)))), [])
    if not found:
        raise NotImplementedError("the compiler wrote no program that it ends with")
    path = max(found, key=lambda each: each.stat().st_size)
    log = (folder / LOG).read_text(encoding="utf-8", errors="backslashreplace")
    return AheadResult(str(path), memory=_memory(executable), log=log)


@contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """What libraries write to stderr goes to a file; of a process that dies meanwhile the parent reads it."""
    sys.stderr.flush()
    before = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def grid_of(program: str) -> Grid:
    """For which devices a program in StableHLO is."""
    from jax.interpreters import mlir

    with mlir.make_ir_context() as context:
        attributes = _parsed(context, Path(program).read_bytes()).operation.attributes
        found = (f"mhlo.num_{name}" for name in ("replicas", "partitions"))
        return Grid(*(attributes[name].value if name in attributes else 1 for name in found))


def _parsed(context: Any, code: str | bytes) -> Any:
    """A module of StableHLO: text, bytecode, or bytecode in the form that other versions read, too."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    if isinstance(code, bytes) and b"StableHLO_v" in code[:64]:
        return stablehlo.deserialize_portable_artifact(context, code)
    return ir.Module.parse(code, context)


def _compiled(code: str | bytes, request: AheadRequest, devices: list[Any]) -> Any:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir

    device_list = jaxlib_api.find("DeviceList")(tuple(devices))
    with mlir.make_ir_context() as context:
        module = _parsed(context, code)
        _drop_copies(ir, module)
        _put_memory_kinds(ir, module, "arg_attrs", request.parameters)
        _put_memory_kinds(ir, module, "res_attrs", request.results)
        return devices[0].client.compile(module, device_list, _options(request))


def _drop_copies(ir: Any, module: Any) -> None:
    """XLA's translation writes copies as an operation that its plug-ins do not take; they change nothing."""
    found: list[Any] = []

    def collect(operation: Any) -> Any:
        if operation.name == "mhlo.copy":
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for copy in found:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def _put_memory_kinds(ir: Any, module: Any, name: str, kinds: tuple[str, ...]) -> None:
    """Say of parameters or results of the entry where they are: XLA's own translation loses it."""
    if not any(kinds):
        return
    [main] = [f for f in module.body.operations if f.name.value == "main"]
    known = list(main.attributes[name]) if name in main.attributes else [ir.DictAttr.get({}) for _ in kinds]
    changed = []
    for attributes, kind in zip(known, kinds, strict=True):
        entries = {entry.name: entry.attr for entry in ir.DictAttr(attributes)}
        if kind:
            entries["mhlo.memory_kind"] = ir.StringAttr.get(kind)
        changed.append(ir.DictAttr.get(entries))
    main.attributes[name] = ir.ArrayAttr.get(changed)


def _options(request: AheadRequest) -> Any:
    options = jaxlib_api.find("CompileOptions")()
    on_devices(options, request.replicas, request.partitions, request.shardy)
    flags = {"xla_dump_to": request.folder, "xla_dump_hlo_as_text": True, "xla_dump_large_constants": True}
    flags |= {name: ",".join(value) if isinstance(value, tuple) else value for name, value in request.flags}
    options.env_option_overrides = list(flags.items())
    return options


def _memory(executable: Any) -> dict[str, int]:
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception:
        return {}  # not every compiler counts
    names = [*COUNTED, *(f"host_{name}" for name in COUNTED)]
    sizes = {name: getattr(stats, f"{name}_size_in_bytes", 0) for name in names}
    return {name: int(size) for name, size in sizes.items() if size}
