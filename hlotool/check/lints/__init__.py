"""Legal programs that are probably not what was meant, or slower than they need be."""

from hlotool.check.lints import (  # noqa: F401
    bounds,
    compilation,
    compile_time,
    floats,
    interface,
    repeatability,
)
