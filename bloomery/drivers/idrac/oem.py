"""Dell's services of an iDRAC, which its manager links to, and their actions."""

from __future__ import annotations

from typing import Any, TypeAlias

from bloomery import errors
from bloomery.drivers.redfish import reading

Json: TypeAlias = dict[str, Any]


def manager(system: Any) -> Json:
    """Return the document of the system's iDRAC; {} where it links to none."""
    first = next(reading.managers(system), None)
    return {} if first is None else first.json


def service(system: Any, name: str) -> Json:
    """Return the document of a service such as DellJobService; {} where there is none."""
    return reading.follow(system, _links(system), name)


def attributes_path(system: Any) -> str | None:
    """Return the path of the iDRAC's own attributes; None where there are none."""
    links = _links(system).get("DellAttributes") or ()
    paths = (str(link.get("@odata.id")) for link in links if isinstance(link, dict))
    return next((path for path in paths if path.rpartition("/")[2].startswith("iDRAC")), None)


def _links(system: Any) -> Json:
    links: Any = manager(system)
    for name in ("Links", "Oem", "Dell"):
        links = links.get(name) or {}
    return dict(links)


def act(system: Any, name: str, action: str, **values: str) -> Any:
    """Carry out an action of a service; return the answer.

    Raises InvalidParameterValue where the iDRAC does not offer it.
    """
    offered = (service(system, name).get("Actions") or {}).get(f"#{name}.{action}") or {}
    if not offered.get("target"):
        raise errors.InvalidParameterValue(
            reason=f"its BMC offers no {action} of {name}: that needs an iDRAC with firmware 4.00 "
            "or newer",
        )
    return system.root._conn.post(offered["target"], data=values)  # noqa: SLF001  sushy has no class
