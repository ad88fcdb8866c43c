"""`--fp8`: what a program loses to float8, tensor by tensor and product by product, on the inputs at hand.

The reference executes the program once more. Of each tensor is counted what the conversion did to it; each
product is computed again in f64 from the same factors, exact, as they are in float8, and as they would be in
wider types, so that what is left is the rounding of the factors alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import computes_wide
from hlotool.errors import HlotoolError
from hlotool.facts.dataflow import source_of
from hlotool.facts.quantization import F8Product, Float8, Quantized
from hlotool.facts.retyping import widened
from hlotool.ir.arrays import Array, dtype_of, flatten
from hlotool.ir.edit_programs import Cloner, clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ElementType
from hlotool.judge.rules.judgement import watching
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.calls import Defuse, Inline
from hlotool.runs.fp8_records import Fp8ProductRecord, Fp8Record, Fp8TensorRecord
from hlotool.system.records import finite_or_none

_Floats = npt.NDArray[np.float64]

#: Types whose products are compared with those of float8.
_WIDER = (ElementType.BF16, ElementType.F16, ElementType.F32)


def looked_at(module: Module, arguments: Sequence[Value]) -> Fp8Record:
    """What is lost to float8 in one execution.

    Args:
        module: for one device.
        arguments: one value per parameter.

    Raises:
        Unsupported: the numpy backend cannot execute it.
    """
    inlined = clone_module(module).module
    for rewrite in (Inline(), Defuse()):
        rewrite.run(inlined, Context(rewrite.name))
    float8 = Float8(inlined)
    watch = _Watch(float8)
    if float8.tensors:
        watching(inlined, arguments, lambda backend: backend.compile(inlined))(NumpyBackend(), watch)
    read_by: dict[Instruction, list[str]] = {}
    for product in float8.products:
        for factor in dict.fromkeys(product.factors.values()):
            read_by.setdefault(factor, []).append(product.product.name)
    return Fp8Record(
        tensors=[
            watch.counts[one.tensor].record(inlined, one, read_by.get(one.tensor, []))
            for one in float8.tensors
            if one.tensor in watch.counts
        ],
        products=[_product_record(inlined, product, watch) for product in float8.products],
    )


class _Watch:
    """A probe that counts what becomes of tensors, and keeps the first factors of each product.

    Args:
        float8: what is looked at.

    Attributes:
        counts: of each tensor that was seen.
        errors: of each product that was seen, by type; or why there are none.
    """

    def __init__(self, float8: Float8) -> None:
        self.counts: dict[Instruction, _Counts] = {}
        self.errors: dict[Instruction, dict[str, float | None] | str] = {}
        self._tensors = {one.tensor: one for one in float8.tensors}
        self._products = {one.product: one for one in float8.products}
        wanted = {i for one in float8.tensors for i in (one.source, one.unscaled, one.scale) if i is not None}
        for product in float8.products:
            wanted |= {operand for i in (*product.path, product.product) for operand in i.operands}
        self._wanted = wanted | set(self._tensors)
        self._values: dict[Instruction, Value] = {i: v for i in wanted if (v := _held(i)) is not None}
        for one in float8.tensors:
            if (held := _held(one.tensor)) is not None:
                self._count(one, held)

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if instruction in self._wanted:
            self._values[instruction] = value
        if (one := self._tensors.get(instruction)) is not None:
            self._count(one, value)
        product = self._products.get(instruction)
        if product is not None and instruction not in self.errors:
            try:
                self.errors[instruction] = self._compared(product)
            except HlotoolError as error:
                self.errors[instruction] = str(error)

    def _count(self, one: Quantized, value: Value) -> None:
        counts = self.counts.setdefault(one.tensor, _Counts())
        for _, shape, part in flatten(one.tensor.shape, value):
            if getattr(shape, "element_type", None) == one.kind:
                counts.add(one, np.asarray(part), self._values)

    def _compared(self, product: F8Product) -> dict[str, float | None] | str:
        """How far the product is off by the rounding of its factors, in each type; or why that is unknown."""
        factors = list(dict.fromkeys(product.factors.values()))
        if not any(self._tensors[i].source is not None for i in factors):
            return "its factors are given in float8"
        given = [*factors, *_beside(product, factors)]
        if missing := [i.name for i in given if i not in self._values]:
            return f"the value of %{missing[0]} is not seen"
        program = widened(_cut(product, given), computes_wide=computes_wide).module
        run = NumpyBackend().compile(program).run
        others = [_wide(self._values[i]) for i in given[len(factors) :]]
        stored = [_wide(self._values[i]) for i in factors]
        exact = [self._exact(i, value) for i, value in zip(factors, stored)]

        def result(values: Sequence[Any]) -> _Floats:
            parts = [part for _, _, part in flatten(program.entry.root.shape, run([*values, *others]))]
            return np.asarray(parts[0], np.float64)

        truth = result([y for y, _ in exact])
        found = {"f8": _apart(result(stored), truth)}
        for kind in _WIDER:
            found[kind.value] = _apart(result([_rounded(y, x, kind) for y, x in exact]), truth)
        return found

    def _exact(self, tensor: Instruction, stored: Any) -> tuple[Any, Any]:
        """A factor as it was before it was rounded, scaled and as the program had it; else as it is."""
        one = self._tensors[tensor]
        if one.source is None or one.unscaled is None:
            return stored, stored
        parts = [_wide(self._values[i]).reshape(stored.shape) for i in (one.source, one.unscaled)]
        return parts[0], parts[1]


def _held(constant: Instruction) -> Array | None:
    """The array of a constant; None of anything else."""
    value = constant.literal.value if constant.literal is not None else None
    return value if isinstance(value, np.ndarray) else None


def _beside(product: F8Product, factors: Sequence[Instruction]) -> list[Instruction]:
    """What else the product and its path read: scales, other factors, what is added."""
    inside = {*product.path, *factors}
    read = (operand for i in (*product.path, product.product) for operand in i.operands)
    return [operand for operand in dict.fromkeys(read) if operand not in inside]


def _cut(product: F8Product, given: Sequence[Instruction]) -> Module:
    """A program of the product and its path alone; what is given are its parameters."""
    cloner = Cloner()
    parameters = [
        Instruction(f"p{number}", "parameter", one.shape, parameter_number=number)
        for number, one in enumerate(given)
    ]
    cloner.instructions.update(zip(given, parameters))
    steps = [cloner.instruction(i) for i in (*product.path, product.product)]
    entry = Computation("product", [*parameters, *steps], steps[-1])
    return Module("product", [entry], entry, {})


def _wide(value: Value) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if _is_float(array) else array


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name.startswith(("float", "bfloat"))


def _rounded(scaled: Any, unscaled: Any, kind: ElementType) -> Any:
    """A scaled factor, where the unscaled one is rounded to another type."""
    with np.errstate(all="ignore"):
        rounded = unscaled.astype(dtype_of(kind)).astype(np.float64)
        return np.where(unscaled == 0, scaled, scaled * (rounded / unscaled))


def _apart(actual: _Floats, truth: _Floats) -> float | None:
    """Root mean square of the difference, relative to that of the truth; None where one is not finite."""
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(truth**2))) if truth.size else 0.0
        difference = float(np.sqrt(np.mean((actual - truth) ** 2))) if truth.size else 0.0
    return finite_or_none(difference / size if size else difference)


class _Counts:
    """What became of a tensor in all its executions."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._largest: dict[str, float] = {}
        self._scales: list[float] = []
        self._squares = [0.0, 0.0]

    def add(self, one: Quantized, stored: Array, values: Mapping[Instruction, Value]) -> None:
        """Count one execution."""
        info: Any = _limits(one.kind)
        wide = stored.astype(np.float64)
        count = self._count
        count["calls"] += 1
        count["total"] += wide.size
        count["subnormal"] += int(((wide != 0) & (np.abs(wide) < float(info.smallest_normal))).sum())
        self._see("stored", wide)
        if one.source is None or one.source not in values:
            return
        source = _wide(values[one.source]).reshape(wide.shape)
        finite = np.isfinite(source)
        count["given"] += wide.size
        count["not_finite"] += int((~finite).sum())
        count["underflow"] += int((finite & (source != 0) & (wide == 0)).sum())
        beyond = finite & (np.abs(source) > float(info.max))
        count["saturated"] += int((beyond & np.isfinite(wide)).sum())
        count["overflow"] += int((finite & ~np.isfinite(wide)).sum())
        self._see("scaled", source)
        if one.unscaled is not None and one.unscaled in values:
            self._see("amax", _wide(values[one.unscaled]))
        if one.scale is not None and one.scale in values:
            self._scales += [float(n) for n in _wide(values[one.scale]).reshape(-1)]
        both = finite & np.isfinite(wide)
        with np.errstate(all="ignore"):
            self._squares[0] += float(((wide - source)[both] ** 2).sum())
            self._squares[1] += float((source[both] ** 2).sum())

    def _see(self, name: str, values: Any) -> None:
        finite = np.abs(values[np.isfinite(values)])
        self._largest[name] = max(self._largest.get(name, 0.0), float(finite.max(initial=0)))

    def record(self, module: Module, one: Quantized, read_by: Sequence[str]) -> Fp8TensorRecord:
        """What is known of the tensor."""
        count, error, size = self._count, *self._squares
        return Fp8TensorRecord(
            tensor=one.tensor.name,
            type=one.kind.value,
            shape=str(one.tensor.shape),
            made_by="conversion" if one.source is not None else one.tensor.opcode,
            executions=count["calls"],
            total=count["total"],
            limit=float(_limits(one.kind).max),
            amax=self._largest.get("amax", self._largest.get("scaled", self._largest.get("stored", 0.0))),
            scaled_amax=self._largest.get("scaled", self._largest.get("stored", 0.0)),
            scaling=one.scaling.value if one.source is not None else "",
            divides=one.divides,
            clamped=one.clamped,
            least_scale=min(self._scales, default=None),
            largest_scale=max(self._scales, default=None),
            underflow=count["underflow"],
            subnormal=count["subnormal"],
            saturated=count["saturated"],
            overflow=count["overflow"],
            not_finite=count["not_finite"],
            error=finite_or_none((error / size) ** 0.5) if size else None,
            read_by=list(read_by),
            source=source_of(module, [one.tensor]),
        )


def _limits(kind: ElementType) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype_of(kind))  # type: ignore[no-untyped-call]


def _product_record(module: Module, product: F8Product, watch: _Watch) -> Fp8ProductRecord:
    found = watch.errors.get(product.product, "it was not executed")
    errors = found if isinstance(found, dict) else {}
    return Fp8ProductRecord(
        product=product.product.name,
        opcode=product.product.custom_call_target or product.product.opcode,
        shape=str(product.product.shape),
        factors=[factor.name for factor in dict.fromkeys(product.factors.values())],
        scaled_before=product.is_scaled,
        error=errors.get("f8"),
        error_bf16=errors.get("bf16"),
        error_f16=errors.get("f16"),
        error_f32=errors.get("f32"),
        missing="" if isinstance(found, dict) else found,
        source=source_of(module, [product.product]),
    )
