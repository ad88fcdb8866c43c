"""Functions of a user's script, lowered for a device that is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.backends.aot.child import grid_of
from hlotool.backends.aot.protocol import LowerRequest
from hlotool.backends.aot.script import BadScript, lower

pytestmark = pytest.mark.xla

SCRIPT = """
import jax, jax.numpy as jnp
S = jax.ShapeDtypeStruct

def plain(x, y): return x @ y
jitted = jax.jit(lambda x, y, z=1: (x * z) @ y)
def made(): return jax.jit(plain, donate_argnums=0).trace(S((2, 2), jnp.bfloat16), S((2, 2), jnp.bfloat16))
def nothing(): return 1
example_args = (S((4, 4), jnp.float32), S((4, 4), jnp.float32))
"""


def lowered(folder: Path, name: str, shapes: tuple[str, ...] | None = None, text: str = SCRIPT) -> bytes:
    pytest.importorskip("jax")
    script, output = folder / "s.py", folder / "out.mlir"
    script.write_text(text, encoding="utf-8")
    lower(LowerRequest(str(script), name, shapes, "tpu", str(output)))
    assert (grid_of(str(output)).replicas, grid_of(str(output)).partitions) == (1, 1)
    return output.read_bytes()


def test_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the script, of the command line, and of a function that does it all itself."""
    monkeypatch.setattr("sys.argv", [])
    pytest.importorskip("jax")
    for name, shapes in (("plain", None), ("jitted", ("f32[3,3]", "bf16[3,3]")), ("made", None)):
        assert lowered(tmp_path, name, shapes).startswith(b"ML\xefR")


@pytest.mark.parametrize(
    ("name", "shapes", "text", "message"),
    [
        ("other", None, SCRIPT, "no function other; it has: "),
        ("plain", None, SCRIPT.partition("example_args")[0], "what is plain called with?"),
        ("nothing", None, SCRIPT, "returns nothing that"),
        ("plain", ("x[3]", "f32[3]"), SCRIPT, "x is no element type"),
    ],
)
def test_what_cannot_be_lowered(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    shapes: tuple[str, ...] | None,
    text: str,
    message: str,
) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr("sys.argv", [])
    with pytest.raises(BadScript, match=message):
        lowered(tmp_path, name, shapes, text)
