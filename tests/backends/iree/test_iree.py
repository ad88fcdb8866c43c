"""IREE as a backend: where it is missing, what it refuses, and that it computes."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from hlotool.backends.iree import child
from hlotool.backends.iree.backend import IreeBackend
from hlotool.backends.registry import get_backend
from hlotool.backends.xla.child import NoPlugin
from hlotool.errors import BackendCrashed, BackendUnavailable, HlotoolError, Unsupported, UsageError
from hlotool.parser.reader import parse_module

PROGRAM = """HloModule m
ENTRY e {
  x = bf16[4]{0} parameter(0)
  y = c64[2]{0} parameter(1)
  s = bf16[4]{0} add(x, x)
  ROOT t = (bf16[4]{0}, c64[2]{0}) tuple(s, y)
}"""

has_iree = find_spec("iree") is not None


@pytest.mark.skipif(has_iree, reason="IREE is installed")
def test_where_it_is_missing_one_line_says_so() -> None:
    with pytest.raises(NoPlugin, match=r"pip install 'hlotool\[iree\]'"):
        child.version("")
    with pytest.raises(BackendUnavailable, match=r"^there is no IREE here: pip install 'hlotool\[iree\]'$"):
        _ = get_backend("iree").version


def test_its_options() -> None:
    with pytest.raises(UsageError, match="backend iree has no option 'opt'; it knows: python=PATH, timeout"):
        get_backend("iree:opt=0")


@pytest.mark.parametrize(
    ("message", "kind", "reason"),
    [
        (
            "CompilerToolError: Error invoking IREE compiler tool iree-compile\nError code: 1\nDiagnostics:\n"
            "<stdin>:3:7: error: failed to legalize operation 'chlo.erf'\n",
            Unsupported,
            "IREE: failed to legalize operation 'chlo.erf'",
        ),
        ("RuntimeError: Error invoking function: UNIMPLEMENTED; f8\n", Unsupported, "IREE: f8"),
        (
            "CompilerToolError: Error invoking IREE compiler tool iree-compile\nError code: -6\nerror: x\n",
            BackendCrashed,
            "Error code: -6",
        ),
    ],
)
@pytest.mark.xla
def test_what_it_refuses_is_no_crash(
    monkeypatch: pytest.MonkeyPatch, message: str, kind: type[HlotoolError], reason: str
) -> None:
    pytest.importorskip("jaxlib")

    def dies(*_: object) -> None:
        raise BackendCrashed("xla", message)

    backend = IreeBackend()
    program = backend.compile(parse_module(PROGRAM))
    monkeypatch.setattr(backend._process, "call", dies)
    with pytest.raises(kind, match=reason):
        program.run([np.ones(4, "f4"), np.ones(2, "c8")])


@pytest.mark.skipif(not has_iree, reason="IREE is not installed: pip install 'hlotool[iree]'")
def test_it_computes() -> None:
    backend = get_backend("iree")
    assert backend.version.startswith("IREE ")
    module = parse_module(PROGRAM)
    values = [np.arange(4).astype(np.float32), np.array([1 + 2j, 3], np.complex64)]
    first, second = backend.compile(module).run(values)
    np.testing.assert_array_equal(first.astype(np.float32), values[0] * 2)
    np.testing.assert_array_equal(second, values[1])
