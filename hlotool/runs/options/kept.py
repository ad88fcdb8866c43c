"""The options that a replay is done with, as records that go to workers and into reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, defstruct

from hlotool.runs.options.declared import Option, option, types_of
from hlotool.runs.options.replaying import Replays
from hlotool.system.records import Record
from hlotool.system.resources import worker_count

#: What a worker imports before its first module.
PRELOAD = (
    "hlotool.runs.run",
    "hlotool.parser.reader",
    "hlotool.inputs.generate",
    "hlotool.backends.numpy",
)

#: What records hold of the declared options, in their order. `either` is none: one of two tolerances is
#: enough, as `run_hlo_module` compares.
_REPLAY = """reference backend stages inputs outputs seed input_range rtol atol either output_rtol output_atol
    compare_with save_outputs save_values values first_divergence fail_on coverage fp8 thorough exact budget
    elided opaque entry replicas partitions compare further_sets scale repeat"""
_RUN = "timeout memory_limit jobs only last_failed shard sample max_failures"


def _record(name: str, names: str, base: type[Struct]) -> type[Struct]:
    """A record of options: fields with the types that are kept, described as the options are."""
    either = Option(name="either", annotation="bool", default=False, doc="one of both tolerances is enough")
    declared = {**Replays.options, "either": either}
    known = [declared[name] for name in names.split() if name in declared]
    about = "\n".join(["", "Attributes:", *(f"    {one.name}: {one.description}" for one in known)])
    fields = [(one.name, eval(types_of(one.annotation)[1], {}), one.default) for one in known]
    return defstruct(name, fields, bases=(base,), namespace={"__doc__": about}, frozen=True, kw_only=True)


if TYPE_CHECKING:
    from hlotool.ir.devices import DeviceGrid

    class _ReplayFields(Replays, Struct):
        either: bool = option(default=False)

    class _RunFields: ...

else:
    _ReplayFields = _record("_ReplayFields", _REPLAY, Record)


class ReplayOptions(_ReplayFields):
    """Options that decide about the result of a module."""

    @property
    def devices(self) -> DeviceGrid | None:
        """The devices that the user says programs are for; None for what they say themselves."""
        if not self.replicas and not self.partitions:
            return None
        from hlotool.ir.devices import DeviceGrid

        return DeviceGrid(self.replicas or 1, self.partitions or 1)

    @property
    def elided_seed(self) -> int | None:
        """The seed of values for elided constants; None where these are refused."""
        return self.seed if self.elided == "generate" else None

    @property
    def tested_backends(self) -> tuple[str, ...]:
        """What runs the tested side, one after the other."""
        return self.compare[1:] or (self.backend,)

    @property
    def backends(self) -> tuple[str, ...]:
        """All of them, each once, that of the reference first."""
        return tuple(dict.fromkeys((self.reference, *self.tested_backends)))

    @property
    def one_of_several(self) -> str:
        """The tested backend where rows of several stand side by side; empty where it is the only one."""
        return self.backend if self.compare else ""


if not TYPE_CHECKING:
    _RunFields = _record("_RunFields", _RUN, ReplayOptions)


class RunOptions(_RunFields, ReplayOptions):
    """All options of `hlotool run` that decide about its results."""

    @property
    def shard_number(self) -> tuple[int, int]:
        """Which shard, from 1, and of how many."""
        number, _, count = (self.shard or "1/1").partition("/")
        return int(number), int(count)

    @property
    def workers(self) -> int:
        """How many worker processes to start at most."""
        return worker_count(self.jobs)


def budget_limits(budget: str, work: int) -> tuple[float, float]:
    """What a budget allows: units of work and seconds, one of which is infinite.

    Args:
        budget: `30` for seconds, `5x` for a multiple of `work`.
        work: units that the runs in question were.

    Raises:
        ValueError: it is neither.
    """
    number = float(budget.removesuffix("x"))
    if not 0 <= number < float("inf"):
        raise ValueError(f"{budget!r} is no budget")
    return (number * work, float("inf")) if budget.endswith("x") else (float("inf"), number)
