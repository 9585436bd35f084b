"""The properties and attributes of OS::Ironic::Instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.presence import AtLeastOne, ExactlyOne, Excludes
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
CONTINUE, PAUSE = "continue", "pause"  # of a drain, on_timeout
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
    "resource_class": Schema(Type.STRING, "The resource class of the node.", required=True),
    "traits": Schema(Type.LIST, "The required traits of the node.", schema=_STRING),
    "candidate_nodes": Schema(
        Type.LIST, "The nodes to choose from, by UUID or name.", schema=_STRING
    ),
    "exclude_nodes": Schema(Type.LIST, "The nodes to exclude, by UUID or name.", schema=_STRING),
}
SPREAD: Final = {
    "by": Schema(
        Type.STRING, "The failure domain that instances are spread over.", required=True,
        constraints=[constraints.AllowedValues(["conductor_group", "shard", "chassis"])],
    ),
    "number": Schema(Type.INTEGER, "The number that selects the domain.", required=True,
                     constraints=[constraints.Range(min=0)]),
}  # fmt: skip
IMAGE: Final = {
    "source": Schema(Type.STRING, "The URL of the image."),
    "checksum": Schema(Type.STRING, "The checksum of the image, or the URL of a checksum file."),
    "os_hash_algo": Schema(Type.STRING, "Algorithm of os_hash_value, such as sha256."),
    "os_hash_value": Schema(Type.STRING, "The hash of the image."),
    "type": Schema(Type.STRING, "The type of the image: whole-disk or partition.",
                   constraints=[constraints.AllowedValues(["whole-disk", "partition"])]),
    "disk_format": Schema(Type.STRING, "The disk format of the image, such as raw or qcow2."),
    "kernel": Schema(Type.STRING, "URL of the kernel of a partition image."),
    "ramdisk": Schema(Type.STRING, "URL of the ramdisk of a partition image."),
    "rootfs_uuid": Schema(Type.STRING, "The UUID of the root file system."),
    "download_source": Schema(Type.STRING, "The image download source: http, local or swift."),
    "boot_iso": Schema(Type.STRING, "The URL of an ISO that the node boots from, without a disk."),
}  # fmt: skip
USER: Final = {
    "name": Schema(Type.STRING, "Login name.", required=True),
    "ssh_keys": Schema(Type.LIST, "The public SSH keys of the user.", schema=_STRING),
    "sudo": Schema(Type.STRING, "The sudo rule of the user."),
    "password_hash": Schema(Type.STRING, "The password hash, as in /etc/shadow."),
}
NETWORK: Final = {
    "vif": Schema(Type.STRING, "The ID of the virtual interface (VIF).", required=True),
    "port": Schema(Type.STRING, "The UUID of the port to attach to."),
    "physical_network": Schema(Type.STRING, "The physical network of the port, instead of port."),
    "fixed_ip": Schema(Type.STRING, "The static IP address, such as 192.0.2.5/24; else DHCP."),
}
TEARDOWN: Final = {
    "secure_power_off": Schema(
        Type.STRING, "soft: shut the system down before undeploying; hard: do not.", default="hard",
        constraints=[constraints.AllowedValues(["soft", "hard"])],
    ),
    "soft_timeout": Schema(
        Type.NUMBER, "The timeout of a soft power off, in seconds.", default=120,
        constraints=[constraints.Range(min=1)],
    ),
    "keep_allocation": Schema(
        Type.BOOLEAN, "Whether to create the named allocation again, for the same node.",
        default=False
    ),
    "wait_for_cleaning": Schema(
        Type.BOOLEAN, "Whether to wait until the node is clean.", default=False
    ),
}  # fmt: skip
DRAIN: Final = {
    "url": Schema(
        Type.STRING, "The URL of the webhook, http or https.", required=True,
        constraints=[constraints.AllowedPattern("https?://[!-~]+")],
    ),
    "secret": Schema(
        Type.STRING, "The secret that signs the webhook: 24 to 64 bytes in base64.", required=True,
        constraints=[constraints.AllowedPattern("(whsec_)?[A-Za-z0-9+/]{32,86}={0,2}")],
    ),
    "timeout": _seconds("Seconds until on_timeout, from the beginning of the drain.", 600),
    "on_timeout": Schema(
        Type.STRING, "What follows without a clearance: continue, or pause until a signal.",
        default=PAUSE, constraints=[constraints.AllowedValues([CONTINUE, PAUSE])],
    ),
}  # fmt: skip
TIMEOUTS: Final = {
    "allocate": _seconds("The timeout of the allocation, in seconds.", 300),
    "deploy": _seconds("The timeout of a deployment or rebuild, in seconds.", 5400),
    "service": _seconds("The timeout of hardware, and of runbook_after.", 7200),
    "first_boot": Schema(
        Type.NUMBER, "The timeout of first_boot, in seconds; by default that of the handle.",
        constraints=[constraints.Range(min=1)],
    ),
    "teardown": _seconds("The timeout of undeploying, in seconds.", 1800),
    "clean": _seconds("The timeout of cleaning, in seconds.", 7200),
    "power": _seconds("The timeout of a power change, in seconds.", 600),
}  # fmt: skip
RETRY: Final = {
    "attempts": Schema(Type.INTEGER, "The maximum number of deployments in a create.", default=2,
                       constraints=[constraints.Range(min=1, max=10)]),
    "other_node": Schema(Type.BOOLEAN,
                         "Whether the next attempt uses another node; with a selector only.",
                         default=True),
    "quarantine_failed": Schema(
        Type.BOOLEAN, "Put a failed node into maintenance when another node is used.",
        default=True,
    ),
}  # fmt: skip

USER_STEP: Final = {
    "interface": Schema(Type.STRING, "The interface that has the step.", required=True),
    "step": Schema(Type.STRING, "The name of the step.", required=True),
    "args": Schema(Type.MAP, "The arguments of the step."),
    "order": Schema(Type.INTEGER, "The position of the step; by default that in the list."),
}
FIRMWARE: Final = {
    "component": Schema(Type.STRING, "The component, such as bmc.", required=True),
    "url": Schema(Type.STRING, "The URL of the firmware.", required=True),
    "checksum": Schema(Type.STRING, "The checksum of the firmware."),
    "wait": Schema(Type.NUMBER, "Seconds to wait after the update."),
    "version": Schema(Type.STRING, "The version that the BMC is to show afterwards."),
}
BIOS: Final = {
    "settings": Schema(Type.MAP, "The value of each BIOS setting by name."),
    "factory_reset": Schema(Type.BOOLEAN, "Reset the BIOS to its defaults first.", default=False),
}
HARDWARE: Final = {
    "catalogue": Schema(
        Type.STRING, "The digest of the catalogue of firmware whose versions the machine is to "
        "have; checks compare them.",
    ),
    "firmware": Schema(Type.LIST, "The firmware updates, in order.",
                       schema=Schema(Type.MAP, schema=FIRMWARE)),
    "bios": Schema(Type.MAP, "The BIOS configuration.", schema=BIOS),
    "extra_steps": Schema(Type.LIST, "The steps to run, in order.",
                          schema=Schema(Type.MAP, schema=USER_STEP)),
    "runbook": Schema(Type.STRING, "UUID or name of a runbook, instead of all of these."),
    "triggers": Schema(Type.MAP, "Any values; a change applies all of hardware again."),
    "disable_ramdisk": Schema(
        Type.BOOLEAN, "Whether the steps run without the agent's ramdisk.", default=False
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
        Type.STRING, "UUID or name of the allocation whose node to use.", drift=UNSEEN
    ),
    "node": Schema(
        Type.STRING, "UUID or name of the node to use.", drift=UNSEEN, plans=Plans.NODE
    ),
    "selector": Schema(
        Type.MAP, "The criteria for a node, instead of allocation or node.", schema=SELECTOR,
        drift=UNSEEN, plans=Plans.MACHINE,
    ),
    "spread": updatable(
        Type.MAP, LATER, UNSEEN,
        "The failure domain of the instance, if nodes are free there; used with a selector only.",
        schema=SPREAD,
    ),
    "name": _text(PATCH, OWN, "The name and host name of the instance."),
    "image": updatable(
        Type.MAP, IMAGE_POLICY, OWN, "The image to deploy.", schema=IMAGE, plans=Plans.MACHINE
    ),
    "image_update_policy": _text(
        LATER, UNSEEN, "The effect of a change of the image.", *IMAGE_POLICY.changes,
        default="rebuild", plans=Plans.VERBS,
    ),
    "root_device": updatable(Type.MAP, REBUILD, FIELD, "The root device hints."),
    "root_gb": updatable(Type.INTEGER, REBUILD, FIELD, "Root partition size, in GiB."),
    "swap_mb": updatable(Type.INTEGER, REBUILD, FIELD, "Swap partition size, in MiB."),
    "ephemeral_gb": updatable(Type.INTEGER, REBUILD, FIELD, "Ephemeral partition size, in GiB."),
    "boot_mode": _text(REBUILD, OWN, "The boot mode of the node.", "bios", "uefi"),
    "secure_boot": updatable(Type.BOOLEAN, REBUILD, OWN, "Whether to use secure boot."),
    "capabilities": updatable(
        Type.MAP, REBUILD, OWN, "Additional capabilities for the deployment."
    ),
    "configdrive": _text(
        DRIVE_POLICY, UNSEEN, "The whole config drive: base64, or a URL.", secret=True
    ),
    "user_data": _text(
        DRIVE_POLICY, UNSEEN, "A script or cloud-config for the first boot.", secret=True
    ),
    "meta_data": updatable(
        Type.MAP, DRIVE_POLICY, UNSEEN, "Metadata for the first boot, besides hostname and keys.",
    ),
    "network_data": updatable(
        Type.ANY, DRIVE_POLICY, UNSEEN,
        "network_data.json for the first boot; auto: from the node's ports and networks.",
    ),
    "ssh_keys": updatable(
        Type.LIST, DRIVE_POLICY, UNSEEN, "Public SSH keys of the default user.", schema=_STRING
    ),
    "users": updatable(
        Type.LIST, DRIVE_POLICY, UNSEEN, "The users to create.",
        schema=Schema(Type.MAP, schema=USER), secret=True,
    ),
    "user_data_update_policy": _text(
        LATER, UNSEEN, "The effect of a change of the config drive's data.",
        *DRIVE_POLICY.changes, default="ignore", plans=Plans.VERBS,
    ),
    "networks": updatable(
        Type.LIST, OnChange.ATTACH, UNSEEN, "The virtual interfaces (VIFs) to attach.",
        schema=Schema(Type.MAP, schema=NETWORK),
    ),
    "traits": updatable(
        Type.LIST, REBUILD, FIELD,
        "The traits of the instance; the deploy templates of these names run.", schema=_STRING,
        plans=Plans.MACHINE,
    ),
    "deploy_steps": updatable(
        Type.LIST, REBUILD, UNSEEN, "Additional deploy steps.", schema=Schema(Type.MAP),
        plans=Plans.MACHINE,
    ),
    "custom_deploy": updatable(
        Type.MAP, REBUILD, OWN,
        "The interfaces of the node for this instance, such as {deploy: ramdisk}.",
        plans=Plans.MACHINE,
    ),
    "power": _text(
        OnChange.POWER, OWN, "The power state after a deployment.", "on", "off", default="on",
        plans=Plans.VERBS,
    ),
    "first_boot": _text(
        LATER, UNSEEN, "The OS::Ironic::FirstBoot that the instance signals when it is up."
    ),
    "wait_for": _text(
        LATER, UNSEEN,
        "The event to wait for after ordering a deployment; default: first_boot if set, or active.",
        "active", "first_boot", "none",
    ),
    "runbook_before": _text(
        LATER, UNSEEN,
        "UUID or name of a runbook that cleans the node before the first deployment on it.",
        plans=Plans.VERBS,
    ),
    "runbook_after": _text(
        LATER, UNSEEN, "UUID or name of a runbook for service after the deployment.",
        plans=Plans.VERBS,
    ),
    "hardware": updatable(
        Type.MAP, OnChange.RUN, OWN,
        "Firmware, BIOS settings and steps, applied after the deployment, and by service of the "
        "running machine when they change.", schema=HARDWARE, plans=Plans.VERBS,
    ),
    "protected": updatable(
        Type.BOOLEAN, PATCH, OWN, "Whether the node is protected; false unprotects the node.",
        plans=Plans.MACHINE,
    ),
    "tags": updatable(Type.LIST, PATCH, FIELD, "Tags of the instance.", schema=_STRING),
    "extra": updatable(Type.MAP, PATCH, FIELD, "Arbitrary metadata of the instance."),
    "retry": updatable(Type.MAP, LATER, UNSEEN,
                       "The retries of a failed deployment, in a create only.", schema=RETRY),
    "replace_order": _text(
        LATER, UNSEEN,
        "create_first: delete the old instance after the new one runs; delete_first: before. "
        "Default: delete_first with node, else create_first. The same node requires delete_first.",
        CREATE_FIRST, DELETE_FIRST,
    ),
    "teardown": updatable(
        Type.MAP, LATER, UNSEEN, "The options of undeploying.", schema=TEARDOWN
    ),
    "drain": updatable(
        Type.MAP, LATER, UNSEEN,
        "The webhook that is called, and waited for, before the system of the machine is lost.",
        schema=DRAIN, secret=True, plans=Plans.VERBS,
    ),
    "suspend_mode": _text(
        LATER, UNSEEN, "The power change of the node in a suspend.", "power_off", "soft_power_off",
        "none",
        default="soft_power_off",
    ),
    "timeouts": updatable(
        Type.MAP, LATER, UNSEEN, "The timeouts of the phases, in seconds.", schema=TIMEOUTS
    ),
}  # fmt: skip
DRIVE: Final = tuple(name for name, each in PROPERTIES.items() if each.on_change is DRIVE_POLICY)
RULES: Final = (
    ExactlyOne(*PLACES, reason="cannot tell where it runs"),
    AtLeastOne("image.source", "image.boot_iso", "custom_deploy",
               reason="cannot deploy nothing", place="image"),
    Excludes(*DRIVE, reason="cannot have a whole config drive and its parts", place="configdrive"),
    Excludes("hardware.runbook", "hardware.catalogue", "hardware.firmware", "hardware.bios",
             "hardware.extra_steps",
             reason="cannot have a runbook beside sections", place="hardware"),
    Excludes("users", "user_data", reason="cannot have users beside user_data", place="users"),
)  # fmt: skip

ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "node_uuid": Attribute("The UUID of the node.", Type.STRING),
    "node_name": Attribute("The name of the node.", Type.STRING),
    "allocation_uuid": Attribute("The UUID of the allocation.", Type.STRING),
    "provision_state": Attribute("The provision state of the node.", Type.STRING),
    "power_state": Attribute("The power state of the node.", Type.STRING),
    "health": Attribute("The health of the node, as the BMC reports it.", Type.STRING),
    "instance_name": Attribute("The name of the instance.", Type.STRING),
    "boot_mode": Attribute("The boot mode of the node.", Type.STRING),
    "image": Attribute("The image source or boot ISO of the instance.", Type.STRING),
    "addresses": Attribute("The static IP addresses (fixed_ip) by virtual interface.", Type.MAP),
    "first_address": Attribute("The first static IP address (fixed_ip).", Type.STRING),
    "mac_addresses": Attribute("The MAC addresses of the node's ports.", Type.LIST),
    "console_url": Attribute("The URL of the console, if enabled.", Type.STRING),
    "steps": Attribute("The steps of the last deployment and their durations.", Type.LIST),
    "deploy_duration": Attribute("The duration of the last deployment, in seconds.", Type.NUMBER),
    "first_boot_data": Attribute("The data of the first-boot signals, as JSON.", Type.STRING),
    "deployed_at": Attribute("The time when the last deployment ended.", Type.STRING),
    "attempts": Attribute("The number of deployment attempts.", Type.INTEGER),
    "last_error": Attribute("The last error of the node.", Type.STRING),
}
