"""For whom a program is written: global arrays or one device, how many, and manual regions cut out.

What the frontend gives is one program on global arrays, whatever `num_partitions` says; the SPMD
partitioner turns it into a program for each device, on that device's parts. PyTorch/XLA leaves
`replica_count` and `num_partitions` out of its headers, as did jaxlib up to 0.4.20 and as do many texts
that were copied from elsewhere; shardings and collectives then show: one among replicas 0 to 7 of eight, an
array in four tiles of four partitions.

Manual regions (JAX's shard_map) stand between custom calls and are written for a device from the start,
although the program around them is not. Cut out into computations of their own, only the regions have to be
executed on all devices.

XLA: spmd_partitioner.cc; Shardy: docs/sharding_representation.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias

from msgspec import Struct

from hlotool.errors import InputError
from hlotool.ir.attributes import AttributeValue, Sharding
from hlotool.ir.devices import DeviceGrid, GroupMode, expand_groups, group_mode, source_target_ids
from hlotool.ir.edit import copied
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import TupleShape


def inferred_grid(module: Module) -> DeviceGrid:
    """The devices of the header; where it names none, those of shardings, groups and pairs of collectives."""
    if module.replica_count * module.num_partitions > 1:
        return DeviceGrid(module.replica_count, module.num_partitions)
    replicas = devices = 1
    partitions = max((_tiled_over(i.sharding) for i in module.instructions() if i.sharding), default=1)
    for instruction in module.instructions():
        if instruction.row.opcode_class is not Class.COLLECTIVE:
            continue
        count = 1 + max(_ids(instruction), default=0)
        mode = _mode(instruction)
        if mode is GroupMode.FLATTENED_ID:
            devices = max(devices, count)
        elif mode is GroupMode.CROSS_PARTITION:
            partitions = max(partitions, count)
        else:
            replicas = max(replicas, count)
    if partitions > 1 or _asks_for_the_partition_alone(module):
        return DeviceGrid(replicas, max(partitions, -(-devices // replicas)))
    return DeviceGrid(max(replicas, devices), 1)


def _tiled_over(sharding: Sharding) -> int:
    """How many devices hold the tiles of an array, or of the elements of a tuple."""
    if sharding.kind == "tuple":
        return max(map(_tiled_over, sharding.elements), default=1)
    if sharding.named is not None:
        return prod(size for _, size in sharding.named.mesh.axes)
    return len(sharding.devices) if sharding.iota is None else prod(sharding.iota.reshape_dims)


def _asks_for_the_partition_alone(module: Module) -> bool:
    """Whether devices tell themselves apart by `partition-id`: ids of the whole grid then count partitions.

    With `replica-id` as well, or with neither, groups of the flattened mode do not say what they count; where
    nothing else speaks of partitions, replicas are more likely.
    """
    opcodes = {instruction.opcode for instruction in module.instructions()}
    return "partition-id" in opcodes and "replica-id" not in opcodes


def _mode(instruction: Instruction) -> GroupMode | None:
    try:
        return group_mode(instruction)
    except InputError:
        return None


def _ids(instruction: Instruction) -> list[int]:
    """All ids that a collective names; none where it names no ids, or in a way that breaks a rule."""
    try:
        if "source_target_pairs" in instruction.attributes:
            return [device for pair in source_target_ids(instruction) for device in pair]
        if "replica_groups" in instruction.attributes:
            return [device for group in expand_groups(instruction.replica_groups) for device in group]
    except (ValueError, InputError):
        pass
    return []


#: Custom calls through which values enter a manual region, and leave it. The partitioner removes them.
ENTERS_REGION = frozenset({"SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"})
LEAVES_REGION = frozenset({"SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"})


def stated_shardings(instruction: Instruction) -> tuple[Sharding | None, ...]:
    """What is said of an array's sharding, or of each element's of a tuple of arrays; None: nothing.

    An element of a tuple has the sharding that the tuple has there, where it states none itself.
    """
    sharding = instruction.sharding
    if sharding is None and instruction.opcode == "get-tuple-element":
        of_elements = stated_shardings(instruction.operands[0])
        index = instruction.integer("index")
        sharding = of_elements[index] if index < len(of_elements) else None
    if not isinstance(instruction.shape, TupleShape):
        return (sharding,)
    count = len(instruction.shape.elements)
    if sharding is None or sharding.kind != "tuple":
        return (sharding,) * count
    return sharding.elements if len(sharding.elements) == count else (None,) * count


def manual_names(sharding: Sharding) -> frozenset[str]:
    """The axes of its mesh along which a value is manual."""
    named = sharding.named
    if named is None:
        return frozenset()
    if sharding.kind == "manual":
        return frozenset(name for name, _ in named.mesh.axes)
    return frozenset(axis.name for axis in named.manual)


def manual_inside(border: Instruction) -> frozenset[str]:
    """The axes along which a region is manual, as the shardings on the inside of its border name them."""
    inside = [border] if border.custom_call_target in ENTERS_REGION else border.operands
    stated = (sharding for value in inside for sharding in stated_shardings(value))
    return frozenset().union(*(manual_names(sharding) for sharding in stated if sharding is not None))


def has_manual_regions(module: Module) -> bool:
    """Whether parts of a program on global arrays are written for a device."""
    borders = ENTERS_REGION | LEAVES_REGION
    return any(i.custom_call_target in borders for i in module.instructions())


def is_one_program_with_regions(module: Module) -> bool:
    """Whether a program on global arrays is executed as one, but for parts that all partitions execute."""
    return has_manual_regions(module) and module.num_partitions > 1 and module.replica_count == 1


def is_per_device(module: Module) -> bool:
    """Whether the whole program is written for one of several devices.

    A program that neither exchanges values nor asks for its number gives the same result either way.
    """
    if module.replica_count * module.num_partitions == 1 or has_manual_regions(module):
        return False
    return any(map(_knows_devices, module.instructions()))


def own_arguments(module: Module) -> int:
    """How many devices take arguments of their own: one where the program is on global arrays."""
    return module.replica_count * module.num_partitions if is_per_device(module) else 1


def for_grid(module: Module, grid: DeviceGrid) -> Module:
    """The program with a header that speaks of the devices of `grid`."""
    attributes = {**module.attributes, "replica_count": grid.replicas, "num_partitions": grid.partitions}
    return replace(module, attributes=attributes)


def _knows_devices(instruction: Instruction) -> bool:
    """Whether its result depends on which device it runs on."""
    if instruction.opcode in ("partition-id", "replica-id"):
        return True
    if instruction.opcode in ("send", "recv"):
        return not instruction.flag("is_host_transfer")
    return instruction.row.opcode_class is Class.COLLECTIVE


#: Target of the custom call that stands for a region; its `called_computations` is the region, which returns
#: a tuple.
REGION_TARGET: Final = "hlotool.ManualRegion"


class NotSeparable(Exception):
    """Values of devices and global ones mix in a way that no cut tells apart."""


class Region(Struct, frozen=True, eq=False):
    """Instructions that are executed for each device.

    Attributes:
        instructions: in order.
        inputs: global values that they read.
        outputs: global values that they make: what leaves the region.
    """

    instructions: tuple[Instruction, ...]
    inputs: tuple[Instruction, ...]
    outputs: tuple[Instruction, ...]


class RegionFinder:
    """Tells which values differ from device to device; each computation is looked at once."""

    def __init__(self) -> None:
        self._varying: dict[Computation, set[Instruction]] = {}

    def outlined(self, computation: Computation) -> Computation:
        """`computation`, which is called with global values, with a custom call for each of its regions.

        Raises:
            NotSeparable: see `regions`; or a region needs a value that is made of its own results.
        """
        regions = self.regions(computation)
        return _Outliner(computation, regions).result() if regions else computation

    def regions(self, computation: Computation) -> list[Region]:
        """The regions of a computation that is called with global values.

        Raises:
            NotSeparable: the result differs from device to device, or a region is entered and left along
                different axes.
        """
        varying = self.varying(computation)
        if computation.root in varying:
            raise NotSeparable(f"the result of {computation.name} differs from device to device")
        members = [i for i in computation.instructions if i in varying or _leaves(i)]
        return [_region(part, varying) for part in _connected(members, varying)]

    def varying(self, computation: Computation) -> set[Instruction]:
        """Instructions whose results differ from device to device when the arguments are global values."""
        if computation not in self._varying:
            found: set[Instruction] = set()
            for instruction in computation.instructions:
                if not _leaves(instruction) and self._varies(instruction, found):
                    found.add(instruction)
            self._varying[computation] = found
        return self._varying[computation]

    def _varies(self, instruction: Instruction, varying: set[Instruction]) -> bool:
        if instruction.opcode == "partition-id" or instruction.custom_call_target in ENTERS_REGION:
            return True
        if any(operand in varying for operand in instruction.operands):
            return True
        return any(callee.root in self.varying(callee) for callee in instruction.called)


def _leaves(instruction: Instruction) -> bool:
    return instruction.custom_call_target in LEAVES_REGION


def _connected(members: Sequence[Instruction], varying: set[Instruction]) -> Iterator[list[Instruction]]:
    """Members tied together by values that differ from device to device; each group in textual order."""
    group_of: dict[Instruction, list[Instruction]] = {}
    for member in members:
        neighbours = {id(group_of[o]): group_of[o] for o in member.operands if o in varying}
        merged = [i for group in neighbours.values() for i in group] + [member]
        group_of.update(dict.fromkeys(merged, merged))
    position = {member: number for number, member in enumerate(members)}
    for group in {id(group): group for group in group_of.values()}.values():
        yield sorted(group, key=position.__getitem__)


def _region(instructions: list[Instruction], varying: set[Instruction]) -> Region:
    own = set(instructions)
    inputs = dict.fromkeys(o for i in instructions for o in i.operands if o not in own)
    outputs = tuple(i for i in instructions if i not in varying)
    borders = (i for i in instructions if i.custom_call_target in ENTERS_REGION or i in outputs)
    axes = {_manual_axes(border) for border in borders}
    if len(axes) > 1 or any(map(_stays_manual, outputs)):
        raise NotSeparable(f"the region at {instructions[0].name} is left along other axes than entered")
    return Region(tuple(instructions), tuple(inputs), outputs)


def _manual_axes(border: Instruction) -> object:
    """What a border says of the axes along which its region is manual, to be compared with other borders."""
    text = border.frontend_attribute("xla.sdy.manual_axes")
    return manual_inside(border) if text is None else text


def _stays_manual(border: Instruction) -> bool:
    """Whether what leaves the region is still manual along some axes."""
    return any(
        manual_names(sharding) or sharding.kind == "manual" or "manual" in sharding.last_tile_dims
        for sharding in stated_shardings(border)
        if sharding is not None
    )


#: What is executed as one: an instruction outside the regions, or a whole region.
_Node: TypeAlias = Instruction | Region


class _Outliner:
    """Copies a computation with calls in the place of regions."""

    def __init__(self, computation: Computation, regions: Sequence[Region]) -> None:
        self._computation = computation
        self._region_of = {i: region for region in regions for i in region.instructions}
        self._copies: dict[Instruction, Instruction] = {}
        self._instructions: list[Instruction] = []
        self._done: set[_Node] = set()

    def result(self) -> Computation:
        """The copy of the computation, with one call for each region."""
        for instruction in self._computation.instructions:
            self._emit_with_operands(self._node(instruction))
        root = self._copies[self._computation.root]
        return replace(self._computation, instructions=self._instructions, root=root)

    def _node(self, instruction: Instruction) -> _Node:
        return self._region_of.get(instruction, instruction)

    def _emit_with_operands(self, wanted: _Node) -> None:
        """Depth first, without recursion: regions may pull in long chains from further down."""
        path = [wanted]
        open_nodes: set[_Node] = set()
        while path:
            node = path[-1]
            if node in self._done:
                path.pop()
                continue
            operands = node.inputs if isinstance(node, Region) else node.operands
            missing = [n for o in operands if (n := self._node(o)) not in self._done]
            if not missing:
                self._emit(node)
                self._done.add(path.pop())
            elif node in open_nodes:
                raise NotSeparable(f"a region of {self._computation.name} needs what is made of its results")
            else:
                open_nodes.add(node)
                path += reversed(missing)

    def _emit(self, node: _Node) -> None:
        if isinstance(node, Region):
            self._emit_region(node)
        else:
            self._copies[node] = self._add(copied(node, map(self._copies.__getitem__, node.operands)))

    def _emit_region(self, region: Region) -> None:
        number = sum(1 for node in self._done if isinstance(node, Region))
        name = f"{self._computation.name}.manual_region.{number}"
        called = _region_computation(name, region)
        attributes: dict[str, AttributeValue] = {
            "custom_call_target": REGION_TARGET,
            "called_computations": (called,),
        }
        operands = tuple(self._copies[i] for i in region.inputs)
        line = region.instructions[0].line
        call = self._add(Instruction(name, "custom-call", called.root.shape, operands, attributes, line=line))
        for index, output in enumerate(region.outputs):
            element = Instruction(
                output.name, "get-tuple-element", output.shape, (call,), {"index": index}, line=output.line
            )
            self._copies[output] = self._add(element)

    def _add(self, instruction: Instruction) -> Instruction:
        self._instructions.append(instruction)
        return instruction


def _region_computation(name: str, region: Region) -> Computation:
    copies: dict[Instruction, Instruction] = {}
    for number, value in enumerate(region.inputs):
        sharding = value.sharding if isinstance(value.shape, TupleShape) else stated_shardings(value)[0]
        attributes: dict[str, AttributeValue] = {} if sharding is None else {"sharding": sharding}
        copies[value] = Instruction(
            value.name, "parameter", value.shape, (), attributes, parameter_number=number, line=value.line
        )
    for instruction in region.instructions:
        copies[instruction] = copied(instruction, map(copies.__getitem__, instruction.operands))
    outputs = tuple(copies[o] for o in region.outputs)
    root = Instruction(f"{name}.results", "tuple", TupleShape(tuple(o.shape for o in outputs)), outputs)
    return Computation(name, [*copies.values(), root], root)
