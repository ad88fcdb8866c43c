"""HloModuleProto as a module of the IR, the same as the text parser makes, and a module as HloProto.

What text has and a proto has not: `allow_spmd_sharding_propagation_…`, `alias_passthrough_params`, and
channel 0, which XLA treats as none. The numbers of replicas and partitions come from the device
assignment, which XLA stores where it knows it.

XLA: hlo.proto, hlo_module.cc (CreateFromProto, ToProto).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from hlotool.errors import ProtoError
from hlotool.ir.attributes import (
    AttributeValue,
    BackendConfig,
    BufferDonor,
    EntryLayout,
    FrontendAttributes,
    ParameterAlias,
    Sharding,
    Window,
)
from hlotool.ir.edit import unique_names
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import OPCODES, Trait, opcodes_taking, opcodes_with
from hlotool.ir.printed_attributes import printed_attributes
from hlotool.ir.walk import Context, async_start, call_order, check_call_depth, contexts
from hlotool.parser.proto.fields import (
    FieldContext,
    read_backend_config,
    read_frontend_attributes,
    read_metadata,
    read_origin,
    read_stack_frames,
    read_statistics,
    write_frontend_attributes,
    write_metadata,
    write_stack_frames,
)
from hlotool.parser.proto.instruction_attributes import callees, read_attributes, write_attribute
from hlotool.parser.proto.schema import Message, decode, enum_numbers, message_class
from hlotool.parser.proto.submessages import read_sharding
from hlotool.parser.proto.values import (
    read_literal,
    read_program_shape,
    read_shape,
    write_literal,
    write_program_shape,
    write_shape,
)


def parse_module_proto(content: bytes, path: str | None = None) -> Module:
    """Decode a `.hlo.pb` file: an HloProto, or a bare HloModuleProto.

    Args:
        content: of the file, decompressed.
        path: of the file, for messages.

    Raises:
        ProtoError: it is neither, it is truncated, or it holds something that hlotool does not know.
    """
    origin = path or "<proto>"
    return read_module(_module_message(content, origin), path)


def parse_output_sharding(content: bytes, path: str | None = None) -> Sharding | None:
    """How the result of a partitioned program is spread over the devices, which its text does not say.

    Args:
        content: of a `.hlo.pb` file.
        path: of the file, for messages.

    Raises:
        ProtoError: see `parse_module_proto`.
    """
    message = _module_message(content, path or "<proto>")
    return read_sharding(message.spmd_output_sharding) if message.HasField("spmd_output_sharding") else None


def _module_message(content: bytes, origin: str) -> Message:
    """HloProto has the module as field 1 where HloModuleProto has its name: decoding the wrong one fails."""
    try:
        message = decode("HloProto", content, origin).hlo_module
    except ProtoError:
        message = decode("HloModuleProto", content, origin)
    if not message.computations:
        message = decode("HloModuleProto", content, origin)
    if not message.computations:
        raise ProtoError(f"{origin}: a proto, but not of an HLO module")
    return message


def read_module(proto: Message, path: str | None = None) -> Module:
    """The module of an HloModuleProto; raises ProtoError naming file and instruction."""
    reader = _ModuleReader(proto)
    try:
        return reader.module(path)
    except ProtoError as error:
        at = f" {reader.position}:" if reader.position else ""
        raise ProtoError(f"{path or '<proto>'}:{at} {error}") from error
    except (IndexError, ValueError, TypeError) as error:
        at = reader.position or proto.name
        raise ProtoError(f"{path or '<proto>'}: {at}: malformed: {error}") from error


#: Instruction ids are unique in their computation by these bits; XLA now puts the computation above them.
_LOCAL_BITS = 0xFFFFFFFF


@dataclass(slots=True)
class _ModuleReader:
    """One module while it is decoded."""

    proto: Message
    computations: dict[int, Computation] = field(default_factory=dict)
    #: What is being decoded, for messages.
    position: str = ""

    def module(self, path: str | None) -> Module:
        for computation in self.proto.computations:
            self.computations[computation.id] = self._computation(computation)
        self.position = ""
        entry = self.computations.get(self.proto.entry_computation_id)
        if entry is None:
            raise ProtoError("the entry computation is missing")
        check_call_depth(list(self.computations.values()))
        return Module(
            self.proto.name,
            list(self.computations.values()),
            entry,
            _module_attributes(self.proto),
            read_stack_frames(self.proto.stack_frame_index),
            path,
        )

    def _computation(self, proto: Message) -> Computation:
        instructions: dict[int, Instruction] = {}
        for instruction in proto.instructions:
            self.position = f"{instruction.opcode} {instruction.name}"
            instructions[instruction.id & _LOCAL_BITS] = self._instruction(instruction, instructions)
        self.position = f"computation {proto.name}"
        root = instructions.get(proto.root_id & _LOCAL_BITS)
        if root is None:
            raise ProtoError("its root is missing")
        ordered = self._scheduled(proto.id, instructions)
        return Computation(proto.name, ordered, root, proto.execution_thread or "main")

    def _scheduled(self, computation_id: int, instructions: dict[int, Instruction]) -> list[Instruction]:
        """The instructions in the order of the schedule, where the computation has one."""
        sequences = self.proto.schedule.sequences
        if computation_id not in sequences:
            return list(instructions.values())
        order = [number & _LOCAL_BITS for number in sequences[computation_id].instruction_ids]
        if sorted(order) != sorted(instructions):
            raise ProtoError("its schedule does not name all its instructions once")
        return [instructions[number] for number in order]

    def _instruction(self, proto: Message, known: dict[int, Instruction]) -> Instruction:
        if proto.opcode not in OPCODES:
            raise ProtoError(f"opcode {proto.opcode!r} is not known")
        context = FieldContext(proto, _operands(proto.operand_ids, known), self._called(proto))
        return Instruction(
            proto.name,
            proto.opcode,
            read_shape(proto.shape),
            tuple(context.operands),
            read_attributes(context) | self._common_attributes(proto),
            read_metadata(proto.metadata, self.proto.payloads),
            read_literal(proto.literal) if proto.opcode == "constant" else None,
            proto.parameter_number if proto.opcode == "parameter" else None,
            control_predecessors=tuple(_operands(proto.control_predecessor_ids, known)),
        )

    def _called(self, proto: Message) -> list[Computation]:
        missing = [number for number in proto.called_computation_ids if number not in self.computations]
        if missing:
            raise ProtoError(f"computation {missing[0]} does not come before its caller")
        return [self.computations[number] for number in proto.called_computation_ids]

    def _common_attributes(self, proto: Message) -> dict[str, AttributeValue]:
        values: dict[str, AttributeValue | None] = {
            "sharding": read_sharding(proto.sharding) if proto.HasField("sharding") else None,
            "frontend_attributes": read_frontend_attributes(proto.frontend_attributes),
            "statistics": read_statistics(proto.statistics_viz),
            "origin": read_origin(proto.original_value) if proto.HasField("original_value") else None,
            "backend_config": read_backend_config(proto, self.proto.payloads),
        }
        return {name: value for name, value in values.items() if value is not None}


def _operands(ids: Sequence[int], known: dict[int, Instruction]) -> list[Instruction]:
    missing = [number for number in ids if number & _LOCAL_BITS not in known]
    if missing:
        raise ProtoError(f"operand {missing[0]} does not come before it")
    return [known[number & _LOCAL_BITS] for number in ids]


def _module_attributes(proto: Message) -> dict[str, AttributeValue]:
    """The header line's attributes, as far as a proto has them."""
    assignment = proto.device_assignment
    values: dict[str, AttributeValue | None] = {
        "is_scheduled": True if proto.schedule.sequences else None,
        "input_output_alias": tuple(map(_parameter_alias, proto.input_output_alias.entries)) or None,
        "buffer_donor": tuple(
            BufferDonor(entry.parameter_number, tuple(entry.parameter_shape_index))
            for entry in proto.buffer_donor.entries
        )
        or None,
        "entry_computation_layout": read_program_shape(proto.host_program_shape)
        if proto.HasField("host_program_shape")
        else None,
        "replica_count": assignment.replica_count if assignment.replica_count > 1 else None,
        "num_partitions": assignment.computation_count if assignment.computation_count > 1 else None,
        "frontend_attributes": read_frontend_attributes(proto.frontend_attributes),
    }
    return {name: value for name, value in values.items() if value is not None}


