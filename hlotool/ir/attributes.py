"""Typed attribute values of instructions and modules; all immutable and hashable.

Which opcode takes which attribute stands in `opcodes.py`; this file says what the values look like. Some
are decoded from their text when they are first looked at (`Deferrable`): few commands ask for most of them.

XLA: hlo_parser.cc (text form), xla_data.proto (meaning).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from msgspec import Struct

from hlotool.ir.types import ElementType, Shape, ShapeIndex, TypeClass

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal as LiteralValue
    from hlotool.ir.module import Computation


class Deferrable:
    """A dataclass whose fields may be filled from a text when one of them is first asked for."""

    __slots__ = ("_source",)

    @classmethod
    def deferred(cls, decode: Callable[[str], Self], text: str) -> Self:
        """What `decode(text)` returns, but not before it is looked at; what it raises is raised there."""
        made = cls.__new__(cls)
        _set_source(made, (decode, text))
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Fill all fields; Python calls this only where the slot of `name` is empty."""
            if name not in type(self).__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            decode, text = object.__getattribute__(self, "_source")
            decoded = decode(text)
            for field_name in type(self).__dataclass_fields__:
                object.__setattr__(self, field_name, getattr(decoded, field_name))
            return getattr(decoded, name)


#: Past the guard of frozen classes; thousands are made of one text.
_set_source = Deferrable._source.__set__  # type: ignore[attr-defined]


Ints: TypeAlias = tuple[int, ...]


class WindowDim(Struct, frozen=True):
    """One dimension of a window: `size`, `stride`, padding on both sides, dilations, reversal."""

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversal: bool = False

    @property
    def dilated_size(self) -> int:
        """Extent of the dilated window, 0 for an empty one."""
        return (self.size - 1) * self.window_dilation + 1 if self.size else 0


class Window(Struct, frozen=True):
    """`window={size=2x2 stride=… pad=… lhs_dilate=… rhs_dilate=… rhs_reversal=…}`."""

    dims: tuple[WindowDim, ...]


class ConvolutionDimensions(Struct, frozen=True):
    """`dim_labels=b01f_01io->b01f`: which dimension of each array plays which part.

    `unused_*` are the positions printed `?`, which only custom calls use.
    """

    input_batch: int
    input_feature: int
    input_spatial: Ints
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: Ints
    output_batch: int
    output_feature: int
    output_spatial: Ints
    input_unused: Ints = ()
    kernel_unused: Ints = ()
    output_unused: Ints = ()


class PaddingDim(Struct, frozen=True):
    """`low_high_interior` of one dimension; low and high may be negative."""

    low: int
    high: int
    interior: int = 0


class SliceDim(Struct, frozen=True):
    """`[start:limit:stride]` of one dimension."""

    start: int
    limit: int
    stride: int = 1


class IotaTiles(Struct, frozen=True):
    """`[dims]<=[reshape_dims]T(permutation)`: device numbers in V2 (iota) form.

    The tile array is `iota(prod).reshape(reshape_dims).transpose(permutation).reshape(dims)`.
    """

    dims: Ints
    reshape_dims: Ints
    permutation: Ints


class MeshAxis(Struct, frozen=True):
    """A named axis, or `"name":(pre)size` a part of one."""

    name: str
    pre_size: int | None = None
    size: int | None = None


class Mesh(Struct, frozen=True):
    """`mesh['x'=2,'y'=2]`, or `maximal_mesh[device_id=1]`.

    Attributes:
        axes: names and sizes.
        device_ids: explicit device order `device_ids=(3,2,1,0)`.
        iota: transposed device order `device_ids=([2,2]T(1,0))`; its dims are the sizes of the axes.
        maximal_device: of a maximal mesh, which has no axes.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: Ints = ()
    maximal_device: int | None = None
    iota: IotaTiles | None = None


class MeshGroups(Struct, frozen=True):
    """Replica groups given as axes of a mesh."""

    mesh: Mesh
    axes: tuple[MeshAxis, ...]


class ReplicaGroups(Struct, frozen=True):
    """`replica_groups=…` in any of its forms; exactly one of the three is set.

    Attributes:
        groups: explicit `{{0,1},{2,3}}`; `()` means one group of everybody.
        iota: `[2,2]<=[4]`.
        mesh: mesh-axes form.
    """

    groups: tuple[Ints, ...] | None = None
    iota: IotaTiles | None = None
    mesh: MeshGroups | None = None


@dataclass(frozen=True, slots=True)
class Metadata(Deferrable):
    """Where an instruction comes from in the user's program. Empty strings and 0 mean absent."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: Ints = ()
    deduplicated_name: str = ""
    scheduling_name: str = ""
    stack_frame_id: int = 0
    metadata_payload: str = ""
    #: Keys that current XLA no longer knows, kept as written.
    obsolete: tuple[tuple[str, str], ...] = ()


ShardingKind: TypeAlias = Literal["tiled", "replicated", "maximal", "manual", "unknown", "unreduced", "tuple"]


class ShardedDimension(Struct, frozen=True):
    """One dimension of a V3 (named-axes) sharding: its axes; `closed` is False for a trailing `?`."""

    axes: tuple[MeshAxis, ...]
    closed: bool = True
    priority: int | None = None


class NamedSharding(Struct, frozen=True):
    """V3 sharding: `{mesh['x'=2], [{'x'}, {}], replicated={…}, unreduced={…}}`.

    Where the text says `{mesh['x'=2], replicated}` or `{maximal_mesh[device_id=1]}`, there are no `dims`,
    and the sharding's `kind` says which.
    """

    mesh: Mesh
    dims: tuple[ShardedDimension, ...]
    replicated: tuple[MeshAxis, ...] = ()
    unreduced: tuple[MeshAxis, ...] = ()
    manual: tuple[MeshAxis, ...] = ()


