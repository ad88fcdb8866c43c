"""Legal programs that are probably not what was meant, or slower than they need be."""

from hlotool.check.lints import (  # noqa: F401
    constants,
    dynamic_shapes,
    host,
    indexing,
    interface,
    nan_sources,
    randomness,
    recompilation,
    unrolled,
    wide_types,
)
