"""Names of backends with options, and the factories behind them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from hlotool.backends import registry
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import Options, backend_options, check_options, get_backend, parse_spec
from hlotool.errors import UsageError


class Recorded(NumpyBackend):
    """Keeps the options that it was made with."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options


def with_options(options: Options) -> Recorded:
    return Recorded(options)


def without_options() -> Recorded:
    return Recorded()


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = EntryPoints(
        EntryPoint(name, f"{__name__}:{function}", registry.GROUP)
        for name, function in (("theirs", "with_options"), ("plain", "without_options"))
    )
    monkeypatch.setattr(registry, "_entry_points", lambda: entries)
    monkeypatch.setattr(EntryPoint, "load", lambda entry: globals()[entry.value.partition(":")[2]])


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("numpy", "numpy", {}),
        ("numpy:wide", "numpy", {"wide": ""}),
        ("xla:disable=algsimp+cse,opt=0", "xla", {"disable": "algsimp+cse", "opt": "0"}),
        ("xla:gpu,set=xla_a=b", "xla", {"gpu": "", "set": "xla_a=b"}),
        ("xla:python=C:\\env\\python.exe", "xla", {"python": "C:\\env\\python.exe"}),
    ],
)
def test_a_spec_is_a_name_and_options(text: str, name: str, options: dict[str, str]) -> None:
    spec = parse_spec(text)
    assert (spec.name, dict(spec.options)) == (name, options)
    assert str(spec) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no name"),
        (":wide", "has no name"),
        ("numpy:", "'' is not an option"),
        ("numpy:a,,b", "'' is not an option"),
        ("numpy:=1", "'=1' is not an option"),
        ("numpy:seed=", "'seed=' is not an option"),
        ("numpy:a,a=1", "option 'a' is given twice"),
    ],
)
def test_a_malformed_spec_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_spec(text)


KNOWN = {"wide": "floats in float64", "seed=N": "of the perturbation"}


@pytest.mark.parametrize("options", [{}, {"wide": ""}, {"seed": "3", "wide": ""}])
def test_known_options_pass(options: Options) -> None:
    check_options("some", options, KNOWN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"narrow": ""}, "backend some has no option 'narrow'; it knows: wide, seed=N"),
        ({"seed": ""}, "backend some: option 'seed' is written seed=N"),
        ({"wide": "1"}, "backend some: option 'wide=1' is written wide"),
    ],
)
def test_a_wrong_option_lists_the_known_ones(options: Options, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_options("some", options, KNOWN)
    assert str(caught.value) == message


def test_numpy_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UsageError, match="backend numpy has no option 'narrow'"):
        get_backend("numpy:narrow")


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no backend 'nunpy'; there are: .*numpy"):
        get_backend("nunpy:wide")


@pytest.mark.usefixtures("plugins")
def test_entry_points_get_the_options() -> None:
    backend = get_backend("theirs:fast,level=2")
    assert isinstance(backend, Recorded)
    assert backend.options == {"fast": "", "level": "2"}
    plain = get_backend("theirs")
    assert isinstance(plain, Recorded)
    assert plain.options == {}


@pytest.mark.usefixtures("plugins")
def test_a_factory_without_parameters_keeps_working() -> None:
    assert isinstance(get_backend("plain"), Recorded)
    with pytest.raises(UsageError, match="backend plain takes no options, got 'plain:fast'"):
        get_backend("plain:fast")


@pytest.mark.usefixtures("plugins")
def test_options_are_those_beside_the_factory() -> None:
    assert "disable=PASS+PASS" in backend_options("xla:gpu")
    assert backend_options("theirs") == {}
