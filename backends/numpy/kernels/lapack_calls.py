"""Custom calls into LAPACK, as jaxlib's CPU client makes them: `lapack_<letter><routine>_ffi`.

Factorisations, solutions of linear systems, eigenvalues and singular values.
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
from hlotool.ir.arrays import Array, dtype_of
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


@lapack("potrf", ranks=(2,))
def potrf(call: LapackCall, a: Array) -> Results:
    """Cholesky factor in the triangle `uplo`, the other one as it was; (factor, info)."""
    return tuple(call.function("potrf")(a, lower=call.is_option("uplo", "L"), clean=False))


@lapack("getrf", ranks=(2,))
def getrf(call: LapackCall, a: Array) -> Results:
    """LU decomposition with partial pivoting; (factors, pivots counted from 1, info)."""
    factors, pivots, info = call.function("getrf")(a)
    return factors, pivots + 1, info


@lapack("geqrf", ranks=(2,))
def geqrf(call: LapackCall, a: Array) -> Results:
    """QR decomposition; (R and the Householder vectors, their factors)."""
    return tuple(call.function("geqrf")(a, **call.workspace("geqrf", *a.shape))[:2])


@lapack("geqp3", ranks=(2, 1))
def geqp3(call: LapackCall, a: Array, fixed: Array) -> Results:
    """QR decomposition with column pivoting; (R and Householder vectors, columns from 1, factors).

    Raises:
        Unsupported: columns are fixed to the front, which JAX never asks for.
    """
    if fixed.any():
        raise call.unsupported("geqp3 with columns fixed to the front")
    function = call.function("geqp3")
    return tuple(function(a, lwork=_best_workspace(function(a, lwork=-1)))[:3])


@lapack("orgqr", ranks=(2, 1), letters="sd")
@lapack("ungqr", ranks=(2, 1), letters="cz")
def orgqr(call: LapackCall, a: Array, factors: Array) -> Results:
    """The orthogonal matrix that Householder vectors stand for."""
    function = call.function("ungqr" if call.is_complex else "orgqr")
    return (function(a, factors, lwork=_best_workspace(function(a, factors, lwork=-1)))[0],)


@lapack("ormqr", ranks=(2, 1, 2), letters="sd")
@lapack("unmqr", ranks=(2, 1, 2), letters="cz")
def ormqr(call: LapackCall, a: Array, factors: Array, c: Array) -> Results:
    """The orthogonal matrix of Householder vectors, or its adjoint, times `c`; `left` says on which side."""
    function = call.function("unmqr" if call.is_complex else "ormqr")
    adjoint = "C" if call.is_complex else "T"
    arguments = ("L" if call.option("left") else "R", adjoint if call.option("transpose") else "N")
    best = _best_workspace(function(*arguments, a, factors, c, -1))
    return (function(*arguments, a, factors, c, best)[0],)


@lapack("trsm", ranks=(2, 2, 0))
def trsm(call: LapackCall, a: Array, b: Array, alpha: Any = 1) -> Results:
    """Solution of a triangular system; jaxlib 0.4.38 and 0.5.0 hand over `alpha`, a factor of `b`."""
    from scipy.linalg import blas

    return (
        getattr(blas, call.letter + "trsm")(
            alpha,
            a,
            b,
            side=call.is_option("side", "R"),
            lower=call.is_option("uplo", "L"),
            trans_a={ord("N"): 0, ord("T"): 1, ord("C"): 2}[call.option("trans_x")],
            diag=call.is_option("diag", "U"),
        ),
    )


@lapack("gtsv", ranks=(1, 1, 1, 2))
def gtsv(call: LapackCall, lower: Array, diagonal: Array, upper: Array, b: Array) -> Results:
    """Solution of a tridiagonal system; (factors…, solution, info).

    The first element of `lower` and the last of `upper` are not part of the matrix.
    """
    _, factor, upper_factor, x, info = call.function("gtsv")(lower[1:], diagonal, upper[:-1], b)
    return None, factor, np.append(upper_factor, upper[-1:]), x, info


@lapack("gehrd", ranks=(2,))
def gehrd(call: LapackCall, a: Array) -> Results:
    """Reduction to Hessenberg form; (form and Householder vectors, their factors, info)."""
    low, high = call.option("low") - 1, call.option("high") - 1
    work = call.workspace("gehrd", len(a), low, high)
    return tuple(call.function("gehrd")(a, low, high, **work))


@lapack("sytrd", ranks=(2,), letters="sd")
@lapack("hetrd", ranks=(2,), letters="cz")
def sytrd(call: LapackCall, a: Array) -> Results:
    """Reduction of a Hermitian matrix to tridiagonal form.

    Returns (form and Householder vectors, diagonal, off-diagonal, their factors, info).
    """
    name = "hetrd" if call.is_complex else "sytrd"
    lower = call.is_option("uplo", "L")
    work = call.workspace(name, len(a), lower=lower)
    return tuple(call.function(name)(a, lower=lower, **work))


def _best_workspace(answer: Any) -> int:
    """The size in the work array of a query."""
    return int(np.real(answer[-2][0]))


@lapack("gesdd", ranks=(2,))
def gesdd(call: LapackCall, a: Array) -> Results:
    """Singular values by divide and conquer; (scratch, values, left vectors, right adjoint vectors, info)."""
    return _singular_values(call, "gesdd", a)


@lapack("gesvd", ranks=(2,))
def gesvd(call: LapackCall, a: Array) -> Results:
    """Singular values by QR iteration; results as for `gesdd`."""
    return _singular_values(call, "gesvd", a)


def _singular_values(call: LapackCall, name: str, a: Array) -> Results:
    """`mode` is N (no vectors), S (as many as values) or A (all)."""
    wanted = not call.is_option("mode", "N")
    full = not call.is_option("mode", "S")
    work = call.workspace(name, *a.shape, compute_uv=wanted, full_matrices=full)
    left, values, right, info = call.function(name)(a, compute_uv=wanted, full_matrices=full, **work)
    return None, values, left if wanted else None, right if wanted else None, info


@lapack("syevd", ranks=(2,), letters="sd")
@lapack("heevd", ranks=(2,), letters="cz")
def syevd(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of a Hermitian matrix, read from the triangle `uplo`; (vectors, values, info)."""
    name = "heevd" if call.is_complex else "syevd"
    options = {"compute_v": call.is_option("mode", "V"), "lower": call.is_option("uplo", "L")}
    work = call.workspace(name, len(a), **options)
    values, vectors, info = call.function(name)(a, **options, **work)
    return vectors if options["compute_v"] else None, values, info


