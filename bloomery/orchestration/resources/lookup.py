"""Lookups: values from outside of a stack, which its other resources use.

A lookup reads its values when it is created and, with ``refresh``, again in each update, before the
resources that refer to it.  In between its attributes stay the values that it has read last.  Plans
read the values as they are now (foresight/lookups.py), and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties.schema import OnChange, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.children import OtherStack
from bloomery.outcome import DONE, Outcome, WaitForCall

VALUES: Final = "values"  # the key in data of the values that were read last
HIDDEN: Final = "hidden"  # and of the names of outputs that depend on secrets
FORMER: Final = "former"  # and of both as they were before the last update
REFRESH: Final = Schema(
    Type.BOOLEAN, "Whether each update reads the values again, or keeps those of the creation.",
    default=True, update_allowed=True,
)  # fmt: skip


class NotReadYet(Exception):
    """The values cannot be read before another stack is at rest."""

    def __init__(self, stack: OtherStack) -> None:
        super().__init__(f"cannot read the outputs of stack {stack.name} yet: it is {stack.state}")
        self.stack = stack


class Lookup(base.Resource):
    """The base class of lookups.  ``read`` is called by the engine and by plans."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    always_updated: ClassVar[bool] = True
    repairs_failed: ClassVar[bool] = True
    always_replace_on_check_failed: ClassVar[bool] = False
    shown: ClassVar[Sequence[str]] = ()  # the attributes that differences show

    @classmethod
    def read(
        cls, properties: Mapping[str, Any], context: base.ResourceContext
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the values, JSON, and the names of outputs that depend on secrets.

        ``context``: has ``machines`` and ``stacks`` with the rights of the caller.  Raises
        NotReadYet, and the errors of its calls.
        """
        raise NotImplementedError

    @classmethod
    def attributes_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def needs_replace_failed(cls) -> bool:
        return False

    def handle_create(self) -> Any:
        self.resource_id_set(self.physical_resource_name())

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        data = self.record.data
        data[FORMER] = {key: data.get(key) for key in (VALUES, HIDDEN)}
        if VALUES in self.record.redacted:
            self.record.redacted.add(FORMER)
        return bool(prop_diff) or bool(self.properties["refresh"]) or self.stored is None

    def handle_return(self) -> Any:
        """Take back the values from before an update that has failed, for its rollback."""
        former = self.record.data[FORMER]
        self._keep(former[VALUES], former[HIDDEN] or ())

    def check_create_complete(self, token: Any) -> Outcome:
        try:
            values, hidden = self.read(self.properties, self.context)
        except NotReadYet as exc:
            return WaitForCall(reason=str(exc), timeout_s=0, then="same", source=exc.stack.uuid)
        self._keep(values, hidden)
        return DONE

    def _keep(self, values: dict[str, Any] | None, hidden: Sequence[str]) -> None:
        self.record.data[VALUES], self.record.data[HIDDEN] = values, sorted(hidden)
        if hidden:
            self.record.redacted.add(VALUES)
        else:
            self.record.redacted.discard(VALUES)

    def check_update_complete(self, token: Any) -> Outcome:
        return self.check_create_complete(token) if token else DONE

    @property
    def stored(self) -> dict[str, Any] | None:
        values: dict[str, Any] | None = self.record.data.get(VALUES)
        return values

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return None if self.stored is None else self.attributes_of(self.stored).get(name)


class LookedUp:
    """A lookup in a plan: its values as they are now (``template.view.ResourceView``)."""

    ready = True

    def __init__(
        self, kind: type[Lookup], name: str, values: Mapping[str, Any], reference: Any
    ) -> None:
        self.name, self.values = name, values
        self._attributes, self._reference = kind.attributes_of(values), reference

    def reference_id(self) -> Any:
        return self._reference

    def has_attribute(self, name: str) -> bool:
        return name in self._attributes

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self._attributes.get(name)

    def attributes(self) -> Mapping[str, Any]:
        return self._attributes
