"""XLA's verifier and compiler accept what is drawn; what they refuse is taught to the generator (`limits`).

XLA dies of some valid programs: those are finds, not faults of the generator, and counted apart.
"""

from __future__ import annotations

import pytest
from support.oracle import need_xla

from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.options import XlaOptions
from hlotool.errors import BackendFailed, Unsupported
from hlotool.ir.devices import DeviceGrid
from hlotool.lab.fuzz.programs import Source

#: Without LLVM's optimisations, which cost most of the time and refuse nothing.
FLAGS = (("xla_backend_optimization_level", 0), ("xla_llvm_disable_expensive_passes", True))


def put_to_xla(numbers: range, devices: int = 1) -> tuple[list[str], int]:
    """What XLA said against programs, with their text; and how many programs it died of."""
    need_xla()
    xla, source = XlaBackend(XlaOptions(flags=FLAGS)), Source(2026, devices=devices)
    refused, died = [], 0
    for number in numbers:
        module = source.draw(number).module
        try:
            if module.replica_count > 1:
                xla.compile_devices(module, DeviceGrid(module.replica_count, 1))
            else:
                xla.compile(module)
        except Unsupported as error:
            refused.append(f"{number}: {error}\n{module.to_text()}")
        except BackendFailed:
            died += 1
    return refused, died


@pytest.mark.xla
def test_xla_compiles_what_is_drawn() -> None:
    refused, died = put_to_xla(range(24))
    assert not refused, refused[0]
    assert died <= 1


@pytest.mark.slow
@pytest.mark.xla
@pytest.mark.parametrize("devices", [1, 8])
def test_xla_compiles_nearly_all(devices: int) -> None:
    """At most one in a hundred is refused on one device, and one in twenty on several."""
    refused, died = put_to_xla(range(600), devices)
    assert len(refused) <= (6 if devices == 1 else 30), refused[0]
    assert died <= (6 if devices == 1 else 60)
