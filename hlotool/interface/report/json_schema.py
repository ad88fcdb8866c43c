"""JSON schemas of the records, made from their types and docstrings.

`python -m hlotool.interface.report.json_schema` rewrites the committed files.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hlotool.blame.releases import ReleasesRecord
from hlotool.interface.report.command_records import (
    BisectRecord,
    CacheRecord,
    DiffRecord,
    ExecRecord,
    ExtractRecord,
    InspectRecord,
    ProveRecord,
    ReduceRecord,
    ScalePlansRecord,
    VerifyRecord,
)
from hlotool.interface.report.demo import DemoRecord
from hlotool.interface.report.lab_records import ConformanceRecord, FuzzRecord, MutateRecord
from hlotool.interface.report.listings import OptRecord, PassesRecord
from hlotool.interface.report.records import (
    BackendsRecord,
    BaselineRecord,
    CheckRecord,
    CompileRecord,
    ExplainRecord,
    RulesRecord,
    RunRecord,
)
from hlotool.interface.report.trend import TrendRecord
from hlotool.interface.report.triage_records import TriageRecord
from hlotool.runs.gradients import GradcheckRecord
from hlotool.runs.two_dumps import CompareRecord
from hlotool.system.records import Record

FOLDER = Path(__file__).parent / "schema"

#: Committed file of each command's record.
SCHEMAS: dict[str, type[Record]] = {
    "run-1.json": RunRecord,
    "demo-1.json": DemoRecord,
    "backends-1.json": BackendsRecord,
    "cache-1.json": CacheRecord,
    "check-1.json": CheckRecord,
    "rules-1.json": RulesRecord,
    "explain-1.json": ExplainRecord,
    "opt-1.json": OptRecord,
    "passes-1.json": PassesRecord,
    "exec-1.json": ExecRecord,
    "bisect-1.json": BisectRecord,
    "reduce-1.json": ReduceRecord,
    "extract-1.json": ExtractRecord,
    "diff-1.json": DiffRecord,
    "prove-1.json": ProveRecord,
    "compare-1.json": CompareRecord,
    "compile-1.json": CompileRecord,
    "gradcheck-1.json": GradcheckRecord,
    "releases-1.json": ReleasesRecord,
    "mutate-1.json": MutateRecord,
    "conformance-1.json": ConformanceRecord,
    "fuzz-1.json": FuzzRecord,
    "triage-1.json": TriageRecord,
    "baseline-1.json": BaselineRecord,
    "inspect-1.json": InspectRecord,
    "repro-1.json": VerifyRecord,
    "scale-1.json": ScalePlansRecord,
    "trend-1.json": TrendRecord,
}

_ATTRIBUTE = re.compile(r"^    (\w+): (.+?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def schema_text(record: type[Record]) -> str:
    """The schema of `record` as committed."""
    schema = msgspec.json.schema(record)
    known = {kind.__name__: kind for kind in _subclasses(Record)}
    for name, definition in schema["$defs"].items():
        if name in known:
            _describe(definition, known[name])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _subclasses(kind: type[Record]) -> Iterator[type[Record]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _describe(definition: dict[str, Any], kind: type[Record]) -> None:
    """Move what docstrings say of attributes to their properties; every property is always printed."""
    properties = definition["properties"]
    definition["required"] = list(properties)
    for about in properties.values():
        about.pop("propertyNames", None)  # msgspec 0.23 says which keys a mapping has, 0.22 does not
    for ancestor in reversed(kind.__mro__):
        whole, _, attributes = (inspect.cleandoc(ancestor.__doc__ or "")).partition("Attributes:\n")
        definition["description"] = " ".join(whole.split())
        for name, meaning in _ATTRIBUTE.findall(attributes):
            if name in properties:
                properties[name]["description"] = " ".join(meaning.split())


def write_schemas() -> None:
    """Bring the committed files up to date."""
    for name, record in SCHEMAS.items():
        (FOLDER / name).write_text(schema_text(record), encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
