"""What `xla:OPTION,…` may say, for help and for error messages."""

from __future__ import annotations

#: By form, with their meaning; besides, every debug option of XLA: `xla_NAME=VALUE`.
OPTIONS = {
    "cpu": "run on the CPU, the default",
    "gpu": "run on a GPU",
    "tpu": "run on a TPU",
    "disable=PASS+PASS": "HLO passes that must not run",
    "only=PASS+PASS": "the only HLO passes that may run",
    "opt=LEVEL": "optimisation level of the code generator, 0 to 3",
    "route=auto|mlir|pre|post": "how programs get into XLA: as StableHLO, before or after its scheduler",
    "python=PATH": "interpreter whose jaxlib is used; it needs jax and msgspec, too",
    "timeout=SECONDS": "for each compilation and each run",
    "xla_FLAG=VALUE": "any debug option of XLA",
}
