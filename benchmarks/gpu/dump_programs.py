"""The programs of `jax_programs` and `jax_steps` compiled by XLA:GPU for an H100, dumped; no GPU is needed.

    python -m benchmarks.gpu.dump_programs FOLDER [--seed 3] [--only softmax] [--platform cuda|cpu|tpu]

It wants jax with its CUDA plug-in and `nvidia-cuda-nvcc-cu12` (or the same for CUDA 13), in an environment of
its own, and no part of hlotool. There are no libraries to try out and no device to measure on: products
become the default kernels, convolutions calls of cuDNN. `benchmarks.kernels.counts FOLDER --dumps` counts.
The compilers for CPUs and, where TPU_LIBRARY_PATH names a libtpu, for a v5e take the same programs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

#: What XLA knows of the device: NVIDIA's H100 data sheet, and the limits of compute capability 9.0.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 8 minor: 9 patch: 4 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def main() -> None:
    """Compile all programs, or those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the dump goes")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--no-triton", action="store_true", help="products become calls of cuBLASLt")
    parser.add_argument("--platform", choices=["cuda", "cpu", "tpu"], default="cuda", help="[cuda]")
    options = parser.parse_args()
    # Before jax is imported: without a driver the plug-in is refused otherwise.
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    flags = f"--xla_dump_to={options.folder} --xla_dump_hlo_as_text"
    if options.no_triton:
        flags += " --xla_gpu_enable_triton_gemm=false"
    os.environ["XLA_FLAGS"] = flags
    os.environ["JAX_PLATFORMS"] = "cpu"
    from benchmarks.gpu import jax_programs, jax_steps

    assert jax_steps  # its programs are in the same table now
    for name, build in jax_programs.PROGRAMS.items():
        if options.only in name:
            sizes = jax_programs.Sizes(f"{options.seed} {name}")
            compile_program(name, *build(sizes), options.platform)
            print(name, flush=True)


def compile_program(name: str, function: Any, arguments: Any, platform: str = "cuda") -> None:
    """As a module `jit_NAME`, for the first device of the target."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    device = jax.devices("cpu")[0]
    if platform == "cuda":
        target = {"topology": "1x1x1", "target_config": H100}
        device, *_ = topologies.get_topology_desc(platform=platform, **target).devices
    elif platform == "tpu":
        device, *_ = topologies.get_topology_desc("v5e:2x2", platform).devices
    place = SingleDeviceSharding(device)

    def named(*values: Any) -> Any:
        return function(*values)

    named.__name__ = name
    jitted = jax.jit(named, in_shardings=place, out_shardings=place)
    jitted.trace(*arguments).lower(lowering_platforms=(platform,)).compile()


if __name__ == "__main__":
    main()
