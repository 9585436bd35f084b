"""NMI, lights, virtual media and vendor methods, from the API to a BMC."""

from __future__ import annotations

import pytest

from bloomery.drivers.redfish import vendor
from bloomery.lab import models
from tests.functional.redfish.conftest import ISO, manageable

MEDIA = (("Cd", ("CD", "DVD")), ("Usb", ("USBStick",)))
EVENTS = "https://events.test/redfish"


@pytest.fixture
def machine(make_rack):
    return make_rack(media=MEDIA).machines[0]


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


def lights(stage, node):
    answer = stage.api.get(f"/v1/nodes/{node}/management/indicators")
    assert answer.status == 200, answer.body
    return answer.json["indicators"]


# ------------------------------------------------------------------------------- NMI and lights


def test_a_machine_that_runs_is_interrupted(stage, machine, node):
    path = f"/v1/nodes/{node}/management/inject_nmi"
    answer = stage.api.put(path, {})
    assert (answer.status, "HTTP 409: Nmi: the system is Off" in answer.said) == (400, True)
    stage.power(node, "power on")
    answer = stage.api.put(path, {})
    assert (answer.status, answer.body) == (204, b"")
    assert "reset Nmi" in machine.system.happened


def test_a_bmc_without_nmi_says_which_resets_it_has(stage, make_rack):
    node = manageable(stage, make_rack(resets=("On", "ForceOff")).machines[0])
    answer = stage.api.put(f"/v1/nodes/{node}/management/inject_nmi", {})
    assert (answer.status, "the BMC offers no Nmi" in answer.said) == (400, True)


def test_lights_are_those_of_system_chassis_and_drives(stage, machine, node):
    ident = machine.system.id
    assert [(each["name"], each["readonly"], each["states"]) for each in lights(stage, node)] == [
        (name, False, ["blinking", "off", "on"])
        for name in (f"{ident}@system", f"{ident}@chassis", "1:0@disk", "1:1@disk")
    ]


@pytest.mark.parametrize(
    ("component", "state", "word"),
    [("system", "on", "Lit"), ("chassis", "blinking", "Blinking"), ("disk", "on", "Lit")],
)
def test_a_light_is_switched(stage, machine, node, component, state, word):
    name = "1:1" if component == "disk" else machine.system.id
    path = f"/v1/nodes/{node}/management/indicators/{name}@{component}"
    assert stage.api.get(path).json == {"state": "off"}
    answer = stage.api.put(path, {"state": state})
    assert (answer.status, answer.body) == (204, b"")
    assert stage.api.get(path).json == {"state": state}
    system = machine.system
    assert (system.drive_leds.get("1") if component == "disk" else system.led) == word


@pytest.mark.parametrize(
    ("light", "state", "told"),
    [
        ("1:0@disk", "unknown", "it takes blinking, off, on"),
        ("1:7@disk", "on", "the machine has 1:0, 1:1"),
        ("x@power", "on", "redfish has system, chassis, disk"),
    ],
)
def test_a_light_or_a_state_that_is_not_there_is_named(stage, node, light, state, told):
    answer = stage.api.put(f"/v1/nodes/{node}/management/indicators/{light}", {"state": state})
    assert (answer.status, told in answer.said) == (400, True), answer.said


# -------------------------------------------------------------------------------- virtual media


def media(stage, node):
    return stage.api.get(f"/v1/nodes/{node}/vmedia").json


def attach(stage, node, device, image=ISO):
    body = {"device_type": device, "image_url": image}
    answer = stage.api.post(f"/v1/nodes/{node}/vmedia", body)
    assert (answer.status, answer.body) == (204, b"")
    stage.wait_until_free(node)


