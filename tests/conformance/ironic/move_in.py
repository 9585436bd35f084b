"""Import 200 nodes of a published Ironic, kill the import ten times, and compare field by field.

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
from bloomery.cli.imports import plan, site
from bloomery.cli.imports.site import HIDDEN
from tests.conformance.ironic import ours, server
from tests.kit.waiting import wait_for

NODES: Final = 200
KILLS: Final = 10
MOST_ROWS: Final = 40  # that an import creates until it is killed
WAYS: Final = ((), ("manage",), ("manage", "provide"), ("manage", "provide", "active"),
               ("manage", "provide", "active", "rescue"))  # fmt: skip
ENDS: Final = {"manage": "manageable", "provide": "available", "active": "active",
               "rescue": "rescue"}  # fmt: skip
COMPARED: Final = (*plan._NODE_FIELDS, "provision_state", "power_state", "last_error", "traits")

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
    words = ["-c", "from bloomery.cmd import main; main()", "import", "ironic", "--from", "old",
             "--cloud", "new", "--secrets", str(folder / "secrets.yaml")]  # fmt: skip
    return [sys.executable, *words], os.environ | {
        "OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml")
    }


def kill_after(count: int, words: list[str], env: dict[str, str]) -> None:
    """Run the import, and kill it once it has created so many rows.  Raises RuntimeError."""
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            count -= line.endswith(": create\n")
            if not count:
                process.kill()
                return
    raise RuntimeError("the import ended before it was killed")


def document(client: Client) -> Json:
    """Return nodes and ports by UUID, as far as they are compared."""
    read = site.read(client)
    return {
        "nodes": {uuid: {name: _plain(name, node.get(name)) for name in COMPARED}
                  for uuid, node in read.nodes.items()},
        "ports": {uuid: {name: port.get(name) for name in ("address", "node_uuid", "extra")}
                  for uuid, port in read.records["port"].items()},
        "chassis": {uuid: each["description"] for uuid, each in read.records["chassis"].items()},
    }  # fmt: skip


def _plain(name: str, value: Any) -> Any:
    """Return a value as it is compared: the passwords of a rescue stay hidden in Ironic."""
    if name == "traits":
        return sorted(value)
    if name == "instance_info":
        value = {key: each for key, each in value.items() if each != HIDDEN}
    return value or None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ironic", type=Path, required=True)
    options = parser.parse_args()
    chance = random.Random(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        server.running(options.ironic) as (_, old_port),
        ours.running() as (_, new_port),
    ):
        old = Client(f"http://127.0.0.1:{old_port}").latest()
        new = Client(f"http://127.0.0.1:{new_port}")
        fill(old)
        words, env = command(Path(folder), old, new)
        for _ in range(KILLS):
            kill_after(chance.randrange(1, MOST_ROWS), words, env)
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        theirs, mine = document(old), document(new)
        differing = [
            f"{kind} {uuid}: {theirs[kind].get(uuid)} {mine[kind].get(uuid)}"
            for kind in theirs
            for uuid in theirs[kind].keys() | mine[kind].keys()
            if theirs[kind].get(uuid) != mine[kind].get(uuid)
        ]
    refusals = done.stderr if done.returncode else ""
    sys.stdout.write("\n".join([*differing[:20], refusals]) + (
        f"{len(mine['nodes'])} of {NODES} nodes imported, {KILLS} imports killed, "
        f"{len(differing)} nodes or records differ\n"
    ))  # fmt: skip
    return 1 if differing or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
