"""The firmware of the fleet in the browser: the machines of a rack are updated from its list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages.test_fleet import wait_for_names

CATALOGUE = """
- {vendor: Lab, model: Simulated, component: bios, version: bios-8.bin,
   url: "http://127.0.0.1/bios-8.bin"}
"""  # the simulated BMCs take any address

KINDS = """
    const [uuids, done] = arguments;
    import(`${location.origin}/ui/map.js`).then(
        ({COLOURS}) => done(uuids.map(uuid => COLOURS.firmware.kindOf({uuid}))));
"""


@pytest.fixture
def racked(service: Served) -> Iterator[list[str]]:
    """The two available machines of a rack of their own."""
    nodes = service.api("GET", "/v1/nodes?provision_state=available")["nodes"]
    names = sorted(each["name"] for each in nodes)[:2]
    path = "/properties/rack"
    for name in names:
        change = [{"op": "add", "path": path, "value": "rack-7"}]
        service.api("PATCH", f"/v1/nodes/{name}", change)
    yield names
    for name in names:
        service.api("PATCH", f"/v1/nodes/{name}", [{"op": "remove", "path": path}])


def versions(service: Served, names: list[str]) -> dict[str, tuple[str, str]]:
    shown = {}
    for name in names:
        machine = service.api("GET", f"/ext/v1/nodes/{name}/firmware")["machine"]
        [bios] = [each for each in machine["components"] if each["component"] == "bios"]
        shown[name] = machine["provision_state"], bios["current_version"]
    return shown


def test_the_machines_of_a_rack_are_updated_one_after_the_other(
    window: Window, service: Served, racked: list[str]
) -> None:
    window.open("/firmware")
    window.fill("Rack", "rack-7")
    window.click("Update bios 2.0.0 of 2 machines")
    window.see("Manage, Clean, Provide: 2.", "dialog")
    window.see("Automated cleaning may erase all disks", "dialog")
    window.fill("url", "http://127.0.0.1/bios-9.bin")
    window.see('"settings":[{"component":"bios","url":"http://127.0.0.1/bios-9.bin"}]', "dialog")
    window.fill("Machines at a time", "1")
    window.fill("Failures to bear", "0")
    window.fill("To confirm, type the number of nodes: 2", "2")
    window.click("Update firmware")
    window.see("Update firmware, 2 nodes: 2 done")
    assert versions(service, racked) == dict.fromkeys(racked, ("available", "bios-9.bin"))
    wait_for_names(window, racked)
    window.click("Dismiss")


def test_what_the_catalogue_wants_is_ordered_by_it(
    window: Window, service: Served, racked: list[str]
) -> None:
    service.api("PUT", "/ext/v1/firmware/catalogue", {"catalogue": CATALOGUE})
    window.open("/firmware?rack=rack-7")
    before = versions(service, racked)[racked[0]][1]
    window.click(f"Update bios {before} of 2 machines")
    window.see(f"bloomery firmware apply --component bios {' '.join(racked)}", "dialog")
    window.fill("To confirm, type the number of nodes: 2", "2")
    window.click("Update firmware")
    window.see("Update firmware, 2 nodes: 2 done")
    assert versions(service, racked) == dict.fromkeys(racked, ("available", "bios-8.bin"))
    window.click("Dismiss")
    service.api("DELETE", "/ext/v1/firmware/catalogue")


@pytest.mark.parametrize(("version", "kind"), [(None, "ok"), ("bios-10.bin", "busy")])
def test_the_map_shows_whose_firmware_is_out_of_date(
    window: Window, service: Served, racked: list[str], version: str | None, kind: str
) -> None:
    """A machine without an entry in the catalogue is neither."""
    uuids = [service.api("GET", f"/v1/nodes/{name}")["uuid"] for name in racked]
    present = versions(service, racked)[racked[0]][1]
    catalogue = CATALOGUE.replace("bios-8.bin,", f"{version or present},")
    service.api("PUT", "/ext/v1/firmware/catalogue", {"catalogue": catalogue})
    window.open("/nodes?colour=firmware")
    window.driver.refresh()
    wait_for(
        lambda: (
            window.driver.execute_async_script(KINDS, [*uuids, "not read"]) == [kind, kind, "idle"]
        ),
        "the map to read the firmware",
    )
    window.see({"ok": "as in the catalogue", "busy": "out of date"}[kind], ".legend")
    service.api("DELETE", "/ext/v1/firmware/catalogue")
