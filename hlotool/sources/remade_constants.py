"""Elided constants made again: by compiling the dump's StableHLO, or generated where the user asks.

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
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hlotool.errors import DumpError
from hlotool.inputs.generate import generate_constants
from hlotool.ir.module import Module
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.elided import elided_constants, from_namesakes, names_survive, stage_before
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.files import passing_folder


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
