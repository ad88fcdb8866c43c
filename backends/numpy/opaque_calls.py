"""Custom calls that are known and yet have no model, and why."""

from __future__ import annotations

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
