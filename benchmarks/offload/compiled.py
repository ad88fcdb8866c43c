"""What the compiler for a TPU says of programs, each compiled in a process of its own: it may die of it.

A process to itself: libtpu is loaded in children that end with their program.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

#: Seconds for one program.
_LIMIT = 100


def main() -> None:
    """`FOLDER FIRST COUNT`: programs of those seeds, of JAX and StableHLO; answers go to FOLDER."""
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    import jax  # noqa: F401  (once, for all children)

    for seed in range(first, first + count):
        for kind in ("jax", "stablehlo"):
            here = folder / f"{kind}_{seed}"
            here.mkdir(parents=True, exist_ok=True)
            child = os.fork()
            if not child:
                _child(kind, seed, here)
            _, status = os.waitpid(child, 0)
            if not (here / "answer.json").exists():
                _write(here, "died", f"status {os.waitstatus_to_exitcode(status)}")


def _write(here: Path, outcome: str, message: str) -> None:
    (here / "answer.json").write_text(json.dumps({"outcome": outcome, "message": message}))


def _child(kind: str, seed: int, here: Path) -> None:
    import signal

    signal.alarm(_LIMIT)
    log = os.open(here / "stderr.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 2)
    os.dup2(log, 1)
    try:
        from jax.experimental import topologies

        devices = list(topologies.get_topology_desc(topology_name="v5e:2x2", platform="tpu").devices)
        compile_ = _of_jax(seed, devices, here) if kind == "jax" else _of_stablehlo(seed, devices, here)
    except BaseException as error:
        _write(here, "not drawn", f"{type(error).__name__}: {error}")
        os._exit(0)
    try:
        compile_()
    except Exception as error:
        _write(here, "refused", str(error))
        os._exit(0)
    _write(here, "compiles", "")
    os._exit(0)


def _flags(here: Path) -> dict[str, Any]:
    return {"xla_dump_to": str(here / "dump"), "xla_dump_hlo_as_text": True}


def _of_jax(seed: int, devices: list[Any], here: Path) -> Any:
    from benchmarks.offload.jax_programs import lowered

    program = lowered(seed, devices)
    (here / "program.mlir").write_text(program.as_text())
    return lambda: program.compile(compiler_options=_flags(here))


def _of_stablehlo(seed: int, devices: list[Any], here: Path) -> Any:
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    from benchmarks.offload.stablehlo_programs import drawn

    text = drawn(seed)
    (here / "program.mlir").write_text(text)
    options = xla_client.CompileOptions()
    options.env_option_overrides = list(_flags(here).items())
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
    return lambda: devices[0].client.compile(module, xla_client.DeviceList((devices[0],)), options)


if __name__ == "__main__":
    main()
