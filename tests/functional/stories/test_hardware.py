"""What is asked of one machine beyond power: RAID, NMI, lights, virtual media."""

from __future__ import annotations

import pytest

from bloomery.api.versions import MAX
from bloomery.conductor import recovery, runner, virtual_media
from bloomery.drivers.noop import NoRaid
from bloomery.drivers.registry import Registry
from bloomery.model.step import internal_step
from tests.kit.machines.scripted import Script
from tests.kit.servers import site as kit
from tests.kit.servers.stories import full_pool

DISK = {"raid_level": "1", "size_gb": 100}
RAID = {"logical_disks": [DISK | {"is_root_volume": True}, {"raid_level": "5", "size_gb": "MAX"}]}
ISO = "http://images.test/rescue.iso"


def unsupported(method):
    return f"Driver fake-hardware does not support {method} (disabled or not implemented)."


# ------------------------------------------------------------------------------------------ RAID


def raid(stage, node, config, **more):
    return stage.api.put(f"/v1/nodes/{node}/states/raid", config, **more)


def target_of(stage, node):
    return stage.api.get(f"/v1/nodes/{node}/states").json["target_raid_config"]


def test_a_target_is_stored_shown_and_cleared(stage):
    node = stage.enrol()
    answer = raid(stage, node, RAID)
    assert (answer.status, answer.body, "location" in answer.headers) == (204, b"", False)
    assert target_of(stage, node) == stage.show(node)["target_raid_config"] == RAID
    assert stage.show(node)["raid_config"] == {}
    assert raid(stage, node, {}).status == 204
    assert target_of(stage, node) == {}


def test_no_body_clears_it_too(stage):
    node = stage.enrol()
    raid(stage, node, RAID)
    assert raid(stage, node, None).status == 204
    assert target_of(stage, node) == {}


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"logical_disks": []}, "logical_disks"),
        ({"logical_disks": [DISK], "more": 1}, "more"),
        ({"more": 1}, "more"),
        ({"logical_disks": [{"raid_level": "1"}]}, "size_gb"),
        ({"logical_disks": [DISK | {"raid_level": "7"}]}, "1+0"),
        ({"logical_disks": [DISK | {"size_gb": -1}]}, "size_gb"),
        ({"logical_disks": [DISK | {"size_gb": "ALL"}]}, "size_gb"),
        ({"logical_disks": [DISK | {"colour": "red"}]}, "colour"),
        ({"logical_disks": [DISK | {"number_of_physical_disks": 0}]}, "number_of_physical_disks"),
        ({"logical_disks": [DISK | {"physical_disks": ["0", "1"]}]}, "controller"),
        ({"logical_disks": [DISK | {"controller": "software", "physical_disks": [{}]}]}, "disks"),
        ({"logical_disks": [DISK | {"is_root_volume": True}] * 2}, "at most one"),
        ({"logical_disks": [DISK | {"volume_name": {"$sealed": "x"}}]}, "$sealed"),
        ({"logical_disks": 1}, "logical_disks"),
        ({"logical_disks": None}, "logical_disks"),
        ([RAID], "object"),
    ],
)
def test_a_target_that_cannot_be_is_refused_by_name(stage, config, word):
    node = stage.enrol()
    answer = raid(stage, node, config)
    assert (answer.status, answer.form, word in answer.said) == (400, "first", True), answer.said
    assert target_of(stage, node) == {}


def test_a_node_that_is_not_there_is_told_before_what_is_wrong(stage):
    assert raid(stage, "unknown", {"logical_disks": 1}).status == 404


def test_a_busy_node_keeps_its_target(stage):
    node = stage.enrol()
    stage.site.set(node, reservation="somebody")
    answer = raid(stage, node, RAID, headers={"Prefer": "wait=0"})
    assert (answer.status, "is locked by host" in answer.said) == (409, True)
    stage.site.set(node, reservation=None)


def test_what_a_disk_may_be_is_told_by_the_driver(stage):
    path = "/v1/drivers/fake-hardware/raid/logical_disk_properties"
    properties = stage.api.get(path).json
    assert set(properties) == {
        "controller", "disk_type", "interface_type", "is_root_volume", "number_of_physical_disks",
        "physical_disks", "raid_level", "share_physical_disks", "size_gb", "volume_name",
    }  # fmt: skip
    assert [name for name, text in properties.items() if text.endswith("Required.")] == [
        "raid_level", "size_gb",
    ]  # fmt: skip
    assert stage.api.get("/v1/drivers/none/raid/logical_disk_properties").status == 404
    assert stage.api.get(path, version=11).status == 406


