"""The rules on host offload."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.offload.fix import output_on_host
from hlotool.check.offload.memory_spaces import changed_spaces
from hlotool.check.offload.walk import Returned, host_memory
from hlotool.check.rules import Applies, ModuleCheck, Problem, module_rule
from hlotool.check.subject import Subject


@module_rule(
    "offload-output",
    Severity.ERROR,
    "a tensor in host memory is returned, but its output is in device memory (E1200)",
    applies=Applies.EVERY_STAGE,
)
def offload_output(subject: Subject) -> Iterator[Problem]:
    """With the tensor's whole path and both ways out."""
    for returned in host_memory(subject).returned:
        yield _returned(subject, returned)


def _returned(subject: Subject, returned: Returned) -> Problem:
    """The message is XLA's own, so that it can be searched for."""
    _, index = returned.position
    output = "{" + ",".join(map(str, index)) + "}"
    wanted = output_on_host(subject.module, index)
    path = list(dict.fromkeys(instruction for instruction, _ in returned.path))
    before_root = path[-2] if len(path) > 1 and path[-1].opcode == "tuple" else path[-1]
    is_alone = returned.start is returned.annotation
    return Problem(
        f"Tensor which is moved to host (starting from {returned.start.name}) is returned from the entry "
        "computation but the layout for this output is not set to host memory.",
        returned.annotation or returned.start,
        # A lone annotation at the root is copied to the host, whatever the layout says.
        severity=Severity.WARNING if is_alone else None,
        path=path,
        remedy=f"keep it on the host: give output {output} the layout {wanted} in entry_computation_layout "
        "(--fix output-layout; JAX: out_shardings with memory_kind='pinned_host'); or move it back to the "
        f"device after %{before_root.name} (--fix move-to-device; JAX: jax.device_put)",
    )


def _reports(rule: str) -> ModuleCheck:
    def check(subject: Subject) -> Iterator[Problem]:
        yield from host_memory(subject).problems.get(rule, ())

    check.__doc__ = f"What the walk through host memory found for {rule}."
    return check


for _rule, _severity, _title in (
    ("offload-update", Severity.ERROR, "an offloaded slice goes into a buffer that cannot be on the host"),
    ("offload-condition", Severity.ERROR, "a loop's condition uses a tensor in host memory"),
    ("offload-lost-rows", Severity.ERROR, "elements of an offloaded buffer that the TPU's compiler loses"),
    ("offload-host-computation", Severity.ERROR, "a host computation of another form than XLA's"),
    ("offload-annotation", Severity.ERROR, "a placement annotation that is wrong, doubled or useless"),
    ("offload-compute", Severity.WARNING, "device compute on a host tensor: the host does it, slowly"),
    ("offload-slice", Severity.WARNING, "a slice of a host tensor that is not moved to the device"),
    ("offload-64-bit", Severity.NOTE, "64-bit values that are offloaded in halves"),
):
    module_rule(_rule, _severity, _title, applies=Applies.EVERY_STAGE)(_reports(_rule))


@module_rule(
    "memory-space",
    Severity.ERROR,
    "an instruction that changes the memory space of its operand although it may not",
    remedy="copy to the other memory first",
    applies=Applies.EVERY_STAGE,
)
def memory_space_changes(subject: Subject) -> Iterator[Problem]:
    """Layouts with memory spaces, as XLA writes them after offloading."""
    yield from changed_spaces(subject)
