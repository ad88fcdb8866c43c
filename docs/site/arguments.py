"""Functions of the API for mkdocstrings, which reads sources: with the arguments that are declared."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import griffe


class DeclaredArguments(griffe.Extension):
    """Gives functions that take a class of arguments their signature and docstring as Python has them."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Look at one function of the source."""
        if not any(str(decorator.value).startswith("takes(") for decorator in func.decorators):
            return
        live = getattr(import_module(func.module.path), func.name)
        func.parameters = griffe.Parameters(*map(_parameter, inspect.signature(live).parameters.values()))
        func.docstring = griffe.Docstring(inspect.getdoc(live) or "", parent=func)


def _parameter(one: inspect.Parameter) -> griffe.Parameter:
    kind = getattr(griffe.ParameterKind, one.kind.name.lower())
    default = None if one.default is one.empty else _shown(one.default)
    return griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=default)


def _shown(default: object) -> str:
    return f"{type(default).__name__}()" if "object at" in repr(default) else repr(default)
