"""StableHLO from stdin, text or bytecode, as an HloModuleProto on stdout.

Run as a program of its own: XLA may abort.
"""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    """Convert; XLA's errors end the process with a traceback on stderr."""
    content = sys.stdin.buffer.read()
    try:
        native = importlib.import_module("jaxlib._jax")
    except ImportError:
        native = importlib.import_module("jaxlib.xla_extension")
    program = content if b"\0" in content else content.decode("utf-8", "surrogateescape")
    computation = native.mlir.mlir_module_to_xla_computation(program, False, False)
    sys.stdout.buffer.write(computation.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    main()
