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
    "address": Schema(Type.STRING, "MAC address.", required=True,
                      constraints=[constraints.Custom("mac_addr")]),
    "pxe_enabled": Schema(Type.BOOLEAN, "Boots from the network."),
    "physical_network": Schema(Type.STRING, "The physical network that it is in."),
    "local_link_connection": Schema(Type.MAP, "Where the other end of the cable is."),
    "extra": Schema(Type.MAP, "Notes of yours."),
    "is_smartnic": Schema(Type.BOOLEAN, "Is a smart NIC."),
    "name": Schema(Type.STRING, "A name for it."),
}  # fmt: skip
TIMEOUTS: Final = {
    "verify": _seconds("Seconds until the BMC has answered.", 300),
    "inspect": _seconds("Seconds until it is inspected.", 2400),
    "clean": _seconds("Seconds until it is clean.", 7200),
}
MAINTENANCE: Final = {
    "enabled": Schema(Type.BOOLEAN, "Leave it alone.", required=True),
    "reason": Schema(Type.STRING, "Why."),
}

LATER, PATCH, RUN = OnChange.LATER, OnChange.PATCH, OnChange.RUN
UNSEEN, FIELD, LIVE, OWN = Drift.NONE, Drift.FIELD, Drift.LIVE, Drift.OWN

PROPERTIES: Final[Mapping[str, Schema]] = {
    "name": updatable(Type.STRING, PATCH, FIELD, "Name of the node.", plans=Plans.MACHINE),
    "driver": updatable(
        Type.STRING, PATCH, FIELD, "The hardware type, such as redfish.", required=True,
        plans=Plans.MACHINE
    ),
    "driver_info": updatable(
        Type.MAP, PATCH, FIELD, "How the BMC is reached; it is kept as a secret.", secret=True
    ),
    "interfaces": updatable(
        Type.MAP, PATCH, OWN, "Interfaces of the driver by kind, such as {deploy: ramdisk}.",
        schema={kind: Schema(Type.STRING, f"The {kind} interface.") for kind in INTERFACES},
    ),
    "properties": updatable(Type.MAP, PATCH, FIELD, "Properties of the machine, such as cpu_arch."),
    "resource_class": updatable(
        Type.STRING, PATCH, LIVE, "The class by which it is asked for.", plans=Plans.MACHINE
    ),
    "traits": updatable(Type.LIST, PATCH, OWN, "What it has.", schema=Schema(Type.STRING)),
    "conductor_group": updatable(
        Type.STRING, PATCH, FIELD, "The group of conductors that serve it."
    ),
    "shard": updatable(Type.STRING, PATCH, LIVE, "The shard that it is in."),
    "owner": updatable(Type.STRING, PATCH, LIVE, "The project that owns it."),
    "lessee": updatable(Type.STRING, PATCH, LIVE, "The project that it is lent to."),
    "description": updatable(Type.STRING, PATCH, LIVE, "What it is for."),
    "chassis_uuid": updatable(Type.STRING, PATCH, FIELD, "The chassis that it is in."),
    "parent_node": updatable(Type.STRING, PATCH, FIELD, "The node that it is a part of."),
    "automated_clean": updatable(Type.BOOLEAN, PATCH, LIVE, "Clean it before it is available."),
    "disable_power_off": updatable(Type.BOOLEAN, PATCH, LIVE, "Never switch it off."),
    "network_data": updatable(Type.MAP, PATCH, FIELD, "network_data.json of the machine."),
    "boot_mode": updatable(
        Type.STRING, RUN, OWN, "How it boots; set while nobody has it.",
        constraints=[constraints.AllowedValues(["bios", "uefi"])], plans=Plans.VERBS,
    ),
    "secure_boot": updatable(
        Type.BOOLEAN, RUN, OWN, "Boots only what is signed; set while nobody has it.",
        plans=Plans.VERBS,
    ),
    "protected": updatable(
        Type.BOOLEAN, PATCH, OWN,
        "Whether a system that is on it may be neither rebuilt nor taken away."
    ),
    "protected_reason": updatable(Type.STRING, PATCH, OWN, "Why it is protected."),
    "retired": updatable(
        Type.BOOLEAN, RUN, LIVE, "Do not make it available again; it stays manageable at most.",
        plans=Plans.VERBS,
    ),
    "retired_reason": updatable(Type.STRING, PATCH, LIVE, "Why it is retired."),
    "maintenance": updatable(Type.MAP, PATCH, OWN, "Whether it is left alone.", schema=MAINTENANCE),
    "extra": updatable(Type.MAP, PATCH, FIELD, "Notes of yours."),
    "ports": updatable(
        Type.LIST, PATCH, OWN, "Its network ports.", schema=Schema(Type.MAP, schema=PORT)
    ),
    "target_state": updatable(
        Type.STRING, RUN, OWN, "How far to bring it.", default="available",
        constraints=[constraints.AllowedValues(["enroll", "manageable", "available"])],
        plans=Plans.VERBS,
    ),
    "inspect": updatable(
        Type.STRING, RUN, UNSEEN,
        "When it is inspected; always: also when driver_info or interfaces change.", default="once",
        constraints=[constraints.AllowedValues(["none", "once", "always"])], plans=Plans.VERBS,
    ),
    "hardware_configuration": updatable(
        Type.MAP, RUN, UNSEEN,
        "Firmware, BIOS, RAID and further steps, by cleaning, before it is available.",
        schema={
            name: step_run.HardwareConfiguration.properties_schema[name]
            for name in (*step_run.SECTIONS, "allow_destructive")
        }, plans=Plans.VERBS,
    ),
    "timeouts": updatable(Type.MAP, LATER, UNSEEN, "How long each part may take.", schema=TIMEOUTS),
    "on_delete": updatable(
        Type.STRING, LATER, UNSEEN, "What is done with it in the end.", default="delete",
        constraints=[constraints.AllowedValues(["delete", "retire", "keep"])], plans=Plans.VERBS,
    ),
}  # fmt: skip
PLAIN: Final = drift_names(PROPERTIES, FIELD, LIVE)  # of the same name in POST and PATCH
CONVERGED: Final = drift_names(PROPERTIES, LIVE)

_SHOWN: Final[Mapping[str, tuple[str, Type]]] = {
    "uuid": ("Its UUID.", Type.STRING),
    "provision_state": ("Where it stands.", Type.STRING),
    "target_provision_state": ("Where it is on its way to.", Type.STRING),
    "power_state": ("Its power.", Type.STRING),
    "health": ("Its health, as the BMC says.", Type.STRING),
    "maintenance": ("Whether it is left alone.", Type.BOOLEAN),
    "fault": ("What is wrong with it.", Type.STRING),
    "last_error": ("What went wrong last.", Type.STRING),
    "reservation": ("The conductor that works at it.", Type.STRING),
    "instance_uuid": ("The instance on it.", Type.STRING),
    "allocation_uuid": ("The allocation that it is set aside for.", Type.STRING),
    "traits": ("What it has.", Type.LIST),
    "boot_mode": ("How it boots.", Type.STRING),
    "secure_boot": ("Whether it boots only what is signed.", Type.BOOLEAN),
    "inventory": ("What the last inspection read: inventory and plugin_data.", Type.MAP),
    "console_url": ("Where its console is, if that is on.", Type.STRING),
    "properties": ("Properties of the machine, as inspection found them.", Type.MAP),
    "ports": ("The addresses of its ports.", Type.LIST),
    "timings": ("Seconds that verify, inspect and clean took last.", Type.MAP),
}
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    name: Attribute(description, kind) for name, (description, kind) in _SHOWN.items()
}
