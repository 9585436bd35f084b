"""The life of a BareMetalHost: what the operator asks for in each of its stages.

The functions are named after the stages of the operator's state machine.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.metal3.asks import Json, Operator
from tests.conformance.metal3.machine import AgentMachine

NAME = "metal3~host-0"
UID = "6f8d0a52-6b44-4d0e-9b0d-8d3c7a1f2e90"
IMAGE = {
    "image_source": "http://images.test/os.qcow2",
    "image_os_hash_algo": "sha256",
    "image_os_hash_value": "ab" * 32,
    "image_disk_format": "qcow2",
}
CONFIG_DRIVE = {
    "meta_data": {"name": "host-0", "local-hostname": "host-0", "metal3-name": "host-0"},
    "network_data": {"links": [], "networks": [], "services": []},
    "user_data": "#cloud-config\n",
}
SETTINGS = [{"name": "ProcTurboMode", "value": "Disabled"}]


def interfaces(scheme: str) -> Json:
    """Return driver and interfaces of a host with this scheme of BMC address."""
    if scheme == "idrac-virtualmedia":
        return {
            "driver": "idrac",
            "bios_interface": "idrac-redfish",
            "raid_interface": "no-raid",
            "boot_interface": "idrac-redfish-virtual-media",
            "power_interface": "idrac-redfish",
            "management_interface": "idrac-redfish",
            "vendor_interface": "no-vendor",
            "firmware_interface": "redfish",
        }
    return {
        "driver": "redfish",
        "bios_interface": "redfish",
        "raid_interface": "redfish",
        "boot_interface": "redfish-https"
        if scheme == "redfish-uefihttp"
        else "redfish-virtual-media",
        "power_interface": "redfish",
        "management_interface": "redfish",
        "vendor_interface": "redfish",
        "firmware_interface": "redfish",
    }


def start(operator: Operator) -> None:
    """Look for an Ironic that is new enough, and for its drivers."""

    def is_new(document: Json) -> bool:
        version = document["version"]
        lowest, newest = (
            tuple(map(int, version[key].split("."))) for key in ("min_version", "version")
        )
        return lowest == (1, 1) and newest >= (1, 109)

    operator.ask("which microversions", "GET /v1/", where=is_new)
    operator.ask(
        "a conductor is there",
        "GET /v1/drivers",
        where=lambda found: {"redfish", "idrac", "ipmi"} <= {d["name"] for d in found["drivers"]},
    )
    operator.ask(
        "busy hosts",
        "GET /v1/nodes?fields=uuid,name,provision_state,boot_interface",
        where=lambda found: found["nodes"] == [],
    )


def register(operator: Operator, machine: AgentMachine, scheme: str, **more: Any) -> str:
    """Enrol a host, and make it manageable."""
    mac, info = machine.lab.mac, machine.lab.driver_info
    operator.ask("host by name", f"GET /v1/nodes/{NAME}", needs=404)
    operator.ask("host by old name", "GET /v1/nodes/host-0", needs=404)
    operator.ask(
        "port by MAC",
        f"GET /v1/ports?address={mac}&fields=node_uuid",
        where=lambda found: found["ports"] == [],
    )
    body = (
        interfaces(scheme)
        | {
            "name": NAME,
            "inspect_interface": "agent",
            "deploy_interface": "direct",
            "disable_power_off": False,
            "driver_info": info
            | {
                "redfish_verify_ca": False,
                "external_http_url": "http://outside.test:6180",
                "force_persistent_boot_device": "Default",
            },
            "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
        }
        | more
    )
    created = operator.ask(
        "create",
        "POST /v1/nodes",
        body,
        needs=201,
        where=lambda node: (
            all(node[name] == body[name] for name in interfaces(scheme))
            and node["provision_state"] == "enroll"
        ),
    )
    node = str(created["uuid"])
    writes_image = body["deploy_interface"] != "custom-agent"
    operator.ask("same name again", "POST /v1/nodes", body, needs=409)
    port = {"node_uuid": node, "address": mac, "pxe_enabled": True}
    operator.ask("port", "POST /v1/ports", port, needs=201)
    operator.ask("same port again", "POST /v1/ports", port, needs=409)
    operator.ask(
        "ports of the node",
        f"GET /v1/ports?node_uuid={node}&fields=node_uuid",
        where=lambda found: len(found["ports"]) == 1,
    )
    operator.ask(
        "node of the port",
        f"GET /v1/ports?address={mac}&fields=node_uuid",
        where=lambda found: found["ports"][0]["node_uuid"] == node,
    )
    operator.ask("host by name", f"GET /v1/nodes/{NAME}", where=lambda shown: shown["uuid"] == node)
    operator.change("network of the ramdisk", node, network_data=CONFIG_DRIVE["network_data"])
    operator.change(
        "kernel parameters", node, **{"driver_info.kernel_append_params": "%default% sshkey=none"}
    )
    operator.provision("manage", node, "manage")
    operator.wait(
        "manageable",
        node,
        "manageable",
        where=lambda shown: (
            shown["driver_info"]["redfish_password"] == "******"
            and shown["power_state"] in ("power on", "power off")
            and not shown["maintenance"]
        ),
    )
    operator.change("new credentials", node, driver_info=body["driver_info"])
    operator.change("capabilities", node, **{"properties.capabilities": "boot_mode:uefi"})
    operator.change(
        "instance capabilities", node, **{"instance_info.capabilities": {"boot_mode": "uefi"}}
    )
    operator.ask(
        "validate without an image",
        f"GET /v1/nodes/{node}/validate",
        where=lambda found: (
            found["boot"]["result"] and found["deploy"]["result"] is not writes_image
        ),
    )
    return node


def reconcile(operator: Operator, node: str) -> None:
    """What the operator sets again in each round, and the maintenance that it begins and ends."""
    operator.change("no power off", node, disable_power_off=True)
    operator.change("power off", node, disable_power_off=False)
    operator.change("architecture", node, **{"properties.cpu_arch": "x86_64"})
    operator.change("set", node, **{"instance_info.image_checksum": "ab" * 16})
    operator.change("unset", node, **{"instance_info.image_checksum": None})
    path = f"/v1/nodes/{node}/maintenance"
    operator.ask("maintenance", f"PUT {path}", {"reason": "the operator's"}, needs=202)
    operator.ask("no maintenance", f"DELETE {path}", needs=202)
    operator.ask(
        "out of maintenance", f"GET /v1/nodes/{node}", where=lambda shown: not shown["maintenance"]
    )


def inspect(operator: Operator, machine: AgentMachine, node: str) -> None:
    operator.ask("no inventory yet", f"GET /v1/nodes/{node}/inventory", needs=404)
    operator.provision("inspect", node, "inspect")
    operator.wait("inspect wait", node, "inspect wait")
    operator.provision("abort the inspection", node, "abort")
    operator.stage.site.wait_for_state(node, "inspect failed")
    operator.stage.wait_until_free(node)
    operator.provision("inspect again", node, "inspect")
    operator.wait("inspected", node, "manageable", machine.live)
    machine.call()
    operator.ask(
        "inventory",
        f"GET /v1/nodes/{node}/inventory",
        where=lambda found: (
            {"cpu", "memory", "interfaces", "disks", "system_vendor", "hostname"}
            <= set(found["inventory"])
            and "plugin_data" in found
        ),
    )


def prepare(operator: Operator, machine: AgentMachine, node: str, *, raid: bool) -> None:
    """Read settings and firmware, change them, and make the host available."""
    operator.ask(
        "BIOS settings",
        f"GET /v1/nodes/{node}/bios?detail=true",
        where=lambda found: (
            {"name", "value", "attribute_type", "allowable_values", "read_only"}
            <= set(found["bios"][0])
        ),
    )
    operator.ask(
        "firmware",
        f"GET /v1/nodes/{node}/firmware",
        where=lambda found: {"bios", "bmc"} <= {row["component"] for row in found["firmware"]},
    )
    steps = [_step("bios", "apply_configuration", settings=SETTINGS)]
    if raid:
        disk = {"size_gb": 100, "raid_level": "1", "is_root_volume": True, "volume_name": "root"}
        operator.ask(
            "RAID", f"PUT /v1/nodes/{node}/states/raid", {"logical_disks": [disk]}, needs=204
        )
        steps += [_step("raid", "delete_configuration"), _step("raid", "create_configuration")]
    operator.provision("clean by steps", node, "clean", clean_steps=steps)
    operator.wait(
        "cleaned",
        node,
        "manageable",
        machine.live,
        where=lambda shown: shown["clean_step"] == {} and (not raid or shown["raid_config"]),
    )
    update = _step(
        "firmware", "update", settings=[{"component": "bios", "url": "http://images.test/bios-2.1"}]
    )
    operator.provision("update firmware", node, "clean", clean_steps=[update])
    operator.wait("updated", node, "manageable", machine.live)
    operator.ask(
        "firmware after it",
        f"GET /v1/nodes/{node}/firmware",
        where=lambda found: (
            "bios-2.1" in {row["current_version"] for row in found["firmware"]}
            and any(row["component"].startswith("nic:") for row in found["firmware"])
        ),
    )
    operator.provision("provide", node, "provide")
    operator.wait("available", node, "available", machine.live)


def provision(operator: Operator, machine: AgentMachine, node: str, image: Json) -> None:
    operator.change(
        "instance",
        node,
        instance_uuid=UID,
        **{
            "properties.root_device": {"name": "s== /dev/sda"},
            **{f"instance_info.{name}": value for name, value in image.items()},
        },
    )
    operator.ask(
        "validate",
        f"GET /v1/nodes/{node}/validate",
        where=lambda found: found["boot"]["result"] and found["deploy"]["result"],
    )
    operator.provision("deploy", node, "active", configdrive=CONFIG_DRIVE)
    operator.wait(
        "active",
        node,
        "active",
        machine.live,
        where=lambda shown: shown["instance_uuid"] == UID and shown["power_state"] == "power on",
    )


def use(operator: Operator, machine: AgentMachine, node: str) -> None:
    """Power, health, data image and servicing of a provisioned host."""
    for target, reached in (
        ("soft power off", "power off"),
        ("power on", "power on"),
        ("power off", "power off"),
        ("power on", "power on"),
    ):
        operator.ask(target, f"PUT /v1/nodes/{node}/states/power", {"target": target}, needs=202)
        operator.wait(
            f"after {target}",
            node,
            "active",
            where=lambda shown, state=reached: shown["power_state"] == state,
        )
    operator.ask("health", f"GET /v1/nodes/{node}?fields=health", where=lambda row: "health" in row)
    disc = {"device_type": "cdrom", "image_url": "http://images.test/data.iso"}
    operator.ask("data image", f"POST /v1/nodes/{node}/vmedia", disc, needs=204)
    operator.stage.wait_until_free(node)
    operator.ask(
        "virtual media",
        f"GET /v1/nodes/{node}/vmedia",
        where=lambda found: any(each["inserted"] for each in found),
    )
    operator.ask("no data image", f"DELETE /v1/nodes/{node}/vmedia", needs=204)
    operator.stage.wait_until_free(node)
    operator.provision(
        "service",
        node,
        "service",
        service_steps=[
            _step("bios", "apply_configuration", settings=[SETTINGS[0] | {"value": "Enabled"}])
        ],
    )
    operator.wait("serviced", node, "active", machine.live)
    operator.ask(
        "settings after it",
        f"GET /v1/nodes/{node}/bios/ProcTurboMode",
        where=lambda found: found["ProcTurboMode"]["value"] == "Enabled",
    )


def refuse(operator: Operator, node: str) -> None:
    """Ask for what a provisioned host cannot have; the operator reads the status."""
    operator.provision_refused("adopt an active host", node, "adopt")
    operator.provision_refused("no such target", node, "fly")
    operator.ask(
        "no such boot device",
        f"PUT /v1/nodes/{node}/management/boot_device",
        {"boot_device": "tape", "persistent": False},
        needs=400,
    )
    operator.ask(
        "no such media",
        f"POST /v1/nodes/{node}/vmedia",
        {"device_type": "tape", "image_url": "http://images.test/a"},
        needs=400,
    )


def deprovision(operator: Operator, machine: AgentMachine, node: str) -> None:
    operator.provision("undeploy", node, "deleted")
    operator.wait(
        "available again",
        node,
        "available",
        machine.live,
        where=lambda shown: shown["instance_uuid"] is None,
    )
    operator.provision("manage again", node, "manage")
    operator.wait("manageable again", node, "manageable")


def adopt(operator: Operator, node: str) -> None:
    """Take over a host that another Ironic has provisioned."""
    operator.change(
        "instance",
        node,
        instance_uuid=UID,
        **{f"instance_info.{name}": value for name, value in IMAGE.items()},
    )
    operator.provision("adopt", node, "adopt")
    operator.wait("adopted", node, "active")


def delete(operator: Operator, node: str) -> None:
    why = {"reason": "host is deleted"}
    operator.ask("maintenance", f"PUT /v1/nodes/{node}/maintenance", why, needs=202)
    operator.ask(
        "in maintenance", f"GET /v1/nodes/{node}", where=lambda shown: shown["maintenance"]
    )
    operator.ask("delete", f"DELETE /v1/nodes/{node}", needs=204)
    operator.ask("gone", f"GET /v1/nodes/{node}", needs=404)
    operator.ask("delete again", f"DELETE /v1/nodes/{node}", needs=404)


def _step(interface: str, name: str, **args: Any) -> Json:
    return {"interface": interface, "step": name} | ({"args": args} if args else {})
