"""JSON schemas of the records, made from their types and docstrings.

`python -m hlotool.report.json_schema` rewrites the committed files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from hlotool.replay.records import Record
from hlotool.report.records import BackendsRecord, RunRecord

FOLDER = Path(__file__).parent / "schema"

#: Committed file of each command's record.
SCHEMAS: dict[str, type[Record]] = {"run-1.json": RunRecord, "backends-1.json": BackendsRecord}

_ATTRIBUTE = re.compile(r"^    (\w+): (.+?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def schema_text(record: type[Record]) -> str:
    """The schema of `record` as committed."""
    schema = msgspec.json.schema(record)
    for definition in schema["$defs"].values():
        if "properties" in definition:
            _describe(definition)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _describe(definition: dict[str, Any]) -> None:
    """Move what the docstring says of an attribute to its property; every property is always printed."""
    about, _, attributes = definition["description"].partition("Attributes:\n")
    definition["description"] = " ".join(about.split())
    definition["required"] = list(definition["properties"])
    for name, meaning in _ATTRIBUTE.findall(re.sub(r"^    ", "", attributes, flags=re.MULTILINE)):
        definition["properties"][name]["description"] = " ".join(meaning.split())


def write_schemas() -> None:
    """Bring the committed files up to date."""
    for name, record in SCHEMAS.items():
        (FOLDER / name).write_text(schema_text(record), encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
