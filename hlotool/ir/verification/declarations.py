"""What is declared: attributes, operands, shapes of instructions; layouts and aliases of the header.

XLA: hlo_verifier.cc VerifyEntryComputationLayout, hlo_input_output_alias_config.cc.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from hlotool.ir.attributes import BufferDonor, OperandAlias, ParameterAlias, RawText, Sharding
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, attribute_kind
from hlotool.ir.shape_inference import check_shape
from hlotool.ir.shapes.base import compatible
from hlotool.ir.types import (
    UNBOUNDED,
    ArrayShape,
    Shape,
    ShapeIndex,
    TokenShape,
    array_shapes,
    leaves,
    subshape,
)
from hlotool.ir.verification.findings import Findings

#: Opcodes that pass values through or promise to mix floating-point types. XLA: CheckMixedPrecisionOperands.
_MAY_MIX = frozenset(
    {
        "all-gather", "all-gather-done", "all-gather-start", "all-reduce", "all-reduce-done",
        "all-reduce-start", "async-done", "async-start", "async-update", "call", "collective-permute",
        "collective-permute-done", "collective-permute-start", "conditional", "constant", "convolution",
        "copy-done", "copy-start", "custom-call", "domain", "dot", "fusion", "get-tuple-element", "infeed",
        "opt-barrier", "outfeed", "parameter", "ragged-dot", "recv", "recv-done", "reduce-precision",
        "reduce-window", "scaled-dot", "send", "send-done", "sort", "tuple", "while",
    }
)  # fmt: skip


def check_instruction(findings: Findings, instruction: Instruction) -> None:
    """All rules that need no more than the instruction, its operands and its callees."""
    row = OPCODES.get(instruction.opcode)
    if row is None:
        findings.add("unknown-opcode", f"there is no opcode {instruction.opcode}", instruction)
        return
    _check_attributes(findings, instruction)
    _check_stated_shape(findings, instruction)
    if instruction.opcode == "constant":
        _check_literal(findings, instruction)
    if "output_to_operand_aliasing" in instruction.attributes:
        _check_aliasing(findings, instruction)
    if instruction.sharding is not None:
        _check_sharding(findings, instruction, instruction.sharding, instruction.shape)
    if not findings.options.mixed_precision and instruction.opcode not in _MAY_MIX:
        _check_one_precision(findings, instruction)


def _check_attributes(findings: Findings, instruction: Instruction) -> None:
    """Required attributes are there, others are known to the opcode (or kept as raw text)."""
    for name in instruction.row.required:
        findings.check(
            name in instruction.attributes,
            "attribute-missing",
            f"{instruction.opcode} needs the attribute {name}",
            instruction,
        )
    for name, value in instruction.attributes.items():
        if not isinstance(value, RawText) and attribute_kind(instruction.opcode, name) is None:
            findings.add("attribute-unknown", f"{instruction.opcode} has no attribute {name}", instruction)


def _check_stated_shape(findings: Findings, instruction: Instruction) -> None:
    """Programs repeat themselves: what is found right once needs no second look."""
    operands = [o.shape for o in instruction.operands]
    attributes = instruction.attributes
    key = (instruction.opcode, instruction.shape, *operands, *attributes, *attributes.values())
    if key in findings.judged:
        return
    errors = len(findings.errors)
    with findings.collecting(instruction):
        mixed = findings.options.mixed_precision
        check_shape(instruction.opcode, operands, attributes, instruction.shape, mixed)
    for shape in array_shapes(instruction.shape):
        _check_array(findings, instruction, shape)
    if len(findings.errors) == errors:
        findings.judged.add(key)


def _check_array(findings: Findings, instruction: Instruction, shape: ArrayShape) -> None:
    """Sizes are not negative, the layout orders all dimensions."""
    findings.check(
        all(size >= 0 or size == UNBOUNDED for size in shape.dims),
        "shape",
        f"{shape} has a negative size",
        instruction,
    )
    findings.check(
        _fits(shape),
        "shape-size",
        f"{shape} has more bytes than 63 bits can count, and XLA crashes on it",
        instruction,
    )
    findings.check(
        shape.layout is None or sorted(shape.layout.minor_to_major) == list(range(shape.rank)),
        "layout",
        f"the layout of {shape} must order its {shape.rank} dimensions",
        instruction,
    )


def _fits(shape: ArrayShape) -> bool:
    """Whether the bytes of an array fit into 63 bits, multiplied up from the first dimension on, as by XLA.

    XLA: shape_util.cc (OverflowSafeMultiply): jaxlib 0.10.2 takes f32[0,4294967296,4294967296] and dies of
    f32[4294967296,4294967296,0].
    """
    sizes = (abs(size) for size in shape.dims if size != UNBOUNDED)
    return max(accumulate(sizes, mul, initial=max(1, shape.element_type.bits // 8))) < 1 << 63


def _check_literal(findings: Findings, instruction: Instruction) -> None:
    literal = instruction.literal
    if literal is None:
        findings.add("literal", "a constant must have a value", instruction)
    elif not compatible(literal.shape, instruction.shape):
        findings.add(
            "literal", f"the value has the shape {literal.shape}, not {instruction.shape}", instruction
        )


def _check_aliasing(findings: Findings, instruction: Instruction) -> None:
    """Aliased parts exist and have one shape."""
    frontend = instruction.attributes.get("frontend_attributes")
    if "xla_skip_custom_call_alias_shape_check" in str(frontend):
        return
    for alias in instruction.listed("output_to_operand_aliasing", OperandAlias):
        try:
            output = subshape(instruction.shape, alias.output_index)
            operand = subshape(instruction.operands[alias.operand].shape, alias.operand_index)
        except (IndexError, TypeError):
            findings.add("aliasing", f"{alias} names a part that does not exist", instruction)
            continue
        findings.check(
            compatible(_unpinned(output), _unpinned(operand)),
            "aliasing",
            f"aliased parts must have one shape: output {output}, operand {operand}",
            instruction,
        )


def _unpinned(shape: Shape) -> Shape:
    """What a buffer holds: Pin and Unpin alias it with an array."""
    return getattr(shape, "array", shape)


def _check_sharding(findings: Findings, instruction: Instruction, sharding: Sharding, shape: Shape) -> None:
    """A tiling has one size per dimension, and each device once. XLA: HloSharding::Validate."""
    if isinstance(shape, TokenShape):
        return
    if sharding.kind == "tuple":
        parts = [leaf for _, leaf in leaves(shape)]
        findings.check(
            len(parts) == len(sharding.elements) or not parts,
            "sharding",
            f"the sharding has {len(sharding.elements)} parts, the shape {len(parts)}",
            instruction,
        )
        for element, part in zip(sharding.elements, parts):
            _check_sharding(findings, instruction, element, part)
        return
    if sharding.kind != "tiled" or sharding.named is not None or not isinstance(shape, ArrayShape):
        return
    dims = sharding.iota.dims if sharding.iota is not None else sharding.tile_dims
    groups = len(sharding.last_tile_dims) + int(sharding.last_tile_dim_replicate)
    tiled = dims[: len(dims) - groups]
    findings.check(
        len(tiled) == shape.rank or all(size == 1 for size in tiled),
        "sharding",
        f"the sharding tiles {len(tiled)} dimensions, {shape.logical_text()} has {shape.rank}",
        instruction,
    )
    findings.check(
        len(set(sharding.devices)) == len(sharding.devices),
        "sharding",
        "the sharding names a device twice",
        instruction,
    )


def _check_one_precision(findings: Findings, instruction: Instruction) -> None:
    arrays = (array for operand in instruction.operands for array in array_shapes(operand.shape))
    found = {array.element_type for array in arrays if array.element_type.is_floating}
    findings.check(
        len(found) <= 1,
        "mixed-precision",
        f"floating-point operands must have one type, not {', '.join(sorted(map(str, found)))}",
        instruction,
    )


def check_header(findings: Findings) -> None:
    """All rules on module attributes."""
    _check_counts(findings)
    if _check_entry_layout(findings):
        aliased = _check_aliases(findings)
        _check_donors(findings, aliased)


def _check_counts(findings: Findings) -> None:
    for name in ("replica_count", "num_partitions"):
        value = findings.module.attributes.get(name, 1)
        findings.check(
            isinstance(value, int) and value > 0,
            name.replace("_", "-"),
            f"{name} must be positive, not {value}",
        )


def _check_entry_layout(findings: Findings) -> bool:
    """Shapes of the header are those of the entry, but for layouts."""
    module, before = findings.module, len(findings.errors)
    layout, parameters, root = module.entry_layout, module.entry.parameters, module.entry.root
    findings.check(
        compatible(layout.result, root.shape),
        "entry-layout",
        f"entry_computation_layout says the result is {layout.result}, the root is {root.shape}",
        root,
    )
    findings.check(
        len(layout.parameters) == len(parameters),
        "entry-layout",
        f"entry_computation_layout has {len(layout.parameters)} parameters, the entry {len(parameters)}",
    )
    for i, (stated, parameter) in enumerate(zip(layout.parameters, parameters)):
        findings.check(
            compatible(stated, parameter.shape),
            "entry-layout",
            f"entry_computation_layout says parameter {i} is {stated}, it is {parameter.shape}",
            parameter,
        )
    return len(findings.errors) == before


def _part(shape: Shape, index: ShapeIndex) -> Shape | None:
    try:
        return subshape(shape, index)
    except (IndexError, TypeError):
        return None


def _parameter_part(findings: Findings, rule: str, number: int, index: ShapeIndex) -> Shape | None:
    """The array at `index` of an entry parameter, or a finding."""
    parameters = findings.module.entry_layout.parameters
    part = _part(parameters[number], index) if 0 <= number < len(parameters) else None
    if not isinstance(part, ArrayShape):
        findings.add(rule, f"parameter {number} has no array at index {list(index)}")
        return None
    return part


def _check_aliases(findings: Findings) -> set[tuple[int, ShapeIndex]]:
    """Each alias joins an array of the result with an array of a parameter, each array once.

    Returns:
        The aliased parts of parameters.
    """
    rule, result = "input-output-alias", findings.module.entry_layout.result
    outputs: set[ShapeIndex] = set()
    inputs: set[tuple[int, ShapeIndex]] = set()
    for alias in findings.module.listed("input_output_alias", ParameterAlias, ()):
        parameter = _parameter_part(findings, rule, alias.parameter, alias.parameter_index)
        output = _part(result, alias.output_index)
        if not isinstance(output, ArrayShape):
            findings.add(rule, f"the result has no array at index {list(alias.output_index)}")
        elif parameter is not None and alias.kind == "must-alias":
            findings.check(
                compatible(output, parameter),
                rule,
                f"result {list(alias.output_index)} must alias parameter {alias.parameter}, but they are "
                f"{output} and {parameter}",
            )
        key = (alias.parameter, alias.parameter_index)
        findings.check(
            key not in inputs, rule, f"parameter {alias.parameter} is aliased twice at {list(key[1])}"
        )
        findings.check(
            alias.output_index not in outputs, rule, f"result {list(alias.output_index)} is aliased twice"
        )
        inputs.add(key)
        outputs.add(alias.output_index)
    return inputs


def _check_donors(findings: Findings, aliased: set[tuple[int, ShapeIndex]]) -> None:
    """Donated parts of parameters are arrays that are not aliased."""
    for donor in findings.module.listed("buffer_donor", BufferDonor, ()):
        _parameter_part(findings, "buffer-donor", donor.parameter, donor.parameter_index)
        findings.check(
            (donor.parameter, donor.parameter_index) not in aliased,
            "buffer-donor",
            f"parameter {donor.parameter} is both aliased and donated at {list(donor.parameter_index)}",
        )
