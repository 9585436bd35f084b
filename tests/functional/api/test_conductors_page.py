"""How conductors stand, what they know of their BMCs, and the order to drain one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery.db import conductors
from bloomery.lab.rack import Rack
from tests.kit.servers.site import Site

CONDUCTORS = "/ext/v1/conductors"


def test_a_conductor_is_listed_with_its_state(api, world) -> None:
    [shown] = api.get(CONDUCTORS).json["conductors"]
    assert (shown["state"], shown["alive"], shown["reserved"]) == ("online", True, 0)
    assert shown["drivers"]
    assert shown["drain_ordered_at"] is None


def test_an_order_to_drain_is_in_the_row(api, world) -> None:
    [host] = [each["hostname"] for each in api.get(CONDUCTORS).json["conductors"]]
    api.post("/v1/nodes", {"driver": "fake-hardware"})
    refused = api.put(f"{CONDUCTORS}/{host}/drain", None)
    assert refused.status == 409
    assert "no other conductor that stays would serve 1 node of its group" in refused.said
    with world.site.db.read() as conn:
        assert conductors.get(conn, host).drain_ordered_at is None
    assert api.put(f"{CONDUCTORS}/{host}/drain?force=true", None).status == 202
    with world.site.db.read() as conn:
        assert conductors.get(conn, host).drain_ordered_at
    assert api.get(CONDUCTORS).json["conductors"][0]["drain_ordered_at"]


def test_a_conductor_that_has_gone_takes_no_orders(api, world) -> None:
    [host] = [each["hostname"] for each in api.get(CONDUCTORS).json["conductors"]]
    with world.site.db.read() as conn:
        incarnation = conductors.get(conn, host).incarnation
    world.site.db.transact(lambda conn: conductors.sign_off(conn, host, incarnation))
    answer = api.put(f"{CONDUCTORS}/{host}/drain", None)
    assert answer.status == 409
    assert f"cannot drain conductor {host}: it is offline" in answer.said
    assert api.get(f"{CONDUCTORS}/{host}/bmcs").status == 503


@pytest.mark.parametrize("path", ["nobody/bmcs", "nobody/drain"])
def test_a_conductor_that_nobody_knows_is_not_found(api, path: str) -> None:
    ask = api.get if path.endswith("bmcs") else lambda url: api.put(url, None)
    assert ask(f"{CONDUCTORS}/{path}").status == 404


def test_a_conductor_tells_what_it_knows_of_its_bmcs(make_site, tmp_path: Path) -> None:
    with Rack(1) as rack:
        [machine] = rack.machines
        site: Site = make_site(enabled_hardware_types=("redfish",))
        node = site.enrol(driver="redfish", driver_info=machine.driver_info)
        site.provision(node, "manage")
        site.wait_for_state(node, "manageable")
        [bmc] = site.service.manager.list_bmcs(site.request())
    assert (bmc["address"], bmc["left_alone"]) == (machine.address, False)
    assert (bmc["accounts"], bmc["refused_logins"], bmc["sessions"]) == (1, 0, 1)
    assert bmc["latency"]["count"] > 1
    assert machine.password not in str(bmc)
