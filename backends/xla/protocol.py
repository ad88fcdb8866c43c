"""What the backend and the process that holds XLA say to each other.

Imported on both sides; the other side may run an older interpreter with an older jaxlib, so that only the
standard library, msgspec and what jaxlib itself needs may be used here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

#: A debug option of XLA by its name without `--`; several values for a repeated one.
Flag: TypeAlias = tuple[str, "bool | int | float | str | tuple[str, ...]"]


class Route(enum.Enum):
    """How a module gets into XLA's compiler.

    jaxlib compiles StableHLO only, which holds no layouts, no backend configs and no schedule.
    """

    #: As StableHLO through the whole pipeline.
    MLIR = "mlir"
    #: In place of a trivial module, just before the scheduler.
    PRE_SCHEDULER = "pre"
    #: In place of a trivial module, just after the scheduler.
    POST_SCHEDULER = "post"


class ArrayData(msgspec.Struct, frozen=True):
    """An array without NumPy: a dtype's name (also one of ml_dtypes), dimensions, bytes in C order."""

    dtype: str
    dims: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> ArrayData:
        """What stands for `array`."""
        return cls(array.dtype.name, array.shape, array.tobytes())

    def to_array(self) -> npt.NDArray[Any]:
        """The array, read-only."""
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        return np.frombuffer(self.data, dtype).reshape(self.dims)


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """What to compile.

    Attributes:
        text: HLO.
        route: into the compiler.
        host: HLO of the trivial module that `text` takes the place of; empty for Route.MLIR.
        flags: debug options for this compilation.
        replicas: number of replicas.
        partitions: devices per replica.
        shardy: the program speaks of shardings as Shardy does.
        platform: as JAX calls it: `cpu`, `gpu`, `tpu`; or the path of a PJRT plug-in.
        released: numbers of executables that are not needed any more.
    """

    text: str
    route: Route = Route.MLIR
    host: str = ""
    flags: tuple[Flag, ...] = ()
    replicas: int = 1
    partitions: int = 1
    shardy: bool = False
    platform: str = "cpu"
    released: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Execution:
    """What to run.

    Attributes:
        executable: number that `compile_program` gave.
        arguments: per device, one array per parameter.
    """

    executable: int
    arguments: list[list[ArrayData]]


class Compiled(msgspec.Struct, frozen=True):
    """An executable in the process.

    Attributes:
        executable: its number; no other process gives the same one.
        parameters: how the partitioner spread each parameter, as serialized OpSharding; None for one
            partition.
        results: the same of each leaf of the result.
        notes: for the user.
    """

    executable: int
    parameters: list[bytes] | None = None
    results: list[bytes] | None = None
    notes: list[str] = []


class Results(msgspec.Struct, frozen=True):
    """What an execution returned.

    Attributes:
        known: the process had the executable; it has not when it was started after the compilation.
        devices: per device, the leaves of the result in tuple order.
    """

    known: bool
    devices: list[list[ArrayData]]


class Setup(msgspec.Struct, frozen=True):
    """What a process computes with.

    Attributes:
        jaxlib: its version.
        platform: `cpu`, `cuda`, `rocm`, `tpu`.
        device: kind of its first device.
        devices: how many there are.
    """

    jaxlib: str
    platform: str
    device: str
    devices: int
