"""How the arguments of a partitioned program are spread over the devices.

Up to jaxlib 0.11 its parameters say so themselves. Those of jaxlib 0.12 do not: then the program that it was
made from tells, by the shardings of its parameters and of what it makes of them at once.
"""

from __future__ import annotations

from hlotool.ir.attributes import Sharding
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, leaves
from hlotool.ir.walk import users
from hlotool.replay.devices.result_sharding import ANNOTATIONS, fits
from hlotool.values.infer_sharding import part_counts
from hlotool.values.sharding import leaf_shardings

_REPLICATED = Sharding("replicated")


def parameter_shardings(module: Module, origin: Module) -> list[list[Sharding | None]]:
    """One sharding for each leaf of each parameter.

    Args:
        module: the partitioned program.
        origin: the program on global arrays that it was made from.

    Raises:
        ValueError: malformed shardings; a parameter is a part of the other program's, and nothing says which.
    """
    wholes = origin.entry.parameters
    readers = users(origin.entry)
    return [
        _of_origin(p, wholes[n], readers[wholes[n]], module.num_partitions)
        if p.sharding is None and n < len(wholes)
        else leaf_shardings(p.shape, p.sharding or _REPLICATED)
        for n, p in enumerate(module.entry.parameters)
    ]


def _of_origin(
    own: Instruction, whole: Instruction, readers: list[Instruction], count: int
) -> list[Sharding | None]:
    """The shardings of the leaves of a parameter without one, from the parameter that it is a part of."""
    locals_, wholes = ([shape for _, shape in leaves(one.shape)] for one in (own, whole))
    if len(locals_) != len(wholes):
        return [_REPLICATED] * len(locals_)
    stated = [whole.sharding]
    annotations = {r.sharding for r in readers if r.custom_call_target in ANNOTATIONS}
    # What several annotations say may differ, and the partitioner chose one of them.
    stated += annotations if len(annotations) == 1 else ()
    listed = [leaf_shardings(whole.shape, sharding) for sharding in stated]
    return [
        _chosen(own, local, other, [one[n] for one in listed], count)
        for n, (local, other) in enumerate(zip(locals_, wholes))
    ]


def _chosen(
    own: Instruction, local: Shape, whole: Shape, stated: list[Sharding | None], count: int
) -> Sharding:
    """The first of the shardings that makes `local` of `whole`."""
    if not (isinstance(local, ArrayShape) and isinstance(whole, ArrayShape)) or local.dims == whole.dims:
        return _REPLICATED
    for sharding in stated:
        if sharding is not None and fits(sharding, local, whole, count):
            return sharding
    if any(part_counts(local.dims, whole.dims, count)):
        text = f"{own.name} is a part of {whole.logical_text()}, {local.logical_text()}"
        raise ValueError(f"{text}, and the dump does not say which part is on which device")
    return _REPLICATED
