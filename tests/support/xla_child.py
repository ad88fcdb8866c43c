"""What the oracle asks of XLA besides compiling and running; runs in the process that holds XLA."""

from __future__ import annotations

from typing import Any

from hlotool.backends.xla.child import devices
from hlotool.backends.xla.jaxlib_api import find, to_proto


def canonical(text: str) -> str:
    """XLA's own print of a module, large constants included."""
    return _print(find("hlo_module_from_text")(text))


def proto(text: str) -> bytes:
    """The serialized HloModuleProto of a module."""
    return to_proto(text)


def from_proto(content: bytes) -> str:
    """XLA's print of the module in a serialized HloModuleProto, large constants included."""
    return _print(find("HloModule").from_serialized_hlo_module_proto(content))


def _print(module: Any) -> str:
    options = find("HloPrintOptions")()
    options.print_large_constants = True
    return str(module.to_string(options))


def placement(text: str) -> tuple[str, list[int], list[int], list[str]]:
    """XLA's V2 form of a sharding, its tile dimensions, its devices and the kinds of its last dimensions."""
    kind = find("HloSharding")
    sharding = kind.v3_to_v2_sharding(kind.from_string(text))
    if not sharding.is_tiled() or sharding.is_unreduced():
        return str(sharding), [], [], []
    kinds = [kind.name.lower() for kind in sharding.subgroup_types()]
    if sharding.replicate_on_last_tile_dim():
        kinds = ["replicated"]
    return (
        str(sharding),
        list(sharding.tile_assignment_dimensions()),
        list(sharding.tile_assignment_devices()),
        kinds,
    )


def indices(question: tuple[dict[str, int], list[Any], tuple[int, ...]]) -> list[Any]:
    """What JAX's NamedSharding puts on each device: (start, stop) per dimension."""
    import jax

    axes, spec, dims = question
    found = devices("cpu")
    mesh = jax.make_mesh(tuple(axes.values()), tuple(axes))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    slices = sharding.devices_indices_map(dims)
    return [
        [part.indices(size)[:2] for part, size in zip(slices[device], dims)] for device in found[: mesh.size]
    ]


def costs(text: str) -> dict[str, float]:
    """What XLA counts in a module: flops, transcendentals, bytes accessed, and more."""
    client = devices("cpu")[0].client
    module = find("hlo_module_from_text")(text)
    return {name: float(value) for name, value in find("hlo_module_cost_analysis")(client, module).items()}