#: Kind.MUST_ALIAS of hlo.proto.
_MUST_ALIAS = 2


def _parameter_alias(entry: Message) -> ParameterAlias:
    kind: Literal["may-alias", "must-alias"] = "must-alias" if entry.kind == _MUST_ALIAS else "may-alias"
    return ParameterAlias(
        tuple(entry.output_shape_index), entry.parameter_number, tuple(entry.parameter_shape_index), kind
    )


def write_module_proto(module: Module) -> bytes:
    """The content of a `.hlo.pb` file.

    Shapes without layouts get the row-major ones that they mean.

    Raises:
        ProtoError: an attribute that a proto has no place for.
    """
    proto = message_class("HloProto")()
    _ModuleWriter(module, proto.hlo_module).write()
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


#: Opcodes whose proto must have a window, even one of no dimensions.
_WITH_WINDOW = opcodes_taking("window") - {"custom-call"}


class _ModuleWriter:
    """One module while it is encoded.

    Args:
        module: verified.
        proto: an empty HloModuleProto.
    """

    def __init__(self, module: Module, proto: Message) -> None:
        self.module = module
        self.proto = proto
        order = call_order(module)
        self.computations = {c: n for n, c in enumerate(order, start=1)}
        ids = count(1)
        self.instructions = {i: next(ids) for c in order for i in c.instructions}
        self.names = unique_names(module)

    def write(self) -> None:
        module, proto = self.module, self.proto
        proto.name = module.name
        proto.entry_computation_name = module.entry.name
        proto.entry_computation_id = self.computations[module.entry]
        for computation in self.computations:
            self._computation(proto.computations.add(), computation)
        write_program_shape(proto.host_program_shape, module.entry_layout, _parameter_names(module.entry))
        if module.is_scheduled:
            self._schedule()
        if module.stack_frames is not None:
            write_stack_frames(proto.stack_frame_index, module.stack_frames)
        self._header()

    def _computation(self, proto: Message, computation: Computation) -> None:
        proto.name, proto.id = computation.name, self.computations[computation]
        proto.root_id = self.instructions[computation.root]
        if computation.execution_thread != "main":
            proto.execution_thread = computation.execution_thread
        shapes = EntryLayout(tuple(p.shape for p in computation.parameters), computation.root.shape)
        write_program_shape(proto.program_shape, shapes, _parameter_names(computation))
        for instruction in computation.instructions:
            self._instruction(proto.instructions.add(), instruction)

    def _instruction(self, proto: Message, instruction: Instruction) -> None:
        proto.name = self.names.get(instruction, instruction.name)
        proto.opcode = instruction.opcode
        proto.id = self.instructions[instruction]
        write_shape(proto.shape, instruction.shape)
        proto.operand_ids.extend(self.instructions[o] for o in instruction.operands)
        proto.control_predecessor_ids.extend(self.instructions[p] for p in instruction.control_predecessors)
        if instruction.metadata is not None:
            write_metadata(proto.metadata, instruction.metadata)
        if instruction.literal is not None:
            write_literal(proto.literal, instruction.literal)
        if instruction.parameter_number is not None:
            proto.parameter_number = instruction.parameter_number
        self._attributes(proto, instruction)

    def _attributes(self, proto: Message, instruction: Instruction) -> None:
        said = printed_attributes(instruction)
        config = instruction.attribute("backend_config", BackendConfig, None)
        if config is not None:
            said["backend_config"] = config
        if instruction.opcode == "custom-call":
            said.setdefault("api_version", "API_VERSION_ORIGINAL")
        if instruction.opcode in _WITH_WINDOW:
            said.setdefault("window", Window(()))
        if instruction.opcode == "scan":
            said.setdefault("is_associative", False)
        if instruction.opcode == "topk":
            said.setdefault("is_stable", True)  # which text implies, and a proto does not
        if instruction.opcode in opcodes_with(Trait.ASYNC):
            said |= _of_start(instruction)
        for name, value in said.items():
            write_attribute(proto, instruction, name, value)
        proto.called_computation_ids.extend(self.computations[c] for c in callees(said))

    def _schedule(self) -> None:
        """An order for every computation that is not inside a fusion."""
        kinds = contexts(self.module)
        for computation, number in self.computations.items():
            if Context.FUSED not in kinds[computation]:
                ids = (self.instructions[i] for i in computation.instructions)
                self.proto.schedule.sequences[number].instruction_ids.extend(ids)

    def _header(self) -> None:
        module, kinds = self.module, enum_numbers("Kind")
        for alias in module.listed("input_output_alias", ParameterAlias, ()):
            self.proto.input_output_alias.entries.add(
                output_shape_index=alias.output_index,
                parameter_number=alias.parameter,
                parameter_shape_index=alias.parameter_index,
                kind=kinds[alias.kind.replace("-", "_").upper()],
            )
        for donor in module.listed("buffer_donor", BufferDonor, ()):
            self.proto.buffer_donor.entries.add(
                parameter_number=donor.parameter, parameter_shape_index=donor.parameter_index
            )
        frontend = module.attribute("frontend_attributes", FrontendAttributes, None)
        if frontend is not None:
            write_frontend_attributes(self.proto.frontend_attributes, frontend)
        if module.replica_count * module.num_partitions > 1:
            self.proto.device_assignment.replica_count = module.replica_count
            self.proto.device_assignment.computation_count = module.num_partitions


def _parameter_names(computation: Computation) -> tuple[str, ...]:
    return tuple(p.name for p in computation.parameters)


def _of_start(instruction: Instruction) -> dict[str, AttributeValue]:
    """Text says where an asynchronous call starts what it calls and on which thread, a proto says it anew."""
    start = async_start(instruction)
    thread, wrapped = start.text("async_execution_thread", "main"), start.attributes.get("calls")
    return {"async_execution_thread": thread} | ({"calls": wrapped} if wrapped is not None else {})
