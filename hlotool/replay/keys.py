"""What the answers about a module depend on, as keys: contents, not names and not times of change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest, path_fingerprint
from hlotool.dump.files import Stamp, stamp
from hlotool.dump.records import DumpModule, Stage
from hlotool.dump.source import Source
from hlotool.replay.options import ReplayOptions
from hlotool.stores.urls import is_url
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
    given = [_given_key(path) for path in values if path]
    first = stage_key(module, 0) if module.stages else ""
    return digest(
        encoded(options, msgspec.json.encode), first, module.title, *map(_source_key, known), *given
    )


def _given_key(path: str) -> str:
    """The content of a file, a folder or a script; of those of a store its version there."""
    if not is_url(path):
        return path_fingerprint(_file_of(path))
    from hlotool.stores.objects import version_below

    return digest(path, version_below(path))


def _file_of(path: str) -> Path:
    """The script of `SCRIPT.py:FUNCTION`; others as they are."""
    return Path(path.rpartition(":")[0] if ".py:" in path else path)


def _stage_key(stage: Stage) -> str:
    return digest(*(_source_key(source) for source in (stage.text, stage.proto, stage.mlir) if source))


def _source_key(source: Source) -> str:
    if source.version:
        # Told by the store when it was listed: nothing is downloaded for what need not be run.
        return digest(source.path, source.version, source.member, repr((source.span, source.item)))
    return _content_key(source, stamp(source.file))


@lru_cache(maxsize=4096)
def _content_key(source: Source, _: Stamp) -> str:
    return digest(source.read_bytes())
