"""Backend configs of other versions: fields that this XLA does not know make it refuse the whole program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hlotool.ir.attributes import BackendConfig
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module

_UNKNOWN = re.compile(r"no such field: '(\w+)'")


def unknown_field(message: str) -> str | None:
    """The field that XLA's message complains about."""
    found = _UNKNOWN.search(message)
    return found[1] if found else None


def without_field(module: Module, name: str) -> Module:
    """A copy in which no backend config has a field called `name`."""
    copy = clone_module(module).module
    for instruction in copy.instructions():
        config = instruction.attribute("backend_config", BackendConfig, None)
        if config is not None and f'"{name}"' in config.text:
            bare = replace(config, text=json.dumps(_without(json.loads(config.text), name)))
            instruction.attributes = with_attributes(instruction.attributes, backend_config=bare)
    return copy


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(part, name) for key, part in value.items() if key != name}
    return [_without(part, name) for part in value] if isinstance(value, list) else value
