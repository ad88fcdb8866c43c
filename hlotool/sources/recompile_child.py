"""Compile MLIR text from stdin with XLA's CPU compiler, for the sake of the dump that XLA_FLAGS asks for.

Run as a program of its own: XLA may abort, and its flags are read once per process.

    python recompile_child.py '{"partitions": 2, "to_parameters": [true], "to_output": [true]}' < module.mlir

The argument says for how many partitions, and where shardings may be propagated to.
"""

from __future__ import annotations

import contextlib
import json
import sys


def main() -> None:
    """Compile; what fails after the dump is written does not matter."""
    import jax
    import numpy as np
    from jaxlib import _jax

    with contextlib.suppress(ImportError):
        from jaxlib.cpu import _lapack

        _lapack.initialize()
    wanted = json.loads(sys.argv[1])
    partitions = wanted["partitions"]
    text = sys.stdin.buffer.read().decode()
    devices = jax.devices()[:partitions]
    options = _jax.CompileOptions()
    options.num_partitions = partitions
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = wanted["to_parameters"]
    build.allow_spmd_sharding_propagation_to_output = wanted["to_output"]
    if partitions > 1:
        options.device_assignment = _jax.DeviceAssignment.create(np.arange(partitions)[None, :])
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = "sdy." in text
    devices[0].client.compile_and_load(text, _jax.DeviceList(tuple(devices)), options)


if __name__ == "__main__":
    main()
