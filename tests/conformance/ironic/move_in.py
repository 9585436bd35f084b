"""Import 200 nodes of a published Ironic, kill the import ten times, and compare field by field.

The database of the Ironic says the same as its API.  Then the nodes are taken over, with their
history.  At the end they go back by an export that is killed, together with nodes that the Ironic
has never seen.

    python -m tests.conformance.ironic.move_in --ironic BIN

``make ironic`` runs it.  The nodes stand in every state that fake hardware reaches by itself.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from bloomery.cli.client import Client
from bloomery.cli.imports import database, plan, site
from bloomery.cli.imports.site import AWAITING_TAKE_OVER, HIDDEN, LET_GO, NOUNS
from tests.conformance.ironic import ours, server
from tests.kit.waiting import wait_for

NODES: Final = 200
KILLS: Final = 10
SWITCHED: Final = "node-8"  # an active one, whose power changes before it goes back
MOST_ROWS: Final = 40  # that an import creates until it is killed
WAYS: Final = ((), ("manage",), ("manage", "provide"), ("manage", "provide", "active"),
               ("manage", "provide", "active", "rescue"))  # fmt: skip
ENDS: Final = {"manage": "manageable", "provide": "available", "active": "active",
               "rescue": "rescue"}  # fmt: skip
COMPARED: Final = (*plan.NODE_FIELDS, "provision_state", "power_state", "last_error", "traits")

Json = dict[str, Any]


def fill(old: Client) -> None:
    chassis = old.post("/v1/chassis", {"description": "rack 1"})["uuid"]
    ways = [WAYS[number % len(WAYS)] for number in range(NODES)]
    for number in range(NODES):
        node = old.post("/v1/nodes", {
            "driver": "fake-hardware", "name": f"node-{number}", "resource_class": "bm.large",
            "chassis_uuid": chassis, "properties": {"cpu_arch": "x86_64", "memory_mb": 1024},
            "extra": {"asset": number}, "driver_info": {"fake_password": "hunter2hunter2"},
        })["uuid"]  # fmt: skip
        mac = f"52:54:00:02:{number >> 8:02x}:{number & 255:02x}"
        old.post("/v1/ports", {"node_uuid": node, "address": mac})
        if number % 3 == 0:
            old.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_FAST", f"CUSTOM_{number}"]})
    for verb, end in ENDS.items():
        names = [f"node-{number}" for number, way in enumerate(ways) if verb in way]
        body = {"target": verb} | ({"rescue_password": "hunter2"} if verb == "rescue" else {})
        for name in names:
            old.put(f"/v1/nodes/{name}/states/provision", body)
        wait_for(lambda names=names, end=end: _are(old, names, end), end, timeout_s=300, every_s=1)
    old.put("/v1/nodes/node-1/maintenance", {"reason": "fan is loud"})
    _fill_records(old)


def _fill_records(old: Client) -> None:
    """Make a record of each noun."""
    node = old.get("/v1/nodes/node-3")["uuid"]
    group = old.post("/v1/portgroups", {"node_uuid": node, "name": "bond-3"})["uuid"]
    mac = {"address": "52:54:00:03:00:00", "portgroup_uuid": group, "pxe_enabled": False}
    old.post("/v1/ports", {"node_uuid": node, **mac})
    old.post("/v1/volume/connectors", {"node_uuid": node, "type": "iqn", "connector_id": "iqn.a"})
    old.post("/v1/volume/targets", {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v-1",
                                    "boot_index": 0, "properties": {"lun": 1}})  # fmt: skip
    step = {"interface": "raid", "step": "delete_configuration", "args": {"a": 1}}
    old.post("/v1/deploy_templates", {"name": "CUSTOM_FAST", "steps": [step | {"priority": 5}]})
    old.post("/v1/runbooks", {"name": "CUSTOM_BOOK", "steps": [step | {"order": 1}]})
    condition = {"op": "eq", "args": {"values": ["{inventory[cpu][count]}", 8]}}
    action = {"op": "fail", "args": {"msg": "no"}}
    old.post("/v1/inspection_rules", {"conditions": [condition], "actions": [action]})
    old.post("/v1/allocations", {"name": "web", "resource_class": "bm.large", "node": node})


def _are(client: Client, names: list[str], state: str) -> bool:
    nodes = client.get("/v1/nodes?fields=name,provision_state,reservation&limit=1000")["nodes"]
    there = {node["name"] for node in nodes
             if node["provision_state"] == state and node["reservation"] is None}  # fmt: skip
    return there.issuperset(names)


def command(folder: Path, old: Client, new: Client) -> tuple[list[str], dict[str, str]]:
    clouds = {name: {"auth_type": "none", "baremetal_endpoint_override": client.url}
              for name, client in (("old", old), ("new", new))}  # fmt: skip
    (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
    (folder / "secrets.yaml").write_text(yaml.safe_dump({"*": {"fake_password": "hunter2hunter2"}}))
    words = ["-c", "from bloomery.cli.main import main; main()", "import", "ironic",
             "--from", "old", "--cloud", "new",
             "--secrets", str(folder / "secrets.yaml")]  # fmt: skip
    return [sys.executable, *words], os.environ | {
        "OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml")
    }


def kill_after(count: int, words: list[str], env: dict[str, str], action: str = "create") -> None:
    """Run a command, and kill it once it has told so many rows.  Raises RuntimeError."""
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            count -= line.endswith(f": {action}\n")
            if not count:
                process.kill()
                return
    raise RuntimeError("the command ended before it was killed")


def document(read: site.OldSite) -> Json:
    """Return nodes and records by UUID, as far as they are compared."""
    records = {
        kind: {uuid: {name: each.get(name) or None for name in (*noun.fields, "node_uuid")}
               for uuid, each in read.records[kind].items()}
        for kind, noun in NOUNS.items()
    }  # fmt: skip
    return records | {
        "nodes": {uuid: {name: _plain(name, node.get(name)) for name in COMPARED}
                  for uuid, node in read.nodes.items()},
    }  # fmt: skip


def differing(theirs: Json, mine: Json) -> list[str]:
    return [
        f"{kind} {uuid}: {theirs[kind].get(uuid)} {mine[kind].get(uuid)}"
        for kind in theirs
        for uuid in theirs[kind].keys() | mine[kind].keys()
        if theirs[kind].get(uuid) != mine[kind].get(uuid)
    ]


def _plain(name: str, value: Any) -> Any:
    """Return a value as it is compared: the passwords of a rescue stay hidden in Ironic."""
    if name == "traits":
        return sorted(value)
    if name == "instance_info":
        value = {key: each for key, each in value.items() if "password" not in key}
    if name == "driver_info":
        value = {key: HIDDEN if "password" in key else each for key, each in value.items()}
    return value or None


def pasts(read: site.OldSite) -> Json:
    """Return the history of each node by its entries, and the data of its inspection."""
    return {uuid: read.past(uuid) for uuid in read.nodes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ironic", type=Path, required=True)
    options = parser.parse_args()
    chance = random.Random(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        server.running(options.ironic, config_name=f"{folder}/ironic.conf") as (_, old_port),
        ours.running() as (_, new_port),
    ):
        old = Client(f"http://127.0.0.1:{old_port}").latest()
        new = Client(f"http://127.0.0.1:{new_port}")
        fill(old)
        words, env = command(Path(folder), old, new)
        for _ in range(KILLS):
            kill_after(chance.randrange(1, MOST_ROWS), words, env)
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        theirs = document(site.read(old))
        faults = differing(theirs, document(site.read(new)))
        config = Path(folder, "ironic.conf")
        with database.opened(config) as conn:
            stored = database.read(conn, None)
            faults += differing(theirs, document(stored))
            faults += _take_over([*words, "--from-config", str(config)], env, stored, old, new)
        faults += _go_back(words, env, old, new)
    refusals = done.stderr if done.returncode else ""
    sys.stdout.write("\n".join([*faults[:20], refusals]) + (
        f"{len(theirs['nodes'])} nodes imported, {KILLS} imports killed, {len(faults)} faults\n"
    ))  # fmt: skip
    return 1 if faults or done.returncode else 0


def _take_over(
    words: list[str], env: dict[str, str], stored: database.StoredSite, old: Client, new: Client
) -> list[str]:
    """Take all nodes over; return what is wrong afterwards."""
    before = pasts(stored)
    for more in ((), ("--take-over",)):  # the database has passwords of rescues in addition
        subprocess.run([*words, *more], env=env, stdout=subprocess.PIPE, check=True)
    faults = [] if stored.living() else ["the database names no conductor that lives"]
    ours, theirs = site.read(new), site.read(old)
    for uuid, past in before.items():
        if theirs.nodes[uuid]["maintenance_reason"] != LET_GO:
            faults.append(f"{uuid} is not let go")
        if str(ours.nodes[uuid]["maintenance_reason"]).startswith(AWAITING_TAKE_OVER):
            faults.append(f"{uuid} is not taken over")
        there = [entry["event"] for entry in ours.past(uuid)["history"]]
        faults += [f"{uuid}: lost {entry}" for entry in past["history"]
                   if entry["event"] not in there]  # fmt: skip
    if not any(past["history"] for past in before.values()):
        faults.append("no node has a history to bring")
    return faults


def _go_back(words: list[str], env: dict[str, str], old: Client, new: Client) -> list[str]:
    """Export all nodes that can go; return what differs afterwards."""
    for number, way in enumerate(WAYS[:-1]):
        state = ENDS[way[-1]] if way else "enroll"
        node = {
            "name": f"born-{number}", "driver": "fake-hardware", "resource_class": "bm.large",
            "driver_info": {"fake_password": "hunter2hunter2"}, "automated_clean": True,
            "ports": [{"address": f"52:54:00:04:00:{number:02x}"}],
            "imported": {"provision_state": state, "power_state": "power off"},
        }  # fmt: skip
        (result,) = new.post("/ext/v1/nodes:batch", {"nodes": [node]})["results"]
        new.delete(f"/v1/nodes/{result['uuid']}/maintenance")
    new.put(f"/v1/nodes/{SWITCHED}/states/power", {"target": "power off"})
    wait_for(lambda: new.get(f"/v1/nodes/{SWITCHED}")["power_state"] == "power off", "power off")
    at = words.index("import")
    back = [*words[:at], "export", "ironic", "--to", "old", "--cloud", "new", "--skip", *words[-2:]]
    for count in (3, 30, 60):
        kill_after(count, back, env, "hand over")
    done = subprocess.run(back, env=env, capture_output=True, text=True, check=False)
    ours, theirs = site.read(new), site.read(old)
    gone = {uuid for uuid, node in ours.nodes.items() if node["provision_state"] != "rescue"}
    faults = [f"{name} stays here" for uuid in gone
              if not str((node := ours.nodes[uuid])["maintenance_reason"]).startswith(LET_GO)
              for name in [node["name"]]]  # fmt: skip
    stays = ours.nodes.keys() - gone
    mine, other = document(ours), document(theirs)
    for nodes in (mine["nodes"], other["nodes"]):
        for uuid in stays:
            del nodes[uuid]
        for node in nodes.values():  # each service has a fake BMC of its own
            del node["power_state"]
    if old.get(f"/v1/nodes/{SWITCHED}")["power_state"] != "power off":
        faults.append(f"{SWITCHED} has not the power state of here")
    refused = [line for line in done.stderr.splitlines() if "it is rescue" not in line]
    return faults + refused + differing(other, mine)


if __name__ == "__main__":
    sys.exit(main())
