"""Steps of dumps that do not say which instruction each was made for: those of jaxlib before 0.9.

The compiler makes the steps of a computation in the order of its schedule, one or more for each instruction
that does something. Kernels are named after the first instruction that they were made for.
XLA: xla/service/gpu/ir_emitter_unnested.cc, later thunk_emitter.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotool.backends.gpu_ptx.thunks import Thunk
from hlotool.errors import Location, Unsupported
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import branches

#: Nothing is done for them.
_SILENT = frozenset(
    {"parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "opt-barrier", "domain"}
)
#: Steps before a kernel, for its buffers.
_FILLS = frozenset({"kMemzero", "kMemset32BitValue"})
_KERNELS = frozenset({"kKernel", "kCustomKernel"})
#: What executes other computations.
_CALLERS = {
    "while": ("kWhile",),
    "conditional": ("kConditional",),
    "call": ("kCommandBuffer", "kSequential"),
    "async-start": ("kAsyncStart", "kAllToAllStart", "kReduceScatterStart"),
}
_OF_LIBRARIES = {
    "fft": ("kFft",),
    "triangular-solve": ("kTriangularSolve",),
    "cholesky": ("kCholesky",),
    **_CALLERS,
}


def name_steps(steps: Sequence[Thunk], module: Module) -> None:
    """Say of each step which instruction it was made for.

    Raises:
        Unsupported: they do not fit the program.
    """
    _name(steps, module.entry, module)


def _name(steps: Sequence[Thunk], computation: Computation, module: Module) -> None:
    makers = [
        i for i in computation.instructions if i.opcode not in _SILENT and not i.opcode.endswith("-done")
    ]
    own = [step for step in steps if not step.kind.endswith("Done") and step.kind != "kWaitForStreams"]
    counts = _fit(makers, own)
    if counts is None:
        raise Unsupported(
            "the dump does not say what its steps are for, and it does not follow from what"
            f" %{computation.name} consists of",
            location=Location(module.path),
        )
    remaining = iter(own)
    for maker, count in zip(makers, counts):
        for _ in range(count):
            step = next(remaining)
            for one in step.all():
                one.instruction = maker.name
            if maker.opcode in _CALLERS:
                if not step.parts:
                    raise module.unsupported(maker, f"the dump does not say what its {step.kind} consists of")
                for (_, inner), called in zip(step.parts, _called(maker)):
                    _name(inner, called, module)


def _called(maker: Instruction) -> Sequence[Computation]:
    """What the parts of a step are made of, in their order."""
    if maker.opcode == "while":
        return [maker.computation("condition"), maker.computation("body")]
    return branches(maker) if maker.opcode == "conditional" else list(maker.called)


def _fit(makers: Sequence[Instruction], steps: Sequence[Thunk]) -> list[int] | None:
    """How many of the steps, one after the other, each instruction made; None where they do not fit."""
    names = [re.sub(r"[^\w]", "_", maker.name) for maker in makers]
    number = {name: place for place, name in enumerate(names)}

    def counts(maker: int, step: int) -> Iterator[int]:
        for count in _counts(makers[maker], names[maker], steps[step:]):
            kernel = steps[step + count - 1].launch
            # A kernel is of this instruction, or of an earlier one that is the same.
            if kernel is None or number.get(kernel.kernel, -1) <= maker:
                yield count

    # From each step at which an instruction may begin, how many it may have made.
    tried: list[dict[int, list[int]]] = []
    begins = {0}
    for maker in range(len(makers)):
        tried.append({step: list(counts(maker, step)) for step in sorted(begins)})
        begins = {step + count for step, found in tried[-1].items() for count in found}
    # And with which of these the rest fits, from the last one on.
    ends = {len(steps)} & begins
    chosen: list[dict[int, int]] = []
    for level in reversed(tried):
        fitting = ((step, next((n for n in found if step + n in ends), 0)) for step, found in level.items())
        chosen.append({step: count for step, count in fitting if count})
        ends = set(chosen[-1])
    if 0 not in ends:
        return None
    found, step = [], 0
    for choice in reversed(chosen):
        found.append(choice[step])
        step += choice[step]
    return found


def _counts(maker: Instruction, name: str, steps: Sequence[Thunk]) -> Iterator[int]:
    """How many of the first of `steps` an instruction may have made, the likeliest first."""
    kinds = [step.kind for step in steps]
    kind = kinds[0] if kinds else ""
    if maker.opcode in _OF_LIBRARIES:
        copies = _while(kinds, frozenset({"kCopy"}))
        if kinds[copies : copies + 1] and kinds[copies] in _OF_LIBRARIES[maker.opcode]:
            yield copies + 1
        return
    if maker.opcode.endswith("-start") and kind == "kAsyncStart":
        yield 1
        return
    collective = "k" + "".join(word.capitalize() for word in maker.opcode.split("-"))
    if kind in (collective, f"{collective}Start", collective.removesuffix("Start")):
        yield 1
        return
    if maker.opcode == "custom-call":
        copies = _while(kinds, _FILLS | {"kCopy"})
        if kinds[copies:]:
            yield copies + 1
        return
    sorts = maker.opcode == "sort" or (maker.opcode == "fusion" and next(maker.called).root.opcode == "sort")
    before = _while(kinds, frozenset({"kCopy"}) if sorts else _FILLS)
    if kinds[before : before + 1] and kinds[before] in _KERNELS:
        more = before + 1
        if sorts:
            while more < len(steps) and _is_of(steps[more], name):
                more += 1
        yield more
    if kind == "kCopy" and not sorts:
        yield from range(1, _while(kinds, frozenset({"kCopy"})) + 1)
    elif kind.startswith(("kDynamic", "kCuDnn")):
        yield 1


def _is_of(step: Thunk, name: str) -> bool:
    return step.launch is not None and step.launch.kernel.startswith(name)


def _while(kinds: Sequence[str], wanted: frozenset[str]) -> int:
    """How many of the first kinds are wanted ones."""
    return next((place for place, kind in enumerate(kinds) if kind not in wanted), len(kinds))
