"""Custom calls into LAPACK, as jaxlib's CPU client makes them: `lapack_<letter><routine>_ffi`.

A routine is written for one matrix; here it is registered for its element types and run over the batch.
jaxlib hands the same routines of SciPy's LAPACK the same matrices, so results agree to rounding, signs of
eigenvectors included. `info` outputs are those of LAPACK. Outputs that LAPACK leaves as scratch are 0.

Conventions: jaxlib/cpu/lapack_kernels.h and jax/_src/lax/linalg.py of jaxlib 0.10.2, measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.backend_configs import read_config
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.errors import Unsupported
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, array_shapes

#: Of one matrix: results in the order of the custom call's, None for scratch.
Results: TypeAlias = Sequence[Any]
Routine: TypeAlias = "Callable[..., Results]"

_LETTERS = {ElementType.F32: "s", ElementType.F64: "d", ElementType.C64: "c", ElementType.C128: "z"}


@dataclass(frozen=True, slots=True)
class LapackCall:
    """What a routine needs to know of its call site.

    Attributes:
        letter: `s`, `d`, `c` or `z`.
        options: entries of the backend config: integers and booleans.
        unsupported: makes the error for data that cannot be handled, from the reason.
    """

    letter: str
    options: Mapping[str, int]
    unsupported: Callable[[str], Unsupported]

    @property
    def is_complex(self) -> bool:
        """Whether matrices are complex."""
        return self.letter in "cz"

    def function(self, name: str) -> Callable[..., Any]:
        """A routine of SciPy's LAPACK, named without its letter."""
        from scipy.linalg import lapack

        function: Callable[..., Any] = getattr(lapack, self.letter + name)
        return function

    def option(self, name: str) -> int:
        """An option; no call may leave one out."""
        if name not in self.options:
            raise self.unsupported(f"no {name} in the backend config")
        return self.options[name]

    def is_option(self, name: str, letter: str) -> bool:
        """Whether a character option is `letter`."""
        return self.option(name) == ord(letter)

    def workspace(self, name: str, *arguments: Any, **options: Any) -> dict[str, int]:
        """The sizes of the work arrays that LAPACK asks for, as arguments of the routine itself."""
        *works, _info = self.function(f"{name}_lwork")(*arguments, **options)
        names = ("lwork", "liwork") if len(works) < 3 else ("lwork", "liwork", "lrwork")
        return {n: int(np.real(w)) for n, w in zip(names, works)}


def lapack(*names: str, ranks: Sequence[int], letters: str = "sdcz") -> Callable[[Routine], Routine]:
    """Register a routine: called with a LapackCall and one array per operand.

    Args:
        names: without the letter.
        ranks: of each operand, without batch dimensions; one that has none serves the whole batch.
        letters: element types that the names exist for.
    """
    targets = [f"lapack_{letter}{name}_ffi" for name in names for letter in letters]

    def register(routine: Routine) -> Routine:
        @custom_call(*targets)
        def lower(instruction: Instruction, lowering: Lowering) -> Kernel:
            return batched(routine, named_call(instruction, lowering), ranks, instruction, lowering)

        lower.__doc__ = f"{routine.__doc__}\n\nSource: jaxlib/cpu/lapack_kernels.h."
        return routine

    return register


def named_call(instruction: Instruction, lowering: Lowering) -> LapackCall:
    """The call of a routine whose name tells the element type, with the options of its config."""
    letter = instruction.custom_call_target.removeprefix("lapack_")[0]
    config = read_config(instruction, lowering)
    options = {name: int(value) for name, value in config.values.items() if isinstance(value, int)}
    return LapackCall(letter, options, config.unsupported)


def lapack_call(instruction: Instruction, lowering: Lowering, options: Mapping[str, int]) -> LapackCall:
    """The call of a routine whose name does not tell the element type: its first operand does.

    Raises:
        Unsupported: LAPACK has no routines for that type.
    """
    kind = instruction.operands[0].element_type
    if kind not in _LETTERS:
        raise lowering.unsupported(instruction, f"a linear algebra routine on {kind}")
    return LapackCall(_LETTERS[kind], options, partial(lowering.unsupported, instruction))


def batched(
    routine: Routine, call: LapackCall, ranks: Sequence[int], instruction: Instruction, lowering: Lowering
) -> Kernel:
    """The kernel that runs the routine for each position of the leading dimensions.

    Args:
        routine: for one matrix.
        call: what the routine is told.
        ranks: of each operand, without batch dimensions.
        instruction: the custom call.
        lowering: for errors.
    """
    shapes = _result_shapes(instruction, lowering)

    def kernel(*operands: Array) -> Array | tuple[Array, ...]:
        results = [np.zeros(s.dims, dtype_of(s.element_type)) for s in shapes]
        batch = operands[0].shape[: operands[0].ndim - ranks[0]]
        if all(o.size for o in operands):
            for index in np.ndindex(batch):
                values = routine(call, *(o[index] if o.ndim > r else o for o, r in zip(operands, ranks)))
                for result, value in zip(results, values):
                    if value is not None:
                        result[index] = value
        return results[0] if isinstance(instruction.shape, ArrayShape) else tuple(results)

    return kernel


def _result_shapes(instruction: Instruction, lowering: Lowering) -> list[ArrayShape]:
    shapes = array_shapes(instruction.shape)
    if any(o.array_shape.is_dynamic for o in instruction.operands):
        raise lowering.unsupported(instruction, "a matrix of dynamic size")
    return shapes
