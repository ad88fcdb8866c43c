"""What files hold and answers depend on, as keys: contents, not names and not times of change.

A file that is as it was when an earlier command read it is not read again. Whether it is as it was is told
as git does it with its index: by size, times of change and number of the file. The time of the last change
(`ctime`) is set by the system alone. It ticks, so a file that was read within the tick of its last change
may have changed once more without a sign: of such a file nothing is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from hlotool._version import __version__
from hlotool.errors import DumpError
from hlotool.runs.options.kept import ReplayOptions
from hlotool.sources.locations import Source
from hlotool.sources.open_files import Stamp, stamp
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.cache import INDEX_LIMIT, Store, index_store
from hlotool.system.files import digest, path_fingerprint
from hlotool.system.records import encoded
from hlotool.system.urls import is_url


def command_key(paths: Sequence[str], options: ReplayOptions) -> str:
    """What names the journal of a command: the same paths and options find it again."""
    named = [*map(absolute, paths)]
    return digest(__version__, *(encoded(part, msgspec.json.encode) for part in (options, named)))


def absolute(path: str) -> str:
    """A path as every folder sees it; what is none of this machine's stays."""
    return os.path.abspath(path) if os.path.exists(path) else path


def stage_key(module: DumpModule, number: int) -> str:
    """The text of a stage, and what fills in its constants."""
    return _stage_key(module.stages[number])


def context_key(module: DumpModule, options: ReplayOptions) -> str:
    """All that the stages of a module are judged on: the first one, arguments, results, options."""
    known = [capture.source for capture in module.captures]
    known += [module.stablehlo] if module.stablehlo else []
    known += [file.source for file in module.artefacts]
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
    from hlotool.system.store_objects import version_below

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


#: What decides besides a text where it stands in one: values from elsewhere in the dump, devices.
_ELIDED: Final = b"{...}"
_DEVICES: Final = (b"num_partitions=", b"replica_count=", b"replica_groups=", b"sharding=")

#: Seconds between the last change of a file and its reading, below which another change may leave the times
#: as they are: FAT ticks every two seconds, and the clock of a file server may differ from ours by some more.
_RACY: Final = 10.0
#: So many files that a command did not come across are kept in its index in any case.
_OTHERS: Final = 10_000
#: Where the time of the last change of a file is the system's: elsewhere `st_ctime` is when it was made.
_HAS_CHANGE_TIME: Final = os.name == "posix"


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What identity has to know of the content of a file.

    Attributes:
        key: of the bytes.
        is_elided: constants are left out, whose values lie elsewhere in the dump.
        speaks_of_devices: there are others for which a replay may need more of the dump.
    """

    key: str
    is_elided: bool
    speaks_of_devices: bool


class Content:
    """The content of a source.

    Args:
        source: where it lies.
        facts: of the content.
        content: the bytes, where they were read just now.

    Attributes:
        facts: of the content.
    """

    __slots__ = ("_content", "_source", "facts")

    def __init__(self, source: Source, facts: Facts, content: bytes | None) -> None:
        self.facts = facts
        self._source = source
        self._content = content

    @property
    def size(self) -> int:
        """Bytes of memory that it takes."""
        return len(self._content or b"")

    def read(self) -> bytes:
        """The bytes of which the facts are.

        Raises:
            DumpError: they cannot be read any more, or are others by now.
        """
        if self._content is not None:
            return self._content
        content = self._source.read_bytes()
        if digest(content) != self.facts.key:
            raise DumpError(f"{self._source}: changed while it was in use")
        return content

    def let_go(self) -> None:
        """Keep the facts alone."""
        self._content = None


class Contents:
    """Contents of sources, of which those that earlier commands have read are known without reading.

    Args:
        store: has the index of earlier commands; None: everything is read.
        name: of the index there: the same paths find it again.
    """

    def __init__(self, store: Store | None = None, name: str = "") -> None:
        self._store = store if _HAS_CHANGE_TIME else None
        self._name = name
        self._known: dict[str, list[Any]] | None = None
        self._seen: dict[str, list[Any]] = {}
        self._has_news = False

    def of(self, source: Source) -> Content:
        """The content of a source.

        Raises:
            DumpError: it cannot be read.
        """
        if self._store is None:
            content = source.read_bytes()
            return Content(source, _facts(content), content)
        place, now = _place(source), list(stamp(source.file))
        found = self._index().get(place)
        if found is not None and found[0] == now:
            self._seen[place] = found
            return Content(source, Facts(*found[1]), None)
        began = time.time()
        content = source.read_bytes()
        facts = _facts(content)
        if _stays(source, now, began) and list(stamp(source.file)) == now:
            self._seen[place] = [now, [facts.key, facts.is_elided, facts.speaks_of_devices]]
            self._has_news = True
        return Content(source, facts, content)

    def close(self) -> None:
        """Keep what was found for later commands."""
        if self._store is None or not self._has_news:
            return
        others = {place: found for place, found in self._index().items() if place not in self._seen}
        # Dumps come and go: an index of what is gone would only grow.
        kept = others if len(others) <= len(self._seen) + _OTHERS else {}
        self._store.put(self._name, kept | self._seen)
        self._store.close(INDEX_LIMIT)
        self._has_news = False

    def _index(self) -> dict[str, list[Any]]:
        if self._known is None:
            found = self._store.get(self._name) if self._store is not None else None
            self._known = found if isinstance(found, dict) else {}
        return self._known


def index_of(paths: Iterable[str]) -> str:
    """The name of the index of a command on `paths`, as seen from this folder."""
    return digest("contents", os.getcwd(), *paths)


def were_read(paths: Iterable[str]) -> bool:
    """Whether an earlier command has read `paths`: what it found is likely to be known."""
    return index_store().get(index_of(paths)) is not None


def _facts(content: bytes) -> Facts:
    return Facts(digest(content), _ELIDED in content, any(word in content for word in _DEVICES))


def _place(source: Source) -> str:
    """What tells a source from others; most are whole files."""
    if not source.member and source.span is None and source.item is None:
        return source.path
    return repr((source.path, source.member, source.span, source.is_log, source.item))


def _stays(source: Source, told: list[int | str], began: float) -> bool:
    """Whether a change after `began` could not leave what is told of a file as it is."""
    if is_url(source.path):
        from hlotool.system.store_objects import Stored

        return Stored(source.path, version=source.version).lasts
    _, modified, changed, _ = told
    return max(int(modified), int(changed)) / 1e9 < began - _RACY