def test_media_of_a_machine_are_inserted_shown_and_ejected(stage, machine, node):
    attach(stage, node, "cdrom")
    attach(stage, node, "disk", "http://images.test/a.img")
    assert media(stage, node) == [
        {"media_types": ["CD", "DVD"], "inserted": True, "image": ISO},
        {"media_types": ["USBStick"], "inserted": True, "image": "http://images.test/a.img"},
    ]
    assert machine.system.media == {"Cd": ISO, "Usb": "http://images.test/a.img"}
    stage.api.delete(f"/v1/nodes/{node}/vmedia?device_types=disk")
    stage.wait_until_free(node)
    assert machine.system.media == {"Cd": ISO, "Usb": None}
    stage.api.delete(f"/v1/nodes/{node}/vmedia")
    stage.wait_until_free(node)
    assert machine.system.media == {"Cd": None, "Usb": None}
    assert stage.show(node)["last_error"] is None


def test_a_device_that_is_not_there_is_told_in_last_error(stage, machine, node):
    attach(stage, node, "floppy")
    sentence = stage.show(node)["last_error"]
    assert "its BMC offers no virtual Floppy" in sentence
    assert stage.errors(node) == [sentence]


def test_what_the_bmc_refuses_is_told_in_last_error(stage, machine, node):
    refusal = {"error": {"code": "Base.1.0.GeneralError", "message": "the drive is locked"}}
    machine.bmc.faults.add(
        kind="status", status=400, body=refusal, method="POST", path="VirtualMedia.InsertMedia"
    )
    attach(stage, node, "cdrom")
    assert "the drive is locked" in stage.show(node)["last_error"]


# --------------------------------------------------------------------------------- vendor methods


def call(stage, node, http, method, info=None):
    answer = stage.api.ask(http, f"/v1/nodes/{node}/vendor_passthru?method={method}", info)
    if answer.status == 202:
        stage.wait_until_free(node)
    return answer


def test_methods_are_those_of_ironic(stage, node):
    methods = stage.api.get(f"/v1/nodes/{node}/vendor_passthru/methods").json
    assert {name: (m["http_methods"], m["async"]) for name, m in methods.items()} == {
        "eject_vmedia": (["POST"], True),
        "create_subscription": (["POST"], False),
        "delete_subscription": (["DELETE"], False),
        "get_all_subscriptions": (["GET"], False),
        "get_subscription": (["GET"], False),
    }


def test_media_are_ejected_by_name(stage, machine, node):
    attach(stage, node, "cdrom")
    assert call(stage, node, "POST", "eject_vmedia", {"boot_device": "usb"}).status == 202
    assert machine.system.media["Cd"] == ISO
    assert call(stage, node, "POST", "eject_vmedia", {"boot_device": "cd"}).status == 202
    assert machine.system.media["Cd"] is None
    answer = call(stage, node, "POST", "eject_vmedia", {"boot_device": "tape"})
    assert (answer.status, "cd, dvd, usb, floppy" in answer.said) == (400, True)


def test_a_subscription_is_made_shown_and_deleted(stage, machine, node):
    secret = [{"Authorization": "Bearer correct-horse"}]
    asked = {"Destination": EVENTS, "Context": "rack 4", "HttpHeaders": secret}
    made = call(stage, node, "POST", "create_subscription", asked)
    assert made.status == 200, made.body
    ident = made.json["Id"]
    assert made.json == {
        "Id": ident, "Context": "rack 4", "Protocol": "Redfish", "Destination": EVENTS,
        "EventTypes": ["Alert"],
    }  # fmt: skip
    assert machine.bmc.events[ident]["HttpHeaders"] == secret
    assert "correct-horse" not in str(stage.site.everything())
    members = call(stage, node, "GET", "get_all_subscriptions").json["Members"]
    assert [each["@odata.id"].rsplit("/", 1)[1] for each in members] == [ident]
    assert call(stage, node, "GET", "get_subscription", {"id": ident}).json == made.json
    gone = call(stage, node, "DELETE", "delete_subscription", {"id": ident})
    assert (gone.status, gone.body) == (200, b"null")
    assert machine.bmc.events == {}
    for http, method in (("GET", "get_subscription"), ("DELETE", "delete_subscription")):
        answer = call(stage, node, http, method, {"id": ident})
        assert (answer.status, f"no subscription {ident}" in answer.said) == (404, True)


