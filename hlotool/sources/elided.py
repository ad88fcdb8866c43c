"""Constants that the text shows as `{...}`: filled in from the dump, made again, or refused.

XLA prints arrays of more than ten elements as `{...}` unless told otherwise, and its own parser then reads
zeros. A wrong value would accuse a healthy program, so a value counts only if it is certain:

- from the stage's own `.hlo.pb`, by name;
- before optimizations, from the `module.mlir` that JAX writes, where one constant only (or result of
  constants: XLA folds operations on them) has that shape and these uses;
- after passes, from the constant of the same name and shape before optimizations, where names survive;
- from compiling `module.mlir` again, where the outcome is the same program but for the constants.

A unique shape alone proves nothing. Measured with JAX 0.10.2: of eleven constants that passes had made, three
had the shape of just one constant of the original program, and another value.

The same compiler makes the same program of the same input. Whether it is the same is checked: a stage
counts only if it prints exactly as the stage in the dump does, constants and origins aside.

Generated values are the same on both sides: they are made for the program as the frontend gave it, and a
later stage gets them by name and shape, where names survive the passes; what its passes made of elided
constants is not available.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hlotool.errors import DumpError, InputError
from hlotool.inputs.generate import generate_constants
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.attributes import EmbeddedLiteral
from hlotool.ir.module import Instruction, Module
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ArrayShape, Shape, strip_layouts
from hlotool.ir.walk import users
from hlotool.parser.reader import parse_module
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.files import passing_folder

if TYPE_CHECKING:
    from hlotool.parser.mlir_constants import MlirConstant, MlirProgram

#: Parses a stage of the dump; its constants may be elided.
ReadStage = Callable[[Stage], Module]
#: The stage's program from compiling it again, or None when that is not possible.
Recompile = Callable[[DumpModule, Stage], Module | None]


class Refill(Struct, frozen=True):
    """A constant that was filled in.

    Attributes:
        instruction: its name.
        origin: where the value comes from, in words.
    """

    instruction: str
    origin: str


def elided_constants(module: Module) -> list[Instruction]:
    """Instructions whose value the text does not show, in textual order."""
    return [instruction for instruction in module.instructions() if _is_elided(instruction)]


def _is_elided(instruction: Instruction) -> bool:
    if instruction.literal is not None:
        return instruction.literal.has_elided
    embedded = instruction.attribute("literal", EmbeddedLiteral, None)
    return embedded is not None and embedded.literal.has_elided


def refill(
    module: Module, owner: DumpModule, stage: Stage, read: ReadStage, recompile: Recompile
) -> tuple[Refill, ...]:
    """Fill in the elided constants of `module`, in place.

    Args:
        module: parsed from `stage`.
        owner: the dump's module that the stage belongs to.
        stage: says which sources fit.
        read: parses other stages of `owner`.
        recompile: the last resort.

    Returns:
        what was filled in, and from where; the values of other constants cannot be found with certainty.
    """
    done: list[Refill] = []
    for fill in (_from_proto, _from_stablehlo, _from_before):
        if not elided_constants(module):
            break
        done += fill(module, owner, stage, read)
    if elided_constants(module) and (compiled := recompile(owner, stage)) is not None:
        done += _by_name(module, compiled, "compiling module.mlir again")
    return tuple(done)


def _from_proto(module: Module, owner: DumpModule, stage: Stage, read: ReadStage) -> list[Refill]:
    """From the same program in binary form, where the dump has both."""
    if stage.proto is None or stage.text is None:
        return []
    from hlotool.parser.proto.module import parse_module_proto

    whole = parse_module_proto(stage.proto.read_bytes(), str(stage.proto))
    return _by_name(module, whole, stage.proto.name)


def _by_name(module: Module, whole: Module, origin: str) -> list[Refill]:
    """From another form of the very same program: name of the computation and of the instruction decide."""
    known = {
        (computation.name, instruction.name): instruction
        for computation in whole.computations
        for instruction in computation.instructions
    }
    done: list[Refill] = []
    for computation in module.computations:
        for instruction in filter(_is_elided, computation.instructions):
            twin = known.get((computation.name, instruction.name))
            if twin is not None and _copy_literal(twin, instruction):
                done.append(Refill(instruction.name, origin))
    return done


def _copy_literal(source: Instruction, target: Instruction) -> bool:
    """Take over the value, if `source` has one of the same type; the target keeps its layout."""
    is_same_type = strip_layouts(source.shape) == strip_layouts(target.shape)
    if _is_elided(source) or not is_same_type or source.opcode != target.opcode:
        return False
    if source.literal is not None:
        target.literal = Literal(target.shape, source.literal.value)
    else:
        target.attributes = {**target.attributes, "literal": source.attributes["literal"]}
    return True


def _from_before(module: Module, owner: DumpModule, stage: Stage, read: ReadStage) -> list[Refill]:
    """After passes: from the constants of the same name before optimizations."""
    before = stage_before(owner)
    if stage.kind not in (Kind.PASS, Kind.AFTER_OPTIMIZATIONS) or before is None:
        return []
    original = read(before)
    if not names_survive(original, module):
        return []
    for fill in (_from_proto, _from_stablehlo):
        if elided_constants(original):
            fill(original, owner, before, read)
    platform = next((s.platform for s in (*owner.stages, *owner.companions) if s.platform), "")
    return list(from_namesakes(module, original, platform))


def stage_before(owner: DumpModule) -> Stage | None:
    """The program as the frontend gave it, whether it was asked for or lies beside what was."""
    stages = (*owner.stages, *owner.companions)
    return next((s for s in stages if s.kind is Kind.BEFORE_OPTIMIZATIONS), None)


def names_survive(before: Module, after: Module) -> bool:
    """Whether a name means the same constant in both programs.

    Passes keep the names of constants that they leave alone and never give a name away twice. But
    partitioning with Shardy takes the program to MLIR and back, which names everything anew.
    """
    if before.num_partitions > 1 or "xla.sdy" in str(before.attributes.get("frontend_attributes")):
        return False
    known = {i.name: i for i in before.instructions() if i.opcode == "constant"}
    return all(_agree(known[i.name], i) for i in after.instructions() if i.name in known)


def _agree(one: Instruction, other: Instruction) -> bool:
    """Whether two constants of one name may be one constant, judged by what the text shows."""
    if other.opcode != "constant" or _is_elided(one) or _is_elided(other):
        return True
    if strip_layouts(one.shape) != strip_layouts(other.shape) or one.literal is None or other.literal is None:
        return True
    return _same_bytes(one.literal, other.literal)


def _same_bytes(one: Literal, other: Literal) -> bool:
    if not isinstance(one.shape, ArrayShape) or not isinstance(other.shape, ArrayShape):
        return True
    return one.array.tobytes() == other.array.tobytes()


def from_namesakes(module: Module, original: Module, platform: str) -> Iterator[Refill]:
    """Fill in constants from those of the original program that have the same name and shape."""
    known = {i.name: i for i in original.instructions() if i.opcode == "constant"}
    repeated = Counter(i.name for i in original.instructions())
    for instruction in filter(_is_elided, module.instructions()):
        twin = known.get(instruction.name)
        if twin is None or repeated[twin.name] > 1 or not _keeps_meaning(twin.shape, platform):
            continue
        if _copy_literal(twin, instruction):
            yield Refill(instruction.name, f"{twin.name} before optimizations")


def _keeps_meaning(shape: Shape, platform: str) -> bool:
    """Whether a constant that keeps name and shape keeps its value.

    XLA:GPU normalizes layouts in place: a square constant may come out transposed under its old name. Where
    all sizes differ, the shape would show it.
    """
    sizes = [size for size in shape.dims if size > 1] if isinstance(shape, ArrayShape) else []
    return platform == "cpu" or len(sizes) == len(set(sizes))


def _from_stablehlo(module: Module, owner: DumpModule, stage: Stage, read: ReadStage) -> list[Refill]:
    """Before optimizations: from the constants of the program that JAX handed over."""
    if stage.kind is not Kind.BEFORE_OPTIMIZATIONS or owner.stablehlo is None:
        return []
    try:
        from hlotool.parser.mlir_constants import read_mlir_constants

        program = read_mlir_constants(owner.stablehlo.read_text())
        values = _matched(module, program)
    except InputError:
        return []  # newer MLIR than is understood here; compiling it again may still work
    for instruction, value in values.items():
        instruction.literal = Literal(instruction.shape, value)
    return [Refill(instruction.name, owner.stablehlo.name) for instruction in values]


def _matched(module: Module, program: MlirProgram) -> dict[Instruction, Array]:
    """Values of those elided constants for which just one constant of the MLIR program fits."""
    found: dict[Instruction, Array] = {}
    for computation in module.computations:
        readers = users(computation)
        elided = [i for i in computation.instructions if i.opcode == "constant" and _is_elided(i)]
        fitting = {i: _fitting(i, readers[i], program) for i in elided}
        # Two constants of one computation never hold the same value: XLA merges such constants.
        claims = Counter(value.tobytes() for value in fitting.values() if value is not None)
        found |= {i: v for i, v in fitting.items() if v is not None and claims[v.tobytes()] == 1}
    return found


def _fitting(constant: Instruction, readers: Iterable[Instruction], program: MlirProgram) -> Array | None:
    """The value of the only MLIR constant that has this shape and all these users."""
    shape = strip_layouts(constant.shape)
    if not isinstance(shape, ArrayShape) or shape in program.computed:
        return None
    uses = [_use(reader) for reader in readers]
    candidates = [c for c in program.constants if c.shape == shape and uses and _has_uses(c, uses)]
    values = [program.values(candidate) for candidate in candidates]
    known = [value for value in values if value is not None]
    is_certain = len(known) == len(values) and len({value.tobytes() for value in known}) == 1
    return known[0] if is_certain else None


def _use(reader: Instruction) -> tuple[str, str]:
    return reader.opcode, reader.metadata.op_name if reader.metadata else ""


def _has_uses(constant: MlirConstant, uses: Iterable[tuple[str, str]]) -> bool:
    known = {(opcode, place) for operation, place in constant.users for opcode in _opcodes(operation)}
    return all(use in known for use in uses)


#: Operations of StableHLO that become an opcode of another name; others only change `_` to `-`.
_OPCODES = {
    "broadcast_in_dim": ("broadcast", "reshape"),
    "case": ("conditional",),
    "dot_general": ("dot",),
    "if": ("conditional",),
    "optimization_barrier": ("opt-barrier",),
}


def _opcodes(operation: str) -> tuple[str, ...]:
    """What HLO opcodes an operation such as `stablehlo.add` or `func.call` may become."""
    name = operation.rpartition(".")[2]
    return _OPCODES.get(name, (name.replace("_", "-"),))


def fill_generated(module: Module, owner: DumpModule, stage: Stage, load: Callable[[Stage], Module]) -> None:
    """Fill in what is elided in `module`, and note that in `Module.generated`.

    Args:
        module: of `stage`, in which no other source fills in what is still elided.
        owner: has the seed.
        stage: of `owner`.
        load: of another stage, its elided constants generated, too.

    Raises:
        Unsupported: constants that passes made, which generated ones cannot stand for.
    """
    missing = elided_constants(module)
    first = stage_before(owner) or (owner.stages[0] if owner.stages else stage)
    if first != stage:
        original = load(first)
        if names_survive(original, module):
            platform = next((s.platform for s in (*owner.stages, *owner.companions) if s.platform), "")
            list(from_namesakes(module, original, platform))
    left = elided_constants(module)
    if left and first != stage and len(owner.stages) > 1:
        reason = f"elided, and not a constant of {first.title}: no generated value can stand for it"
        raise module.unsupported(left[0], reason)
    if embedded := [constant for constant in left if constant.opcode != "constant"]:
        raise module.unsupported(embedded[0], "a literal among its attributes is elided")
    generate_constants(module, left, owner.generates_elided or 0)
    module.generated = tuple(constant.name for constant in missing)


_logger = logging.getLogger(__name__)

#: Seconds that a compilation may take.
TIMEOUT = 600.0

_CHILD = Path(__file__).with_name("recompile_child.py")
_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")
#: A line of `module_NNNN.NAME.debug_options` that can be given as a flag.
_OPTION = re.compile(r"^(?P<name>xla_\w+): (?P<value>\"?)(?P<text>[\w.,+:/-]*)\2$", re.MULTILINE)
_UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")
_OURS = ("xla_dump_", "xla_force_host_platform_device_count")
#: What must agree between the two programs.
_COMPARED = PrintOptions(large_constants=False, metadata=False, backend_config=False)


def recompile(owner: DumpModule, stage: Stage) -> Module | None:
    """The program of `stage` with all constants, or None.

    There is none without `module.mlir` or jaxlib, for another platform than CPU, and when this jaxlib makes
    another program of it.
    """
    if owner.stablehlo is None or stage.text is None or stage.platform not in ("", "cpu"):
        return None
    if find_spec("jax") is None or find_spec("jaxlib") is None:
        return None
    original = parse_module(stage.text.read_text(), str(stage.text))
    flags = tuple(_original_flags(owner))
    options = _compile_options(original, owner.stablehlo)
    for again in _compiled(owner.stablehlo, options, flags, stage.kind is Kind.PASS):
        if _slot(again) == _slot(stage):
            module = parse_module(again.source.read_text(), str(again.source))
            is_same = print_module(module, _COMPARED) == print_module(original, _COMPARED)
            return module if is_same else None
    return None


def _slot(stage: Stage) -> tuple[Kind, int | None, str]:
    return stage.kind, stage.sequence, stage.label


def _compile_options(original: Module, stablehlo: Source) -> str:
    """What the child is told, as JSON."""
    found = _PARTITIONS.search(stablehlo.read_text())
    wanted: dict[str, object] = {"partitions": int(found[1]) if found else 1}
    for where in ("to_parameters", "to_output"):
        value = original.attributes.get(f"allow_spmd_sharding_propagation_{where}", False)
        wanted[where] = [value] if isinstance(value, bool) else value
    return json.dumps(wanted)


def _original_flags(owner: DumpModule) -> Iterator[str]:
    """The flags of the original compilation that are not about dumping."""
    for file in owner.artefacts:
        if file.name.rest.endswith("debug_options"):
            for option in _OPTION.finditer(file.source.read_text()):
                if not option["name"].startswith(_OURS):
                    yield f"--{option['name']}={option['text']}"


@lru_cache(maxsize=4)
def _compiled(stablehlo: Source, options: str, flags: tuple[str, ...], passes: bool) -> tuple[Stage, ...]:
    """The stages that compiling writes; they lie in a folder that is removed when the process ends."""
    # What tells files apart takes long to import, and few dumps need a compiler.
    from hlotool.sources.directory import open_dump

    folder = str(passing_folder())
    devices = json.loads(options)["partitions"]
    _run(stablehlo.read_text(), options, [*flags, *_dump_flags(folder, devices, passes)])
    try:
        modules = open_dump(folder).modules
    except DumpError:
        return ()
    return modules[0].stages if len(modules) == 1 else ()


def _dump_flags(folder: str, devices: int, passes: bool) -> list[str]:
    flags = [
        f"--xla_dump_to={folder}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_large_constants",
        f"--xla_force_host_platform_device_count={devices}",
    ]
    return [*flags, "--xla_dump_hlo_pass_re=.*"] if passes else flags


def _run(text: str, options: str, flags: list[str]) -> None:
    """Compile in a process of its own; whatever goes wrong shows in the files that are missing.

    Some options of a compilation are no flags; XLA names those and stops, and then goes without them.
    """
    unknown = _UNKNOWN.search(_run_once(text, options, flags))
    if unknown is not None:
        _run_once(text, options, [flag for flag in flags if flag not in unknown[1].split()])


def _run_once(text: str, options: str, flags: list[str]) -> str:
    """What the child wrote to stderr."""
    environment = {**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    # -P: what lies beside the child is no library; Python 3.14 has a package `compression`, too.
    command = [sys.executable, "-P", str(_CHILD), options]
    _logger.info("run %s, %g s at most", " ".join(command[:3]), TIMEOUT)
    try:
        child = subprocess.run(
            command, input=text.encode(), env=environment, capture_output=True, timeout=TIMEOUT, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return ""
    return child.stderr.decode("utf-8", "replace")
