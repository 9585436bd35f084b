"""The base of our versioned objects, and how a row of a table becomes a class.

::

    Payload = base.make("NodePayload", "1.17", {"uuid": "ident", "extra": "object"})
    base.primitive(Payload, {"uuid": "...", "extra": None})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oslo_versionedobjects import base

from bloomery.objects import fields

SERIAL_NAMESPACE: Final = "ironic_object"
PROJECT_NAMESPACE: Final = "ironic"


class Object(base.VersionedObject):
    """What consumers of Ironic know by its namespaces."""

    OBJ_SERIAL_NAMESPACE = SERIAL_NAMESPACE
    OBJ_PROJECT_NAMESPACE = PROJECT_NAMESPACE


def make(name: str, version: str, kinds: Mapping[str, str]) -> type[Object]:
    """Return a registered class with these fields; a kind is a key of ``fields.FIELD_OF``."""
    body = {
        "VERSION": version,
        "fields": {field: fields.FIELD_OF[kind]() for field, kind in kinds.items()},
    }
    made: type[Object] = base.VersionedObjectRegistry.register(type(name, (Object,), body))
    return made


def primitive(kind: type[Object], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what goes on the wire: name, namespace, version, data; never the changes.

    Raises ValueError or TypeError for a value that its field does not take.
    """
    thing = kind(**values)
    thing.obj_reset_changes()
    return thing.obj_to_primitive()
