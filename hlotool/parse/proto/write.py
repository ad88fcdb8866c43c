"""A module of the IR as HloProto: the inverse of `module`.

What a proto has no place for: `allow_spmd_sharding_propagation_…`, `alias_passthrough_params`.
XLA: hlo_module.cc (ToProto).
"""

from __future__ import annotations

from itertools import count

from hlotool.ir.attributes import (
    AttributeValue,
    BackendConfig,
    BufferDonor,
    EntryLayout,
    FrontendAttributes,
    ParameterAlias,
    Window,
)
from hlotool.ir.edit import unique_names
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_taking, opcodes_with
from hlotool.ir.printing.attributes import printed_attributes
from hlotool.ir.walk import Context, async_start, call_order, contexts
from hlotool.parse.proto.instruction_attributes import callees, write_attribute
from hlotool.parse.proto.literals import write_literal
from hlotool.parse.proto.metadata import write_frontend_attributes, write_metadata, write_stack_frames
from hlotool.parse.proto.schema import Message, enum_numbers, message_class
from hlotool.parse.proto.shapes import write_program_shape, write_shape


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
