"""Every program that lies beside the checkout runs, or stands in a list that says why it does not.

python -m pytest -m slow tests/backends/numpy/test_shared_programs.py -s

XLA's own test modules (those for its GPU compiler, too), dumps of real models for GPUs, PyTorch/XLA dumps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import ElidedConstant, HlotoolError, Unsupported, VerificationError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import inferred_grid
from hlotool.ir.types import ArrayShape, leaves
from hlotool.ir.verifier import verify_or_raise
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

pytestmark = pytest.mark.slow

#: Elements of the largest array beyond which a program is compiled and not run.
LARGEST = 1 << 24

#: Names that XLA's tests invent, and operations that only a test-only pass of XLA's expands.
INVENTED = ("foo", "xla_builder.")

INVALID = "XLA's verifier refuses it, too"
OUTSIDE = "takes data from outside of the program"
UNKNOWN = "calls what only XLA's tests know"
PARTNER = "sends to devices that it does not name"
SHARD = "is written for one device of several, which it does not name"
ELIDED = "its constants are elided"
BOUNDS = "takes positions that generated inputs do not hit"

NOT_RUN = {
    INVALID: {
        "generate_hlo_test_checks_test_output.hlo@3379",
        *(f"import_async.hlo@{at}" for at in (2097, 4340, 11754, 14455)),
        "layouts_and_names.hlo@507",
        "math_next_after.hlo@4538",
        "operand_upcaster.hlo",
        "print_indexing_test.hlo",
        "rewrite_bf16_conv_to_onednn.hlo@1035",
        "rng_expander.hlo",
        *(f"rng_expander.hlo@{at}" for at in (31212, 64474, 98365, 132361, 165934)),
    },
    OUTSIDE: {
        "import_async.hlo",
        *(f"import_async.hlo@{at}" for at in (6370, 10003, 14963, 15431)),
        *(f"import_emit_stablehlo.hlo@{at}" for at in (75150, 76915, 78062, 87190, 88587, 89939, 129326)),
    },
    UNKNOWN: {
        *(f"import_emit_stablehlo.hlo@{at}" for at in (59298, 60359, 61424, 62226, 63129, 124733, 153911)),
        "math_acosh.hlo",
        *(f"math_acosh.hlo@{at}" for at in (2497, 4835, 6406)),
        "math_asinh.hlo",
        *(f"math_asinh.hlo@{at}" for at in (3069, 5979, 18527)),
        "math_next_after.hlo",
        "matrix_einsum.hlo",
        "matrix_einsum.hlo@4034",
        "prng_scramble_philox_key.hlo",
    },
    BOUNDS: {"import_emit_stablehlo.hlo@49075"},
    PARTNER: {
        "import_async.hlo@9011",
        "import_emit_stablehlo.hlo@112833",
        "import_emit_stablehlo.hlo@113844",
    },
    SHARD: {"import_emit_stablehlo.hlo@82675"},
    ELIDED: {
        "alphafold3.inference.before_optimizations.txt",
        "module_0038.jit_apply_fn.before_optimizations.txt",
        "module_0218.jit_predict_step.before_optimizations.txt",
        "module_0228.jit_train_step.before_optimizations.txt",
    },
}


def test_programs_run(shared: Path) -> None:
    counts: Counter[str] = Counter()
    refused: dict[str, set[str]] = {reason: set() for reason in NOT_RUN}
    for name, outcome in outcomes(shared):
        counts[outcome] += 1
        if outcome not in ("runs", "compiled"):
            refused.setdefault(outcome, set()).add(name)
    print(dict(counts))
    assert refused == NOT_RUN


def outcomes(shared: Path) -> Iterator[tuple[str, str]]:
    """Each program's name with what became of it."""
    for folder in (shared / "hlo" / "xla", shared / "hlo" / "models", shared / "dumps"):
        for found in open_dump(folder).modules:
            for stage in (*found.stages, *found.others):
                name = str(stage.source).rpartition("/")[2]
                try:
                    module = load_stage(found, stage)
                    verify_or_raise(module)
                    yield name, execute(module)
                except HlotoolError as error:
                    yield name, reason(error)


def execute(module: Module) -> str:
    """Run a program on generated inputs, on as many devices as its collectives name; compile large ones."""
    sizes = (
        part.size
        for i in module.instructions()
        for _, part in leaves(i.shape)
        if isinstance(part, ArrayShape)
    )
    is_large = max(sizes, default=0) > LARGEST
    try:
        executable = NumpyBackend().compile(module)
        if not is_large:
            executable.run(list(generate_inputs(module, 1).values))
    except Unsupported as error:
        grid = inferred_grid(module)
        if "one device is executed" not in error.reason or len(grid) < 2:
            raise
        execute_on_devices(module, grid, is_large)
    return "compiled" if is_large else "runs"


def execute_on_devices(module: Module, grid: DeviceGrid, is_large: bool) -> None:
    try:
        executable = NumpyBackend().compile_devices(module, grid)
    except VerificationError:
        executable = NumpyBackend().compile_devices(module, DeviceGrid(grid.partitions, grid.replicas))
    if not is_large:
        executable.run_devices([list(generate_inputs(module, 1).values)] * len(grid))


def reason(error: HlotoolError) -> str:
    """The kind of an error, for those that are expected."""
    text = str(error)
    if isinstance(error, VerificationError):
        return INVALID
    if isinstance(error, ElidedConstant):
        return ELIDED
    if "which no dump holds" in text:
        return OUTSIDE
    if "custom calls without a model" in text and any(f"'{name}" in text for name in INVENTED):
        return UNKNOWN
    if "send to another device" in text:
        return PARTNER
    if "a piece of" in text:
        return BOUNDS
    return SHARD if "one of several shards" in text else text
