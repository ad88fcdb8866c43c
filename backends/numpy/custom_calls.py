"""Custom calls by target: which of them this backend can execute, and stand-ins for others (`hlotool run
--opaque`).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import getdoc

import numpy as np

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.numpy.executions.noise import Stability
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native
from hlotool.backends.numpy.registry import Calling, Kernel, Rule, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import by_name
from hlotool.ir.types import ArrayShape, Shape, TupleShape, strip_layouts
from hlotool.ir.walk import reachable

#: Values of integer results, below which every array that matters has an index.
_INTEGERS = 2


def key_of(call: Instruction) -> str:
    """What tells an opaque call from others: equal keys and operands give equal values."""
    shapes = [str(strip_layouts(part.shape)) for part in (call, *call.operands)]
    return "\n".join([call.custom_call_target, _kernel_of(call) or call.config_text, *shapes])


#: The kernel in the configuration of a call: MLIR in base64. Those for GPUs are handed on as they are.
_KERNEL_TEXT = re.compile(r'"body": ?"((?:[^"\\]|\\.)*)"')


def _kernel_of(call: Instruction) -> str:
    """The kernel that a call brings along; compilers add to the rest of its configuration what they found."""
    found = _KERNEL_TEXT.search(call.config_text) if call.custom_call_target == "tpu_custom_call" else None
    return found[1] if found else ""


def stand_in(call: Instruction) -> Kernel:
    """The kernel of an opaque call."""
    seed = zlib.crc32(key_of(call).encode("utf-8", "surrogateescape"))
    shape = call.shape
    kinds = [o.array_type for o in call.operands]

    def kernel(*operands: Value) -> Value:
        pairs = [(native(np.asarray(x), kind), n) for n, (x, kind) in enumerate(zip(operands, kinds)) if kind]
        floats = [(x, n) for x, n in pairs if x.dtype.kind in "fc"]
        exact = [zlib.crc32(np.ascontiguousarray(x).tobytes()) for x, _ in pairs if x.dtype.kind not in "fc"]
        return _value(shape, [seed, *exact], sum((_projection(x, [seed, n]) for x, n in floats), 0.0))

    return kernel


def _projection(x: Array, key: Sequence[int]) -> float:
    """A number in which every element counts about alike; what is common to all of them cancels out."""
    draw = np.random.default_rng(key)
    weights = draw.uniform(0.5, 1.5, x.shape) * draw.choice((-1.0, 1.0), x.shape)
    parts = x.real + x.imag if x.dtype.kind == "c" else x
    return float(np.sum(weights * parts.astype(np.float64))) / max(1.0, float(np.sqrt(x.size)))


def _value(shape: Shape, key: list[int], projection: float) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_value(part, [*key, n], projection) for n, part in enumerate(shape.elements))
    if not isinstance(shape, ArrayShape):
        return TOKEN
    draw = np.random.default_rng(key)
    if shape.element_type.is_integer or shape.element_type.name == "PRED":
        return finish(draw.integers(0, _INTEGERS, shape.dims), shape.element_type)
    phases = draw.uniform(0, 2 * np.pi, shape.dims)
    return finish(np.asarray(np.sin(phases + projection)), shape.element_type)


# Calls that are known and yet have no model, and why.

_PYTHON = "calls the user's Python function, which is not in the dump"
_KERNEL = "runs a kernel in another language than HLO"
_QUANTISED = "is attention in f8 with intermediate roundings that are not public"
_RECURRENT = "is a recurrent network whose weights lie in an order of cuDNN's own"
_SPARSE = "takes a sparse matrix that the bytes of a C structure describe"
_PERTURBED = "solves singular systems, too, by perturbing them"

_REASONS = {
    "__cudnn$fmhaSoftmaxBackwardF8": _QUANTISED,
    "__cudnn$fmhaSoftmaxF8": _QUANTISED,
    "__gpu$xla.gpu.ptx": _KERNEL,
    "__gpu$xla.gpu.triton": _KERNEL,
    "__onednn$matmul_reorder": "packs weights for the processor",
    "cu_tridiagonal_solve_perturbed": _PERTURBED,
    "hip_tridiagonal_solve_perturbed": _PERTURBED,
    "mosaic_gpu": _KERNEL,
    "mosaic_gpu_v2": _KERNEL,
    "tpu_custom_call": _KERNEL,
    "tridiagonal_solve_perturbed_ffi": _PERTURBED,
    "triton_kernel_call": _KERNEL,
    "triton_kernel_call_ffi": _KERNEL,
}
_PREFIXES = {
    "cudnn_rnn": _RECURRENT,
    "cusparse_": _SPARSE,
    "hipsparse_": _SPARSE,
    "miopen_rnn": _RECURRENT,
}


def why_opaque(target: str) -> str | None:
    """What stands in the way of a model of `target`, as "(which) …"; None if the target is unknown."""
    if "callback" in target:
        return _PYTHON
    by_prefix = (reason for prefix, reason in _PREFIXES.items() if target.startswith(prefix))
    return _REASONS.get(target) or next(by_prefix, None)


CUSTOM_CALLS: dict[str, Rule] = {}

#: Those whose model computes in the types of the operands and results it is given.
_WIDENING: set[str] = set()

#: Factorisations, and how they are stable.
_STABLE: dict[str, Stability] = {}

#: Calls that carry what they do as called computation: operations that XLA's builder expands, and kernels
#: generated from HLO (early versions of XLA; now they are fusions), and what a TPU has its host compute.
_COMPOSITES = ("xla_builder.", "__triton", "HostExecute")

#: In an error, the lines of so many calls of one target are listed.
_LISTED_LINES = 4

#: What introduces the source of a target's semantics in the docstring of its lowering.
_SOURCE = re.compile(r"\b(?:XLA|NVIDIA|Source): ")


@dataclass(frozen=True, slots=True)
class Target:
    """A custom call that can be executed.

    Attributes:
        name: as modules write it.
        meaning: in one sentence.
        source: where its semantics can be read.
    """

    name: str
    meaning: str
    source: str


def custom_call(
    *targets: str, widens: bool = False, stable: Stability | None = None
) -> Callable[[Rule], Rule]:
    """Register a function as the lowering of `targets`; a second one for the same target is an error.

    Args:
        targets: as modules write them.
        widens: the model works on f64 in the place of every float, operands and results, and computes
            in f64 then; what the declared types mean besides rounding, it reads from `declared_types`.
        stable: it factorises its operands, and any legal execution is an exact one of operands that are
            a little off by this measure.
    """
    if widens:
        _WIDENING.update(targets)
    if stable is not None:
        _STABLE.update(dict.fromkeys(targets, stable))
    return by_name(CUSTOM_CALLS, targets)


def computes_wide(instruction: Instruction) -> bool:
    """Whether there is a model of a custom call that computes in f64 what is given to it in f64."""
    if instruction.custom_call_target not in CUSTOM_CALLS:
        _load_libraries()
    return instruction.custom_call_target in _WIDENING


def backward_stability(instruction: Instruction) -> Stability | None:
    """How the factorisation is stable that an instruction calls; None where it calls none."""
    return _STABLE.get(instruction.custom_call_target) if instruction.opcode == "custom-call" else None


@lowers("custom-call")
def lower_custom_call(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of the target. XLA: operation_semantics.md#customcall.

    Raises:
        Unsupported: nothing is known of the target; the error lists all such targets of the program.
    """
    target = instruction.text("custom_call_target")
    if target not in CUSTOM_CALLS:
        _load_libraries()
    if target in CUSTOM_CALLS:
        return CUSTOM_CALLS[target](instruction, lowering)
    expansion = expansion_of(instruction)
    if expansion is not None:
        return Calling(lowering.plan(expansion))
    if lowering.module.has_stand_ins:
        return stand_in(instruction)
    listed = _list_unknown([*unknown_calls(lowering.module), instruction])
    raise lowering.unsupported(instruction, f"custom calls without a model: {listed}")


