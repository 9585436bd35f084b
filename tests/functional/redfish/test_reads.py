"""How many requests an operation costs a BMC: exact, so that none comes unnoticed."""

from __future__ import annotations

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from tests.functional.redfish.conftest import manageable
from tests.kit.waiting import wait_for


@pytest.fixture
def asked(monkeypatch):
    """Every request to the lab's BMCs since it was cleared, as "METHOD path"."""
    from bloomery.lab import wire

    seen: list[str] = []
    serve = wire.Handler.do_any

    def noted(self):
        seen.append(f"{self.command} {self.path.removeprefix('/redfish/v1')}")
        serve(self)

    for method in ("GET", "POST", "PATCH", "DELETE"):
        monkeypatch.setattr(wire.Handler, f"do_{method}", noted)
    return seen


LOGIN = ["GET /", "POST /SessionService/Sessions"]
VERIFY = [
    "GET /Systems/ID", "GET /Systems/ID/SecureBoot", "GET /Systems/ID/Bios",
    "GET /Registries/LabBios.1.0", "GET /Registries/LabBios.1.0/en", "GET /Managers/ID",
]  # fmt: skip


def taken(asked, machine):
    """What was asked so far; the list is empty afterwards."""
    found = [one.replace(machine.uuid, "ID") for one in asked]
    asked.clear()
    return found


def test_verify_asks_for_each_document_once(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    assert taken(asked, machine) == [*LOGIN, *VERIFY]
    assert stage.show(node)["boot_mode"] is not None
    assert machine.bmc.connections == 1


def test_machines_of_a_model_share_what_explains_their_bios(stage, make_rack, asked) -> None:
    one, other = make_rack(2).machines
    manageable(stage, one)
    asked.clear()
    node = manageable(stage, other)
    assert taken(asked, other) == [*LOGIN, *(path for path in VERIFY if "Registries" not in path)]
    shown = stage.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"]
    assert all(setting["attribute_type"] for setting in shown)


def test_power_on_looks_once_before_it_asks(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    asked.clear()
    assert stage.power(node, "power on")["last_error"] is None
    first, order, look, *_ = taken(asked, machine)
    assert (first, look) == ("GET /Systems/ID", "GET /Systems/ID")
    assert order == "POST /Systems/ID/Actions/ComputerSystem.Reset"


def test_a_system_without_an_id_is_looked_for_once(stage, machine, asked) -> None:
    node = manageable(stage, machine, redfish_system_id=None)
    assert taken(asked, machine) == [*LOGIN, "GET /Systems", *VERIFY]
    stage.power(node, "power on")
    assert "GET /Systems" not in taken(asked, machine)


def test_a_look_of_power_sync_tells_the_health_as_well(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    asked.clear()
    PowerSync(stage.site.runtime).run()
    wait_for(lambda: stage.show(node)["health"] == "OK", "the health to be recorded")
    stage.wait_until_free(node)
    assert taken(asked, machine) == ["GET /Systems/ID"]