def test_without_raid_there_is_nothing_to_set(make_stage):
    loaded = Script().registry()
    interfaces = dict(loaded.interfaces) | {"raid": {"no-raid": NoRaid(kit.conf())}}
    stage = make_stage(registry=Registry(loaded.types, interfaces, dict.fromkeys(interfaces)))
    node = stage.enrol()
    answer = raid(stage, node, RAID)
    assert (answer.status, answer.said) == (404, unsupported("validate_raid_config"))
    assert raid(stage, node, {}).status == 204
    answer = stage.api.get("/v1/drivers/fake-hardware/raid/logical_disk_properties")
    assert (answer.status, "does not support" in answer.said) == (404, True)


# ------------------------------------------------------------------------------- NMI and lights


def test_fake_hardware_has_no_nmi(stage):
    node = stage.enrol()
    answer = stage.api.put(f"/v1/nodes/{node}/management/inject_nmi", {})
    assert (answer.status, answer.said) == (400, unsupported("inject_nmi"))
    answer = stage.api.put(f"/v1/nodes/{node}/management/inject_nmi", {"now": True})
    assert (answer.status, "Unexpected arguments: now" in answer.said) == (400, True)


@pytest.mark.parametrize("version", [1, MAX])
def test_lights_are_listed_and_read(stage, version):
    node = stage.enrol()
    path = f"/v1/nodes/{node}/management/indicators"
    url = f"http://localhost/v1/nodes/{node}/management/indicators/led-0@chassis"
    assert stage.api.get(path, version=version).json["indicators"] == [
        {
            "name": "led-0@chassis",
            "component": "chassis",
            "readonly": True,
            "states": ["off", "on"],
            "links": [
                {"href": url, "rel": "self"},
                {"href": url.replace("/v1", ""), "rel": "bookmark"},
            ],
        },
        {
            "name": "led@system",
            "component": "system",
            "readonly": False,
            "states": ["blinking", "off", "on"],
            "links": [
                {"href": url.replace("led-0@chassis", "led@system"), "rel": "self"},
                {
                    "href": url.replace("/v1", "").replace("led-0@chassis", "led@system"),
                    "rel": "bookmark",
                },
            ],
        },
    ]
    assert stage.api.get(f"{path}/led@system", version=version).json == {"state": "on"}


@pytest.mark.parametrize("name", ["led", "@system", "led@", "led@disk", "other@system"])
def test_a_light_that_is_not_there_is_a_bad_request(stage, name):
    node = stage.enrol()
    answer = stage.api.get(f"/v1/nodes/{node}/management/indicators/{name}")
    assert (answer.status, answer.form) == (400, "first")


def test_lights_of_fake_hardware_cannot_be_switched(stage):
    node = stage.enrol()
    path = f"/v1/nodes/{node}/management/indicators/led@system"
    answer = stage.api.put(path, {"state": "off"})
    assert (answer.status, answer.said) == (400, unsupported("set_indicator_state"))
    assert stage.api.put(path, {}).status == 400
    assert stage.api.put(f"{path}?state=off").said == unsupported("set_indicator_state")


# -------------------------------------------------------------------------------- virtual media


def media(node):
    return f"/v1/nodes/{node}/vmedia"


def attach(stage, node, device="cdrom", image=ISO, **more):
    answer = stage.api.post(media(node), {"device_type": device, "image_url": image} | more)
    if answer.status == 204:
        stage.wait_until_free(node)
    return answer


def inserted(stage, node):
    return {
        each["media_types"][0]: each["image"]
        for each in stage.api.get(media(node)).json
        if each["inserted"]
    }


def test_images_are_inserted_and_ejected(stage):
    node = stage.enrol()
    assert inserted(stage, node) == {}
    answer = attach(stage, node)
    assert (answer.status, answer.body, "location" in answer.headers) == (204, b"", False)
    attach(stage, node, "floppy", "http://images.test/a.img", image_download_source="http")
    assert inserted(stage, node) == {"cdrom": ISO, "floppy": "http://images.test/a.img"}
    assert stage.api.delete(f"{media(node)}?device_types=floppy,disk").status == 204
    stage.wait_until_free(node)
    assert inserted(stage, node) == {"cdrom": ISO}
    assert stage.api.delete(media(node)).status == 204
    stage.wait_until_free(node)
    assert inserted(stage, node) == {}
    assert stage.steps(node, "virtual_media") == [
        ("management.attach", "done"), ("management.attach", "done"),
        ("management.detach", "done"), ("management.detach", "done"),
    ]  # fmt: skip


