"""What the custom calls at the borders of manual regions (JAX's shard_map) say of the values that cross them.

Until jaxlib 0.11 Shardy's words stand in frontend attributes: `xla.sdy.in_shardings`, `xla.sdy.out_shardings`
and `xla.sdy.manual_axes`. Since 0.12 HLO's own shardings say the same: that of a value outside how it is
spread, that of a value inside along which axes it is manual:

    s = f32[8,8] custom-call(x), custom_call_target="Sharding", sharding={mesh['a'=2,'b'=2], [{'a'}, {?}]}
    p = f32[4,8] custom-call(s), custom_call_target="xla.sdy.GlobalToLocalShape",
        sharding={mesh['a'=2,'b'=2], [{?}, {?}], manual={'a'}}

Shardy: shardy/constants.h, sdy_round_trip; XLA: hlo_sharding.h (NamedSharding).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hlotool.ir.attributes import Mesh, Sharding
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import ENTERS_REGION, manual_inside, stated_shardings
from hlotool.parse.sdy import module_meshes, parse_manual_axes, parse_shardings

#: Borders in Shardy's words; those of GSPMD have none.
_SHARDY = frozenset({"xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"})


@dataclass(frozen=True, slots=True)
class Border:
    """What a border says.

    Attributes:
        shardings: of the global values, one per operand; None where one is not stated.
        manual: names of the axes along which the region is manual; None where they have none: then all are.
    """

    shardings: tuple[Sharding | None, ...]
    manual: frozenset[str] | None

    @property
    def is_fully_manual(self) -> bool:
        """Whether no axis of its meshes is left to the partitioner."""
        return self.manual is None or all(
            name in self.manual for mesh in _meshes_in(self.shardings) for name, _ in mesh.axes
        )


def border_of(call: Instruction, meshes: Mapping[str, Mesh]) -> Border:
    """What a custom call at the border of a region says.

    Args:
        call: whose target is in `ENTERS_REGION` or `LEAVES_REGION`.
        meshes: of the module, by name; see `module_meshes`.

    Raises:
        ValueError: unreadable text, or nothing that says which axes are manual.
    """
    enters = call.custom_call_target in ENTERS_REGION
    key = "xla.sdy.in_shardings" if enters else "xla.sdy.out_shardings"
    if (text := call.frontend_attribute(key)) is not None:
        axes = call.frontend_attribute("xla.sdy.manual_axes")
        try:
            manual = None if axes is None else frozenset(parse_manual_axes(axes))
            return Border(parse_shardings(text, meshes), manual)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    of_operands = (one for operand in call.operands for one in stated_shardings(operand)[:1])
    outside = tuple(of_operands) if enters else stated_shardings(call)
    if call.custom_call_target not in _SHARDY:
        return Border(outside, None)
    names = manual_inside(call)
    if not names:
        raise ValueError("no sharding at the border says which axes are manual")
    return Border(outside, names)


def meshes_of(module: Module) -> tuple[Mesh, ...]:
    """The meshes of devices that a module speaks of: those that it names, then those of its shardings.

    Raises:
        ValueError: unreadable text.
    """
    found = dict.fromkeys(module_meshes(module).values())
    found |= dict.fromkeys(_meshes_in(s for i in module.instructions() for s in stated_shardings(i)))
    return tuple(found)


def _meshes_in(shardings: Iterable[Sharding | None]) -> Iterator[Mesh]:
    for sharding in shardings:
        if sharding is not None and sharding.named is not None and sharding.named.mesh.axes:
            yield sharding.named.mesh
