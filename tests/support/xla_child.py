"""The process in which real XLA runs: reads pickled requests from stdin, answers on the original stdout.

XLA aborts on some inputs, so it never runs inside the test process.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import numpy as np


def start() -> Any:
    """Load jaxlib for one CPU device, with 64-bit types and LAPACK."""
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


def main() -> None:
    """Serve until stdin closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jax = start()
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
                case _:
                    answer = execute(jax, *arguments)
            reply = (True, answer)
        except Exception as error:
            reply = (False, f"{type(error).__name__}: {error}")
        pickle.dump(reply, answers)
        answers.flush()


if __name__ == "__main__":
    main()