def test_devices_may_be_named_in_the_body_as_openstacksdk_does(stage):
    node = stage.enrol()
    attach(stage, node)
    attach(stage, node, "disk")
    answer = stage.api.ask("DELETE", media(node), {"device_types": "disk,floppy"})
    assert answer.status == 204
    stage.wait_until_free(node)
    assert inserted(stage, node) == {"cdrom": ISO}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"device_type": "tape", "image_url": ISO}, "device_type"),
        ({"device_type": "cdrom"}, "image_url"),
        ({"image_url": ISO}, "device_type"),
        ({"device_type": "cdrom", "image_url": 1}, "image_url"),
        ({"device_type": "cdrom", "image_url": ISO, "image_download_source": "x"}, "swift"),
        ({"device_type": "cdrom", "image_url": ISO, "more": 1}, "more"),
        ({"device_type": "cdrom", "image_url": "x" * 5000}, "image_url"),
    ],
)
def test_an_image_is_named_rightly(stage, body, word):
    answer = stage.api.post(media(stage.enrol()), body)
    assert (answer.status, word in answer.said) == (400, True), answer.said


def test_a_device_is_one_of_three(stage):
    answer = stage.api.delete(f"{media(stage.enrol())}?device_types=cdrom,tape")
    assert (answer.status, "cdrom, disk, floppy" in answer.said) == (400, True)


def test_a_failure_is_told_in_last_error_and_history(stage):
    node = stage.enrol({"fail": ["management.attach_virtual_media"]})
    assert attach(stage, node).status == 204
    sentence = stage.show(node)["last_error"]
    assert "management.attach_virtual_media was told to fail" in sentence
    assert stage.errors(node) == [sentence]


def test_an_address_is_kept_sealed_while_it_is_worked_on(stage):
    image = "https://ann:correct-horse@images.test/a.iso"
    node = stage.enrol()
    attach(stage, node, image=image)
    assert inserted(stage, node) == {"cdrom": "https://******@images.test/a.iso"}
    stage.behave(node, fail=["management.attach_virtual_media"])
    attach(stage, node, image=image)
    assert "correct-horse" not in str(stage.site.everything())


@pytest.mark.parametrize(
    ("state", "kept"), [("manageable", False), ("deploy failed", True), ("clean failed", True)]
)
@pytest.mark.parametrize("order", ["attach", "detach"])
def test_a_good_order_ends_the_error_of_an_earlier_one(stage, state, kept, order):
    node = stage.enrol()
    stage.site.set(node, provision_state=state, last_error="the BMC refused it")
    assert attach(stage, node).status == 204
    if order == "detach":
        stage.site.set(node, last_error="the BMC refused it")
        assert stage.api.delete(media(node)).status == 204
        stage.wait_until_free(node)
    assert stage.show(node)["last_error"] == ("the BMC refused it" if kept else None)


def test_an_order_that_a_crash_cut_off_is_carried_out(stage):
    node = stage.enrol()
    with stage.site.acquire(node) as task:
        image = stage.site.runtime.sealer.seal_whole(ISO)
        step = internal_step("management", "attach", {"device_type": "cdrom", "image": image})
        task.save(*runner.plan(task, virtual_media.VIRTUAL_MEDIA, [step]).opening)
    recovery.adopt(stage.site.runtime, node)
    stage.wait_until_free(node)
    assert inserted(stage, node) == {"cdrom": ISO}


def test_media_wait_until_the_bmc_is_reached_again(stage):
    node = stage.enrol()
    stage.site.set(node, maintenance=1, fault="power failure")
    assert attach(stage, node).status == 503
    assert stage.api.delete(media(node)).status == 503
    assert stage.steps(node) == []


def test_a_full_pool_is_told_with_nothing_written(stage):
    node = stage.enrol()
    with full_pool(stage.site):
        assert attach(stage, node).status == 503
    assert stage.steps(node) == []


@pytest.mark.parametrize(
    ("method", "version", "form"),
    [("GET", 92, "first"), ("GET", 88, "second"), ("POST", 88, "second"), ("PUT", 88, "second")],
)
def test_older_clients_have_no_media(stage, method, version, form):
    answer = stage.api.ask(method, media(stage.enrol()), version=version)
    assert (answer.status, answer.form) == (404, form)
