"""Fusions that a program holds: is each one that XLA may form, and its emitters can compute?

XLA does not look at this again once a fusion exists: a wrong one is a wrong result, or an aborting emitter.
Rules about kinds, outputs and what emitters compute are those of XLA's own emitters, for CPUs and GPUs: a
TPU has others, which its compiler does not publish (it puts outputs of unequal sizes into one kLoop,
gathers into kCustom without a configuration; libtpu 0.0.11 to 0.0.52). Limits of GPUs are those of XLA's
target descriptions.
XLA: instruction_fusion.cc, gpu_fusible.cc, hlo_verifier.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotool.checks.gpus import GPUS
from hlotool.checks.offload.positions import on_host
from hlotool.checks.records import Severity
from hlotool.checks.rules import Applies, Problem, Subject, module_rule
from hlotool.errors import UsageError
from hlotool.facts.recognition import integer_constant
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, opcodes_with
from hlotool.ir.types import ArrayShape, leaves
from hlotool.ir.walk import has_own_side_effect, post_order, users
from hlotool.rewrite.passes.fusion_facts import in_place_operand, is_elementwise
from hlotool.rewrite.passes.fusion_legality import (
    LOOP_RULES,
    MOST_BUFFERS,
    MOST_REDUCTIONS,
    MULTI_OUTPUT_RULES,
    RULES,
    Part,
    Rule,
    Setting,
    may_fuse,
)
from hlotool.system.user_input import did_you_mean

#: What no emitter of loops, reductions or transpositions computes, element by element.
_NOT_EMITTED = frozenset(
    {
        "async-done", "async-start", "async-update", "batch-norm-grad", "batch-norm-inference",
        "batch-norm-training", "call", "cholesky", "conditional", "custom-call", "domain", "fft",
        "rng-bit-generator", "select-and-scatter", "sort", "topk", "triangular-solve", "while",
    }
)  # fmt: skip
#: One of these makes a kernel of kind kInput.
_HEROES = frozenset(
    {"reduce", "transpose", "copy", "scatter", "reduce-window", "dynamic-slice", "concatenate"}
)
#: One of these makes a kernel of kind kOutput.
_PRODUCTS = opcodes_with(Class.CONTRACTION)
#: Views that keep the order of elements.
_VIEWS = frozenset({"bitcast"})


def _fusions(subject: Subject) -> Iterator[tuple[Instruction, Computation]]:
    for instruction in subject.instructions:
        if instruction.opcode == "fusion":
            yield instruction, instruction.computation("calls")


def _emitted_by_xla(subject: Subject) -> Iterator[tuple[Instruction, Computation]]:
    """The fusions whose code XLA's own emitters make."""
    return iter(()) if subject.is_for_tpu else _fusions(subject)


def _is_custom(fusion: Instruction) -> bool:
    return fusion.attributes.get("kind") == "kCustom"


@module_rule(
    "fusion-content",
    Severity.ERROR,
    "an operation inside a fusion that XLA never fuses, or that no emitter can compute there",
    remedy="leave it outside of the fusion",
    applies=Applies.EVERY_STAGE,
)
def fusion_content(subject: Subject) -> Iterator[Problem]:
    """Side effects anywhere; control flow and library operations in fusions that XLA emits itself."""
    for fusion, body in _fusions(subject):
        for inner in body.instructions:
            if inner.control_predecessors:
                yield Problem(f"%{inner.name} waits for others inside the fusion %{fusion.name}", inner)
            if _acts(inner, _is_custom(fusion)):
                yield Problem(f"{inner.opcode} with a side effect inside the fusion %{fusion.name}", inner)
            elif inner.opcode in _NOT_EMITTED and not _is_custom(fusion) and not subject.is_for_tpu:
                yield Problem(f"{inner.opcode} inside the fusion %{fusion.name}: not fusible", inner)


def _acts(inner: Instruction, is_custom: bool) -> bool:
    """Library calls and collectives may be the very content of a custom fusion."""
    may = is_custom and (inner.opcode == "custom-call" or "channel_id" in inner.attributes)
    return has_own_side_effect(inner) and not may


@module_rule(
    "fusion-kind",
    Severity.ERROR,
    "a fusion whose kind does not fit what it holds",
    remedy="kLoop for elementwise roots, kInput for reductions and transpositions, kOutput behind products",
    applies=Applies.EVERY_STAGE,
)
def fusion_kind(subject: Subject) -> Iterator[Problem]:
    """kInput without a hero, kOutput without a product, kCustom without a configuration.

    XLA:GPU makes sorts fusions of kind kCustom that need none (jaxlib 0.10.2).
    """
    for fusion, body in _emitted_by_xla(subject):
        opcodes = {inner.opcode for inner in body.instructions}
        if body.root.opcode == "parameter" and not _is_custom(fusion):
            continue  # as in test programs: nothing is computed, any kernel will do
        match fusion.attributes.get("kind"):
            case "kInput" if not opcodes & _HEROES:
                yield Problem(f"kind=kInput, but nothing in %{body.name} reduces or transposes", fusion)
            case "kOutput" if not opcodes & _PRODUCTS:
                yield Problem(f"kind=kOutput, but there is no product in %{body.name}", fusion)
            case "kCustom" if body.root.opcode != "sort" and not fusion.config_text.strip("{} "):
                yield Problem("kind=kCustom, but no configuration says which emitter or library", fusion)


