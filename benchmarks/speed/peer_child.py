"""The process in which a peer runs: reads one pickled request from stdin, prints one pickled answer.

Peers: `hlotool`, `xla` (jaxlib: parse + compile + run on CPU) and `eval` (StableHLO's interpreter,
eval_module). Times are taken inside this process, after the imports, so that nobody pays for being isolated.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: Short runs are repeated for so many seconds altogether, or so many times.
_LONG_ENOUGH = 0.5
_MOST_RUNS = 1000

_DOT = re.compile(
    r"stablehlo\.dot (%\S+), (%\S+?)(?:, precision = \[[^\]]*\])?( : \(tensor<((?:\d+x)*)\S+?>, .*)$",
    re.MULTILINE,
)


def _dot_general(match: re.Match[str]) -> str:
    """eval_module aborts on `stablehlo.dot`; the same contraction spelled `dot_general` works."""
    left, right, types, dims = match.groups()
    contracting = max(0, dims.count("x") - 1)
    return f"stablehlo.dot_general {left}, {right}, contracting_dims = [{contracting}] x [0]{types}"


def _mlir(text: str) -> str:
    from jaxlib import _hlo, _jax

    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    return str(_jax.mlir.xla_computation_to_mlir_module(computation))


def run_hlotool(text: str, arguments: list[Any], repeats: int) -> dict[str, Any]:
    """Seconds to parse, to plan, of the first and of later runs; and the outputs."""
    from hlotool.backends.numpy import NumpyBackend
    from hlotool.parser.reader import parse_module

    times = [time.perf_counter()]
    module = parse_module(text)
    times.append(time.perf_counter())
    executable = NumpyBackend().compile(module)
    times.append(time.perf_counter())

    def run() -> Any:
        return executable.run(arguments)

    measured, result = _timed(run, repeats)
    parse, plan = times[1] - times[0], times[2] - times[1]
    return {"parse": parse, "plan": plan, **measured, "outputs": list(_leaves(result))}


def _timed(run: Callable[[], Any], repeats: int) -> tuple[dict[str, float], Any]:
    """Seconds of the first run, of the fastest later one, and processor seconds of each of them on average.

    Others may be working on the same cores, so short runs are repeated until one of them was left alone.
    """
    walls: list[float] = []
    processors: list[float] = []
    while len(walls) <= repeats or (sum(walls[1:]) < _LONG_ENOUGH and len(walls) < _MOST_RUNS):
        result = None
        wall, begun = time.perf_counter(), time.process_time()
        result = run()
        processors.append(time.process_time() - begun)
        walls.append(time.perf_counter() - wall)
    # The time of other threads is known when they stop only: single readings of it miss milliseconds.
    processor = sum(processors[1:]) / len(processors[1:])
    return {"first": walls[0], "run": min(walls[1:]), "processor": processor}, result


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield np.asarray(value)


def run_xla(text: str, arguments: list[Any], repeats: int) -> dict[str, Any]:
    """Seconds to parse + convert, to compile, of the first and of later runs; and the outputs."""
    import jax
    from jaxlib import _hlo, _jax
    from jaxlib.cpu import _lapack

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    _lapack.initialize()
    device = jax.devices()[0]
    buffers = [jax.device_put(a, device) for a in arguments]
    times = [time.perf_counter()]
    _hlo.hlo_module_from_text(text)
    times.append(time.perf_counter())
    mlir = _mlir(text)
    executable = device.client.compile_and_load(mlir, _jax.DeviceList((device,)), _jax.CompileOptions())
    times.append(time.perf_counter())

    def run() -> list[Any]:
        results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
        return [np.asarray(leaf[0]) for leaf in results]

    measured, outputs = _timed(run, repeats)
    parse, compile_ = times[1] - times[0], times[2] - times[1]
    return {"parse": parse, "compile": compile_, **measured, "outputs": outputs}


def run_eval(text: str, arguments: list[Any], repeats: int) -> dict[str, Any]:
    """Seconds of one eval_module call (it is deterministic and slow: `repeats` is not used)."""
    del repeats
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    source = _DOT.sub(_dot_general, _mlir(text))
    with jax_mlir.make_ir_context(), ir.Location.unknown():
        start = time.perf_counter()
        module = ir.Module.parse(source)
        attributes = [
            jax_mlir.ir_attribute(np.asarray(a)) if a.dtype == bool else _dense(ir, a) for a in arguments
        ]
        stablehlo.eval_module(module, attributes)
        return {"run": time.perf_counter() - start}


def _dense(ir: Any, array: Any) -> Any:
    from jax._src.interpreters import mlir as jax_mlir

    element = jax_mlir.dtype_to_ir_type(np.dtype(array.dtype))
    return ir.DenseElementsAttr.get(np.array(array, order="C"), type=element, shape=array.shape)


def main() -> None:
    """Answer one request."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    peer, text, arguments, repeats = pickle.load(sys.stdin.buffer)
    run = {"hlotool": run_hlotool, "xla": run_xla, "eval": run_eval}[peer]
    try:
        answer: Any = run(text, arguments, repeats)
    except Exception as error:
        answer = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    pickle.dump(answer, answers)


if __name__ == "__main__":
    main()
