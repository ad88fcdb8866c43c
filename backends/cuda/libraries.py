"""NVIDIA's libraries, wherever they are installed: for the loader, in a toolkit, or as a wheel."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Major versions of CUDA that are supported, the newest first.
MAJORS: Final = (13, 12)


def open_libraries(name: str, newest: int = MAJORS[0]) -> Iterator[ctypes.CDLL]:
    """A library in each version and place in which it loads, newer major versions of CUDA first.

    Args:
        name: such as `cublas`.
        newest: major version of CUDA; a driver runs none that is newer than itself.
    """
    seen = set()
    for file in (f"lib{name}.so.{major}" for major in MAJORS if major <= newest):
        for place in (file, *(str(path) for folder in _folders() for path in folder.glob(file))):
            try:
                library = ctypes.CDLL(place)
                # Opened by name when it is needed, which some versions only find where the loader looks.
                for part in Path(place).parent.glob(f"lib{name}-builtins.so.*") if place != file else ():
                    ctypes.CDLL(str(part))
            except OSError:
                continue
            # The loader finds by its name what was loaded from elsewhere before.
            if library._handle not in seen:
                seen.add(library._handle)
                yield library


def toolkits() -> list[Path]:
    """Where CUDA toolkits may be: as the environment says, and in the usual place."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    return [Path(home) for home in (*homes, "/usr/local/cuda") if home]


def _folders() -> Iterator[Path]:
    yield from (toolkit / "lib64" for toolkit in toolkits())
    spec = importlib.util.find_spec("nvidia")
    for wheels in spec.submodule_search_locations or () if spec is not None else ():
        yield from sorted(Path(wheels).glob("*/lib"))
