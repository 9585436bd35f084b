"""The operators of actions, which change the draft of an inspection."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import orjson

from bloomery import errors, secrets
from bloomery.inspection import paths
from bloomery.inspection.draft import Draft
from bloomery.model import node as node_model
from bloomery.model import port as port_model
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import nodes as node_rules
from bloomery.model.rules.attributes import Checker

Json = dict[str, Any]
Change = Callable[..., None]  # of ``paths``: puts a value below a holder, extends or removes it
LOG = logging.getLogger(__name__)

_MOST_BYTES: Final = 1 << 20  # of a changed field as JSON
_PORTS: Final = Checker("port", port_model.FIELDS)
_NODE_PARTS: Final = {f.name: f for f in dataclasses.fields(Node)}
_PORT_PARTS: Final = {f.name: f for f in dataclasses.fields(Port)}
NODE_FIELDS: Final = node_model.PATCHABLE - {"instance_uuid", "chassis_uuid", "parent_node"}
PORT_FIELDS: Final = frozenset(
    {"extra", "pxe_enabled", "local_link_connection", "physical_network", "is_smartnic", "name",
     "description", "vendor", "category"}
)  # fmt: skip


# -------------------------------------------------------------------------- failures and the log


def _fail(_draft: Draft, msg: str) -> None:
    raise errors.HardwareInspectionFailure(reason=msg)


def _log(draft: Draft, msg: str, level: str = "info") -> None:
    line = " ".join(str(secrets.mask(msg)).split())
    LOG.log(getattr(logging, level.upper()), "node %s: %s", draft.node.uuid, line)


# ------------------------------------------------------------------------------------ of the node


def _change_node(change: Change, draft: Draft, path: str, **how: Any) -> None:
    changed = _changed("node", draft.node, path, NODE_FIELDS, partial(change, **how))
    for name, value in changed.items():
        stored = _default(_NODE_PARTS[name]) if value is None else node_rules.stored(name, value)
        setattr(draft.node, name, stored)


def _changed(
    noun: str,
    record: Any,
    path: str,
    fields: frozenset[str],
    change: Change,
) -> Json:
    """Return the changed field that a path leads into, with None for a removed one.

    The field is changed in place, as a failure discards the draft.  Raises Invalid.
    """
    names = _checked_path(noun, path, fields)
    name = names[0]
    holder = {name: getattr(record, name)}
    change(holder, names)
    value = holder.get(name)
    if isinstance(value, dict | list) and len(orjson.dumps(value)) > _MOST_BYTES:
        raise errors.Invalid(reason=f"{name} would be larger than {_MOST_BYTES >> 10} KiB")
    return {name: value}


def _checked_path(noun: str, path: str, fields: frozenset[str]) -> list[str]:
    names = paths.parse(path)
    if names[0] not in fields:
        raise errors.Invalid(
            reason=f"cannot change {names[0][:255]} of a {noun}: rules may change "
            f"{', '.join(sorted(fields))}",
        )
    return names


def check_path(op: str, path: str) -> None:
    """Raise Invalid if the operator may not change ``path``."""
    if op.endswith("-port-attribute"):
        _checked_path("port", path, PORT_FIELDS)
    elif op.endswith("-attribute"):
        _checked_path("node", path, NODE_FIELDS)
    else:
        paths.parse(path)


def _default(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field.  Raises Invalid for a required one."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise errors.Invalid(reason=f"{field.name} cannot be removed")
    return field.default


def _set_capability(draft: Draft, name: str, value: Any) -> None:
    draft.set_capability(_capability("name", name), _capability("value", str(value)))


def _unset_capability(draft: Draft, name: str) -> None:
    draft.set_capability(name, None)


def _capability(what: str, text: str) -> str:
    if "," in text or (what == "name" and ":" in text) or not text.strip():
        raise errors.Invalid(
            reason=f"cannot take {text[:255]!r} as the {what} of a capability: it takes a text "
            "without commas, and a name none of colons",
        )
    return text.strip()


def _add_trait(draft: Draft, name: str) -> None:
    node_rules.check_trait(name)
    traits = tuple(sorted({*draft.node.traits, name}))
    if len(traits) > node_rules.MOST_TRAITS:
        raise errors.Invalid(reason=f"a node has at most {node_rules.MOST_TRAITS} traits")
    draft.node.traits = traits


def _remove_trait(draft: Draft, name: str) -> None:
    draft.node.traits = tuple(trait for trait in draft.node.traits if trait != name)


# ------------------------------------------------------------------------------------ of the data


def _change_plugin_data(change: Change, draft: Draft, path: str, **how: Any) -> None:
    change(draft.plugin_data, paths.parse(path), **how)


# -------------------------------------------------------------------------------------- of a port


def _change_port(change: Change, draft: Draft, port_id: str, path: str, **how: Any) -> None:
    """Change a field of a port, named by its UUID or its address."""
    idents = (port_id, port_id.lower())
    port = next((p for p in draft.all_ports if p.uuid == port_id or p.address in idents), None)
    if port is None:
        raise errors.Invalid(reason=f"the node has no port {port_id[:255]}")
    changed = _changed("port", port, path, PORT_FIELDS, partial(change, **how))
    for name, value in changed.items():
        stored = _default(_PORT_PARTS[name]) if value is None else _PORTS.cleaned(name, value)
        setattr(port, name, stored)


OPERATORS: Final[Mapping[str, Callable[..., None]]] = {
    "fail": _fail,
    "log": _log,
    "set-attribute": partial(_change_node, paths.put),
    "extend-attribute": partial(_change_node, paths.extend),
    "del-attribute": partial(_change_node, paths.remove),
    "set-capability": _set_capability,
    "unset-capability": _unset_capability,
    "add-trait": _add_trait,
    "remove-trait": _remove_trait,
    "set-plugin-data": partial(_change_plugin_data, paths.put),
    "extend-plugin-data": partial(_change_plugin_data, paths.extend),
    "unset-plugin-data": partial(_change_plugin_data, paths.remove),
    "set-port-attribute": partial(_change_port, paths.put),
    "extend-port-attribute": partial(_change_port, paths.extend),
    "del-port-attribute": partial(_change_port, paths.remove),
}
