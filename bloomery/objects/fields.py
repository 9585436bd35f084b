"""Fields of versioned objects, by kind; on the wire they look as those of Ironic do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from oslo_versionedobjects import fields


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
