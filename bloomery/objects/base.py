"""The base of our versioned objects, their fields by kind, and their class factory.

Payload = base.make("NodePayload", "1.17", {"uuid": "ident", "extra": "object"})
base.primitive(Payload, {"uuid": "...", "extra": None})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from oslo_versionedobjects import base, fields

SERIAL_NAMESPACE: Final = "ironic_object"
PROJECT_NAMESPACE: Final = "ironic"


class FlexibleDict(fields.FieldType[dict[str, Any]]):
    """Any JSON object."""

    @staticmethod
    def coerce(_obj: Any, attr: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"{attr} must be an object, not {type(value).__name__}")
        return dict(value)


class FlexibleDictField(fields.AutoTypedField[dict[str, Any]]):
    """An object; null becomes {}."""

    AUTO_TYPE = FlexibleDict()

    def _null(self, _obj: Any, _attr: str) -> dict[str, Any]:
        return {}


class ListOfFlexibleDictsField(fields.AutoTypedField[list[dict[str, Any]]]):
    AUTO_TYPE = fields.List(FlexibleDict())


# By kind; the wire format is Ironic's.
FIELD_OF: Final[Mapping[str, Callable[[], fields.Field[Any]]]] = {
    "ident": lambda: fields.StringField(nullable=False),
    "text": lambda: fields.StringField(nullable=True),
    "bool": lambda: fields.BooleanField(nullable=True),
    "int": lambda: fields.IntegerField(nullable=True),
    "time": lambda: fields.DateTimeField(nullable=True),
    "object": lambda: FlexibleDictField(nullable=True),
    "texts": lambda: fields.ListOfStringsField(nullable=True),
    "objects": lambda: ListOfFlexibleDictsField(nullable=True),
}


class Object(base.VersionedObject):
    """The namespaces that consumers of Ironic expect."""

    OBJ_SERIAL_NAMESPACE = SERIAL_NAMESPACE
    OBJ_PROJECT_NAMESPACE = PROJECT_NAMESPACE


def make(name: str, version: str, kinds: Mapping[str, str]) -> type[Object]:
    """Return a registered class with these fields; a kind is a key of ``FIELD_OF``."""
    body = {
        "VERSION": version,
        "fields": {field: FIELD_OF[kind]() for field, kind in kinds.items()},
    }
    cls: type[Object] = base.VersionedObjectRegistry.register(type(name, (Object,), body))
    return cls


def primitive(kind: type[Object], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wire format: name, namespace, version, data; never the changes.

    Raises ValueError or TypeError for a value that its field does not accept.
    """
    instance = kind(**values)
    instance.obj_reset_changes()
    return instance.obj_to_primitive()
