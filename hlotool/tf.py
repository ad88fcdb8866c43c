"""Functions of TensorFlow, checked where they are called; TensorFlow is imported when that happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hlotool.errors import BackendUnavailable, Unsupported
from hlotool.interface.api.programs import Called, CheckedCall, judge
from hlotool.ir.arrays import Array

__all__ = ["check"]


def check(function: Callable[..., Any], *args: Any, op_by_op: bool = True, **kwargs: Any) -> CheckedCall:
    """Call a function, and judge on the same arguments what came of it.

    The program that TensorFlow made of it is executed on hlotool's own reference; that judges the program
    that XLA compiled (executed there, too), what the device returned, and what the function returns eagerly.

    Args:
        function: a `tf.function` with `jit_compile=True`, or any other, which becomes one.
        args: of the function: tensors, or what TensorFlow makes tensors of.
        op_by_op: also eagerly.
        kwargs: of the function.

    Returns:
        a row for each side, with verdict and reason. `str()` is the report.

    Raises:
        BackendUnavailable: TensorFlow cannot be imported.
        Unsupported: the program takes or returns something else than the function: variables, arguments that
            became constants. `hlotool exec` judges such programs.
    """
    start = time.perf_counter()
    tf = _load_tensorflow()
    jitted = (
        function
        if hasattr(function, "experimental_get_compiler_ir")
        else tf.function(function, jit_compile=True)
    )
    stages = jitted.experimental_get_compiler_ir(*args, **kwargs)
    lowered, compiled = (bytes(stages(stage=name)) for name in ("hlo_serialized", "optimized_hlo_serialized"))
    value = jitted(*args, **kwargs)
    arguments, results = _arrays(tf, (args, kwargs)), _arrays(tf, value)
    _refuse_hidden_values(lowered, arguments, results)
    platform = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    made = Called(lowered, compiled, platform, arguments, value, results)

    def eagerly() -> list[Array]:
        was_eager = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)
        try:
            return _arrays(tf, function(*args, **kwargs))
        finally:
            tf.config.run_functions_eagerly(was_eager)

    return judge(made, eagerly if op_by_op else None, {}, start)


def _load_tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        raise BackendUnavailable(
            f"TensorFlow cannot be imported (pip install tensorflow): {error}"
        ) from error
    return tensorflow


def _arrays(tf: Any, tree: Any) -> list[Array]:
    """The tensors of a structure as arrays, in TensorFlow's order."""
    return [tf.convert_to_tensor(leaf).numpy() for leaf in tf.nest.flatten(tree)]


def _refuse_hidden_values(lowered: bytes, arguments: list[Array], results: list[Array]) -> None:
    """Variables are parameters and outputs of a program, and not of the function."""
    from hlotool.ir.types import leaves
    from hlotool.parser.proto.module import parse_module_proto

    entry = parse_module_proto(lowered).entry
    for what, count, given in (
        ("parameters", len(entry.parameters), len(arguments)),
        ("outputs", len(list(leaves(entry.root.shape))), len(results)),
    ):
        if count != given:
            raise Unsupported(
                f"the program has {count} {what}, and the function shows {given}: it has variables, or"
                " arguments that became constants; hlotool exec judges it"
            )