def _load_libraries() -> None:
    from hlotool.backends.numpy.kernels import libraries

    libraries.load()


def expansion_of(instruction: Instruction) -> Computation | None:
    """The computation that says what a composite does, where it carries one."""
    target = instruction.custom_call_target
    return next(instruction.called, None) if target.startswith(_COMPOSITES) else None


def unknown_calls(module: Module) -> Iterable[Instruction]:
    """The custom calls of the program that cannot be executed, in textual order."""
    _load_libraries()
    used = set(reachable(module.entry))
    for computation in module.computations:
        for instruction in computation.instructions if computation in used else ():
            known = instruction.custom_call_target in CUSTOM_CALLS
            if instruction.opcode == "custom-call" and not known and expansion_of(instruction) is None:
                yield instruction


def _list_unknown(calls: Iterable[Instruction]) -> str:
    """Each target once, with the lines of its calls and what is known of it."""
    by_target: dict[str, list[Instruction]] = {}
    for call in dict.fromkeys(calls):
        by_target.setdefault(call.custom_call_target, []).append(call)
    return "; ".join(_describe(target, found) for target, found in by_target.items())


def _describe(target: str, calls: Sequence[Instruction]) -> str:
    times = f" ×{len(calls)}" if len(calls) > 1 else ""
    lines = [str(call.line) for call in calls if call.line]
    shown = ", ".join(lines[:_LISTED_LINES]) + (", …" if len(lines) > _LISTED_LINES else "")
    where = f" (line{'s' if len(lines) > 1 else ''} {shown})" if lines else ""
    why = why_opaque(target)
    return f"{target!r}{times}{where}" + (f", which {why}" if why else "")


def targets() -> list[Target]:
    """All custom calls that this backend executes, by name."""
    _load_libraries()
    return [_target(name, rule) for name, rule in sorted(CUSTOM_CALLS.items())]


def _target(name: str, rule: Rule) -> Target:
    text = " ".join((getdoc(rule) or "").split())
    meaning, source = [*_SOURCE.split(text, maxsplit=1), ""][:2]
    return Target(name, meaning.split(". ")[0].strip().rstrip("."), source.rstrip("."))
