"""What everything else needs, each on its own: a process that prints a line of JSON per finding.

    python -m benchmarks.gpu.smoke --backend cuda --xla gpu context copy …

The device, a kernel by each compiler, a product by cuBLAS and a program by XLA, each compared to the bit with
numpy; how fast memory can be copied, which says how large the measured cases have to be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.gpu.accuracy import leaves, same_bits
from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.measure import LOOPS
from benchmarks.gpu.parts import ROWS, with_compiler
from benchmarks.gpu.rulers import COPY, Basic, case_size, open_ruler
from benchmarks.gpu.xla_side import NoXla, XlaProgram, version
from hlotool.backends.cuda.backend import CudaBackend
from hlotool.backends.cuda.toolchain import find_compiler
from hlotool.backends.registry import get_backend, parse_spec
from hlotool.errors import BackendUnavailable
from hlotool.ir.arrays import Array
from hlotool.parser.reader import parse_module

#: What is summed and multiplied are small integers: exact in whatever order.
_KERNEL = """HloModule smoke
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[300,400] parameter(0)
  y = f32[300,400] parameter(1)
  s = f32[300,400] add(x, y)
  zero = f32[] constant(0)
  ROOT r = f32[300] reduce(s, zero), dimensions={1}, to_apply=add
}
"""
_PRODUCT = """HloModule product
ENTRY main {
  x = f32[300,400] parameter(0)
  y = f32[300,400] parameter(1)
  ROOT r = f32[300,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""


class Missing(Exception):
    """There is nothing to try; says why."""


class Smoke:
    """Tries one thing after the other.

    Args:
        backend: that is to be measured.
        xla: platform of XLA; None to leave it out.
        size: bytes of a large copy.
        report: where it says what concerns the machine.
    """

    def __init__(self, backend: str, xla: str | None, size: int, report: Reporter) -> None:
        self._asked = backend
        self._spec = parse_spec(backend)
        self._works = False
        self._xla = xla
        self._size = size
        self._report = report
        rng = np.random.default_rng(0)
        self._arguments: list[Array] = [rng.integers(-9, 9, (300, 400)).astype(np.float32) for _ in range(2)]

    def try_row(self, row: str) -> str:
        """What it found, in words.

        Raises:
            Missing: there is no such thing here, or it is not asked for.
            HlotoolError: it does not work.
            ValueError: it computes something else.
        """
        tried: dict[str, Callable[[], str]] = {
            "context": self._context, "copy": self._copy, "cublas": self._cublas,
            "transfers": self._transfers, "xla": self._by_xla,
        }  # fmt: skip
        return tried[row]() if row in tried else self._kernel(row)

    def _context(self) -> str:
        if self._spec.name != "cuda":
            return "no device is needed"
        from hlotool.backends.cuda.device import open_device

        device = open_device(int(self._spec.options.get("device", "0")))
        return f"{device.name}, {device.architecture}, {device.versions}"

    def _kernel(self, compiler: str) -> str:
        if (compiler == "g++") == (self._spec.name == "cuda"):
            raise Missing(f"{self._spec.name} does not use it")
        asked = parse_spec(self._asked).options.get("compiler", compiler)
        if asked != compiler:
            raise Missing(f"{asked} is to be used")
        if compiler != "g++":
            try:
                find_compiler(compiler)
            except BackendUnavailable as error:  # one of them will do
                raise Missing(str(error)) from None
        spec = with_compiler(self._asked, compiler)
        backend: Any = get_backend(spec)
        self._compare(backend.compile(parse_module(_KERNEL)).run(self._arguments), self._sums())
        if not self._works:
            self._works, self._spec = True, parse_spec(spec)
        return f"{backend.version}: equal to the bit"

    def _sums(self) -> Array:
        return np.add(*self._arguments).sum(axis=1)

    def _compare(self, result: Any, expected: Array) -> None:
        if not same_bits([expected], leaves(result)):
            raise ValueError("it computes something else than numpy")

    def _copy(self) -> str:
        ruler = open_ruler(str(self._spec))
        ceiling = ruler.ceiling(self._size)
        size = case_size(ceiling, ruler.cache)
        self._report.say(device=ruler.device, is_hardware=ruler.is_hardware, cache=ruler.cache, size=size)
        self._say(ceiling)
        # The cases are measured like this: what they lose to a larger copy is not all a fault of theirs.
        self._say(replace(ruler.ceiling(size // 2, LOOPS), name=f"{COPY}, of what a case moves"))
        return f"{ceiling.moved / ceiling.seconds / 1e9:.0f} GB/s, L2 of {ruler.cache / 1e6:.1f} MB"

    def _transfers(self) -> str:
        basics = list(open_ruler(str(self._spec)).basics(self._size // 4))
        if not basics:
            raise Missing("there is no device to transfer to")
        for basic in basics:
            self._say(basic)
        return ", ".join(f"{b.name} {b.seconds * 1e6:.1f} us" for b in basics if not b.moved)

    def _say(self, basic: Basic) -> None:
        self._report.say(basics={basic.name: {"seconds": basic.seconds, "moved": basic.moved}})

    def _cublas(self) -> str:
        backend = get_backend(str(self._spec))
        if not isinstance(backend, CudaBackend):
            raise Missing(f"{self._spec.name} does not use it")
        if not backend.has_library:
            raise Missing("cuBLAS is not installed")
        result = backend.compile(parse_module(_PRODUCT)).run(self._arguments)
        self._compare(result, self._arguments[0] @ self._arguments[1].T)
        return "equal to the bit"

    def _by_xla(self) -> str:
        if self._xla is None:
            raise Missing("it is left out")
        try:
            found = version(self._xla)
        except NoXla as error:
            raise Missing(str(error)) from None
        self._report.say(xla=found, xla_platform=self._xla)
        program = XlaProgram(_KERNEL, self._arguments, self._xla)
        program.enqueue()
        self._compare(tuple(program.leaves()), self._sums())
        return f"{found}: equal to the bit"


def main() -> None:
    """Try the rows named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--xla", choices=("gpu", "cpu"))
    parser.add_argument("--copied", type=int, default=1 << 30, help="bytes of a large copy")
    parser.add_argument("rows", nargs="+", choices=ROWS)
    options = parser.parse_args()
    report = Reporter()
    smoke = Smoke(options.backend, options.xla, options.copied, report)
    lost = False
    for row in options.rows:
        report.begin(row)
        try:
            if lost:
                raise Missing("there is no context")
            report.add(row, state="passed", said=smoke.try_row(row))
        except Missing as missing:
            report.add(row, state="skipped", said=str(missing))
        except Exception as error:  # of whatever kind; what XLA and pycuda raise has no common name
            name = "" if isinstance(error, BackendUnavailable) else f"{type(error).__name__}: "
            report.add(row, state="failed", said=f"{name}{str(error)[:300]}")
            lost = row == "context"
            if not lost:
                # Who knows what state this process is in: the next row gets another one.
                report.done(row)
                sys.exit(str(error))
        report.done(row)


if __name__ == "__main__":
    main()