@module_rule(
    "fusion-outputs",
    Severity.ERROR,
    "a loop fusion whose outputs do not come from one loop",
    remedy="outputs of one kernel need the same number of elements: split the fusion",
    applies=Applies.EVERY_STAGE,
)
def fusion_outputs(subject: Subject) -> Iterator[Problem]:
    """Several outputs of different sizes in a kLoop fusion, which computes one element of each at a time."""
    for fusion, body in _emitted_by_xla(subject):
        if body.root.opcode != "tuple" or fusion.attributes.get("kind") != "kLoop":
            continue
        sizes = {_loop_size(root) for root in body.root.operands}
        if len(sizes) > 1:
            listed = ", ".join(str(size) for size in sorted(sizes))
            yield Problem(f"different loop shapes: outputs of {listed} elements", fusion)


def _loop_size(root: Instruction) -> int:
    root = _behind_views(root)
    if root.opcode in ("dynamic-update-slice", "scatter") and len(root.operands) > 1:
        return -1  # in place: the loop is over the update
    return root.shape.size if isinstance(root.shape, ArrayShape) else -1


@module_rule(
    "fusion-in-place",
    Severity.WARNING,
    "a fusion that updates a buffer in place and reads other elements of it",
    remedy="copy the buffer before the fusion, or compute the update outside of it",
    applies=Applies.EVERY_STAGE,
)
def fusion_in_place(subject: Subject) -> Iterator[Problem]:
    """The order of reads and writes is then open: what is read may be overwritten already."""
    for fusion, body in _emitted_by_xla(subject):
        for root in dict.fromkeys(_roots(body)):
            buffer = in_place_operand(root)
            source = _behind_views(buffer) if buffer is not None else None
            if source is None or source.opcode != "parameter":
                continue
            for reader in _other_readers(subject, body, source, root):
                yield Problem(
                    f"{root.opcode} %{root.name} overwrites what {reader.opcode} %{reader.name} reads",
                    root,
                    path=[source, reader, root],
                    details=[f"in fusion %{fusion.name}, line {fusion.line}"],
                )


def _roots(body: Computation) -> list[Instruction]:
    """What makes the outputs of a fusion."""
    parts = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    return [_behind_views(part) for part in parts]


def _behind_views(instruction: Instruction) -> Instruction:
    while instruction.opcode in _VIEWS:
        instruction = instruction.operands[0]
    return instruction


def _other_readers(
    subject: Subject, body: Computation, source: Instruction, root: Instruction
) -> Iterator[Instruction]:
    """Who reads the buffer elsewhere than where `root` writes."""
    views = {source}
    for inner in body.instructions:
        if inner.opcode in _VIEWS and inner.operands[0] in views:
            views.add(inner)
    for inner in body.instructions:
        if inner is root or inner in views or views.isdisjoint(inner.operands):
            continue
        if not _is_harmless(subject, inner, body, root):
            yield inner


def _is_harmless(subject: Subject, reader: Instruction, body: Computation, root: Instruction) -> bool:
    """It reads the very slice that is written, or element by element for such a slice alone."""
    if root.opcode == "dynamic-update-slice":
        if reader.opcode == "dynamic-slice":
            return reader.operands[1:] == root.operands[2:] and reader.dims == root.operands[1].dims
        if reader.opcode == "slice":
            return reader.dims == root.operands[1].dims and _begins_at(reader, root.operands[2:])
    users = subject.users[reader]
    return (
        is_elementwise(reader)
        and bool(users)
        and reader is not body.root
        and all(_is_harmless(subject, user, body, root) for user in users)
    )


def _begins_at(reader: Instruction, starts: Sequence[Instruction]) -> bool:
    """Whether a slice begins at these numbers, which must be constants, and leaves nothing out."""
    slices = reader.listed("slice", SliceDim, ())
    return [(part.start, part.stride) for part in slices] == [(integer_constant(s), 1) for s in starts]


