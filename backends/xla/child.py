"""The process that holds XLA: compiles and runs for its parent.

XLA aborts and crashes on some inputs, so it never runs in the user's process. Nothing of hlotool is imported
here but the protocol and the worker: the interpreter may be another one, with another jaxlib.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.backends.xla import jaxlib_api
from hlotool.backends.xla.protocol import (
    ArrayData,
    Compiled,
    CompileRequest,
    Execution,
    Flag,
    Results,
    Route,
    Setup,
)

Array = npt.NDArray[Any]

#: Loaded executables and the devices that they run on, by number. Numbers are never used again, not even by
#: the process that replaces this one.
_executables: dict[int, tuple[Any, list[Any]]] = {}
_numbers = itertools.count(time.time_ns())


_LISTS_OF_PASSES = ("xla_disable_hlo_passes", "xla_enable_hlo_passes_only")


class TooFewDevices(Exception):
    """A program is for more devices than there are."""


class WrongFlag(Exception):
    """A debug option has another type."""


class NoPlugin(Exception):
    """A library is no PJRT plug-in that this jaxlib can use."""


@cache
def devices(platform: str) -> list[Any]:
    """The devices of a platform; the first call sets XLA up.

    Raises:
        ImportError: jax or jaxlib is not installed.
        RuntimeError: there is no such device.
        NoPlugin: the platform is a plug-in that cannot be used.
    """
    jax = _jax()
    if os.path.isabs(platform):
        return _devices_of_plugin(platform)
    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
        jaxlib_api.initialize_lapack()
    jax.config.update("jax_enable_x64", True)
    return list(jax.devices(platform))


def _devices_of_plugin(path: str) -> list[Any]:
    """The devices of a PJRT plug-in, which is the only platform of this process then."""
    jax = _jax()
    jax.config.update("jax_enable_x64", True)
    try:
        name = jaxlib_api.register_plugin(path)
        jax.config.update("jax_platforms", name)
        found = list(jax.devices(name))
    except Exception as error:
        reason = re.sub(r"^Unable to initialize backend '\w+': | \(set JAX_PLATFORMS=.*", "", str(error))
        raise NoPlugin(f"PJRT plug-in {path}: {reason}") from error
    if not found:
        raise NoPlugin(f"PJRT plug-in {path}: it has no devices here")
    return found


def _jax() -> Any:
    """JAX without its types: parts of it have none."""
    import jax

    return jax


def describe(platform: str) -> Setup:
    """What this process computes with."""
    import jaxlib.version

    found = devices(platform)
    first = found[0]
    return Setup(jaxlib.version.__version__, first.client.platform, first.device_kind, len(found))


def compile_program(program: CompileRequest) -> Compiled:
    """Compile, and keep the executable until it is released."""
    release(program.released)
    count = program.replicas * program.partitions
    chosen = devices(program.platform)[:count]
    if len(chosen) < count:
        raise TooFewDevices(f"the program needs {count} devices, there are {len(chosen)}")
    options = _compile_options(program)
    if program.route is Route.MLIR:
        code = jaxlib_api.to_stablehlo(program.text)
        executable = jaxlib_api.compile_stablehlo(code, chosen, options)
    else:
        executable = _inject(program, chosen, options)
    number = next(_numbers)
    _executables[number] = executable, chosen
    notes = _notes(program)
    if program.partitions == 1:
        return Compiled(number, notes=notes)
    parameters = _serialized(executable.get_parameter_shardings())
    return Compiled(number, parameters, _serialized(executable.get_output_shardings()), notes)


def _serialized(shardings: list[Any] | None) -> list[bytes] | None:
    return None if shardings is None else [bytes(sharding.SerializeToString()) for sharding in shardings]


def _inject(program: CompileRequest, chosen: list[Any], options: Any) -> Any:
    """Compile the host, and let the program take its place on the way."""
    host, proto = jaxlib_api.to_stablehlo(program.host), jaxlib_api.to_proto(program.text)
    is_late = program.route is Route.POST_SCHEDULER
    with jaxlib_api.instead_of_what_is_compiled(proto, is_late, chosen[0].client) as used:
        executable = jaxlib_api.compile_stablehlo(host, chosen, options)
    if not used:
        raise NotImplementedError(f"XLA for {program.platform} takes no programs between its passes")
    return executable


def release(numbers: Iterable[int]) -> None:
    """Free the executables with these numbers."""
    for number in numbers:
        _executables.pop(number, None)


def _compile_options(program: CompileRequest) -> Any:
    options = jaxlib_api.find("CompileOptions")()
    build = options.executable_build_options
    if program.replicas * program.partitions > 1:
        on_devices(options, program.replicas, program.partitions, program.shardy)
    else:
        options.num_replicas = build.num_replicas = options.num_partitions = build.num_partitions = 1
    options.env_option_overrides = _set_flags(build.debug_options, program.flags)
    return options


def on_devices(options: Any, replicas: int, partitions: int, shardy: bool) -> None:
    """Set options of a compilation for several devices, or for one as if there were several."""
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    build.use_spmd_partitioning = partitions > 1
    if hasattr(build, "use_shardy_partitioner"):
        build.use_shardy_partitioner = shardy
    grid = np.arange(replicas * partitions).reshape(replicas, partitions)
    options.device_assignment = jaxlib_api.find("DeviceAssignment").create(grid)


def _notes(program: CompileRequest) -> list[str]:
    """Passes that there are none of; those of other platforms are in libraries of their own."""
    if program.platform != "cpu":
        return []
    lists = [value for name, value in program.flags if name in _LISTS_OF_PASSES and isinstance(value, tuple)]
    unknown = [name for names in lists for name in names if not jaxlib_api.knows_pass(name)]
    return [f"this XLA seems to have no pass called {name!r}" for name in unknown]


def _set_flags(debug_options: Any, flags: Sequence[Flag]) -> list[tuple[str, Any]]:
    """Set flags where the options have a field for them; the others are to be given by name."""
    others: list[tuple[str, Any]] = []
    for name, value in flags:
        plain = ",".join(value) if isinstance(value, tuple) else value
        if hasattr(debug_options, name):
            try:
                setattr(debug_options, name, plain)
            except TypeError:
                raise WrongFlag(f"{name} takes no value like {plain!r}") from None
        else:
            others.append((name, plain))
    return others


def run_program(execution: Execution) -> Results:
    """Run an executable on one or more devices; `known` is False when it is not in this process."""
    loaded = _executables.get(execution.executable)
    if loaded is None:
        return Results(False, [])
    executable, chosen = loaded
    columns = [[data.to_array() for data in row] for row in zip(*execution.arguments)]
    placed = [_place(chosen, column) for column in columns]
    outputs = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    rows = range(len(chosen))
    return Results(True, [[ArrayData.of(np.asarray(leaf[d])) for leaf in outputs] for d in rows])


def _place(chosen: list[Any], parts: Sequence[Array]) -> Any:
    """One parameter's value on each device.

    XLA's Python interface wants one array over all devices: as far as JAX knows, they hold copies.
    """
    jax = _jax()
    if len(chosen) == 1:
        return jax.device_put(parts[0], chosen[0])
    mesh = jax.sharding.Mesh(np.array(chosen), ("device",))
    placed = [jax.device_put(part, device) for part, device in zip(parts, chosen)]
    copies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.make_array_from_single_device_arrays(parts[0].shape, copies, placed)
