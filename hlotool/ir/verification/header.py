"""The module's header against its entry: layouts, aliases, donors.

XLA: hlo_verifier.cc VerifyEntryComputationLayout, hlo_input_output_alias_config.cc.
"""

from __future__ import annotations

from hlotool.ir.attributes import BufferDonor, ParameterAlias
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, subshape
from hlotool.ir.verification.findings import Findings


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