@module_rule(
    "fusion-budget",
    Severity.WARNING,
    "a fusion beyond what XLA's GPU emitters take",
    remedy="split the fusion",
    applies=Applies.EVERY_STAGE,
)
def fusion_budget(subject: Subject) -> Iterator[Problem]:
    """Operands and outputs of kernels, reductions of one kernel; of a GPU that is named, shared memory."""
    for fusion, body in _emitted_by_xla(subject):
        if fusion.attributes.get("kind") != "kInput":
            continue  # loops hold nothing in shared memory; CPU programs have no such kernels
        buffers = len(set(fusion.operands)) + sum(1 for _ in leaves(fusion.shape))
        if buffers > MOST_BUFFERS:
            yield Problem(f"{buffers} operands and outputs; the budget of a fusion is {MOST_BUFFERS}", fusion)
        reductions = sum(root.opcode == "reduce" for root in _roots(body))
        if reductions > MOST_REDUCTIONS:
            yield Problem(f"over {MOST_REDUCTIONS} unnested reductions in fusion: {reductions}", fusion)
        used = sum(map(_shared_memory, body.instructions))
        budget = used if subject.gpu is None else GPUS[subject.gpu]
        if used > budget:
            message = f"shared memory usage would be over the budget of {budget}B: {used}B on {subject.gpu}"
            yield Problem(message, fusion)


#: Threads of a warp; a tile has a row more, so that columns lie in different banks.
_WARP = 32
_VECTOR = 4


def _shared_memory(inner: Instruction) -> int:
    """Bytes of the tile that a reduction or transposition keeps. XLA: SharedMemoryUsageNoCache."""
    operand = inner.operands[0].shape if inner.operands else None
    if not isinstance(operand, ArrayShape) or inner.opcode not in ("reduce", "transpose"):
        return 0
    arrays = [o.shape for o in inner.operands[: max(1, len(inner.operands) // 2)]]
    element = sum(max(1, s.element_type.bits // 8) for s in arrays if isinstance(s, ArrayShape))
    dimensions = inner.integers("dimensions")
    if inner.opcode == "transpose":
        moves_minor = dimensions[-1:] != (operand.rank - 1,)
        return _WARP * (_WARP + 1) * element if moves_minor else 0
    is_row = operand.rank - 1 in dimensions
    return _WARP * element if is_row else _WARP * (_VECTOR * _WARP + 1) * element


@module_rule(
    "fusion-memory",
    Severity.WARNING,
    "a fusion that computes on the device with a tensor in host memory",
    remedy="move the tensor to the device first",
    applies=Applies.EVERY_STAGE,
)
def fusion_memory(subject: Subject) -> Iterator[Problem]:
    """By the memory spaces in layouts."""
    for fusion, _ in _fusions(subject):
        host = [operand for operand in fusion.operands if on_host(operand.shape)]
        if host and not _is_custom(fusion) and not on_host(fusion.shape):
            yield Problem(f"operand %{host[0].name} is in host memory", fusion)


def explain_fusion(module: Module, producer: str, consumer: str) -> dict[str, str]:
    """How the instructions called `producer` and `consumer` may be fused, and why not.

    Returns:
        the reason against each kind of fusion, `producer-consumer` and `multi-output`; empty when they may.

    Raises:
        UsageError: there is no such instruction, or they are in different computations.
    """
    one, computation = _find(module, producer.lstrip("%"))
    other, home = _find(module, consumer.lstrip("%"))
    if computation is not home:
        places = f"{producer} is in {computation.name}, {consumer} in {home.name}"
        raise UsageError(f"{places}: not one computation")
    return {
        "producer-consumer": _producer_consumer(computation, one, other),
        "multi-output": _multi_output(computation, one, other),
    }


def _find(module: Module, name: str) -> tuple[Instruction, Computation]:
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.name == name:
                return instruction, computation
    meant = did_you_mean(name, (instruction.name for instruction in module.instructions()))
    raise UsageError(f"no instruction is called {name!r}{meant}")


def _producer_consumer(computation: Computation, producer: Instruction, consumer: Instruction) -> str:
    if producer not in consumer.operands:
        return f"{consumer.name} does not read {producer.name}"
    between = [o for o in consumer.operands if o is not producer]
    if producer in post_order(between):
        return f"{producer.name} would introduce a cycle when fused"
    return _reason(computation, producer, consumer, (*RULES, *LOOP_RULES))


def _multi_output(computation: Computation, one: Instruction, other: Instruction) -> str:
    if one is other:
        return "they are one instruction"
    operands = [o for o in other.operands if o is not one]
    if one in post_order(operands) or other in post_order(one.operands):
        return "multi-output fusion creates a cycle"
    return _reason(computation, one, other, MULTI_OUTPUT_RULES)


def _reason(computation: Computation, one: Instruction, other: Instruction, rules: tuple[Rule, ...]) -> str:
    readers = users(computation)
    setting = Setting(lambda instruction: readers[instruction], computation.root)
    return may_fuse(Part.of(one), Part.of(other), setting, rules).reason
