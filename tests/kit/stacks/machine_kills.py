"""Stacks of machines whose engine is killed at a commit, and how they end.

calm, commits = run(FLOWS["create"], copied(start, path))
check(FLOWS["create"], start, tmp_path)     # at every commit the same end; AssertionError
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from bloomery.conductor.states import State
from bloomery.db.tables import SOFTWARE_CONFIGS, SOFTWARE_DEPLOYMENTS
from bloomery.model.stacks import OrderKind, Template
from bloomery.orchestration.orders.software import RowSoftware
from bloomery.orchestration.resources.base import Answer
from bloomery.orchestration.resources.machine_orders import REBUILD, REPLACE, ResourceOrder
from tests.kit.sampling import some
from tests.kit.stacks import machine_sites, trees
from tests.kit.stacks.machine_sites import Site, copied, make_site
from tests.kit.stacks.row_engines import Engine, Kill, Killed

TEXT = """
heat_template_version: '2021-04-16'
resources:
  node:
    type: OS::Ironic::Node
    properties:
      name: n1
      driver: fake-hardware
      resource_class: bm
      ports: [{address: '52:54:00:00:00:01'}]
  port:
    type: OS::Ironic::Port
    properties: {node: {get_resource: node}, address: '52:54:00:00:00:02'}
  slot:
    type: OS::Ironic::Allocation
    depends_on: [node, port]
    properties: {resource_class: bm}
  web:
    type: OS::Ironic::Instance
    properties:
      allocation: {get_resource: slot}
      image: {source: IMAGE}
      retry: {attempts: 2}
  other:
    type: OS::Ironic::Instance
    properties:
      selector: {resource_class: pool}
      image: {source: IMAGE}
      retry: {attempts: 2}
      power: 'off'
