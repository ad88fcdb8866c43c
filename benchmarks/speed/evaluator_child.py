"""XLA's own reference interpreter (HloEvaluator), in a Python that has jaxlib 0.4.13, the last with it.

    python -m venv VENV && VENV/bin/pip install jax==0.4.13 jaxlib==0.4.13 "numpy<2" "scipy<1.13"

Reads one pickled request (HLO text, arguments as (dtype name, dimensions, bytes), repeats) from stdin and
prints one pickled answer: seconds to compile and of the fastest run, or what went wrong.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from typing import Any

import ml_dtypes
import numpy as np
from jax._src.lib import xla_client


def array(name: str, dims: tuple[int, ...], data: bytes) -> Any:
    dtype = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
    return np.frombuffer(data, dtype).reshape(dims)


def measure(text: str, arguments: list[Any], repeats: int) -> dict[str, float]:
    extension = xla_client._xla
    computation = extension.XlaComputation(
        extension.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    )
    client = extension.get_interpreter_client()
    start = time.perf_counter()
    executable = client.compile(extension.mlir.xla_computation_to_mlir_module(computation))
    compiled = time.perf_counter() - start
    device = client.devices()[0]
    buffers = [client.buffer_from_pyval(array(*argument), device) for argument in arguments]
    runs = []
    while len(runs) < repeats and sum(runs) < 20:
        start = time.perf_counter()
        for output in executable.execute(buffers):
            np.asarray(output)
        runs.append(time.perf_counter() - start)
    return {"compile": compiled, "run": min(runs)}


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    text, arguments, repeats = pickle.load(sys.stdin.buffer)
    try:
        answer: Any = measure(text, arguments, repeats)
    except Exception as error:
        answer = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    pickle.dump(answer, answers)


if __name__ == "__main__":
    main()
