"""How many requests an operation costs a BMC: exact, so that none comes unnoticed."""

from __future__ import annotations

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.lab import models
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


@pytest.mark.parametrize(
    ("model", "first", "another"),  # the first machine of a model explains what its BIOS can do
    [
        ("generic", 8, 6),
        ("dmtf-rackmount1", 8, 6),
        ("hpe-ilo6", 8, 8),  # what would explain it is missing, and is looked for again
        ("supermicro-x10", 7, 7),  # likewise
        ("openbmc-gb300", 6, 6),
        ("dell-idrac", 10, 6),  # not under its name: the list of explanations is asked for
        ("lenovo-xcc", 8, 6),
    ],
)
def test_verify_costs_each_make_of_bmc_as_much_as_here(
    stage, make_rack, asked, model, first, another
) -> None:
    for machine, count in zip(make_rack(2, model=model).machines, (first, another), strict=True):
        manageable(stage, machine)
        assert len(taken(asked, machine)) == count


def test_every_make_of_bmc_is_in_the_table() -> None:
    [marker] = test_verify_costs_each_make_of_bmc_as_much_as_here.pytestmark
    assert [row[0] for row in marker.args[1]] == list(models.ALL)


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