"""

TURBO = {"bios": {"settings": {"Turbo": "on"}}}


@dataclass(frozen=True)
class Flow:
    """What is ordered, how it ends, and what was done before it, undisturbed."""

    order: Callable[[Site], Any]
    ends: str
    before: Callable[[Site], None] | None = None
    pool: int = 2  # nodes that are there already


def template(image: str = "http://images/a") -> Template:
    return trees.template(image, template=yaml.safe_load(TEXT.replace("IMAGE", image)))


def of_one(image: str = "http://images/a", *, fails: bool = False, **more: Any) -> Template:
    """One Instance that is replaced for another image, and maybe something that fails after it."""
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"selector": {"resource_class": "pool"}, "image": {"source": image},
                       "image_update_policy": "replace"} | more,
    }  # fmt: skip
    after = {"type": "Test::Thing", "depends_on": "web", "properties": {"fail": fails}}
    return machine_sites.template({"web": web, "after": after}, f"{image} {fails}")


def changed(*, fails: bool = False, **policy: Any) -> Flow:
    """A machine that gets another image, and the old one back where what follows it fails."""

    def update(site: Site) -> None:
        site.update(of_one("http://images/b", fails=fails, **policy), rollback=fails)

    ends = "ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE"
    return Flow(update, ends, lambda site: site.create(of_one(**policy)))


def of_node(**more: Any) -> Template:
    """A machine that is inspected whenever its BMC changes."""
    properties = {"name": "n1", "driver": "fake-hardware", "inspect": "always"} | more
    node = {"type": "OS::Ironic::Node", "properties": properties}
    return machine_sites.template({"node": node}, f"node {more}")


def of_steps(**triggers: Any) -> Template:
    """Steps on a machine that runs, and on one that is configured."""
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"node": "p1", "image": {"source": "http://images/a"}},
    }
    smoke = {
        "type": "OS::Ironic::RunbookExecution",
        "properties": {"instance": {"get_resource": "web"}, "runbook": "CUSTOM_SMOKE",
                       "triggers": triggers},
    }  # fmt: skip
    node = {"type": "OS::Ironic::Node", "properties": {
        "name": "n1", "driver": "fake-hardware", "target_state": "manageable"}}  # fmt: skip
    settings = {"settings": {"Turbo": str(triggers)}}
    hardware = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {"node": {"get_resource": "node"}, "bios": settings},
    }
    resources = {"web": web, "smoke": smoke, "node": node, "hardware": hardware}
    return machine_sites.template(resources, f"steps {triggers}")


def of_configured(turbo: str = "on") -> Template:
    """A machine whose BIOS is changed as its system is written."""
    hardware = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {"node": "p1", "bios": {"settings": {"Turbo": turbo}},
                       "apply_when": "deploy"},
    }  # fmt: skip
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"node": {"get_resource": "hardware"}, "image": {"source": turbo}},
    }
    return machine_sites.template({"hardware": hardware, "web": web}, f"configured {turbo}")


def of_volume(volume: str = "a") -> Template:
    """A machine that is switched off for its volume."""
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"node": "p1", "image": {"source": "http://a"}},
    }
    disk = {
        "type": "OS::Ironic::VolumeTarget", "depends_on": "web",
        "properties": {"node": "p1", "volume_type": "iscsi", "volume_id": volume,
                       "boot_index": 0, "allow_power_off": True},
    }  # fmt: skip
    return machine_sites.template({"web": web, "disk": disk}, f"volume {volume}")


def of_spread() -> Template:
    """Two machines that are not to be in one shard."""
    member = {"selector": {"resource_class": "pool"}, "image": {"source": "http://a"}}
    group = {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {"count": 2, "member": member, "spread_by": "shard"},
    }
    return machine_sites.template({"group": group}, "spread")


def create_spread(site: Site) -> None:
    for number, node in enumerate(site.machines.nodes.values()):
        node["shard"] = f"s{number}"
    site.create(of_spread())


def of_burnt() -> Template:
    """A machine on which a runbook runs before it is deployed."""
    step = {"interface": "bios", "step": "factory_reset", "order": 1}
    book = {"type": "OS::Ironic::Runbook", "properties": {"name": "CUSTOM_BURN", "steps": [step]}}
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"selector": {"resource_class": "pool"}, "image": {"source": "http://a"},
                       "runbook_before": {"get_resource": "book"}},
    }  # fmt: skip
    return machine_sites.template({"book": book, "web": web}, "burnt")


def burnt_in_vain(site: Site) -> None:
    site.machines.fail_next("clean", "a disk is worn")
    site.create(of_burnt())


def of_group(
    image: str = "http://images/a", hardware: dict[str, Any] | None = None,
    drain: dict[str, Any] | None = None, **policy: Any,
) -> Template:  # fmt: skip
    """Three machines that are alike, changed one by one."""
    member: dict[str, Any] = {"selector": {"resource_class": "pool"}, "image": {"source": image}}
    member |= {"hardware": hardware} if hardware else {}
    rolling = {"health_gate": {"settle_seconds": 0}} | policy
    group = {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {"count": 3, "member": member} | ({"drain": drain} if drain else {}),
        "update_policy": {"rolling_update": rolling},
    }
    return machine_sites.template({"group": group}, f"group {image} {hardware}")


def of_hardware(image: str = "http://images/a", **hardware: Any) -> Template:
    """A machine that is serviced with its hardware, and then with a runbook."""
    book = {"type": "OS::Ironic::Runbook", "properties": {
        "name": "CUSTOM_BURN",
        "steps": [{"interface": "bios", "step": "factory_reset", "order": 1}]}}  # fmt: skip
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"selector": {"resource_class": "pool"}, "image": {"source": image},
                       "runbook_after": {"get_resource": "book"}, "hardware": hardware},
    }  # fmt: skip
    return machine_sites.template({"book": book, "web": web}, f"hardware {image} {hardware}")


def serviced_in_vain(site: Site) -> None:
    site.machines.fail_next("service", "the BMC is mute")
    site.update(of_group(hardware=TURBO, failure_policy="rollback_batch"))


def configured_by_catalogue(site: Site) -> None:
    """A manageable machine, whose steps end with the version of the catalogue."""
    node = site.machines.add_node(State.MANAGEABLE, name="m1")
    site.machines.firmware[node] = [{"component": "bios", "current_version": "1"}]
    site.machines.catalogue = "d1", {"bios": "2"}
    properties = {"node": "m1", "catalogue": "d1", **TURBO}
    hardware = {"type": "OS::Ironic::HardwareConfiguration", "properties": properties}
    site.create(machine_sites.template({"hardware": hardware}, "by catalogue"))


def with_firmware(site: Site) -> None:
    """A machine with an old BIOS, and a catalogue with a newer one."""
    for uuid in site.machines.nodes:
        site.machines.firmware[uuid] = [{"component": "bios", "current_version": "1"}]
    site.machines.catalogue = "d1", {"bios": "2"}
    site.create(of_hardware(catalogue="d1"))


def drained(site: Site) -> None:
    """Three machines whose webhook fails, accepts, and clears, in turns."""
    site.webhooks.answers = [Answer(fault="busy"), Answer(), Answer(is_drained=True)] * 3
    site.create(of_group(drain=DRAIN))


DRAIN = {
    "url": "http://lb.example.org/drain", "secret": "whsec_" + "A" * 32, "timeout": 90,
    "on_timeout": "continue",
}  # fmt: skip


def roll_out_with_a_failure(site: Site) -> None:
    site.machines.fail_next("rebuild", "no disk")
    batches = {"batch_size": 2, "max_unavailable": 2, "failure_policy": "rollback_batch"}
    site.update(of_group("http://images/b", **batches))


def take_over(site: Site) -> None:
    node = {"type": "OS::Ironic::Node", "external_id": "p1"}
    site.create(machine_sites.template({"node": node}))


def adopt(site: Site) -> None:
    """Adopt machines that run, and of which no stack has known anything."""
    resources, entries = {}, {}
    for name, node in zip(("a", "b"), site.machines.nodes.values(), strict=True):
        node |= {"provision_state": "active", "power_state": "power on"}
        node["instance_info"] = {"image_source": "http://images/a"}
        properties = {"selector": {"resource_class": "pool"}, "name": name,
                      "image": {"source": "http://images/a"}}  # fmt: skip
        resources[name] = {"type": "OS::Ironic::Instance", "properties": properties}
        entries[name] = {"resource_id": node["uuid"], "resource_data": {"instance": None}}
    site.create(machine_sites.template(resources, "adopted"), adopt={"resources": entries})


def suspended(site: Site) -> None:
    site.perform(OrderKind.SUSPEND)


def create(site: Site) -> None:
    site.create(template())


def create_with_a_failure(site: Site) -> None:
    site.machines.fail_next("active", "no disk")
    site.create(of_one())


def of_lookup(minimum: int = 0, *, fails: bool = False) -> Template:
    """Machines that are looked up, a value that follows their number, and maybe a failure."""
    nodes = {
        "type": "OS::Ironic::NodeLookup",
        "properties": {"resource_class": "pool", "minimum": minimum},
    }
    count = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["nodes", "count"]}},
    }
    after = {"type": "Test::Thing", "depends_on": "count", "properties": {"fail": fails}}
    resources = {"nodes": nodes, "count": count, "after": after}
    return machine_sites.template(resources, f"lookup {minimum} {fails}")


def look_up_again(*, fails: bool = False) -> Flow:
    """Machines of which there is one more by now, and one less in use where the update fails."""

    def update(site: Site) -> None:
        site.machines.add_node(resource_class="pool")
        site.update(of_lookup(1, fails=fails), rollback=fails)

    ends = "ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE"
    return Flow(update, ends, lambda site: site.create(of_lookup()))


def of_outputs(*, fails: bool = False) -> Template:
    """The output of another stack, a value that follows it, and maybe a failure."""
    net = {"type": "OS::Heat::StackOutputs", "properties": {"stack": "net"}}
    value = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["net", "outputs", "value"]}},
    }
    after = {"type": "Test::Thing", "depends_on": "value", "properties": {"fail": fails}}
    return machine_sites.template({"net": net, "value": value, "after": after}, f"outputs {fails}")


def read_outputs_again(*, fails: bool = False) -> Flow:
    """Another stack, whose output has changed."""

    def update(site: Site) -> None:
        site.other.value = "b"
        site.update(of_outputs(fails=fails), rollback=fails)

    ends = "ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE"
    return Flow(update, ends, lambda site: site.create(of_outputs()))


def of_software(greeting: str = "a", *, fails: bool = False) -> Template:
    """Software for a server, which does not say how it has ended; and maybe a failure after it."""
    server = {"type": "OS::Heat::DeployedServer", "metadata": {"greeting": greeting}}
    config = {
        "type": "OS::Heat::SoftwareConfig",
        "properties": {"config": f"echo {greeting}", "inputs": [{"name": "greeting"}]},
    }
    greet = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {"server": {"get_resource": "server"}, "config": {"get_resource": "config"},
                       "input_values": {"greeting": greeting}, "signal_transport": "NO_SIGNAL"},
    }  # fmt: skip
    after = {"type": "Test::Thing", "depends_on": "greet", "properties": {"fail": fails}}
    resources = {"server": server, "config": config, "greet": greet, "after": after}
    return machine_sites.template(resources, f"software {greeting} {fails}")


def create_software(site: Site) -> None:
    site.create(of_software())


def rebuild(site: Site) -> None:
    site.update(template("http://images/b"))


def ordered(document: Template, action: str) -> Callable[[Site], None]:
    """Order another machine, or another system, for one Instance of a stack."""

    def order(site: Site) -> None:
        instances = [row for row in site.tree().resources if row.type == "OS::Ironic::Instance"]
        first = min(instances, key=lambda row: row.name)
        orders = [ResourceOrder(resource=first.uuid, action=action, reason="r", quarantine=True)]
        site.update(document, payload={"resources": [each.document() for each in orders]})

    return order


FLOWS = {
    "replace a machine by an order": Flow(
        ordered(of_one(), REPLACE), "UPDATE_COMPLETE", lambda site: site.create(of_one())),
    "replace a member by an order": Flow(
        ordered(of_group(), REPLACE), "UPDATE_COMPLETE",
        lambda site: site.create(of_group()), pool=4,
    ),
    "rebuild a machine by an order": Flow(
        ordered(of_one(), REBUILD), "UPDATE_COMPLETE", lambda site: site.create(of_one())),
    "create": Flow(create, "CREATE_COMPLETE"),
    "create on a second attempt": Flow(create_with_a_failure, "CREATE_COMPLETE"),
    "rebuild": Flow(rebuild, "UPDATE_COMPLETE", create),
    "replace, the new one first": changed(replace_order="create_first"),
    "replace, the old one away first": changed(replace_order="delete_first"),
    "roll a replacement back": changed(replace_order="create_first", fails=True),
    "roll a replacement back, away first": changed(replace_order="delete_first", fails=True),
    "roll a rebuild back": changed(image_update_policy="rebuild", fails=True),
    "suspend": Flow(suspended, "SUSPEND_COMPLETE", lambda site: site.create(of_one())),
    "change a node": Flow(
        lambda site: site.update(of_node(
            driver_info={"a": "b"}, target_state="manageable", boot_mode="uefi", retired=True)),
        "UPDATE_COMPLETE", lambda site: site.create(of_node()),
    ),
    "adopt machines that run": Flow(adopt, "ADOPT_COMPLETE"),
    "take a node over": Flow(take_over, "CREATE_COMPLETE"),
    "give a node back": Flow(lambda site: site.delete(), "DELETE_COMPLETE", take_over),
    "run steps": Flow(lambda site: site.create(of_steps()), "CREATE_COMPLETE"),
    "run steps again": Flow(
        lambda site: site.update(of_steps(again=1)),
        "UPDATE_COMPLETE", lambda site: site.create(of_steps()),
    ),
    "create a group that is spread": Flow(create_spread, "CREATE_COMPLETE"),
    "change a volume": Flow(
        lambda site: site.update(of_volume("b")),
        "UPDATE_COMPLETE", lambda site: site.create(of_volume()),
    ),
    "configure hardware with a system": Flow(
        lambda site: site.create(of_configured()), "CREATE_COMPLETE"),
    "configure hardware with the next system": Flow(
        lambda site: site.update(of_configured("off")),
        "UPDATE_COMPLETE", lambda site: site.create(of_configured()),
    ),
    "run a runbook before": Flow(lambda site: site.create(of_burnt()), "CREATE_COMPLETE"),
    "give a node back that was prepared": Flow(
        lambda site: site.delete(), "DELETE_COMPLETE", burnt_in_vain
    ),
    "look nodes up again": look_up_again(),
    "roll a look-up back": look_up_again(fails=True),
    "read outputs again": read_outputs_again(),
    "take outputs back": read_outputs_again(fails=True),
    "deploy software": Flow(create_software, "CREATE_COMPLETE"),
    "deploy other software": Flow(
        lambda site: site.update(of_software("b")), "UPDATE_COMPLETE", create_software),
    "take other software back": Flow(
        lambda site: site.update(of_software("b", fails=True), rollback=True),
        "ROLLBACK_COMPLETE", create_software,
    ),
    "delete software": Flow(lambda site: site.delete(), "DELETE_COMPLETE", create_software),
    "create a group": Flow(lambda site: site.create(of_group()), "CREATE_COMPLETE", pool=3),
    "roll out over a group": Flow(
        lambda site: site.update(of_group("http://images/b")),
        "UPDATE_COMPLETE", lambda site: site.create(of_group()), pool=3,
    ),
    "drain and roll out over a group": Flow(
        lambda site: site.update(of_group("http://images/b", drain=DRAIN)),
        "UPDATE_COMPLETE", drained, pool=3,
    ),
    "drain and delete a group": Flow(
        lambda site: site.delete(), "DELETE_COMPLETE", drained, pool=3),
    "drain and replace a member by an order": Flow(
        ordered(of_group(drain=DRAIN), REPLACE), "UPDATE_COMPLETE", drained, pool=4),
    "roll a batch back": Flow(
        roll_out_with_a_failure,
        "UPDATE_FAILED", lambda site: site.create(of_group()), pool=3,
    ),
    "configure the hardware of a group": Flow(
        lambda site: site.update(of_group(hardware=TURBO, batch_size=2, max_unavailable=2)),
        "UPDATE_COMPLETE", lambda site: site.create(of_group()), pool=3,
    ),
    "roll a failed service back": Flow(
        serviced_in_vain, "UPDATE_FAILED", lambda site: site.create(of_group()), pool=3,
    ),
    "configure by the catalogue": Flow(configured_by_catalogue, "CREATE_COMPLETE"),
    "create with firmware of the catalogue": Flow(with_firmware, "CREATE_COMPLETE"),
    "rebuild, and configure the hardware": Flow(
        lambda site: site.update(of_hardware("http://images/b", catalogue="d1", **TURBO)),
        "UPDATE_COMPLETE", with_firmware,
    ),
    "delete a group": Flow(
        lambda site: site.delete(),
        "DELETE_COMPLETE", lambda site: site.create(of_group()), pool=3,
    ),
    "delete": Flow(lambda site: site.delete(), "DELETE_COMPLETE", create),
}  # fmt: skip


def begun(flow: Flow, folder: Path) -> Site:
    """A site as it is before a flow."""
    site = make_site(trees.database(folder), pool=flow.pool)
    if flow.before is not None:
        flow.before(site)
        Engine(site.db, site.runtime()).run(site.root)
    return site


def run(flow: Flow, site: Site, kill: Kill | None = None) -> tuple[dict[str, Any], int]:
    """Let a flow end, by a successor where the first engine is killed; return its end."""
    flow.order(site)
    engine = Engine(site.db, site.runtime(), kill)
    try:
        engine.run(site.root)
    except Killed:
        Engine(site.db, site.runtime()).run(site.root)
    else:
        assert kill is None, "the engine was not killed"
    end = _end(site)
    site.db.close()
    return end, engine.commits


def _end(site: Site) -> dict[str, Any]:
    tree, machines = site.tree(), site.machines
    return {
        "stack": f"{tree.stacks[0].action}_{tree.stacks[0].status}",
        "resources": sorted((row.name, row.action, row.status) for row in tree.resources),
        "applied": [row.data["applied"] for row in tree.resources if "applied" in row.data],
        "looked up": [
            row.data["values"].get("outputs") or len(row.data["values"]["nodes"])
            for row in tree.resources
            if "values" in row.data
        ],
        "software": _software(site),
        "orders": sorted(Counter(verb for _, verb in machines.orders).items()),
        "nodes": Counter(
            (node["provision_state"], node["power_state"], bool(node["instance_uuid"]),
             node["instance_info"].get("image_source"), node["maintenance"],
             "stack" in node["extra"], "stack" in node["instance_info"],
             bool(node["instance_name"]), bool(node["retired"]))
            for node in machines.nodes.values()
        ),
        "drains": sorted(site.webhooks.drains()),
        "records": {noun: len(kept) for noun, kept in machines.records.items()},
    }  # fmt: skip


def _software(site: Site) -> dict[str, list[Any]]:
    """Return the texts of all configs, and what is given to the deployments."""
    store = RowSoftware(site.db, trees.SEALER, "p")
    configs, deployments = SOFTWARE_CONFIGS.c.uuid, SOFTWARE_DEPLOYMENTS.c.uuid
    with site.db.read() as conn:
        texts = conn.execute(sa.select(configs)).scalars().all()
        orders = conn.execute(sa.select(deployments)).scalars().all()
    shown = [store.show_deployment(uuid) or {} for uuid in orders]
    return {
        "configs": sorted((store.show_config(uuid) or {})["config"] for uuid in texts),
        "deployments": [(each["action"], each["status"], each["input_values"]) for each in shown],
    }


def check(flow: Flow, start: Site, folder: Path, every: int = 1) -> None:
    """Kill the engine before and after each commit; each time, the end is that without a kill.

    ``every``: only at one in so many.
    """
    calm, commits = run(flow, copied(start, folder / "calm.sqlite"))
    assert calm["stack"] == flow.ends
    for number in some(range(1, commits + 1, every)):
        for before in (True, False) if number < commits else (True,):
            site = copied(start, folder / f"{number}-{before}.sqlite")
            end, _ = run(flow, site, Kill(number, before=before))
            assert end == calm, f"killed {'before' if before else 'after'} commit {number}"
