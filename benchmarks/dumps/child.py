"""Dumps of the programs of `programs.py`, made by the JAX of this interpreter; JSON lines on stdout.

    PYTHON child.py FOLDER [--platform cpu|tpu] [--topology NAME] [--timeout SECONDS] [--kinds NAME,...]

Each kind is compiled in a forked process, with a folder of its own under FOLDER. So a compiler that dies
takes nothing with it, and XLA reads its flags anew. Needs Python 3.9 and JAX 0.4.13, or newer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
import traceback

FLAGS = ["--xla_dump_hlo_as_text", "--xla_dump_large_constants"]
#: On the CPU; a TPU's topology has devices of its own.
DEVICES = "--xla_force_host_platform_device_count=4"


def main() -> int:
    """One line for each kind: its name, seconds, and why there is no dump (null where there is one)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--platform", choices=("cpu", "tpu"), default="cpu")
    parser.add_argument("--libtpu", default="", help="another one than is installed")
    parser.add_argument("--topology", default="v5e:2x2")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--precision", default="", help="jax_default_matmul_precision")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if options.platform == "tpu":
        # No metadata server here, and more than one process may use the library.
        os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
        if options.libtpu:
            os.environ["TPU_LIBRARY_PATH"] = options.libtpu
    import jax
    import jaxlib
    from programs import KINDS

    versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}
    flags = known_flags(options)
    print(json.dumps({**versions, "python": sys.version.split()[0], "flags": flags}), flush=True)
    wanted = options.kinds.split(",") if options.kinds else list(KINDS)
    for name in wanted:
        began = time.time()
        reason = compiled_apart(name, flags, options)
        print(json.dumps({"kind": name, "seconds": time.time() - began, "why": reason}), flush=True)
    return 0


def known_flags(options: argparse.Namespace) -> list[str]:
    """Those of `FLAGS` that this XLA knows: it names the others and dies."""
    flags = FLAGS + ([DEVICES] if options.platform == "cpu" else [])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 2)
        os.environ["XLA_FLAGS"] = " ".join(flags)
        devices_of(options)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        unknown = re.search(r"Unknown flags? in XLA_FLAGS: (.*)", pipe.read())
    os.waitpid(child, 0)
    refused = unknown[1].split() if unknown else []
    # It names flags that it knows, too, beside one that it does not.
    wrong = [flag for flag in flags if flag in refused and flag != DEVICES]
    return [flag for flag in flags if flag not in wrong]


def compiled_apart(name: str, flags: list[str], options: argparse.Namespace) -> str | None:
    """Why a child made no dump; None where it did."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(int(options.timeout))
        reason = ""
        try:
            compile_kind(name, flags, options)
        except BaseException as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(reason))
        # The threads of a compiler need not end well.
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if answer:
        return json.loads(answer) or None
    number = os.WTERMSIG(status)
    return f"timeout after {options.timeout:g} s" if number == signal.SIGALRM else f"died of signal {number}"


def compile_kind(name: str, flags: list[str], options: argparse.Namespace) -> None:
    """Compile one kind, its dump in its folder."""
    os.environ["XLA_FLAGS"] = " ".join([f"--xla_dump_to={os.path.join(options.folder, name)}", *flags])
    import jax
    from programs import KINDS, WIDE

    if name in WIDE:
        jax.config.update("jax_enable_x64", True)
    if options.precision:
        jax.config.update("jax_default_matmul_precision", options.precision)
    devices = devices_of(options)
    program = KINDS[name](devices)
    arguments = [jax.ShapeDtypeStruct(dims, dtype) for dims, dtype in program.shapes]
    if options.platform == "tpu":
        where = program.shardings or [placed(name, devices)] * len(arguments)
        arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(arguments, where)]
    jax.jit(program.function, **program.jit).lower(*arguments).compile()


def devices_of(options: argparse.Namespace):
    """What is compiled for."""
    import jax

    if options.platform == "cpu":
        return jax.devices()
    from jax.experimental import topologies

    return topologies.get_topology_desc(topology_name=options.topology, platform="tpu").devices


def placed(name: str, devices):
    """Where an argument lies that has no sharding of its own."""
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    if name == "shard_map":
        return NamedSharding(Mesh(np.array(devices[:4]).reshape(2, 2), ("a", "b")), PartitionSpec())
    return SingleDeviceSharding(devices[0])


if __name__ == "__main__":
    raise SystemExit(main())
