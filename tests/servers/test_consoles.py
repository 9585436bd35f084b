"""A console over three processes: the API follows it from a conductor that dies to its heir."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest

from bloomery.cli.client import Client
from bloomery.cli.console import Console, Notice
from bloomery.db import engine
from bloomery.lab.rack import Rack
from bloomery.state_dir import StateDir
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tools.servers import free_port

pytestmark = pytest.mark.only_on("postgresql")


def test_a_console_is_followed_to_the_conductor_that_takes_over(
    db: engine.Database, tmp_path: Path
) -> None:
    with StateDir(tmp_path / "key") as home:
        home.sealer(db)
        key = home.key
    groups = {
        "DEFAULT": {
            "rpc_transport": "json-rpc", "sealing_key_file": key, "host": "127.0.0.1",
            "enabled_hardware_types": "fake-hardware", "hash_ring_reset_interval": 1,
            "enabled_console_interfaces": "console-server",
        },
        "database": {"connection": db.url.render_as_string(hide_password=False)},
        "conductor": {
            "heartbeat_interval": 1, "heartbeat_timeout": 22, "check_provision_state_interval": 1,
        },
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        (machine,) = stack.enter_context(Rack(1, consoles=True)).machines
        conductors = {}
        for _ in range(2):
            rpc, console = free_port(), free_port()
            conductors[f"127.0.0.1:{rpc}"] = conductor = stack.enter_context(Served(
                tmp_path / str(rpc), role="conductor", **groups,
                json_rpc={"host_ip": "127.0.0.1", "port": rpc},
                console={"port_range": f"{console}:{console + 1}", "allow_local": "true"},
            ))  # fmt: skip
            conductor.wait_until_it_prints("serves")
        api = stack.enter_context(Served(tmp_path / "api", role="api", **groups))
        api.wait_until_it_answers()
        info = {"console_server_address": machine.console}
        node = api.api("POST", "/v1/nodes", {"driver": "fake-hardware", "driver_info": info})
        path = f"/v1/nodes/{node['uuid']}"
        api.api("PUT", f"{path}/states/console", {"enabled": True})
        wait_for(lambda: api.api("GET", path)["console_enabled"], "the console", timeout_s=60)
        reader = stack.enter_context(
            contextlib.closing(Console(Client(str(api.url)), f"/ext{path}/console"))
        )
        assert until(reader, "open")[-1].message == "connected"
        conductors[api.api("GET", path)["conductor"]].send(signal.SIGKILL)
        notices = until(reader, "open")
        assert notices[0].state == "lost"
        assert notices[0].message.startswith("the con")
        reader.type(b"x")  # its line is open
        machine.system.reset("On")
        output = b""
        while b"login: " not in output:
            output += b"".join(each for each in reader.receive() if isinstance(each, bytes))


def until(reader: Console, state: str) -> list[Notice]:
    """Return the notices up to the one of this state."""
    notices: list[Notice] = []
    while not any(each.state == state for each in notices):
        notices += [each for each in reader.receive() if isinstance(each, Notice)]
    return notices
