"""``bloomery discover``: BMCs of simulated racks are found on loopback, without a login."""

from __future__ import annotations

import csv
import io
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli import bmc_systems
from bloomery.cli.client import Client
from bloomery.cli.discover import Pace, Prober, find
from bloomery.cli.enrol import records
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from bloomery.lab.tls import certificate
from tests.functional.cli.conftest import Run
from tests.kit.servers import web
from tests.kit.servers.orchestration import Orchestration

PONG = bytes.fromhex("0600ff06 000011be 40000010") + bytes(16)
UNPACED = Pace(every_s=0)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of three BMCs: plain HTTP at 127.0.1.1, TLS at 127.0.1.2, a Dell at 127.0.1.5."""
    pair = certificate(tmp_path_factory.mktemp("tls"))
    with ExitStack() as racks:
        first = racks.enter_context(Rack(1, host="127.0.1.1"))
        port = int(first.machines[0].address.rpartition(":")[2])
        racks.enter_context(Rack(1, host="127.0.1.2", port=port, tls=pair))
        racks.enter_context(Rack(1, host="127.0.1.5", port=port, model="dell-idrac"))
        yield port


def test_the_bmcs_of_a_network_become_a_file_for_enrol(run: Run, port: int, tmp_path: Path) -> None:
    searched = run(f"discover 127.0.1.0/29 --redfish-port {port} --rate 1000")
    assert searched.exit_code == 0, searched.output
    assert searched.stderr == "3 BMCs answered at 6 addresses\n"
    rows = list(csv.DictReader(io.StringIO(searched.stdout)))
    assert [(row["name"], row["driver"], row["bmc"]) for row in rows] == [
        ("bmc-127-0-1-1", "redfish", f"http://127.0.1.1:{port}"),
        ("bmc-127-0-1-2", "redfish", f"https://127.0.1.2:{port}"),
        ("bmc-127-0-1-5", "idrac", f"http://127.0.1.5:{port}"),
    ]
    assert rows[2]["extra.vendor"].startswith("Dell")
    file = tmp_path / "machines.csv"
    file.write_text(searched.stdout)
    assert len(records.read(file)) == 3

    shown = run(f"discover 127.0.1.5 --redfish-port {port} --json")
    assert [each["driver"] for each in json.loads(shown.stdout)] == ["idrac"]


@pytest.fixture
def tray(tmp_path: Path) -> Iterator[Rack]:
    """Two hosts and a GPU baseboard behind one BMC."""
    pair = certificate(tmp_path)
    with Rack(
        2, host="127.0.1.9", tls=pair, model="nvidia-gb200", rules=Rules(page_size=1)
    ) as rack:
        yield rack


def discover(run: Run, rack: Rack, *words: str, password: str = "password") -> Any:
    host, _, port = rack.address.rpartition("://")[2].rpartition(":")
    line = " ".join(("discover", host, "--redfish-port", port, *words))
    return run(line, env={"BLOOMERY_BMC_PASSWORD": password})


def test_hosts_behind_one_bmc_are_enrolled_with_one_chassis(
    run: Run, site: Orchestration, tray: Rack, tmp_path: Path
) -> None:
    shown = discover(run, tray, "--username", "admin", "--insecure")
    left_out, count = shown.stderr.splitlines()
    assert left_out == (
        f"left out: /redfish/v1/Systems/HGX_Baseboard_0 at {tray.address}: a baseboard of GPUs, "
        "which is switched with its host and boots nothing"
    )
    assert count == "1 BMCs answered at 1 addresses, with 2 machines"
    assert "password" not in shown.stdout.splitlines()[1]
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    systems = [row["driver_info.redfish_system_id"] for row in rows]
    assert systems == ["/redfish/v1/Systems/System_0", "/redfish/v1/Systems/System_1"]
    assert [row["chassis"] for row in rows] == ["bmc-127-0-1-9"] * 2
    assert [row["extra.serial"] for row in rows] == [m.system.serial for m in tray.machines]
    file = tmp_path / "machines.csv"
    file.write_text(shown.stdout)
    for summary in ("2 machines: 2 enrolled", "2 machines: 2 is there"):
        enrolled = run(f"enrol {file}")
        assert enrolled.stdout.splitlines()[-1] == summary, enrolled.output
    api = Client(site.service.url)
    [chassis] = [
        each for each in api.get("/v1/chassis")["chassis"]
        if each["description"] == "bmc-127-0-1-9"
    ]  # fmt: skip
    nodes = api.get(f"/v1/chassis/{chassis['uuid']}/nodes?fields=name,driver_info")["nodes"]
    assert [node["name"] for node in nodes] == [
        "bmc-127-0-1-9-System-0", "bmc-127-0-1-9-System-1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "password", "note"),
    [
        (("--username", "admin", "--insecure"), "wrong", "refuses the login of admin (HTTP 401)"),
        (("--username", "admin"), "password", "certificate is not trusted"),
    ],
    ids=["wrong password", "unknown certificate"],
)
def test_a_bmc_that_does_not_show_its_systems_has_one_row_and_is_named(
    run: Run, tray: Rack, words: tuple[str, ...], password: str, note: str
) -> None:
    bmc = tray.bmcs[0]
    shown = discover(run, tray, *words, password=password)
    assert (len(shown.stdout.splitlines()), note in shown.stderr) == (2, True), shown.output
    assert bmc.wrong_passwords == (password == "wrong")
    assert password not in shown.output.replace("--password", "").replace(",password,", "")


def test_plain_http_gets_a_password_only_where_that_is_ordered(run: Run) -> None:
    with Rack(1, host="127.0.1.10") as rack:
        shown = discover(run, rack, "--username", "admin")
        assert "would be sent in plain: --insecure sends it" in shown.stderr
        shown = discover(run, rack, "--username", "admin", "--insecure")
        [row] = csv.DictReader(io.StringIO(shown.stdout))
        assert row["driver_info.redfish_system_id"] == rack.machines[0].system_id
        assert (row["name"], row["chassis"]) == ("bmc-127-0-1-10", "")


def test_a_system_that_is_listed_and_not_shown_is_said(run: Run, tray: Rack) -> None:
    tray.bmcs[0].faults.add(kind="status", status=404, path="/Systems/System_1", times=-1)
    shown = discover(run, tray, "--username", "admin", "--insecure")
    assert "System_1 at https" in shown.stderr
    assert "it may have been pulled" in shown.stderr
    assert [row["chassis"] for row in csv.DictReader(io.StringIO(shown.stdout))] == [""]


def as_dpu(serial: str) -> dict[str, Any]:
    """Return a fault of the lab: the system of a BMC is shown as a DPU's."""
    document = {"SystemType": "DPU", "SerialNumber": serial}
    return {"kind": "shows", "path": "/Systems/[^/]+$", "document": document, "times": -1}