class Sharding(Struct, frozen=True):
    """`sharding={…}` in V1 (device list), V2 (iota) or V3 (named) form.

    Attributes:
        kind: what the braces say.
        tile_dims: `devices=[2,2]…`: number of tiles per dimension, then subgroup dimensions.
        devices: explicit device list of a V1 tiling.
        iota: V2 device order.
        device: of `maximal device=N`.
        last_tile_dim_replicate: the last tile dimension replicates.
        last_tile_dims: `last_tile_dims={manual, replicated}`: kinds of the subgroup dimensions.
        shard_group: `("shard_as" | "shard_like", id)`.
        elements: of a tuple sharding.
        named: V3 form.
        metadata: `metadata={op_name="…"}` or a list of them.
    """

    kind: ShardingKind
    tile_dims: Ints = ()
    devices: Ints = ()
    iota: IotaTiles | None = None
    device: int | None = None
    last_tile_dim_replicate: bool = False
    last_tile_dims: tuple[str, ...] = ()
    shard_group: tuple[str, int] | None = None
    elements: tuple[Sharding, ...] = ()
    named: NamedSharding | None = None
    metadata: tuple[Metadata, ...] = ()


class FrontendAttributes(Struct, frozen=True):
    """`frontend_attributes={key="value",key={text}}`; values keep their quotes or braces as written."""

    entries: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str | None:
        """The value of `key` without its quotes, or None."""
        for name, value in self.entries:
            if name == key:
                return value[1:-1] if value.startswith('"') else value
        return None


class BackendConfig(Struct, frozen=True):
    """`backend_config=…`: JSON object, MLIR-like dictionary or quoted string, text as written.

    Attributes:
        text: without the quotes of the quoted form, escapes resolved.
        quoted: it stood in quotes.
    """

    text: str
    quoted: bool = False


class OperandAlias(Struct, frozen=True):
    """`{output}: (operand, {index})` of `output_to_operand_aliasing`."""

    output_index: ShapeIndex
    operand: int
    operand_index: ShapeIndex


class ParameterAlias(Struct, frozen=True):
    """`{output}: (parameter, {index}, may-alias)` of `input_output_alias`."""

    output_index: ShapeIndex
    parameter: int
    parameter_index: ShapeIndex
    kind: Literal["may-alias", "must-alias"] = "may-alias"


class BufferDonor(Struct, frozen=True):
    """`(parameter, {index})` of `buffer_donor`."""

    parameter: int
    parameter_index: ShapeIndex


class EntryLayout(Struct, frozen=True):
    """`entry_computation_layout={(parameters)->result}`."""

    parameters: tuple[Shape, ...]
    result: Shape


class ResultAccuracy(Struct, frozen=True):
    """`result_accuracy={mode=highest}` or `{tolerance={atol=…,rtol=…,ulps=…}}`."""

    mode: str | None = None
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


class Statistics(Struct, frozen=True):
    """`statistics={visualizing_index=0,name=1.5}`."""

    visualizing_index: int
    values: tuple[tuple[str, float], ...]


class RawText(Struct, frozen=True):
    """A value that hlotool carries but does not interpret (`origin`, `domain`, `sparsity_config`, …).

    The text is brace-balanced and normalised to single blanks, so that it prints back.
    """

    text: str


class EmbeddedLiteral(Struct, frozen=True, eq=False):
    """`literal=…` of a custom call."""

    literal: LiteralValue


def default_comparison(element_type: ElementType) -> str:
    """The `type` of a `compare` that names none."""
    families = {TypeClass.PRED: "UNSIGNED", TypeClass.UNSIGNED: "UNSIGNED", TypeClass.SIGNED: "SIGNED"}
    return families.get(element_type.family, "FLOAT")


AttributeValue: TypeAlias = (
    "int | float | bool | str | Ints | tuple[str, ...] | tuple[Ints, ...] | Window | ConvolutionDimensions"
    " | tuple[PaddingDim, ...] | tuple[SliceDim, ...] | ReplicaGroups | Sharding | FrontendAttributes"
    " | BackendConfig | tuple[OperandAlias, ...] | tuple[ParameterAlias, ...] | tuple[BufferDonor, ...]"
    " | EntryLayout | ResultAccuracy | Statistics | RawText | EmbeddedLiteral | Shape | tuple[Shape, ...]"
    " | Computation | tuple[Computation, ...] | tuple[bool, ...]"
)


class FileLocation(Struct, frozen=True):
    """A row of the `FileLocations` table."""

    file_name_id: int
    function_name_id: int
    line: int
    end_line: int
    column: int
    end_column: int


class StackFrame(Struct, frozen=True):
    """A row of the `StackFrames` table.

    Attributes:
        file_location_id: row of FileLocations.
        parent_frame_id: as printed: parent p means frame p - 1, so that 1 is none.
    """

    file_location_id: int
    parent_frame_id: int


@dataclass(frozen=True, slots=True)
class StackFrameTables(Deferrable):
    """The four tables after the HloModule line, keyed by their printed row numbers (from 1)."""

    file_names: dict[int, str] = field(default_factory=dict)
    function_names: dict[int, str] = field(default_factory=dict)
    file_locations: dict[int, FileLocation] = field(default_factory=dict)
    stack_frames: dict[int, StackFrame] = field(default_factory=dict)
