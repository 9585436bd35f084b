"""JSON patch on a value: apply the operations to what is there, and check what comes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING
from typing import Any

import jsonpatch
import jsonpointer
import jsonschema_rs
from oslo_utils import strutils

from bloomery import errors, secrets
from bloomery.model.fields import FieldTable, schema_of
from bloomery.secrets import Sealer

Json = dict[str, Any]


class Patcher:
    """Applies patches to the patchable fields of one noun."""

    def __init__(self, fields: FieldTable, patchable: Collection[str], noun: type) -> None:
        """``noun``: the dataclass whose defaults stand for what a patch removes."""
        self._patchable = tuple(patchable)
        self._secret = frozenset(n for n in patchable if n in fields and fields[n].secret)
        self._booleans = frozenset(n for n in patchable if n in fields and fields[n].kind == "bool")
        self._defaults = _defaults_of(noun)
        self._validators = {
            name: jsonschema_rs.validator_for(schema_of(fields[name]))
            for name in patchable
            if name in fields
        }

    def sealed(self, patch: Sequence[Json], sealer: Sealer) -> list[Json]:
        """Return the patch with its secret values sealed, before the transaction begins."""
        return [self._sealed_op(op, sealer) for op in patch]

    def _sealed_op(self, op: Json, sealer: Sealer) -> Json:
        segments = op["path"].lstrip("/").split("/")
        if "value" not in op or segments[0] not in self._secret:
            return op
        secrets.refuse_sealed(op["value"], op["path"])
        if len(segments) == 1:
            return op | {"value": sealer.seal(op["value"])}
        return op | {"value": sealer.seal_under(segments[-1], op["value"])}

    def apply(self, value: Any, patch: Sequence[Json]) -> Json:
        """Return the fields that the patch changes, with their new values.

        ``value`` is left as it is.  Raises PatchError, InvalidParameterValue.
        """
        before = {name: getattr(value, name) for name in self._patchable}
        after = self._applied(before, patch)
        changed = {}
        for name in self._patchable:
            new = self._checked(name, after.get(name))
            if new != before[name]:
                changed[name] = new
        return changed

    def _applied(self, before: Json, patch: Sequence[Json]) -> Json:
        document: Json = before
        for op in patch:
            try:
                document = jsonpatch.JsonPatch([op]).apply(document)
            except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as exc:
                raise errors.PatchError(patch=_shown(op), reason=str(exc)) from exc
            except (TypeError, KeyError, IndexError, ValueError) as exc:
                raise errors.PatchError(patch=_shown(op), reason=f"it does not fit: {exc}") from exc
        return document

    def _checked(self, name: str, value: Any) -> Any:
        """Return the value as its field takes it; removed and null ones are the default."""
        if value is None:
            return self._defaults.get(name)
        if name in self._booleans and not isinstance(value, bool):
            return _boolean(name, value)
        validator = self._validators.get(name)
        if validator is not None and not validator.is_valid(value):
            problem = next(validator.iter_errors(value)).message
            raise errors.InvalidParameterValue(reason=f"Schema error for patch: /{name}: {problem}")
        return value


def _defaults_of(noun: type) -> Json:
    """Return what each field of a dataclass is when nobody sets it; required ones are None."""
    return {
        f.name: {} if f.default_factory is dict else None if f.default is MISSING else f.default
        for f in dataclasses.fields(noun)
    }


def _boolean(name: str, value: Any) -> bool:
    try:
        return strutils.bool_from_string(str(value), strict=True)
    except ValueError:
        raise errors.InvalidParameterValue(
            reason=f"Invalid {name}: Unrecognized value {value!r}, "
            "acceptable values are true, false, yes, no, on, off, 1, 0",
        ) from None


def _shown(op: Mapping[str, Any]) -> str:
    """The operation as an error may show it: without its value, which may be a secret."""
    return f"{op['op']} {op['path']}"