def test_a_dpu_is_enrolled_as_the_child_of_the_host_that_has_its_card(
    run: Run, site: Orchestration, tmp_path: Path
) -> None:
    """The BMC of the DPU is found first, and its host is enrolled first."""
    with Rack(3, apart=True, first="127.0.1.17") as rack:
        dpu, host, stray = rack.machines
        dpu.bmc.faults.add(**as_dpu(f"N{host.system.serial}"))
        stray.bmc.faults.add(**as_dpu("unknown"))
        port = rack.address.rpartition(":")[2]
        line = f"discover 127.0.1.16/29 --redfish-port {port} --username admin --insecure"
        shown = run(line, env={"BLOOMERY_BMC_PASSWORD": "password"})
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [(row["name"], row["parent_node"]) for row in rows] == [
        ("bmc-127-0-1-18", ""), ("bmc-127-0-1-17", "bmc-127-0-1-18"), ("bmc-127-0-1-19", ""),
    ]  # fmt: skip
    assert "serial of the DPU bmc-127-0-1-19: write its parent_node" in shown.stderr
    file = tmp_path / "machines.csv"
    file.write_text("".join(shown.stdout.splitlines(keepends=True)[:3]))
    enrolled = run(f"enrol {file}")
    assert enrolled.stdout.splitlines()[-1] == "2 machines: 2 enrolled", enrolled.output
    api = Client(site.service.url)
    parent = api.get("/v1/nodes/bmc-127-0-1-18")["uuid"]
    assert api.get("/v1/nodes/bmc-127-0-1-17")["parent_node"] == parent


