"""Typed access to attributes: `instruction.integers("dimensions")` instead of a look-up and a type test.

The parser gives every attribute the kind that `attribute_kinds.py` states, and the verifier demands those
that are required. What passes and users put together may break either rule, so that every access names the
culprit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hlotool.errors import VerificationError
from hlotool.ir.attributes import (
    AttributeValue,
    BackendConfig,
    FrontendAttributes,
    Ints,
    ReplicaGroups,
    Window,
)

_T = TypeVar("_T")
_D = TypeVar("_D")

#: Stands for "no default", for None is a default that callers ask for.
_REQUIRED: Any = object()
_NO_DIMENSIONS = Window(())
_EVERYBODY = ReplicaGroups(groups=())


class AttributeAccess:
    """Something with attributes, read by the kind of their values.

    All raise VerificationError: `attribute-missing` where there is neither the attribute nor a default, and
    `attribute-kind` where its value is of another kind, default or not.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        attributes: Mapping[str, AttributeValue]

    def error(self, rule: str, message: str) -> VerificationError:
        """The error to raise where this breaks `rule`."""
        return VerificationError(rule, message)

    @overload
    def attribute(self, name: str, kind: type[_T]) -> _T: ...
    @overload
    def attribute(self, name: str, kind: type[_T], default: _D) -> _T | _D: ...
    def attribute(self, name: str, kind: type[Any], default: Any = _REQUIRED) -> Any:
        """The attribute `name`, a `kind`; `default`, which may be None, where it is absent."""
        value = self.attributes.get(name, _REQUIRED)
        if value is _REQUIRED:
            if default is _REQUIRED:
                raise self.error("attribute-missing", f"{self._owner} needs the attribute {name}")
            return default
        # A bool is an int to Python, but not in HLO.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._of_another_kind(name, kind.__name__)
        return value

    def integer(self, name: str, default: int = _REQUIRED) -> int:
        """An integer such as `index` or `feature_group_count`."""
        return self.attribute(name, int, default)

    def number(self, name: str) -> float:
        """A floating-point number such as `epsilon`."""
        return self.attribute(name, float)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean such as `indices_are_sorted`; HLO text leaves out what is false."""
        return self.attribute(name, bool, default)

    def text(self, name: str, default: str = _REQUIRED) -> str:
        """A string or a word such as `custom_call_target` or `direction`."""
        return self.attribute(name, str, default)

    def integers(self, name: str, default: Ints = _REQUIRED) -> Ints:
        """A list of integers such as `dimensions`."""
        return self.listed(name, int, default)

    def listed(self, name: str, kind: type[_T], default: tuple[_T, ...] = _REQUIRED) -> tuple[_T, ...]:
        """A list whose items are all of `kind`: SliceDim, PaddingDim, Computation, …"""
        values = self.attribute(name, tuple, default)
        for value in values:
            if not isinstance(value, kind):
                raise self._of_another_kind(name, f"list of {kind.__name__}")
        return values

    @property
    def window(self) -> Window:
        """`window`; without dimensions where it is absent, as XLA prints the window of a scalar."""
        return self.attribute("window", Window, _NO_DIMENSIONS)

    @property
    def replica_groups(self) -> ReplicaGroups:
        """`replica_groups`; one group of everybody where it is absent."""
        return self.attribute("replica_groups", ReplicaGroups, _EVERYBODY)

    @property
    def custom_call_target(self) -> str:
        """The name of what a custom call calls; empty where there is none, as for all other opcodes."""
        return self.text("custom_call_target") if "custom_call_target" in self.attributes else ""

    @property
    def config_text(self) -> str:
        """The text of `backend_config`; empty where there is none."""
        config = self.attribute("backend_config", BackendConfig, None)
        return config.text if config else ""

    def frontend_attribute(self, key: str) -> str | None:
        """What `frontend_attributes` says of `key`, without quotes; None where it does not mention it."""
        listed = self.attribute("frontend_attributes", FrontendAttributes, None)
        return listed.get(key) if listed else None

    def _of_another_kind(self, name: str, expected: str) -> VerificationError:
        value = self.attributes[name]
        message = f"the attribute {name} of {self._owner} must be of kind {expected}, not {value!r}"
        return self.error("attribute-kind", message)

    @property
    def _owner(self) -> str:
        return getattr(self, "opcode", "the module")
