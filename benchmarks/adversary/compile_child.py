"""Compiles drawn programs under the jaxlib of the interpreter that runs this, and dumps both texts.

python -m benchmarks.adversary.compile_child FOLDER SEED [FAMILY…]      (XLA_FLAGS stand in the environment)
"""

from __future__ import annotations

import json
import os
import random
import sys
import zlib
from pathlib import Path


def main(folder: Path, seed: int, only: list[str]) -> None:
    """Dump one program of each family to `folder`, and `programs.json` with what their arguments are."""
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_large_constants"
    flags += " --xla_force_host_platform_device_count=4"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    import jax

    from benchmarks.adversary import families_integer, families_layers, families_numeric
    from benchmarks.adversary.drawn import FAMILIES

    assert families_integer
    assert families_layers
    assert families_numeric
    known = {}
    for name, make in FAMILIES.items():
        if only and name not in only:
            continue
        rng = random.Random(zlib.crc32(f"{name}:{seed}".encode()))
        program = make(rng)
        function = program.function
        function.__name__ = function.__qualname__ = f"adv_{name}"
        shapes = [jax.ShapeDtypeStruct(a.dims, a.dtype) for a in program.arguments]
        try:
            jax.jit(function, keep_unused=True).lower(*shapes).compile()
        except Exception as error:  # an old version may not know a program; it is left out, and said
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        known[name] = {
            "devices": program.devices,
            "arguments": [[a.kind, list(a.dims), a.dtype, a.limit] for a in program.arguments],
        }
    (folder / "programs.json").write_text(json.dumps(known))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
