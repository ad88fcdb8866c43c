"""One module on the numpy backend and on real XLA, on the same inputs, on one device or on several."""

from __future__ import annotations

import re
from typing import Any

from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.facts.dataflow import leaf_facts
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import flatten
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.judge.comparison import Comparison, compare_values
from support.devices import manual
from support.xla import oracle


def against_xla(
    module: Module, text: str, seed: int = 1, value_range: tuple[float, float] | None = None
) -> Comparison:
    """The comparison of XLA's result (expected) with ours (actual).

    Raises:
        XlaError: XLA cannot run `text`.
        HlotoolError: we cannot run `module`.
    """
    arguments = list(generate_inputs(module, seed=seed, value_range=value_range).values)
    actual = get_backend("numpy").compile(module).run(arguments)
    flat = [leaf for p, a in zip(module.entry.parameters, arguments) for leaf in _arrays(p.shape, a)]
    outputs = oracle().run(text, flat)
    shape = module.entry.root.shape
    return compare_values(shape, _nested(shape, outputs, actual), actual, facts=leaf_facts(module))


def against_xla_on_devices(module: Module, text: str, grid: DeviceGrid) -> list[Comparison]:
    """The comparison on each of several devices, which get different inputs; raises as `against_xla`."""
    parameters = module.entry.parameters
    arguments = [list(generate_inputs(module, seed=1 + device).values) for device in range(len(grid))]
    actual = get_devices_backend("numpy").compile_devices(module, grid).run_devices(arguments)
    flat = [[leaf for p, a in zip(parameters, row) for leaf in _arrays(p.shape, a)] for row in arguments]
    partitioned = manual(text) if grid.partitions > 1 else text
    expected = oracle(8).run_devices(partitioned, flat, grid.replicas, grid.partitions)
    shape, facts = module.entry.root.shape, leaf_facts(module)
    return [
        compare_values(shape, _nested(shape, list(theirs), ours), ours, facts=facts)
        for theirs, ours in zip(expected, actual)
    ]


def run_on_xla(module: Module, text: str) -> None:
    """Only see whether XLA runs it; raises as `against_xla`."""
    parameters = zip(module.entry.parameters, generate_inputs(module, seed=1).values)
    oracle().run(text, [leaf for p, a in parameters for leaf in _arrays(p.shape, a)])


def reason_not_to_run(text: str) -> str | None:
    """Why XLA's CPU compiler cannot run this module on one device in the oracle's process."""
    if note := re.search(r"^// (XLA on CPU: .*)", text, re.MULTILINE):
        return note[1]
    if "constant({...})" in text:
        return "its constants are elided"
    if "callback" in text:
        return "it calls back into Python"
    if re.search(r"num_partitions=[2-9]|replica_count=[2-9]", text):
        return "it is for several devices"
    return None


def _arrays(shape: Shape, value: Any) -> list[Any]:
    return [leaf for _, part, leaf in flatten(shape, value) if isinstance(part, ArrayShape)]


def _nested(shape: Shape, flat: list[Any], like: Any) -> Any:
    """XLA's list of leaves in the tuple structure of `shape`.

    jaxlib hands out dynamic arrays at their bound and keeps their sizes to itself: they are cut to the size
    that `like` has, what is behind it is undefined.
    """
    if isinstance(shape, TupleShape):
        return tuple(_nested(element, flat, part) for element, part in zip(shape.elements, like))
    if not isinstance(shape, ArrayShape):
        return None
    array = flat.pop(0)
    return array[tuple(slice(size) for size in like.shape)] if shape.is_dynamic else array