@lapack("geev", ranks=(2,))
def geev(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of any square matrix, with left and right vectors.

    Returns (values, left, right, info), of real matrices (real parts, imaginary parts, left, right, info).
    """
    *values, lefts, rights, info = packed_spectrum(call, a)
    if not call.is_complex:
        lefts, rights = (None if v is None else _complex_vectors(values[1], v) for v in (lefts, rights))
    return *values, lefts, rights, info


def packed_spectrum(call: LapackCall, a: Array) -> Results:
    """What LAPACK's `geev` returns, None in place of vectors that are not wanted."""
    left, right = call.is_option("compute_left", "V"), call.is_option("compute_right", "V")
    work = call.workspace("geev", len(a), compute_vl=left, compute_vr=right)
    *values, lefts, rights, info = call.function("geev")(a, compute_vl=left, compute_vr=right, **work)
    return *values, lefts if left else None, rights if right else None, info


def _complex_vectors(imaginary: Array, packed: Array) -> Array:
    """LAPACK stores the vectors of a conjugate pair of eigenvalues as real part and imaginary part."""
    vectors = packed.astype(np.result_type(packed, np.complex64))
    if len(packed) == len(imaginary):
        for first in np.flatnonzero(imaginary > 0):
            vectors[:, first] = packed[:, first] + 1j * packed[:, first + 1]
            vectors[:, first + 1] = vectors[:, first].conj()
    return vectors


@lapack("gees", ranks=(2,))
def gees(call: LapackCall, a: Array) -> Results:
    """Schur form, eigenvalues unsorted.

    Returns (form, vectors, values, number selected, info), of real matrices the real and imaginary parts of
    the values one after the other.
    """
    wanted = call.is_option("mode", "V")
    function = call.function("gees")
    best = int(np.real(function(_select_none, a, compute_v=wanted, lwork=-1)[-2][0]))
    form, selected, *values, vectors, _work, info = function(_select_none, a, compute_v=wanted, lwork=best)
    return form, vectors if wanted else None, *values, selected, info


def _select_none(*_: float) -> None:
    return None
