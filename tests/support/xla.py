"""Real XLA (jaxlib, CPU) as the judge in tests.

    from support.xla import oracle
    outputs = oracle().run(hlo_text, [array, …])

Each request goes to a child process that is replaced when XLA aborts or hangs.
"""

from __future__ import annotations

import pickle
import select
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]


class XlaError(Exception):
    """XLA rejected the module, or the process died on it."""


class Oracle:
    """One child process that answers one request at a time.

    Args:
        devices: number of (virtual) CPU devices it has.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, devices: int = 1, timeout: float = 60.0) -> None:
        self.devices = devices
        self.timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def run(self, text: str, arguments: list[Any], **options: Any) -> list[Array]:
        """Compile `text` and run it.

        Args:
            text: HLO; the module goes through XLA's whole CPU pipeline.
            arguments: one array per parameter, of exactly the declared types.
            options: XLA debug options for this compile, by name without `--`.

        Returns:
            The leaves of the result in tuple order.

        Raises:
            XlaError: rejected, aborted or timed out.
        """
        return list(self._ask("run", (text, [np.asarray(a) for a in arguments], options)))

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
            XlaError: rejected, aborted or timed out.
        """
        return self.run_sharded(text, arguments, replicas, partitions)[0]

    def run_sharded(
        self, text: str, arguments: list[list[Any]], replicas: int = 1, partitions: int = 1
    ) -> tuple[list[list[Array]], list[str]]:
        """As `run_devices`, for a program that XLA partitions; also the sharding of each leaf."""
        values = [[np.asarray(a) for a in device] for device in arguments]
        results, shardings = self._ask("run devices", (text, values, replicas, partitions))
        return [list(leaves) for leaves in results], list(shardings)

    def placement(self, sharding: str) -> tuple[str, list[int], list[int], list[str]]:
        """V2 text of a sharding, tile dimensions, device order, kinds of the last tile dimensions."""
        return tuple(self._ask("placement", (sharding,)))  # type: ignore[return-value]

    def indices(
        self, axes: dict[str, int], spec: list[Any], dims: tuple[int, ...]
    ) -> list[list[tuple[int, int]]]:
        """Per device, (start, stop) per dimension of what JAX's NamedSharding puts there."""
        return list(self._ask("indices", (axes, spec, dims)))

    def canonical(self, text: str) -> str:
        """XLA's print of the parsed module; XlaError when its parser or verifier refuses the text."""
        return str(self._ask("canonical", (text,)))

    def proto(self, text: str) -> bytes:
        """The serialized HloModuleProto."""
        return bytes(self._ask("proto", (text,)))

    def from_proto(self, content: bytes) -> str:
        """XLA's print of the module in a serialized HloModuleProto."""
        return str(self._ask("from proto", (content,)))

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            self._end()

    def _ask(self, kind: str, arguments: tuple[Any, ...]) -> Any:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((kind, arguments), process.stdin)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], self.timeout)[0]:
                raise XlaError(f"no answer within {self.timeout} s")
            ok, answer = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, XlaError) as error:
            code, log = self._end()
            reason = error if isinstance(error, XlaError) else f"process ended with {code}"
            raise XlaError(f"{reason}\n{log}") from None
        if not ok:
            raise XlaError(answer)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("xla_child.py")), str(self.devices)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
            )
        return self._process

    def _end(self, lines: int = 5) -> tuple[int, str]:
        """Exit code and last log lines; a second to end by itself keeps the code its own."""
        assert self._process is not None
        assert self._log is not None
        process, self._process = self._process, None
        try:
            process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        with self._log as log:
            log.seek(0)
            tail = log.read().decode(errors="replace").splitlines()[-lines:]
        return process.returncode, "\n".join(tail)


@cache
def oracle(devices: int = 1) -> Oracle:
    """The oracle that all tests of this process share; skips the test when jaxlib is absent."""
    if find_spec("jaxlib") is None or find_spec("jax") is None:
        pytest.skip("jaxlib is not installed")
    import atexit

    shared = Oracle(devices)
    atexit.register(shared.close)
    return shared
