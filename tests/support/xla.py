"""Real XLA (jaxlib, CPU) as the judge in tests.

    from support.xla import oracle
    outputs = oracle().run(hlo_text, [array, …])

It takes texts as they are, past hlotool's parser and printer; what holds XLA is the process of the backend
`xla`, which is replaced when XLA aborts or hangs. Where XLA alone dies of a program, too, that is no fault of
ours, and the test is skipped: see `support.oracle`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hlotool.backends.xla.process import XlaProcess, key_for
from hlotool.backends.xla.programs import parse_sharding
from hlotool.backends.xla.protocol import ArrayData, CompileRequest, Execution
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.ir.printed_annotations import sharding_text
from support.oracle import OracleUnable, need_xla, unable

Array = npt.NDArray[Any]

try:
    _INSTALLED = version("jaxlib")
except PackageNotFoundError:
    _INSTALLED = "0"

#: The version of jaxlib whose XLA is the judge, such as (0, 10, 2).
JAXLIB = tuple(int(number) for number in re.findall(r"\d+", _INSTALLED)[:3])

#: The first version whose texts have elements of tuples as operands, and an order in place of a type.
NEWER_TEXT = (0, 12, 0)

#: The first version whose CPU compiler has no other code generators than the fusion emitters.
ONLY_EMITTERS = (0, 12, 0)


def fusion_emitters(wanted: bool) -> dict[str, bool]:
    """The option for XLA's CPU compiler to use its fusion emitters, or not: later versions have no others."""
    return {} if JAXLIB >= ONLY_EMITTERS else {"xla_cpu_use_fusion_emitters": wanted}


def in_older_words(text: str) -> str:
    """What XLA prints since NEWER_TEXT, as it was printed before: the same is said."""
    text = text.replace(", order=TOTAL", ", type=TOTALORDER").replace(", has_dynamic_root=false", "")
    return re.sub(r"(topk\(.*), is_stable=true", r"\1", text)


_T = TypeVar("_T")

_CHILD = "support.xla_child"


class XlaError(Exception):
    """XLA rejected the module, or the process died of it as XLA alone does not."""


class Oracle:
    """One process that answers one request at a time.

    Args:
        devices: number of (virtual) CPU devices it has.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, devices: int = 1, timeout: float = 60.0) -> None:
        self._process = XlaProcess(key_for("cpu", "", devices, timeout))

    def run(self, text: str, arguments: list[Any], **options: Any) -> list[Array]:
        """Compile `text` and run it.

        Args:
            text: HLO; the module goes through XLA's whole CPU pipeline.
            arguments: one array per parameter, of exactly the declared types.
            options: XLA debug options for this compile, by name without `--`.

        Returns:
            The leaves of the result in tuple order.

        Raises:
            XlaError: rejected; or the process died or timed out, as XLA alone does not.
            OracleUnable: XLA alone dies of it, too.
        """
        program = CompileRequest(text, flags=tuple(options.items()), released=self._process.take_released())
        return self._execute(program, [arguments])[0][0]

    def run_devices(
        self, text: str, arguments: list[list[Any]], replicas: int = 1, partitions: int = 1
    ) -> list[list[Array]]:
        """Compile `text` for several devices and run it.

        Args:
            text: HLO; with several partitions the entry's instructions carry `sharding={manual}`.
            arguments: per device, one array per parameter.
            replicas: number of replicas.
            partitions: devices per replica; device = replica * partitions + partition.

        Returns:
            Per device, the leaves of the result in tuple order.

        Raises:
            XlaError, OracleUnable: as `run`.
        """
        return self.run_sharded(text, arguments, replicas, partitions)[0]

    def run_sharded(
        self, text: str, arguments: list[list[Any]], replicas: int = 1, partitions: int = 1
    ) -> tuple[list[list[Array]], list[str]]:
        """As `run_devices`, for a program that XLA partitions; also the sharding of each leaf."""
        program = CompileRequest(
            text,
            replicas=replicas,
            partitions=partitions,
            shardy="sdy." in text,
            released=self._process.take_released(),
        )
        results, shardings = self._execute(program, arguments)
        return results, [sharding_text(parse_sharding(sharding)) for sharding in shardings]

    def _execute(
        self, program: CompileRequest, arguments: list[list[Any]]
    ) -> tuple[list[list[Array]], list[bytes]]:
        """Per device, what goes in and what comes out; and the shardings of the results."""
        rows = [[ArrayData.of(np.asarray(argument)) for argument in row] for row in arguments]
        try:
            compiled = self._process.compile(program)
            self._process.release(compiled.executable)
            results = self._process.run(Execution(compiled.executable, rows))
        except HlotoolError as error:
            if reason := unable(program, arguments, self._process.key, error):
                raise OracleUnable(reason) from None
            raise _xla_error(error) from None
        arrays = [[data.to_array() for data in row] for row in results.devices]
        return arrays, compiled.results or []

    def placement(self, sharding: str) -> tuple[str, list[int], list[int], list[str]]:
        """V2 text of a sharding, tile dimensions, device order, kinds of the last tile dimensions."""
        return self._ask("placement", sharding, tuple[str, list[int], list[int], list[str]])

    def indices(
        self, axes: dict[str, int], spec: list[Any], dims: tuple[int, ...]
    ) -> list[list[tuple[int, int]]]:
        """Per device, (start, stop) per dimension of what JAX's NamedSharding puts there."""
        return self._ask("indices", (axes, spec, dims), list[list[tuple[int, int]]])

    def canonical(self, text: str) -> str:
        """XLA's print of the parsed module; XlaError when its parser or verifier refuses the text."""
        return self._ask("canonical", text, str)

    def proto(self, text: str) -> bytes:
        """The serialized HloModuleProto."""
        return self._ask("proto", text, bytes)

    def from_proto(self, content: bytes) -> str:
        """XLA's print of the module in a serialized HloModuleProto."""
        return self._ask("from_proto", content, str)

    def costs(self, text: str) -> dict[str, float]:
        """What XLA counts in the module as it is; what it does not find is not there."""
        return self._ask("costs", text, dict[str, float])

    def allocated(self, name: str) -> tuple[str, int]:
        """A program of `support.xla_memory` as compiled, and the bytes that XLA allocates for it."""
        return self._ask("allocated", name, tuple[str, int], "support.xla_memory")

    def close(self) -> None:
        """End the process; the next request starts another one."""
        self._process.close()

    def _ask(self, function: str, argument: object, kind: type[_T], module: str = _CHILD) -> _T:
        try:
            return self._process.call(f"{module}:{function}", argument, kind)
        except HlotoolError as error:
            raise _xla_error(error) from None


def _xla_error(error: HlotoolError) -> XlaError:
    log = error.log if isinstance(error, BackendFailed) else ""
    return XlaError(f"{error}\n{log}")


@cache
def oracle(devices: int = 1) -> Oracle:
    """The oracle that all tests of this process share; skips the test where no XLA runs."""
    need_xla()
    return Oracle(devices)