def test_a_dpu_behind_the_bmc_of_its_host_needs_no_serial(run: Run, tray: Rack) -> None:
    document = {
        "SystemType": "DPU", "Links": {"HostingComputerSystem": {
            "@odata.id": "/redfish/v1/Systems/System_0"}},
    }  # fmt: skip
    tray.bmcs[0].faults.add(kind="shows", path="/Systems/System_1$", document=document, times=-1)
    shown = discover(run, tray, "--username", "admin", "--insecure")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [(row["name"], row["parent_node"], row["chassis"]) for row in rows] == [
        ("bmc-127-0-1-9-System-0", "", ""),
        ("bmc-127-0-1-9-System-1", "bmc-127-0-1-9-System-0", ""),
    ]


HOST = {
    "Id": "1", "SystemType": "Physical", "Actions": {"#ComputerSystem.Reset": {}},
    "Boot": {"BootSourceOverrideTarget": "None"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"SystemType": "Composed"}, None),
        ({"Boot": {"BootOrder": []}}, None),
        ({"SystemType": "DPU"}, None),
        ({"SystemType": "DPU", "Actions": {}}, "no action Reset"),
        ({"SystemType": "OS"}, "its SystemType is OS"),
        ({"SystemType": 7}, "its SystemType is 7"),
        ({"Id": "HGX_Baseboard_0"}, "a baseboard of GPUs"),
        ({"Actions": {}}, "no action Reset"),
        ({"Boot": {"BootOptions": {}}}, "no boot device"),
        ({"Boot": []}, "no boot device"),
    ],
)
def test_only_what_is_switched_and_boots_is_a_host(change: Any, reason: str | None) -> None:
    why = bmc_systems.explain_no_node(HOST | change)
    assert (why is None) if reason is None else reason in str(why)


@pytest.mark.parametrize("words", ["--insecure", "--ca-file /etc/hostname"])
def test_options_of_a_login_need_its_user(run: Run, words: str) -> None:
    refused = run(f"discover 127.0.1.9 {words}")
    assert (refused.exit_code, "--username" in refused.output) == (2, True)


@pytest.mark.parametrize("answer", [PONG, b"\x06\x00"])
def test_bmcs_that_speak_ipmi_alone_are_found_by_their_pong(answer: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bmc:
        bmc.bind(("127.0.1.3", 0))
        asked: list[bytes] = []

        def reply() -> None:
            data, place = bmc.recvfrom(64)
            asked.append(data)
            bmc.sendto(answer, place)

        replier = threading.Thread(target=reply)
        replier.start()
        prober = Prober(redfish_port=1, timeout_s=10, pace=UNPACED, ipmi_port=bmc.getsockname()[1])
        bmcs = list(find([ipaddress.ip_address("127.0.1.3")], prober))
        replier.join()
    assert asked == [bytes.fromhex("0600ff06 000011be 80000000")]
    assert [each.driver for each in bmcs] == (["ipmi"] if answer == PONG else [])


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", "x" * 100_000, '{"RedfishVersion": "1.6.0", "UUID": 7}']
)
def test_other_servers_are_no_bmcs_and_strange_texts_are_left_out(body: str) -> None:
    with web.serving({"/redfish/v1/": web.text(body)}) as server:
        prober = Prober(redfish_port=server.port, timeout_s=10, pace=UNPACED, ipmi_port=9)
        bmcs = list(find([ipaddress.ip_address("127.0.0.1")], prober))
    assert server.asked == ["/redfish/v1/"]
    assert [each.uuid for each in bmcs] == ([""] if "UUID" in body else [])


def test_a_server_that_drips_has_no_more_than_the_timeout() -> None:
    enough = threading.Event()
    with web.serving({"/redfish/v1/": web.dripping(enough)}) as server:
        prober = Prober(redfish_port=server.port, timeout_s=0.2, pace=UNPACED, ipmi_port=9)
        try:
            assert list(find([ipaddress.ip_address("127.0.0.1")], prober)) == []
        finally:
            enough.set()


def test_addresses_take_turns() -> None:
    waits: list[float] = []
    pace = Pace(every_s=0.5, clock=lambda: 100.0, wait=waits.append)
    for _ in range(4):
        pace.wait_for_slot()
    assert waits == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("networks", "text"),
    [
        ("10.0.0.0/8", "takes 4096 addresses at most"),
        ("10.0.0.0/20 10.1.0.0/20", "takes 4096 addresses at most"),
        ("rack-1", "cannot read the network 'rack-1'"),
    ],
)
def test_too_much_or_no_network_is_refused(run: Run, networks: str, text: str) -> None:
    refused = run(f"discover {networks}")
    assert (refused.exit_code, text in refused.output) == (2, True), refused.output
