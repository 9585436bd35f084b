"""Collections in pages (DSP0266): all members are read, in tasks and in looks, and no log whole."""

from __future__ import annotations

import pytest

from bloomery.drivers.redfish import access, reading
from bloomery.drivers.redfish.passwords import RedfishPasswordChange
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from tests.kit.machines.driver_task import FakeTask


def link(number):
    return {"@odata.id": f"/m/{number}"}


PAGES = {
    "/c": {"Members": [link(1)], reading.NEXT_PAGE: "/c?$skip=1"},
    "/c?$skip=1": {"Members": [link(2)], reading.NEXT_PAGE: "/c?$skip=2"},
    "/c?$skip=2": {"Members": [link(3)]},
    "/circle": {"Members": [link(1)], reading.NEXT_PAGE: "/circle?$skip=1"},
    "/circle?$skip=1": {"Members": [link(2)], reading.NEXT_PAGE: "/circle?$skip=1"},
    "/broken": {"Members": [link(1)], reading.NEXT_PAGE: "/not-there"},
    "/odd": {"Members": [link(1)], reading.NEXT_PAGE: {"@odata.id": "/c"}},
    "/none": {"Id": "1"},
}


@pytest.mark.parametrize(
    ("path", "numbers", "warns"),
    [
        ("/c", [1, 2, 3], False), ("/circle", [1, 2], True), ("/broken", [1], False),
        ("/odd", [1], False), ("/none", [], False),
    ],
)  # fmt: skip
def test_the_members_of_all_pages_are_those_of_the_collection(path, numbers, warns, caplog):
    document = reading.drive(reading.linked({"of": {"@odata.id": path}}, "of"), PAGES.get)
    assert document.get("Members", []) == [link(number) for number in numbers]
    assert ("pages in a circle" in caplog.text) is warns


@pytest.fixture
def paged():
    with Rack(1, rules=Rules(page_size=1, users={"x": "y", "admin": "password"})) as rack:
        yield rack.machines[0]


def test_an_account_is_found_on_a_later_page(paged, conf):
    login = {"redfish_username": "admin", "redfish_password": "password"}
    task = FakeTask(paged.driver_info | login)
    task.node.driver = "redfish"
    assert RedfishPasswordChange(access.of(conf), task, "another-one").run() is None
    assert paged.bmc.changed_passwords == {"admin": "another-one"}


def test_each_page_is_asked_once_in_an_attempt(paged, conf):
    task = FakeTask(paged.driver_info)
    task.node.driver = "redfish"
    way, task.reads = access.of(conf), {}

    def count_drives(system):
        return len(list(reading.drives(reading.each(system.storage))))

    assert way.read(task, count_drives) == 2
    asked = paged.bmc.requests
    assert way.read(task, count_drives) == 2
    assert paged.bmc.requests == asked
