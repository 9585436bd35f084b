"""The properties and attributes of OS::Ironic::Instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import (
    Attribute,
    Drift,
    OnChange,
    Plans,
    Policy,
    Schema,
    Type,
    updatable,
)

CREATE_FIRST, DELETE_FIRST = "create_first", "delete_first"
PLACES: Final = ("allocation", "node", "selector")


def _text(
    on_change: OnChange | Policy, drift: Drift, description: str, *allowed: str, **more: Any
) -> Schema:
    rules = [constraints.AllowedValues(list(allowed))] if allowed else ()
    return updatable(Type.STRING, on_change, drift, description, constraints=rules, **more)


def _seconds(description: str, default: int) -> Schema:
    return Schema(Type.NUMBER, description, default=default,
                  constraints=[constraints.Range(min=1)])  # fmt: skip


_STRING: Final = Schema(Type.STRING)
SELECTOR: Final = {
    "resource_class": Schema(Type.STRING, "The class of the node.", required=True),
    "traits": Schema(Type.LIST, "What the node must have.", schema=_STRING),
    "candidate_nodes": Schema(Type.LIST, "UUIDs or names: one of these.", schema=_STRING),
    "exclude_nodes": Schema(Type.LIST, "UUIDs or names: none of these.", schema=_STRING),
}
SPREAD: Final = {
    "by": Schema(
        Type.STRING, "What it shares with as few others as can be.", required=True,
        constraints=[constraints.AllowedValues(["conductor_group", "shard", "chassis"])],
    ),
    "number": Schema(Type.INTEGER, "Its number among them.", required=True,
                     constraints=[constraints.Range(min=0)]),
}  # fmt: skip
IMAGE: Final = {
    "source": Schema(Type.STRING, "URL of the image."),
    "checksum": Schema(Type.STRING, "Its checksum, or a URL of one."),
    "os_hash_algo": Schema(Type.STRING, "Algorithm of os_hash_value, such as sha256."),
    "os_hash_value": Schema(Type.STRING, "Its hash."),
    "type": Schema(Type.STRING, "whole-disk or partition.",
                   constraints=[constraints.AllowedValues(["whole-disk", "partition"])]),
    "disk_format": Schema(Type.STRING, "raw, qcow2 and so on."),
    "kernel": Schema(Type.STRING, "URL of the kernel of a partition image."),
    "ramdisk": Schema(Type.STRING, "URL of the ramdisk of a partition image."),
    "rootfs_uuid": Schema(Type.STRING, "UUID of the root file system."),
    "download_source": Schema(Type.STRING, "Who downloads it: http, local or swift."),
    "boot_iso": Schema(Type.STRING, "URL of an ISO that the machine runs from, with no disk."),
}  # fmt: skip
USER: Final = {
    "name": Schema(Type.STRING, "Login name.", required=True),
    "ssh_keys": Schema(Type.LIST, "Public keys.", schema=_STRING),
    "sudo": Schema(Type.STRING, "A rule of sudo."),
    "password_hash": Schema(Type.STRING, "A hash as in /etc/shadow."),
}
NETWORK: Final = {
    "vif": Schema(Type.STRING, "Id of the virtual interface.", required=True),
    "port": Schema(Type.STRING, "UUID of the port that it goes to."),
    "physical_network": Schema(Type.STRING, "Where the port is that it goes to, in its place."),
    "fixed_ip": Schema(Type.STRING, "The address that it has."),
}
TEARDOWN: Final = {
    "secure_power_off": Schema(
        Type.STRING, "soft: the system shuts down before; hard: it does not.", default="hard",
        constraints=[constraints.AllowedValues(["soft", "hard"])],
    ),
    "soft_timeout": Schema(
        Type.NUMBER, "Seconds that shutting down may take.", default=120,
        constraints=[constraints.Range(min=1)],
    ),
    "keep_allocation": Schema(
        Type.BOOLEAN, "Set the node aside again for the allocation that is named.", default=False
    ),
    "wait_for_cleaning": Schema(Type.BOOLEAN, "End when the node is clean.", default=False),
}  # fmt: skip
TIMEOUTS: Final = {
    "allocate": _seconds("Seconds until a node is set aside.", 300),
    "deploy": _seconds("Seconds until it is active.", 5400),
    "service": _seconds("Seconds until the runbook after it has ended.", 7200),
    "first_boot": Schema(
        Type.NUMBER, "Seconds until it has come up, in place of those of the handle.",
        constraints=[constraints.Range(min=1)],
    ),
    "teardown": _seconds("Seconds until the instance is gone.", 1800),
    "clean": _seconds("Seconds until the node is clean.", 7200),
    "power": _seconds("Seconds until it is switched on or off.", 600),
}  # fmt: skip
RETRY: Final = {
    "attempts": Schema(Type.INTEGER, "How often it is deployed at most.", default=2,
                       constraints=[constraints.Range(min=1, max=10)]),
    "other_node": Schema(Type.BOOLEAN, "Take another node, where a selector says which.",
                         default=True),
    "quarantine_failed": Schema(
        Type.BOOLEAN, "Put a node that failed into maintenance when another one is taken.",
        default=True,
    ),
}  # fmt: skip

LATER, PATCH, REBUILD = OnChange.LATER, OnChange.PATCH, OnChange.REBUILD
UNSEEN, FIELD, OWN = Drift.NONE, Drift.FIELD, Drift.OWN
IMAGE_POLICY: Final = Policy("image_update_policy", {
    "rebuild": REBUILD, "rebuild_preserve_ephemeral": REBUILD, "replace": OnChange.REPLACE,
    "ignore": LATER,
})  # fmt: skip
DRIVE_POLICY: Final = Policy(
    "user_data_update_policy",
    {"rebuild": REBUILD, "ignore": LATER, "replace": OnChange.REPLACE},
)

PROPERTIES: Final[Mapping[str, Schema]] = {
    # columns: the effect of a change, the comparison by checks (FIELD: a key of instance_info)
    "allocation": Schema(
        Type.STRING, "UUID or name of the allocation whose node it runs on.", drift=UNSEEN
    ),
    "node": Schema(
        Type.STRING, "UUID or name of the node that it runs on.", drift=UNSEEN, plans=Plans.NODE
    ),
    "selector": Schema(
        Type.MAP, "What node is looked for, where none is named.", schema=SELECTOR, drift=UNSEEN,
        plans=Plans.MACHINE,
    ),
    "spread": updatable(
        Type.MAP, LATER, UNSEEN,
        "Instances with different numbers are on nodes of different groups, shards or chassis, "
        "if such nodes are free; it counts where a selector looks for a node.", schema=SPREAD,
    ),
    "name": _text(PATCH, OWN, "Name of the instance; its host name, too."),
    "image": updatable(
        Type.MAP, IMAGE_POLICY, OWN, "What is written to the disk.", schema=IMAGE
    ),
    "image_update_policy": _text(
        LATER, UNSEEN, "What another image does.", *IMAGE_POLICY.changes,
        default="rebuild", plans=Plans.VERBS,
    ),
    "root_device": updatable(Type.MAP, REBUILD, FIELD, "Hints at the root disk."),
    "root_gb": updatable(Type.INTEGER, REBUILD, FIELD, "Size of the root partition."),
    "swap_mb": updatable(Type.INTEGER, REBUILD, FIELD, "Size of the swap partition."),
    "ephemeral_gb": updatable(Type.INTEGER, REBUILD, FIELD, "Size of the ephemeral partition."),
    "boot_mode": _text(REBUILD, OWN, "How it boots.", "bios", "uefi"),
    "secure_boot": updatable(Type.BOOLEAN, REBUILD, OWN, "Boots only what is signed."),
    "capabilities": updatable(
        Type.MAP, REBUILD, OWN, "Further capabilities that the deployment is asked for."
    ),
    "configdrive": _text(
        DRIVE_POLICY, UNSEEN, "A whole config drive: base64, or a URL.", secret=True
    ),
    "user_data": _text(
        DRIVE_POLICY, UNSEEN, "A script or cloud-config for the first boot.", secret=True
    ),
    "meta_data": updatable(
        Type.MAP, DRIVE_POLICY, UNSEEN, "Metadata for the first boot; hostname and keys are added.",
    ),
    "network_data": updatable(
        Type.ANY, DRIVE_POLICY, UNSEEN,
        "network_data.json for the first boot; auto: of the node's ports and networks.",
    ),
    "ssh_keys": updatable(
        Type.LIST, DRIVE_POLICY, UNSEEN, "Public keys of the default user.", schema=_STRING
    ),
    "users": updatable(
        Type.LIST, DRIVE_POLICY, UNSEEN, "Users to be made.",
        schema=Schema(Type.MAP, schema=USER), secret=True,
    ),
    "user_data_update_policy": _text(
        LATER, UNSEEN, "What a change of any of the first boot's data does.",
        *DRIVE_POLICY.changes, default="ignore", plans=Plans.VERBS,
    ),
    "networks": updatable(
        Type.LIST, OnChange.ATTACH, UNSEEN, "Virtual interfaces to be attached.",
        schema=Schema(Type.MAP, schema=NETWORK),
    ),
    "traits": updatable(
        Type.LIST, REBUILD, FIELD,
        "Traits of the instance; deploy templates of these names run.", schema=_STRING,
    ),
    "deploy_steps": updatable(
        Type.LIST, REBUILD, UNSEEN, "Further steps of the deployment.", schema=Schema(Type.MAP)
    ),
    "custom_deploy": updatable(
        Type.MAP, REBUILD, OWN,
        "Interfaces of the node for this instance, such as {deploy: ramdisk}.",
    ),
    "power": _text(
        OnChange.POWER, OWN, "What it is to be when it is deployed.", "on", "off", default="on",
        plans=Plans.VERBS,
    ),
    "first_boot": _text(
        LATER, UNSEEN, "The OS::Ironic::FirstBoot that it is to signal when it has come up."
    ),
    "wait_for": _text(
        LATER, UNSEEN,
        "What its creation ends with; by default first_boot where that is named, else active.",
        "active", "first_boot", "none",
    ),
    "runbook_before": _text(
        LATER, UNSEEN,
        "UUID or name of a runbook that cleans the node before the first deployment on it.",
        plans=Plans.VERBS,
    ),
    "runbook_after": _text(
        LATER, UNSEEN, "UUID or name of a runbook that services it when it is deployed.",
        plans=Plans.VERBS,
    ),
    "protected": updatable(
        Type.BOOLEAN, PATCH, OWN, "Whether the node is protected; false takes the protection away.",
    ),
    "tags": updatable(Type.LIST, PATCH, FIELD, "Words of yours.", schema=_STRING),
    "extra": updatable(Type.MAP, PATCH, FIELD, "Notes of yours; they go with the instance."),
    "retry": updatable(Type.MAP, LATER, UNSEEN, "What a failed deployment does.", schema=RETRY),
    "replace_order": _text(
        LATER, UNSEEN,
        "create_first: the old machine goes when the new one runs; delete_first: it is given back "
        "before. By default delete_first where a node is named, or nothing else can be.",
        CREATE_FIRST, DELETE_FIRST,
    ),
    "teardown": updatable(
        Type.MAP, LATER, UNSEEN, "How the instance is taken away.", schema=TEARDOWN
    ),
    "suspend_mode": _text(
        LATER, UNSEEN, "What suspending the stack does.", "power_off", "soft_power_off", "none",
        default="soft_power_off",
    ),
    "timeouts": updatable(
        Type.MAP, LATER, UNSEEN, "How long each part may take.", schema=TIMEOUTS
    ),
}  # fmt: skip
DRIVE: Final = tuple(name for name, each in PROPERTIES.items() if each.on_change is DRIVE_POLICY)

ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "node_uuid": Attribute("The node.", Type.STRING),
    "node_name": Attribute("Its name.", Type.STRING),
    "allocation_uuid": Attribute("The allocation that it has.", Type.STRING),
    "provision_state": Attribute("State of the node.", Type.STRING),
    "power_state": Attribute("Power of the node.", Type.STRING),
    "health": Attribute("Health of the node.", Type.STRING),
    "instance_name": Attribute("Name of the instance.", Type.STRING),
    "boot_mode": Attribute("How it boots.", Type.STRING),
    "image": Attribute("What it runs.", Type.STRING),
    "addresses": Attribute("Addresses by virtual interface.", Type.MAP),
    "first_address": Attribute("The first of them.", Type.STRING),
    "mac_addresses": Attribute("Addresses of its ports.", Type.LIST),
    "console_url": Attribute("Where the console is, if it is on.", Type.STRING),
    "steps": Attribute("Step and duration of what its deployment did, in this order.", Type.LIST),
    "deploy_duration": Attribute("Seconds that it took.", Type.NUMBER),
    "first_boot_data": Attribute("What its signals brought, as JSON.", Type.STRING),
    "deployed_at": Attribute("When its deployment ended.", Type.STRING),
    "attempts": Attribute("How often it was deployed.", Type.INTEGER),
    "last_error": Attribute("What went wrong last on the node.", Type.STRING),
}
