"""hlotool: interpret, replay, check and bisect XLA HLO dumps.

The names below are the public API; everything else may change between minor versions.
They load on first use, so that `import hlotool` and `hlotool --help` stay cheap.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotool._python import refuse_before
from hlotool._version import __version__

# What holds XLA for `xla:python=PATH` runs in 3.10, too; all the rest does not.
refuse_before((3, 10))

if TYPE_CHECKING:
    from hlotool.interface.api.bisect import bisect
    from hlotool.interface.api.check import check, explain_fusion, list_rules, mend
    from hlotool.interface.api.compare import compare
    from hlotool.interface.api.compare_dumps import compare_dumps
    from hlotool.interface.api.compile import compile
    from hlotool.interface.api.demo import demo
    from hlotool.interface.api.diff import diff
    from hlotool.interface.api.gradcheck import gradcheck
    from hlotool.interface.api.inspect import draw, explain, inspect, list_messages, show_scale
    from hlotool.interface.api.kept import cache, list_backends, update_baseline, verify
    from hlotool.interface.api.merge import merge
    from hlotool.interface.api.opt import list_passes, opt
    from hlotool.interface.api.programs import load, parse, run
    from hlotool.interface.api.prove import prove
    from hlotool.interface.api.reduce import extract, reduce
    from hlotool.interface.api.releases import releases
    from hlotool.interface.api.replay import replay
    from hlotool.interface.api.results import Result
    from hlotool.interface.api.trend import trend
    from hlotool.ir.module import Module
    from hlotool.lab.commands.conformance import conformance
    from hlotool.lab.commands.fuzz import fuzz
    from hlotool.lab.commands.mutate import mutate
    from hlotool.lab.commands.triage import triage

__all__ = [
    "Module",
    "Result",
    "__version__",
    "bisect",
    "cache",
    "check",
    "compare",
    "compare_dumps",
    "compile",
    "conformance",
    "demo",
    "diff",
    "draw",
    "explain",
    "explain_fusion",
    "extract",
    "fuzz",
    "gradcheck",
    "inspect",
    "list_backends",
    "list_messages",
    "list_passes",
    "list_rules",
    "load",
    "mend",
    "merge",
    "mutate",
    "opt",
    "parse",
    "prove",
    "reduce",
    "releases",
    "replay",
    "run",
    "show_scale",
    "trend",
    "triage",
    "update_baseline",
    "verify",
]

# `grammar/` and `backends/` are top-level folders that install as sub-packages. In a checkout that is
# not installed nothing maps them, so their parent joins the search path; installed copies still win.
_root = Path(__file__).resolve().parent.parent
if (_root / "backends" / "__init__.py").is_file() and (_root / "grammar" / "__init__.py").is_file():
    __path__.append(str(_root))

#: The files of `hlotool.interface.api` whose functions are not called like them, and what stands elsewhere.
_ELSEWHERE = {
    "Module": "hlotool.ir.module",
    "Result": "hlotool.interface.api.results",
    "cache": "hlotool.interface.api.kept",
    "conformance": "hlotool.lab.commands.conformance",
    "draw": "hlotool.interface.api.inspect",
    "explain": "hlotool.interface.api.inspect",
    "explain_fusion": "hlotool.interface.api.check",
    "extract": "hlotool.interface.api.reduce",
    "fuzz": "hlotool.lab.commands.fuzz",
    "list_backends": "hlotool.interface.api.kept",
    "list_messages": "hlotool.interface.api.inspect",
    "list_passes": "hlotool.interface.api.opt",
    "list_rules": "hlotool.interface.api.check",
    "load": "hlotool.interface.api.programs",
    "mend": "hlotool.interface.api.check",
    "mutate": "hlotool.lab.commands.mutate",
    "parse": "hlotool.interface.api.programs",
    "run": "hlotool.interface.api.programs",
    "show_scale": "hlotool.interface.api.inspect",
    "triage": "hlotool.lab.commands.triage",
    "update_baseline": "hlotool.interface.api.kept",
    "verify": "hlotool.interface.api.kept",
}
#: Modules for programs of a framework, which is imported when they are used.
_FRAMEWORKS = ("jax", "tf", "torch_xla")
_HOME = {
    name: _ELSEWHERE.get(name, f"hlotool.interface.api.{name}") for name in __all__ if name != "__version__"
}


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    if name in _FRAMEWORKS:
        return import_module(f"hlotool.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'hlotool' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext hlotool` brings the magic `%%hlotool`."""
    import_module("hlotool.notebook").register(shell)


logging.getLogger(__name__).addHandler(logging.NullHandler())
