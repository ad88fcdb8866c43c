"""What the backend and the process that holds a compiler say to each other; see `backends.xla.protocol`."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hlotool.backends.xla.protocol import Flag

#: In the folder of a dump: what the compiler wrote to stderr.
LOG = "compiler.log"

#: The extras of hlotool that bring the compilers.
EXTRAS = {"tpu": "tpu", "cuda": "gpu"}

#: The variable that names a TPU's compiler, in place of the installed one.
LIBRARY = "TPU_LIBRARY_PATH"

#: What compilers count, on the device and, with `host_` before it, on the host.
COUNTED = ("argument", "output", "alias", "temp", "generated_code")


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A target, as the compiler knows it.

    Attributes:
        platform: `tpu` or `cuda`.
        topology: such as `v5e:2x2`, or `1x1x1`.
        facts: of a GPU, its description; empty for a TPU.
    """

    platform: str
    topology: str
    facts: str = ""


@dataclass(frozen=True, slots=True)
class AheadRequest:
    """What to compile.

    Attributes:
        target: for what.
        text: HLO; empty where the program is StableHLO.
        folder: gets the compiler's dump.
        flags: debug options.
        replicas: number of replicas.
        partitions: devices per replica.
        shardy: the program speaks of shardings as Shardy does.
        parameters: kind of memory of each parameter, as JAX calls it; empty for the device's own.
        results: the same of each result.
        program: path of a program in StableHLO, text or bytecode, which says such things itself.
    """

    target: TargetRequest
    text: str
    folder: str
    flags: tuple[Flag, ...] = ()
    replicas: int = 1
    partitions: int = 1
    shardy: bool = False
    parameters: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    program: str = ""


class Grid(msgspec.Struct, frozen=True):
    """The devices of a program.

    Attributes:
        replicas: number of replicas.
        partitions: devices per replica.
    """

    replicas: int
    partitions: int


class AheadResult(msgspec.Struct, frozen=True):
    """What the compiler made of a program.

    Attributes:
        path: of the text that it ends with, in the folder of the request.
        memory: bytes by what they are for, as the compiler counts them; empty where it does not say.
        log: what it wrote to stderr meanwhile.
    """

    path: str
    memory: dict[str, int] = {}
    log: str = ""


@dataclass(frozen=True, slots=True)
class LowerRequest:
    """A function of a script that becomes StableHLO.

    Attributes:
        script: its path.
        function: the name.
        shapes: of its arguments, as HLO writes them; None where the script says which they are.
        platform: `cpu`, `tpu` or `cuda`.
        output: file that gets it, as bytecode.
    """

    script: str
    function: str
    shapes: tuple[str, ...] | None
    platform: str
    output: str


class CompilerSetup(msgspec.Struct, frozen=True):
    """A compiler.

    Attributes:
        jaxlib: version of the jaxlib that it is called through.
        compiler: package and version, as far as they are known.
        device: kind of device.
        devices: how many the topology has.
    """

    jaxlib: str
    compiler: str
    device: str
    devices: int
