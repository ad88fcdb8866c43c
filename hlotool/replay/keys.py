"""What the answers about a module depend on, as keys: contents, not names and not times of change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest, path_fingerprint
from hlotool.dump import containers
from hlotool.dump.records import DumpModule, Stage
from hlotool.dump.source import Source
from hlotool.replay.options import ReplayOptions
from hlotool.workers.plain import encoded


def command_key(paths: Sequence[str], options: ReplayOptions) -> str:
    """What names the journal of a command: the same paths and options find it again."""
    absolute = [os.path.abspath(path) if os.path.exists(path) else path for path in paths]
    return digest(__version__, *(encoded(part, msgspec.json.encode) for part in (options, absolute)))


def stage_key(module: DumpModule, number: int) -> str:
    """The text of a stage, and what fills in its constants."""
    return _stage_key(module.stages[number])


def context_key(module: DumpModule, options: ReplayOptions) -> str:
    """All that the stages of a module are judged on: the first one, arguments, results, options."""
    known = [capture.source for capture in module.captures]
    known += [module.stablehlo] if module.stablehlo else []
    values = (options.inputs or module.arguments, options.outputs, options.compare_with)
    given = [path_fingerprint(_file_of(path)) for path in values if path]
    first = stage_key(module, 0) if module.stages else ""
    return digest(
        encoded(options, msgspec.json.encode), first, module.title, *map(_source_key, known), *given
    )


def _file_of(path: str) -> Path:
    """The script of `SCRIPT.py:FUNCTION`; others as they are."""
    return Path(path.rpartition(":")[0] if ".py:" in path else path)


def _stage_key(stage: Stage) -> str:
    return digest(*(_source_key(source) for source in (stage.text, stage.proto, stage.mlir) if source))


def _source_key(source: Source) -> str:
    return _content_key(source, containers.stamp(source.path))


@lru_cache(maxsize=4096)
def _content_key(source: Source, _: tuple[int, ...]) -> str:
    return digest(source.read_bytes())
