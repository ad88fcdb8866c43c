"""Compile a dump's StableHLO input again, to see the constants that its text elides.

The same compiler makes the same program of the same input. Whether it is the same is checked: a stage counts
only if it prints exactly as the stage in the dump does, constants and origins aside.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hlotool.dump.directory import open_dump
from hlotool.dump.names import Kind
from hlotool.dump.records import DumpModule, Stage
from hlotool.dump.source import Source
from hlotool.errors import DumpError, InputError
from hlotool.ir.module import Module
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.parse.reader import parse_module

#: Seconds that a compilation may take.
TIMEOUT = 600.0

_CHILD = Path(__file__).with_name("recompile_child.py")
_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")
_REPLICAS = re.compile(r"mhlo\.num_replicas = (\d+)")
#: A line of `module_NNNN.NAME.debug_options` that can be given as a flag.
_OPTION = re.compile(r"^(?P<name>xla_\w+): (?P<value>\"?)(?P<text>[\w.,+:/-]*)\2$", re.MULTILINE)
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
    flags = tuple(_original_flags(owner))
    for again in _compiled(owner.stablehlo, flags, stage.kind is Kind.PASS):
        if _slot(again) == _slot(stage):
            return _if_same(stage.text, again)
    return None


def _slot(stage: Stage) -> tuple[Kind, int | None, str]:
    return stage.kind, stage.sequence, stage.label


def _if_same(text: Source, again: Stage) -> Module | None:
    """The stage as compiled again, if it is the program in the dump."""
    try:
        module = parse_module(again.source.read_text(), str(again.source))
        original = parse_module(text.read_text(), str(text))
    except InputError:
        return None
    is_same = print_module(module, _COMPARED) == print_module(original, _COMPARED)
    return module if is_same else None


def _original_flags(owner: DumpModule) -> Iterator[str]:
    """The flags of the original compilation that are not about dumping."""
    for file in owner.artefacts:
        if file.name.rest.endswith("debug_options"):
            for option in _OPTION.finditer(file.source.read_text()):
                if not option["name"].startswith(_OURS):
                    yield f"--{option['name']}={option['text']}"


@lru_cache(maxsize=4)
def _compiled(stablehlo: Source, flags: tuple[str, ...], passes: bool) -> tuple[Stage, ...]:
    """The stages that compiling writes; they lie in a folder that is removed when the process ends."""
    text = stablehlo.read_text()
    replicas, partitions = (_first(pattern, text) for pattern in (_REPLICAS, _PARTITIONS))
    if replicas != 1:
        return ()
    folder = tempfile.mkdtemp(prefix="hlotool-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _run(text, partitions, [*flags, *_dump_flags(folder, partitions, passes)])
    try:
        modules = open_dump(folder).modules
    except DumpError:
        return ()
    return modules[0].stages if len(modules) == 1 else ()


def _first(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 1


def _dump_flags(folder: str, partitions: int, passes: bool) -> list[str]:
    flags = [
        f"--xla_dump_to={folder}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_large_constants",
        f"--xla_force_host_platform_device_count={partitions}",
    ]
    return [*flags, "--xla_dump_hlo_pass_re=.*"] if passes else flags


def _run(text: str, partitions: int, flags: list[str]) -> None:
    """Compile in a process of its own; whatever goes wrong shows in the files that are missing."""
    environment = {**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(_CHILD), str(partitions)]
    try:
        subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return
