"""One program on XLA alone: jaxlib, and nothing of hlotool.

    python xla_alone.py < REQUEST

`support.oracle` runs it as a process of its own, to see whether that dies as the oracle did. REQUEST is a
pickle of the pair that `main` takes apart. Its exit status is 0 when XLA computes the program or refuses it.
"""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from typing import Any


def find(name: str) -> Any:
    """A class or function of jaxlib's extension module, wherever this version keeps it."""
    for home in ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension"):
        try:
            return getattr(import_module(home), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"this jaxlib has no {name}")


def compile_options(settings: dict[str, Any]) -> Any:
    """One replica or partition for each device, and the debug options of this compilation."""
    import numpy as np

    options = find("CompileOptions")()
    build = options.executable_build_options
    replicas, partitions = settings["replicas"], settings["partitions"]
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    if replicas * partitions > 1:
        build.use_spmd_partitioning = partitions > 1
        if hasattr(build, "use_shardy_partitioner"):
            build.use_shardy_partitioner = settings["shardy"]
        grid = np.arange(replicas * partitions).reshape(replicas, partitions)
        options.device_assignment = find("DeviceAssignment").create(grid)
    known = {name: value for name, value in settings["flags"] if hasattr(build.debug_options, name)}
    for name, value in known.items():
        setattr(build.debug_options, name, value)
    options.env_option_overrides = [flag for flag in settings["flags"] if flag[0] not in known]
    return options


def place(chosen: list[Any], parts: tuple[Any, ...]) -> Any:
    """One parameter's value on each device."""
    import jax
    import numpy as np

    if len(chosen) == 1:
        return jax.device_put(parts[0], chosen[0])
    everywhere = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(chosen), ("device",)), jax.sharding.PartitionSpec()
    )
    placed = [jax.device_put(part, device) for part, device in zip(parts, chosen)]
    return jax.make_array_from_single_device_arrays(parts[0].shape, everywhere, placed)


def main() -> None:
    """Compile and run what stdin says: the settings of the compilation, and per device its arguments."""
    settings, rows = pickle.load(sys.stdin.buffer)
    import jax
    from jaxlib.cpu import _lapack

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    _lapack.initialize()
    chosen = jax.devices("cpu")[: settings["replicas"] * settings["partitions"]]
    proto = find("hlo_module_from_text")(settings["text"]).as_serialized_hlo_module_proto()
    code = find("mlir").xla_computation_to_mlir_module(find("XlaComputation")(bytes(proto)))
    client, options = chosen[0].client, compile_options(settings)
    if hasattr(client, "compile_and_load"):
        executable = client.compile_and_load(code, find("DeviceList")(tuple(chosen)), options)
    else:
        executable = client.compile(code, options)
    arguments = [place(chosen, parts) for parts in zip(*rows)]
    for output in executable.execute_sharded(arguments).disassemble_into_single_device_arrays():
        for part in output:
            part.block_until_ready()


if __name__ == "__main__":
    main()
