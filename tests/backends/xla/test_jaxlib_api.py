"""How programs get in between XLA's passes, on platforms that are built in and on plug-ins."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

jaxlib = pytest.importorskip("jaxlib")

from hlotool.backends.xla.jaxlib_api import find, instead_of_what_is_compiled  # noqa: E402


class Hooks(ModuleType):
    """Stands in for `jaxlib._xla`; remembers what is registered."""

    def __init__(self, refusal: str = "") -> None:
        super().__init__("jaxlib._xla")
        self.refusal = refusal
        self.registered: dict[tuple[Any, ...], Any] = {}

    def register_xla_transform(self, name: str, stage: int, callback: Any) -> None:
        self.registered["cpu", name, stage] = callback

    def clear_xla_transform(self, name: str, stage: int) -> None:
        del self.registered["cpu", name, stage]

    def register_xla_transform_c_api(self, client: Any, name: str, stage: int, callback: Any) -> None:
        if self.refusal:
            raise RuntimeError(self.refusal)
        self.registered[client.platform, name, stage] = callback

    def clear_xla_transform_c_api(self, client: Any, name: str, stage: int) -> None:
        del self.registered[client.platform, name, stage]


def install(monkeypatch: pytest.MonkeyPatch, hooks: Hooks | None) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib._xla", hooks)
    monkeypatch.setattr(jaxlib, "_xla", hooks, raising=False)
    if hooks is None:
        monkeypatch.delattr(jaxlib, "_xla", raising=False)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("late", [False, True])
def test_a_program_takes_the_place_of_another(
    platform: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Hooks()
    install(monkeypatch, hooks)
    client = SimpleNamespace(platform=platform)
    with instead_of_what_is_compiled(b"program", late, client) as used:
        [((where, _, stage), callback)] = hooks.registered.items()
        assert (where, stage) == (platform, int(late))
        assert not used
        assert callback(b"host") == b"program"
        assert used
    assert not hooks.registered


def test_a_platform_that_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Hooks("no extension"))
    client = SimpleNamespace(platform="cuda")
    with (
        pytest.raises(NotImplementedError, match="XLA for cuda lets no programs in: no extension"),
        instead_of_what_is_compiled(b"program", True, client),
    ):
        pass


def test_a_version_that_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    client = SimpleNamespace(platform="cpu")
    with (
        pytest.raises(NotImplementedError, match=r"only jaxlib 0\.10\.2 and newer"),
        instead_of_what_is_compiled(b"program", True, client),
    ):
        pass


def test_a_name_that_no_version_has() -> None:
    with pytest.raises(ImportError, match="this jaxlib has no NoSuchThing"):
        find("NoSuchThing")
