"""Documents of any shape: an error names the document, in words of ours."""

from __future__ import annotations

import itertools
import re

import pytest

from bloomery import errors
from bloomery.drivers.redfish import access, boot_device, indicators, media, reset, shapes
from tests.kit.machines.driver_task import FakeTask

WRONG = ("a text", 7, ["a text"], {"a": 1})
ROOT, SYSTEM, MANAGER = r"/redfish/v1/?$", r"/Systems/[^/]+$", r"/Managers/[^/]+$"
MEMBERS = {
    ROOT: ("Systems", "Managers", "SessionService", "Links"),
    r"/Systems/?$": ("Members",),
    SYSTEM: ("Boot", "Links", "Actions", "PowerState", "Status", "Processors", "Storage"),
    MANAGER: ("VirtualMedia", "Links"),
    r"/VirtualMedia/[^/]+$": ("MediaTypes", "Actions", "Inserted", "Image"),
}
CASES = [(path, name) for path, names in MEMBERS.items() for name in names]
WORDS = re.compile(r"Error\b|'\w+' object|object has no|NoneType|\bdict\b|\bstr\b|attribute")
CALLS = (
    lambda system: system.power_state,
    lambda system: boot_device.offered_target(system, "pxe"),
    media.show,
    lambda system: [light.facts() for light in indicators.of(system)],
    reset.allowed_types,
)


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "name"), CASES, ids=[f"{p} {n}" for p, n in CASES])
def test_a_member_of_any_type_is_no_riddle(conf, machine, path, name):
    """With and without the Id of the system, which is then looked for."""
    info = dict(machine.driver_info)
    if path in (ROOT, r"/Systems/?$"):
        del info["redfish_system_id"]
    for value, call in itertools.product(WRONG, CALLS):
        machine.bmc.faults.clear()
        machine.bmc.faults.add(
            kind="shows", path=path, method="GET", document={name: value}, times=-1
        )
        way = access.Access(conf)
        way.gateway = access.gateway.Gateway(conf)
        sentence, status = outcome(way, FakeTask(info), call)
        assert not WORDS.search(sentence), (value, sentence)
        assert status in (200, 400, 502), (value, sentence)


def outcome(way, task, call):
    try:
        way.read(task, call)
    except errors.Failure as exc:
        return str(exc), exc.status
    finally:
        way.close()
    return "", 200


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "its document /a is not as Redfish has it: it is a list, not an object"),
        ({"Boot": "x"}, "Boot is a text, not an object"),
        ({"Links": {"Chassis": 3}}, "Links/Chassis is a number, not an object or a list"),
        ({"Members": ["x"]}, "Members is a list of other things than objects"),
        ({"Oem": {"Dell": {"x": [1]}}}, "one of its documents is not as Redfish has it: /a"),
    ],
    ids=str,
)
def test_the_odd_member_is_named(document, words):
    assert words in shapes.describe([("https://bmc.test/a", document)])


def test_without_documents_nothing_is_named():
    assert shapes.describe(()) == "its documents are not as Redfish has them"


def test_a_missing_member_is_told_with_its_document():
    text = "The attribute Systems/@odata.id is missing from the resource /redfish/v1/"
    assert shapes.lacking(text) == "its document /redfish/v1/ has no Systems/@odata.id"
