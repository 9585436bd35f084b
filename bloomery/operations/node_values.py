"""What a node's attributes may be set to, beyond their form; on POST and on PATCH alike."""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.conf import Conf
from bloomery.db import nodes as db
from bloomery.model import capabilities
from bloomery.model import node as model
from bloomery.model.rules import attributes, idents
from bloomery.operations import lookup
from bloomery.operations.context import Context

Json = dict[str, Any]

CHECKER: Final = attributes.Checker("node", model.FIELDS)
ANY_NAME_SINCE: Final = 10
INT_LIKE: Final = ("memory_mb", "local_gb")
_NAMED: Final = {
    "type": "object",
    "required": ["id", "type"],
    "properties": {"id": {"type": "string"}},
}
_NETWORK_DATA: Final = jsonschema_rs.validator_for(
    {
        "type": "object",
        "required": ["links", "networks", "services"],
        "properties": {
            "links": {"type": "array", "items": _NAMED},
            "networks": {
                "type": "array",
                "items": _NAMED | {"required": ["id", "type", "link"]},
            },
            "services": {
                "type": "array",
                "items": {"type": "object", "required": ["type", "address"]},
            },
        },
    },
)


def check_properties(properties: Json | None) -> None:
    """memory_mb and local_gb are sizes, as numbers or digits."""
    for name in INT_LIKE:
        check_int_like(name, (properties or {}).get(name))


def check_int_like(name: str, value: Any) -> None:
    if value is None:
        return
    try:
        if isinstance(value, bool | float) or int(value) < 0:
            raise ValueError  # noqa: TRY301  one sentence for every way to be wrong
    except (TypeError, ValueError):
        raise errors.InvalidParameterValue(
            reason=f"Schema error for node: properties/{name} must be an integer of at least 0 "
            f"or null, not {value!r}",
        ) from None


def check_network_data(value: Any) -> None:
    try:
        _NETWORK_DATA.validate(value)
    except jsonschema_rs.ValidationError as exc:
        where = "/".join(str(part) for part in exc.instance_path)
        raise errors.InvalidParameterValue(
            reason=f"Schema error for node: network_data{where and '/' + where}: {exc.message}",
        ) from None


def check_boot_mode(conf: Conf, properties: Json | None) -> None:
    """Refuse to enrol what asks for a boot mode that the operator has ruled out."""
    refused = conf.api.disallowed_enrollment_boot_modes
    asked = capabilities.of(properties).get("boot_mode") if refused else None
    if asked in refused:
        raise errors.BootModeNotAllowed(mode=asked, option="[api]disallowed_enrollment_boot_modes")


def check_chassis(ctx: Context, uuid: str) -> None:
    with ctx.services.db.read() as conn:
        known = db.chassis_exists(conn, uuid)
    if not known:
        raise errors.InvalidParameterValue(
            reason=f"cannot set chassis_uuid to {uuid}: Chassis {uuid} could not be found.",
        )


def parent_uuid(ctx: Context, ident: str, owner: str | None) -> str:
    """Return the UUID of the node that is to be a parent; it must have the same owner."""
    uuid = lookup.uuid_in_body(ctx, ident, "parent_node")
    parent = lookup.row(ctx, uuid, ("owner",))
    if parent.owner != owner:
        raise errors.InvalidParameterValue(
            reason=f"cannot set parent_node to {ident}: it has another owner",
        )
    return uuid


def check_name(name: Any, version: int) -> None:
    """A name that is set must be one; DELETE clears nothing, a patch's ``remove`` does."""
    idents.check_node_name(name, host_name=version < ANY_NAME_SINCE)
