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

import pytest

from bloomery.cli.discover import Pace, Prober, find
from bloomery.cli.enrol import records
from bloomery.lab.rack import Rack
from bloomery.lab.tls import certificate
from tests.functional.cli.conftest import Run
from tests.kit.servers import web

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
