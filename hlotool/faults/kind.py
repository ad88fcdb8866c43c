"""What a kind of fault is: where it can be planted, how, and what arguments must hold for it to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hlotool.faults.edit import Edit
from hlotool.ir.dtypes import Array, element_type_of
from hlotool.ir.edit import editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.edit_dead import remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import call_sites, reachable

#: Callers that need their computation as it is: XLA recognises it, or its misbehaviour has no meaning.
_PARTICULAR = frozenset({"sort", "custom-call", "topk", "select-and-scatter", "async-start"})


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """An instruction, by names, so that it is found in a copy of its module, too."""

    computation: str
    instruction: str

    def __str__(self) -> str:
        return f"%{self.computation}/%{self.instruction}"


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction where a fault might go.

    Attributes:
        computation: that it stands in.
        instruction: the instruction.
        callers: opcodes that call the computation; empty for the entry.
    """

    computation: Computation
    instruction: Instruction
    callers: frozenset[str]

    @property
    def array(self) -> ArrayShape | None:
        """The shape of its result, if that is an array of fixed size."""
        shape = self.instruction.shape
        return shape if isinstance(shape, ArrayShape) and not shape.is_dynamic else None


Fits: TypeAlias = Callable[[Place], bool]
Rewrite: TypeAlias = Callable[[Edit, Instruction], None]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One way in which a compiler makes a program wrong.

    Attributes:
        name: short, for tables.
        imitates: the compiler bug that it stands for.
        fits: whether it can be planted at a place.
        rewrite: plants it; every random choice comes from the edit's generator.
        pattern: what the damage looks like in the value that it is planted in, in the words of the verdicts;
            None where it looks like nothing in particular.
        poison: what arguments must hold for the fault to show: a float in some elements of float arrays, or
            an integer in scalar integers (see `inputs.poisoned`).
    """

    name: str
    imitates: str
    fits: Fits
    rewrite: Rewrite
    pattern: str | None = None
    poison: float | int | None = None

    def sites(self, module: Module) -> list[Site]:
        """Where it can be planted, in the order of execution: entry first, then what it calls."""
        return [Site(p.computation.name, p.instruction.name) for p in places(module) if self.fits(p)]

    def plant(self, module: Module, site: Site, seed: int = 0) -> Module:
        """A copy of `module` with the fault; equal seeds give equal modules.

        Raises:
            KeyError: the module has no such site.
        """
        copy = clone_module(module).module
        target = find(copy, site)
        with editing(target[0]) as editor:
            self.rewrite(Edit(editor, target[1], np.random.default_rng(seed)), target[1])
        remove_dead_code(copy)
        return copy


def find(module: Module, site: Site) -> tuple[Computation, Instruction]:
    """The computation and the instruction at a site; raises KeyError where there is none."""
    for computation in module.computations:
        for instruction in computation.instructions:
            if (computation.name, instruction.name) == (site.computation, site.instruction):
                return computation, instruction
    raise KeyError(f"{module.name} has no {site}")


def places(module: Module) -> Iterator[Place]:
    """All instructions that run, except in computations that their callers need as they are."""
    sites = call_sites(module)
    for computation in reversed(reachable(module.entry)):
        callers = frozenset(site.instruction.opcode for site in sites.get(computation, ()))
        if callers & _PARTICULAR or any(name.startswith(("all-", "reduce-scatter")) for name in callers):
            continue
        for instruction in computation.instructions:
            yield Place(computation, instruction, callers)


#: Share of the elements of a float array that are replaced; the first always is.
_SHARE = 0.1


def poisoned(arguments: Sequence[Any], poison: float | None, seed: int = 7) -> list[Any]:
    """The arguments with some values replaced by `poison`, as `FaultKind.poison` says."""
    if poison is None:
        return list(arguments)
    rng = np.random.default_rng(seed)
    return [_poisoned(value, poison, rng) for value in arguments]


def _poisoned(value: Any, poison: float, rng: np.random.Generator) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_poisoned(part, poison, rng) for part in value)
    element_type = element_type_of(value.dtype) if isinstance(value, np.ndarray | np.generic) else None
    if element_type is None:
        return value
    array: Array = np.array(value)
    if isinstance(poison, int):
        is_index = element_type.is_integer and element_type.bits >= 8 and array.ndim == 0
        return np.asarray(poison, array.dtype) if is_index else value
    if not element_type.is_floating:
        return value
    mask = rng.random(array.shape) < _SHARE
    mask.reshape(-1)[:1] = True
    array[mask] = np.asarray(poison).astype(array.dtype)
    return array
