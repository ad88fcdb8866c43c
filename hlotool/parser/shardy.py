r"""Shardy's shardings in frontend attributes, and what stands at the borders of manual regions.

    xla.sdy.meshes={mesh = #sdy.mesh<["x"=4, "y"=2]>}                              of the module
    xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"                         of an instruction
    xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\", ?}p1]>]>"
    xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"

They become the same objects as V3 shardings of HLO text.

Until jaxlib 0.11 the custom calls at the borders of manual regions (JAX's shard_map) have Shardy's words in
their frontend attributes: `xla.sdy.in_shardings`, `xla.sdy.out_shardings` and `xla.sdy.manual_axes`. Since
0.12 HLO's own shardings say the same: that of a value outside how it is spread, that of a value inside
along which axes it is manual:

    s = f32[8,8] custom-call(x), custom_call_target="Sharding", sharding={mesh['a'=2,'b'=2], [{'a'}, {?}]}
    p = f32[4,8] custom-call(s), custom_call_target="xla.sdy.GlobalToLocalShape",
        sharding={mesh['a'=2,'b'=2], [{?}, {?}], manual={'a'}}

Shardy: sdy/ir/attrs.td, shardy/constants.h, sdy_round_trip; XLA: hlo_sharding.h (NamedSharding).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from hlotool.ir.attributes import Ints, Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import ENTERS_REGION, manual_inside, stated_shardings
from hlotool.parser.tokens import TokenReader

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|@"[^"]*"|@[\w.$-]+|#?[A-Za-z_][\w.]*|\d+|[\[\]{}<>(),=:?])')


def module_meshes(module: Module) -> dict[str, Mesh]:
    """The named meshes that a module brings along.

    Raises:
        ValueError: unreadable text.
    """
    text = module.frontend_attribute("xla.sdy.meshes")
    return parse_meshes(text) if text else {}


def parse_meshes(text: str) -> dict[str, Mesh]:
    """The named meshes of a module's `xla.sdy.meshes`.

    Raises:
        ValueError: unreadable text.
    """
    reader = _Reader(text, {})
    meshes = dict(reader.listed("{", "}", reader.named_mesh))
    reader.finish()
    return meshes


def parse_shardings(text: str, meshes: Mapping[str, Mesh]) -> tuple[Sharding, ...]:
    """One sharding per value of `#sdy.sharding_per_value<…>`, or the one of `#sdy.sharding<…>`.

    Raises:
        ValueError: unreadable text, or a mesh that is not in `meshes`.
    """
    reader = _Reader(text, meshes)
    if reader.take("#sdy.sharding_per_value", optional=True):
        reader.take("<")
        shardings = reader.listed("[", "]", reader.sharding)
        reader.take(">")
    else:
        reader.take("#sdy.sharding")
        shardings = [reader.sharding()]
    reader.finish()
    return tuple(shardings)


def parse_manual_axes(text: str) -> tuple[str, ...]:
    """The names in `#sdy<manual_axes{…}>`.

    Raises:
        ValueError: unreadable text.
    """
    reader = _Reader(text, {})
    for token in ("#sdy", "<", "manual_axes"):
        reader.take(token)
    names = reader.listed("{", "}", reader.string)
    reader.take(">")
    reader.finish()
    return tuple(names)


class _Reader(TokenReader):
    """Reads meshes and shardings; `meshes` are those that have a name."""

    def __init__(self, text: str, meshes: Mapping[str, Mesh]) -> None:
        super().__init__(text.replace('\\"', '"'), _TOKEN)
        self._meshes = meshes

    def string(self) -> str:
        return self.quoted()[1:-1]

    def named_mesh(self) -> tuple[str, Mesh]:
        """`mesh = #sdy.mesh<…>`."""
        name = self.next()
        self.take("=")
        self.take("#sdy.mesh")
        return name, self.mesh()

    def mesh(self) -> Mesh:
        """`<["x"=4, "y"=2], device_ids=[…]>`."""
        self.take("<")
        axes = tuple(self.listed("[", "]", self._mesh_axis))
        devices: Ints = ()
        if self.take(",", optional=True):
            self.take("device_ids")
            self.take("=")
            devices = tuple(self.listed("[", "]", self.integer))
        self.take(">")
        if not axes and len(devices) == 1:
            return Mesh((), maximal_device=devices[0])
        return Mesh(axes, devices)

    def _mesh_axis(self) -> tuple[str, int]:
        name = self.string()
        self.take("=")
        return name, self.integer()

    def sharding(self) -> Sharding:
        """`<@mesh, [{"x"}, {}], replicated={"y"}, unreduced={"z"}>`."""
        self.take("<")
        mesh = self._mesh_or_name()
        self.take(",")
        dims = tuple(self.listed("[", "]", self._dimension))
        axes: dict[str, tuple[MeshAxis, ...]] = {}
        while self.take(",", optional=True):
            kind = self.next()
            if kind not in ("replicated", "unreduced"):
                raise self.error("'replicated' or 'unreduced'")
            self.take("=")
            axes[kind] = tuple(self.listed("{", "}", self._axis))
        self.take(">")
        return _sharding(NamedSharding(mesh, dims, **axes))

    def _mesh_or_name(self) -> Mesh:
        token = self.next()
        if token == "mesh":
            return self.mesh()
        name = token[1:].strip('"')
        if not token.startswith("@") or name not in self._meshes:
            raise self.error("the name of a mesh of the module")
        return self._meshes[name]

    def _dimension(self) -> ShardedDimension:
        listed = self.listed("{", "}", lambda: None if self.take("?", optional=True) else self._axis())
        axes = tuple(axis for axis in listed if axis is not None)
        priority = int(self.next()[1:]) if re.fullmatch(r"p\d+", self.peek()) else None
        return ShardedDimension(axes, None not in listed, priority)

    def _axis(self) -> MeshAxis:
        name = self.string()
        if not self.take(":", optional=True):
            return MeshAxis(name)
        self.take("(")
        before = self.integer()
        self.take(")")
        return MeshAxis(name, before, self.integer())


def _sharding(named: NamedSharding) -> Sharding:
    if named.mesh.maximal_device is not None:
        return Sharding("maximal", named=named)
    return Sharding("tiled", named=named) if named.mesh.axes else Sharding("replicated")


#: Borders in Shardy's words; those of GSPMD have none.
_SHARDY = frozenset({"xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"})


class Border(Struct, frozen=True):
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