def test_nobody_reads_the_login_of_a_destination(stage, machine, node):
    address = "https://alice:correct-horse@events.test/hook"
    made = call(stage, node, "POST", "create_subscription", {"Destination": address})
    assert made.status == 200, made.body
    assert machine.bmc.events[made.json["Id"]]["Destination"] == address
    shown = call(stage, node, "GET", "get_subscription", {"id": made.json["Id"]})
    assert shown.json == made.json
    assert made.json["Destination"] == "https://******@events.test/hook"


def test_nobody_reads_the_login_in_a_list_that_is_sent_whole(monkeypatch):
    headers = [{"Authorization": "Bearer correct-horse"}]
    member = {"Id": "1", "Destination": "https://a:correct-horse@b.test/", "HttpHeaders": headers}
    document = {"@odata.etag": "x", "Members": [member, {"@odata.id": "/2"}]}
    monkeypatch.setattr(vendor, "_path", lambda _system: "/events")
    monkeypatch.setattr(vendor.reading, "fetch", lambda _system, _path: document)
    shown = vendor._collection(None)
    assert "correct-horse" not in str(shown)
    assert shown["Members"][1] == {"@odata.id": "/2"}


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({}, "Parameter 'Destination' not passed"),
        ({"Destination": "events.test"}, "Invalid Destination: events.test (str)"),
        ({"Destination": 1}, "Invalid Destination: 1 (int)"),
        ({"Destination": EVENTS, "EventTypes": "Alert"}, "Invalid EventTypes"),
        ({"Destination": EVENTS, "EventTypes": []}, "Invalid EventTypes"),
        ({"Destination": EVENTS, "Protocol": 1}, "Invalid Protocol: 1 (int)"),
        ({"Destination": EVENTS, "HttpHeaders": ["a"]}, "Invalid HttpHeaders"),
        ({"Destination": EVENTS, "more": 1}, "Parameter 'more' is none of"),
    ],
)
def test_a_subscription_that_cannot_be_is_refused_by_name(stage, machine, node, info, told):
    answer = call(stage, node, "POST", "create_subscription", info)
    assert (answer.status, told in answer.said) == (400, True), answer.said
    assert machine.bmc.events == {}


@pytest.mark.parametrize("ident", ["a/b", "..", "", "x" * 256, 7])
def test_an_id_leads_nowhere_else(stage, node, ident):
    answer = call(stage, node, "DELETE", "delete_subscription", {"id": ident})
    assert answer.status == 400, answer.body


# ------------------------------------------------------------------------------ makes of BMCs


@pytest.mark.parametrize("model", models.ALL)
def test_any_make_shows_lights_media_and_subscriptions(stage, make_rack, model):
    machine = make_rack(model=model).machines[0]
    node = manageable(stage, machine)
    for light in lights(stage, node):
        path = f"/v1/nodes/{node}/management/indicators/{light['name']}"
        assert stage.api.get(path).json["state"] in ("on", "off", "blinking", "unknown"), light
    assert stage.api.get(f"/v1/nodes/{node}/vmedia").status == 200
    assert call(stage, node, "GET", "get_all_subscriptions").status == 200
    attach(stage, node, "cdrom")
    has_disc = any({"CD", "DVD"} & set(each["media_types"]) for each in media(stage, node))
    assert (stage.show(node)["last_error"] is None) is has_disc
    assert any(each["image"] == ISO for each in media(stage, node)) is has_disc


@pytest.mark.parametrize("model", models.ALL)
def test_any_make_is_interrupted_or_says_why_not(stage, make_rack, model):
    machine = make_rack(model=model).machines[0]
    node = manageable(stage, machine)
    stage.power(node, "power on")
    answer = stage.api.put(f"/v1/nodes/{node}/management/inject_nmi", {})
    offers = "Nmi" in machine.system.spec.resets
    assert (answer.status, "reset Nmi" in machine.system.happened) == (
        204 if offers else 400,
        offers,
    )
