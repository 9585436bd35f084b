"""The properties and attributes of OS::Ironic::Node, and their names in the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import (
    Attribute,
    Drift,
    OnChange,
    Plans,
    Schema,
    Type,
    drift_names,
    updatable,
)
from bloomery.orchestration.resources import step_run

INTERFACES: Final = (
    "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network",
    "power", "raid", "rescue", "storage", "vendor",
)  # fmt: skip
BOOT: Final = ("boot_mode", "secure_boot")  # settings that the BMC changes
PROTECTION: Final = ("protected", "protected_reason")  # of a node that is in use
PORT_FIELDS: Final = (
    "address", "pxe_enabled", "physical_network", "local_link_connection", "extra", "is_smartnic",
    "name",
)  # fmt: skip


def _seconds(description: str, default: int) -> Schema:
    return Schema(Type.NUMBER, description, default=default,
                  constraints=[constraints.Range(min=1)])  # fmt: skip


PORT: Final = {
    "address": Schema(Type.STRING, "The MAC address of the port.", required=True,
                      constraints=[constraints.Custom("mac_addr")]),
    "pxe_enabled": Schema(Type.BOOLEAN, "Whether PXE is enabled on the port."),
    "physical_network": Schema(Type.STRING, "The physical network of the port."),
    "local_link_connection": Schema(Type.MAP, "The switch and switch port of the cable."),
    "extra": Schema(Type.MAP, "Arbitrary metadata of the port."),
    "is_smartnic": Schema(Type.BOOLEAN, "Whether the port is a smart NIC."),
    "name": Schema(Type.STRING, "The name of the port."),
}  # fmt: skip
TIMEOUTS: Final = {
    "verify": _seconds("The timeout of verifying, in seconds.", 300),
    "inspect": _seconds("The timeout of inspection, in seconds.", 2400),
    "clean": _seconds("The timeout of cleaning, in seconds.", 7200),
}
MAINTENANCE: Final = {
    "enabled": Schema(Type.BOOLEAN, "Whether the node is in maintenance.", required=True),
    "reason": Schema(Type.STRING, "The reason of the maintenance."),
}

LATER, PATCH, RUN = OnChange.LATER, OnChange.PATCH, OnChange.RUN
UNSEEN, FIELD, LIVE, OWN = Drift.NONE, Drift.FIELD, Drift.LIVE, Drift.OWN

PROPERTIES: Final[Mapping[str, Schema]] = {
    "name": updatable(Type.STRING, PATCH, FIELD, "The name of the node.", plans=Plans.MACHINE),
    "driver": updatable(
        Type.STRING, PATCH, FIELD, "The hardware type, such as redfish.", required=True,
        plans=Plans.MACHINE
    ),
    "driver_info": updatable(
        Type.MAP, PATCH, FIELD, "Address and credentials of the BMC, kept as a secret.", secret=True
    ),
    "interfaces": updatable(
        Type.MAP, PATCH, OWN, "The interfaces of the driver by kind, such as {deploy: ramdisk}.",
        schema={kind: Schema(Type.STRING, f"The {kind} interface.") for kind in INTERFACES},
    ),
    "properties": updatable(Type.MAP, PATCH, FIELD, "Properties of the node, such as cpu_arch."),
    "resource_class": updatable(
        Type.STRING, PATCH, LIVE, "The resource class for allocations.", plans=Plans.MACHINE
    ),
    "traits": updatable(Type.LIST, PATCH, OWN, "Traits of the node.", schema=Schema(Type.STRING)),
    "conductor_group": updatable(
        Type.STRING, PATCH, FIELD, "The group of conductors that serve the node."
    ),
    "shard": updatable(Type.STRING, PATCH, LIVE, "The shard of the node."),
    "owner": updatable(Type.STRING, PATCH, LIVE, "The project that owns the node."),
    "lessee": updatable(Type.STRING, PATCH, LIVE, "The project that leases the node."),
    "description": updatable(Type.STRING, PATCH, LIVE, "A description of the node."),
    "chassis_uuid": updatable(Type.STRING, PATCH, FIELD, "The chassis of the node."),
    "parent_node": updatable(Type.STRING, PATCH, FIELD, "The parent node of the node."),
    "automated_clean": updatable(
        Type.BOOLEAN, PATCH, LIVE, "Whether automated cleaning runs before the node is available."
    ),
    "disable_power_off": updatable(Type.BOOLEAN, PATCH, LIVE, "Never power the node off."),
    "network_data": updatable(Type.MAP, PATCH, FIELD, "Network data of the ramdisk."),
    "boot_mode": updatable(
        Type.STRING, RUN, OWN, "The boot mode; set while no instance is on the node.",
        constraints=[constraints.AllowedValues(["bios", "uefi"])], plans=Plans.VERBS,
    ),
    "secure_boot": updatable(
        Type.BOOLEAN, RUN, OWN, "The secure boot mode; set while no instance is on the node.",
        plans=Plans.VERBS,
    ),
    "protected": updatable(
        Type.BOOLEAN, PATCH, OWN,
        "Whether an instance on the node is protected from rebuild and undeploying."
    ),
    "protected_reason": updatable(Type.STRING, PATCH, OWN, "The reason of the protection."),
    "retired": updatable(
        Type.BOOLEAN, RUN, LIVE, "Whether the node is retired, and not made available again.",
        plans=Plans.VERBS,
    ),
    "retired_reason": updatable(Type.STRING, PATCH, LIVE, "The reason of the retirement."),
    "maintenance": updatable(Type.MAP, PATCH, OWN, "Maintenance of the node.", schema=MAINTENANCE),
    "extra": updatable(Type.MAP, PATCH, FIELD, "Arbitrary metadata of the node."),
    "ports": updatable(
        Type.LIST, PATCH, OWN, "The ports of the node.", schema=Schema(Type.MAP, schema=PORT)
    ),
    "target_state": updatable(
        Type.STRING, RUN, OWN, "The provision state to bring the node to.", default="available",
        constraints=[constraints.AllowedValues(["enroll", "manageable", "available"])],
        plans=Plans.VERBS,
    ),
    "inspect": updatable(
        Type.STRING, RUN, UNSEEN,
        "When to inspect; always: also after a change of driver, driver_info or interfaces.",
        default="once",
        constraints=[constraints.AllowedValues(["none", "once", "always"])], plans=Plans.VERBS,
    ),
    "hardware_configuration": updatable(
        Type.MAP, RUN, UNSEEN,
        "Firmware, BIOS, RAID and further steps of a cleaning before the node is available.",
        schema={
            name: step_run.HardwareConfiguration.properties_schema[name]
            for name in (*step_run.SECTIONS, "allow_destructive")
        }, plans=Plans.VERBS,
    ),
    "timeouts": updatable(
        Type.MAP, LATER, UNSEEN, "The timeouts of the phases, in seconds.", schema=TIMEOUTS
    ),
    "on_delete": updatable(
        Type.STRING, LATER, UNSEEN, "The action on the node in a delete.", default="delete",
        constraints=[constraints.AllowedValues(["delete", "retire", "keep"])], plans=Plans.VERBS,
    ),
}  # fmt: skip
PLAIN: Final = drift_names(PROPERTIES, FIELD, LIVE)  # of the same name in POST and PATCH
CONVERGED: Final = drift_names(PROPERTIES, LIVE)

_SHOWN: Final[Mapping[str, tuple[str, Type]]] = {
    "uuid": ("The UUID of the node.", Type.STRING),
    "provision_state": ("The provision state of the node.", Type.STRING),
    "target_provision_state": ("The target of the current transition.", Type.STRING),
    "power_state": ("The power state of the node.", Type.STRING),
    "health": ("The health of the node, as the BMC reports it.", Type.STRING),
    "maintenance": ("Whether the node is in maintenance.", Type.BOOLEAN),
    "fault": ("The fault of the node.", Type.STRING),
    "last_error": ("The last error of the node.", Type.STRING),
    "reservation": ("The conductor that holds the lock of the node.", Type.STRING),
    "instance_uuid": ("The UUID of the instance on the node.", Type.STRING),
    "allocation_uuid": ("The UUID of the allocation of the node.", Type.STRING),
    "traits": ("The traits of the node.", Type.LIST),
    "boot_mode": ("The boot mode of the node.", Type.STRING),
    "secure_boot": ("Whether secure boot is enabled.", Type.BOOLEAN),
    "inventory": ("The inventory and plugin_data of the last inspection.", Type.MAP),
    "console_url": ("The URL of the console, if enabled.", Type.STRING),
    "properties": ("The properties of the node, with those from inspection.", Type.MAP),
    "ports": ("The MAC addresses of the node's ports.", Type.LIST),
    "timings": ("The last durations of verify, inspect and clean, in seconds.", Type.MAP),
}
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    name: Attribute(description, kind) for name, (description, kind) in _SHOWN.items()
}
