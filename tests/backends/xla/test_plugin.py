"""PJRT plug-ins: what is none, or speaks another version, is said in one line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.oracle import need_xla

from hlotool.backends.registry import describe_backend, get_backend
from hlotool.backends.xla import child, jaxlib_api
from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.plugin import create
from hlotool.backends.xla.protocol import Route
from hlotool.errors import BackendUnavailable, ExitCode, UsageError
from hlotool.interface.cli.main import main

#: The head of a table of functions, as every version of the interface has it, of a version to come.
OTHER_VERSION = """
#include <stddef.h>
static struct {
  size_t size; void *extensions;
  struct { size_t size; void *extensions; int major, minor; } version;
  void *functions[300];
} api;
const void *GetPjrtApi(void) {
  api.size = sizeof api;
  api.version.size = sizeof api.version;
  api.version.major = 99;
  return &api;
}
"""


def library(folder: Path, source: str) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "plugin.c").write_text(source)
    path = folder / "plugin.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, folder / "plugin.c"], check=True)
    return path


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pjrt", "needs the path of one plug-in, as pjrt:/path/plugin.so"),
        ("pjrt:a.so,b.so", "needs the path of one plug-in.*, not a.so and b.so"),
        ("pjrt:FILE,flavour=2", "has no option 'flavour'"),
        ("pjrt:FILE,timeout=never", "timeout=never is no positive number"),
    ],
)
def test_what_cannot_be_meant(spec: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "plugin.so"
    file.touch()
    with pytest.raises(UsageError, match=message):
        get_backend(spec.replace("FILE", str(file)))


def test_no_such_file() -> None:
    with pytest.raises(BackendUnavailable, match=r"PJRT plug-in /no/such/plugin\.so: there is no such file"):
        get_backend("pjrt:/no/such/plugin.so")


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin.so").touch()
    monkeypatch.chdir(tmp_path)
    backend = create({"plugin.so": "", "timeout": "7"})
    assert isinstance(backend, XlaBackend)
    assert backend.name == "pjrt:plugin.so,timeout=7"
    options = backend.options
    assert (options.platform, options.timeout, options.route) == (
        str(tmp_path / "plugin.so"),
        7.0,
        Route.MLIR,
    )


@pytest.mark.xla
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int nothing;", "GetPjrtApi not found"),
        (OTHER_VERSION, r"API major version \(99\)"),
        (None, "Failed to open"),
    ],
    ids=["no plug-in", "another version", "no library"],
)
def test_what_is_no_plug_in(source: str | None, message: str, tmp_path: Path) -> None:
    need_xla()
    path = tmp_path / "plugin.so"
    if source is None:
        path.write_text("text")
    else:
        path = library(tmp_path, source)
    with pytest.raises(BackendUnavailable, match=f"PJRT plug-in {path}: .*{message}") as raised:
        _ = get_backend(f"pjrt:{path}").version
    assert "JAX_PLATFORMS" not in str(raised.value)
    assert str(path) in describe_backend(f"pjrt:{path}").reason


@pytest.mark.xla
def test_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_xla()
    path = library(tmp_path, "int nothing;")
    code = main(["conformance", "--backend", f"pjrt:{path}", "--only", "add"])
    assert code == ExitCode.NOTHING_COMPARED
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert "GetPjrtApi not found" in printed.err


class Jax:
    """JAX that knows one device of the plug-in's platform."""

    def __init__(self) -> None:
        self.settings: dict[str, object] = {}
        self.config = self

    def update(self, name: str, value: object) -> None:
        self.settings[name] = value

    def devices(self, platform: str) -> list[str]:
        return [f"{platform}:0"]


def test_the_plug_in_is_the_only_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for jaxlib: there is no plug-in for processors that could be loaded in a test."""
    jax, loaded = Jax(), []

    def register(path: str) -> str:
        loaded.append(path)
        return "hlotool_plugin"

    monkeypatch.setattr(child, "_jax", lambda: jax)
    monkeypatch.setattr(jaxlib_api, "register_plugin", register)
    assert child.devices.__wrapped__("/path/plugin.so") == ["hlotool_plugin:0"]
    assert loaded == ["/path/plugin.so"]
    assert jax.settings == {"jax_enable_x64": True, "jax_platforms": "hlotool_plugin"}


def test_a_plug_in_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = Jax()
    jax.devices = lambda platform: []  # type: ignore[method-assign]
    monkeypatch.setattr(child, "_jax", lambda: jax)
    monkeypatch.setattr(jaxlib_api, "register_plugin", lambda path: "hlotool_plugin")
    with pytest.raises(child.NoPlugin, match="it has no devices here"):
        child.devices.__wrapped__("/path/plugin.so")
