"""The process in which real XLA runs: reads pickled requests from stdin, answers on the original stdout.

XLA aborts on some inputs, so it never runs inside the test process.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import numpy as np


def start(devices: int) -> Any:
    """Load jaxlib with so many CPU devices, 64-bit types and LAPACK."""
    if devices > 1:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax
    from jaxlib.cpu import _lapack

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    _lapack.initialize()
    return jax


def canonical(text: str) -> str:
    """XLA's own print of a module, large constants included."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(_hlo.hlo_module_from_text(text).to_string(options))


def proto(text: str) -> bytes:
    """The serialized HloModuleProto of a module."""
    from jaxlib import _hlo

    return bytes(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())


def from_proto(content: bytes) -> str:
    """XLA's print of the module in a serialized HloModuleProto, large constants included."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(_hlo.HloModule.from_serialized_hlo_module_proto(content).to_string(options))


def execute(jax: Any, text: str, arguments: list[Any], options: dict[str, Any]) -> list[Any]:
    """Compile by the MLIR route and run on one device; the result's leaves in tuple order."""
    from jaxlib import _hlo, _jax

    device = jax.devices()[0]
    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    compile_options = _jax.CompileOptions()
    compile_options.env_option_overrides = list(options.items())
    executable = device.client.compile_and_load(mlir, _jax.DeviceList((device,)), compile_options)
    buffers = [jax.device_put(a, device) for a in arguments]
    results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    return [np.asarray(leaf[0]) for leaf in results]


def placement(text: str) -> tuple[str, list[int], list[int], list[str]]:
    """XLA's V2 form of a sharding, its tile dimensions, its devices and the kinds of its last dimensions."""
    from jaxlib import _hlo

    sharding = _hlo.HloSharding.v3_to_v2_sharding(_hlo.HloSharding.from_string(text))
    if not sharding.is_tiled() or sharding.is_unreduced():
        return str(sharding), [], [], []
    kinds = [kind.name.lower() for kind in sharding.subgroup_types()]
    if sharding.replicate_on_last_tile_dim():
        kinds = ["replicated"]
    return (
        str(sharding),
        list(sharding.tile_assignment_dimensions()),
        list(sharding.tile_assignment_devices()),
        kinds,
    )


def indices(jax: Any, axes: dict[str, int], spec: list[Any], dims: tuple[int, ...]) -> list[Any]:
    """What JAX's NamedSharding puts on each device: (start, stop) per dimension."""
    mesh = jax.make_mesh(tuple(axes.values()), tuple(axes))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    slices = sharding.devices_indices_map(dims)
    return [
        [part.indices(size)[:2] for part, size in zip(slices[device], dims)]
        for device in jax.devices()[: mesh.size]
    ]


def execute_devices(
    jax: Any, text: str, arguments: list[list[Any]], replicas: int, partitions: int
) -> tuple[list[list[Any]], list[str]]:
    """Compile for several devices and run; per device the leaves of the result, and the sharding of each.

    With several partitions the SPMD partitioner has to run. It passes what is `sharding={manual}` through as
    it is.
    """
    from jaxlib import _hlo, _jax

    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    count = replicas * partitions
    devices = jax.devices()[:count]
    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    build.use_spmd_partitioning = partitions > 1
    build.use_shardy_partitioner = "sdy." in text
    options.device_assignment = _jax.DeviceAssignment.create(np.arange(count).reshape(replicas, partitions))
    client = devices[0].client
    executable = client.compile_and_load(mlir, _jax.DeviceList(tuple(devices)), options)
    buffers = [_on_devices(jax, devices, column) for column in zip(*arguments)]
    results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    leaves = [[np.asarray(leaf[d]) for leaf in results] for d in range(count)]
    shardings = [_hlo.HloSharding.from_proto(s) for s in executable.get_output_shardings() or ()]
    return leaves, list(map(str, shardings))


def _on_devices(jax: Any, devices: list[Any], parts: tuple[Any, ...]) -> Any:
    """One array per device as what XLA's Python API takes: copies, as far as JAX knows."""
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    placed = [jax.device_put(part, device) for part, device in zip(parts, devices)]
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.make_array_from_single_device_arrays(parts[0].shape, sharding, placed)


def main() -> None:
    """Serve until stdin closes; the argument is the number of devices."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jax = start(int(sys.argv[1]))
    while True:
        try:
            kind, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            match kind:
                case "canonical":
                    answer: Any = canonical(*arguments)
                case "proto":
                    answer = proto(*arguments)
                case "from proto":
                    answer = from_proto(*arguments)
                case "placement":
                    answer = placement(*arguments)
                case "indices":
                    answer = indices(jax, *arguments)
                case "run devices":
                    answer = execute_devices(jax, *arguments)
                case _:
                    answer = execute(jax, *arguments)
            reply = (True, answer)
        except Exception as error:
            reply = (False, f"{type(error).__name__}: {error}")
        pickle.dump(reply, answers)
        answers.flush()


if __name__ == "__main__":
    main()
