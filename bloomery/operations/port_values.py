"""What a port's attributes may be set to, beyond their form."""

from __future__ import annotations

import re
from typing import Any, Final

from bloomery import errors
from bloomery.model.rules import idents
from bloomery.model.rules import ports as rules
from bloomery.operations import lookup, versions
from bloomery.operations.context import Context

Json = dict[str, Any]

LINK_KEYS: Final = frozenset(
    {
        "port_id", "switch_id", "hostname", "switch_info", "network_type",
        "vtep-logical-switch", "vtep-physical-switch",
    },
)  # fmt: skip
LINK_FORMS: Final[tuple[tuple[frozenset[str], frozenset[str]], ...]] = (
    (frozenset({"port_id", "switch_id"}), frozenset({"switch_info"})),
    (frozenset({"port_id", "hostname"}), frozenset()),
)  # required keys, optional keys
VTEP: Final = frozenset({"vtep-logical-switch", "vtep-physical-switch"})
VTEP_SINCE, VTEP_UNTIL = 90, 105
NETWORK_TYPE_SINCE: Final = 64
_DATAPATH_ID: Final = re.compile(r"[0-9a-fA-F]{16}")
# What PATCH refuses below its version; the others are taken and not shown, as in the reference.
PATCH_GATED: Final = frozenset(
    {
        "pxe_enabled",
        "local_link_connection",
        "portgroup_uuid",
        "physical_network",
        "is_smartnic",
    },
)


def cleaned(ctx: Context, name: str, value: Any) -> Any:
    """Return a value as it is stored.  Raises Invalid, naming the attribute."""
    value = rules.ATTRIBUTES.cleaned(name, value)
    if name == "address":
        return idents.mac(value)
    if name == "local_link_connection":
        check_link(ctx, value)
    if name == "node_uuid" and value is not None:
        return lookup.uuid_in_body(ctx, value, "node_uuid")
    return value


def check_link(ctx: Context, link: Json | None) -> None:
    """Refuse a local_link_connection that has none of the known forms."""
    if not link:
        return
    given = frozenset(link)
    if "network_type" in given:
        versions.require(ctx.version, NETWORK_TYPE_SINCE, "local_link_connection.network_type")
    if given & VTEP:
        _check_vtep(ctx.version)
    if given - LINK_KEYS:
        raise _bad_link(f"unknown keys {', '.join(sorted(given - LINK_KEYS))}")
    if not _has_form(link, given):
        raise _bad_link(f"the keys {', '.join(sorted(given))} fit none of the forms")
    if "switch_id" in link and not _is_switch_id(link["switch_id"]):
        raise _bad_link("switch_id must be a MAC address or 16 hexadecimal digits")


def _check_vtep(version: int) -> None:
    versions.require(version, VTEP_SINCE, "VTEP keys of local_link_connection")
    if version >= VTEP_UNTIL:
        raise errors.NotAcceptable(
            reason=f"cannot use VTEP keys of local_link_connection from version 1.{VTEP_UNTIL} on",
        )


def _has_form(link: Json, given: frozenset[str]) -> bool:
    if given == {"network_type"}:
        return bool(link["network_type"] == "unmanaged")
    if given >= VTEP:
        return given <= VTEP | {"port_id", "switch_id", "network_type"}
    plain = given - {"network_type"}
    return any(needed <= plain <= needed | more for needed, more in LINK_FORMS)


def _is_switch_id(value: Any) -> bool:
    return isinstance(value, str) and (
        idents.is_mac(value) or _DATAPATH_ID.fullmatch(value) is not None
    )


def _bad_link(problem: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        reason=f"Schema error for local_link_connection: {problem}; allowed are {{}}, port_id "
        "with switch_id (and switch_info), port_id with hostname, or network_type unmanaged",
    )
