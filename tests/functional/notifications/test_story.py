"""What a consumer of notifications hears while nodes and ports live their lives."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.db.engine import Meter
from bloomery.drivers.base import DriverTask
from bloomery.drivers.fake.hardware import FakePower
from bloomery.drivers.registry import Registry
from bloomery.events.relay import make_relay
from bloomery.notifications import routes
from tests.kit.machines.scripted import Script
from tests.kit.servers import site as kit
from tests.kit.servers.site import Site

Listen = Callable[..., Any]


def moves(listener: Any) -> list[tuple[str, str, str, str]]:
    """Event, from, to, status of each provision_set."""
    return [
        (
            data["event"],
            data["previous_provision_state"],
            data["provision_state"],
            message["event_type"].rsplit(".", 1)[1],
        )
        for message in listener.messages()
        if ".provision_set." in message["event_type"]
        for data in [message["payload"]["ironic_object.data"]]
    ]


def test_a_node_is_told_from_enrolled_to_gone(listener: Any):
    site = listener.site
    node = site.enrol(name="web-1")
    for verb, state in (("manage", "manageable"), ("provide", "available")):
        site.provision(node, verb)
        site.wait_for_state(node, state)
    site.deploy(node)
    site.wait_for_state(node, "active")
    site.provision(node, "deleted")
    site.wait_for_state(node, "available")
    site.order("destroy_node", node)
    assert moves(listener) == [
        ("manage", "enroll", "verifying", "start"),
        ("done", "verifying", "manageable", "end"),
        ("provide", "manageable", "cleaning", "start"),
        ("done", "cleaning", "available", "end"),
        ("deploy", "available", "deploying", "start"),
        ("done", "deploying", "active", "end"),
        ("delete", "active", "deleting", "start"),
        ("clean", "deleting", "cleaning", "success"),
        ("done", "cleaning", "available", "end"),
    ]
    told = listener.types()
    assert told[:2] == ["node.create.start", "node.create.end"]
    assert told[-2:] == ["node.delete.start", "node.delete.end"]


def test_every_message_has_the_form_that_consumers_know(listener: Any):
    test_a_node_is_told_from_enrolled_to_gone(listener)
    for message in listener.messages():
        wire = json.loads(json.dumps(message))
        _, noun, action, status = wire["event_type"].split(".")
        kind = routes.find(noun, action)
        assert kind is not None
        assert set(wire["payload"]) == {
            f"ironic_object.{key}" for key in ("name", "namespace", "version", "data")
        }
        assert wire["payload"]["ironic_object.name"] == kind.name
        assert wire["payload"]["ironic_object.version"] == kind.version
        assert set(wire["payload"]["ironic_object.data"]) == set(kind.fields)
        role = "conductor" if action in ("provision_set", "power_state_corrected") else "api"
        assert wire["publisher_id"] == f"ironic-{role}.bm-cond-1"
        assert wire["priority"] == ("ERROR" if status == "error" else "INFO")


def test_the_payload_shows_the_node_as_the_move_left_it(listener: Any):
    site = listener.site
    node = site.enrol(provision_state="available")
    site.deploy(node)
    now = site.wait_for_state(node, "active")
    [start], [end] = (
        listener.data("node.provision_set.start"),
        listener.data("node.provision_set.end"),
    )
    assert (start["provision_state"], start["target_provision_state"]) == ("deploying", "active")
    assert start["previous_target_provision_state"] is None
    assert (end["provision_state"], end["target_provision_state"]) == ("active", None)
    assert end["previous_target_provision_state"] == "active"
    assert end["provision_updated_at"] == f"{now.provision_updated_at:%Y-%m-%dT%H:%M:%SZ}"
    assert end["created_at"] == f"{now.created_at:%Y-%m-%dT%H:%M:%SZ}"
    assert end["last_error"] is None


def test_a_cleaning_that_fails_is_an_error_with_its_reason(listen: Listen):
    script = Script()

    def refuse(task: Any) -> None:
        raise errors.StepFailure(reason="the disk is on fire")

    script.add("clean", "erase", refuse)
    listener = listen(registry=script.registry())
    site = listener.site
    node = site.enrol(provision_state="manageable")
    site.provision(node, "provide")
    site.wait_for_state(node, "clean failed")
    assert moves(listener)[-1] == ("fail", "cleaning", "clean failed", "error")
    [data] = listener.data("node.provision_set.error")
    assert "the disk is on fire" in data["last_error"]
    assert data["target_provision_state"] == "available"
    assert listener.messages()[-1]["priority"] == "ERROR"


class FoundOff(FakePower):
    """Hardware that is off, whatever is recorded."""

    def get_power_state(self, task: DriverTask) -> str:
        return "power off"


def found_off() -> Registry:
    found = Script().registry()
    interfaces = dict(found.interfaces) | {"power": {"fake": FoundOff(kit.conf())}}
    return Registry(found.types, interfaces, dict.fromkeys(interfaces))


@pytest.mark.parametrize("recorded", [None, "power on"])
def test_verify_tells_after_its_end_that_it_found_another_power_state(
    listen: Listen, recorded: str | None
):
    listener = listen(registry=found_off())
    site = listener.site
    node = site.enrol(power_state=recorded)
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")
    assert listener.types("node.p") == [
        "node.provision_set.start",
        "node.provision_set.end",
        "node.power_state_corrected.success",
    ]
    [data] = listener.data("node.power_state_corrected.success")
    assert (data["from_power"], data["power_state"]) == (recorded, "power off")
    assert (data["provision_state"], data["target_provision_state"]) == ("manageable", None)


def test_verify_does_not_tell_of_the_power_state_that_was_recorded(listen: Listen):
    listener = listen(registry=found_off())
    site = listener.site
    node = site.enrol(power_state="power off")
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")
    assert listener.types("node.power") == []


@pytest.mark.parametrize(
    ("target", "after"),
    [("power on", "power on"), ("rebooting", "power on"), ("soft power off", "power off")],
)
def test_power_is_told_when_it_is_asked_and_when_it_is_there(
    listener: Any, target: str, after: str
):
    site = listener.site
    node = site.enrol(provision_state="manageable", power_state="power off")
    site.order("change_node_power_state", node, target, None)
    site.wait_for_state(node, "manageable")
    assert listener.types("node.power") == ["node.power_set.start", "node.power_set.end"]
    [start], [end] = listener.data("node.power_set.start"), listener.data("node.power_set.end")
    assert (start["to_power"], start["power_state"]) == (target, "power off")
    assert (start["target_power_state"], start["last_error"]) == (after, None)
    assert (end["to_power"], end["power_state"]) == (target, after)
    assert end["target_power_state"] is None


def test_power_that_the_hardware_refuses_is_an_error_with_the_old_state(listener: Any):
    site = listener.site
    node = site.enrol(
        provision_state="manageable", power_state="power off",
        driver_info={"fake": {"fail": ["power.set_power_state"]}},
    )  # fmt: skip
    site.order("change_node_power_state", node, "power on", None)
    site.wait_for_state(node, "manageable")
    assert listener.types("node.power") == ["node.power_set.start", "node.power_set.error"]
    [data] = listener.data("node.power_set.error")
    assert (data["to_power"], data["power_state"]) == ("power on", "power off")
    assert data["target_power_state"] is None
    assert "power.set_power_state" in data["last_error"]


def test_power_that_validation_refuses_is_not_told(listener: Any):
    site = listener.site
    node = site.enrol(provision_state="manageable", disable_power_off=True)
    with pytest.raises(errors.PowerStateFailure):
        site.order("change_node_power_state", node, "power off", None)
    assert listener.types("node.power") == []


def test_a_node_is_shown_as_its_client_gave_it_and_then_as_it_is_stored(listener: Any):
    site = listener.site
    node = site.enrol(
        name="rack4-u17", driver_info={"redfish_password": "hush"}, extra={"rack": "4"}
    )
    [start], [end] = listener.data("node.create.start"), listener.data("node.create.end")
    assert (start["created_at"], start["maintenance"], start["deploy_interface"]) == (None,) * 3
    assert (end["maintenance"], end["deploy_interface"]) == (False, "fake")
    assert end["created_at"] == f"{site.node(node).created_at:%Y-%m-%dT%H:%M:%SZ}"
    for data in (start, end):
        assert (data["uuid"], data["name"], data["extra"]) == (node, "rack4-u17", {"rack": "4"})
        assert data["driver_info"] == {"redfish_password": "******"}
    assert "hush" not in json.dumps(listener.messages())


def test_an_update_is_told_with_the_values_as_they_will_be(listener: Any):
    site = listener.site
    node = site.enrol()
    patch = [{"op": "add", "path": "/extra/rack", "value": 7}]
    site.order("update_node", node, patch, False)
    [start], [end] = listener.data("node.update.start"), listener.data("node.update.end")
    assert (start["extra"], start["updated_at"]) == ({"rack": 7}, None)
    assert end["extra"] == {"rack": 7}
    assert end["updated_at"] == f"{site.node(node).updated_at:%Y-%m-%dT%H:%M:%SZ}"


def test_traits_are_told_as_an_update_of_the_node(listener: Any):
    site = listener.site
    node = site.enrol()
    site.order("add_node_traits", node, ["CUSTOM_B", "CUSTOM_A"], True)
    site.order("remove_node_traits", node, ["CUSTOM_B"])
    told = [data["traits"] for data in listener.data("node.update.start")]
    assert told == [["CUSTOM_A", "CUSTOM_B"], ["CUSTOM_A"]]
    assert told == [data["traits"] for data in listener.data("node.update.end")]


def test_maintenance_is_told_with_its_reason_from_the_start(listener: Any):
    site = listener.site
    node = site.enrol()
    site.order("set_maintenance", node, True, "replace DIMM 3")
    assert listener.types("node.m") == ["node.maintenance_set.start", "node.maintenance_set.end"]
    for status in ("start", "end"):
        [data] = listener.data(f"node.maintenance_set.{status}")
        assert (data["maintenance"], data["maintenance_reason"]) == (True, "replace DIMM 3")


def test_deleting_a_node_with_a_console_stops_the_console_between(listener: Any):
    site = listener.site
    node = site.enrol(console_enabled=True)
    listener.forget()
    site.order("destroy_node", node)
    assert listener.types() == [
        "node.delete.start",
        "node.console_set.start",
        "node.console_set.end",
        "node.delete.end",
    ]
    shown = [
        data["console_enabled"]
        for message in listener.messages()
        for data in [message["payload"]["ironic_object.data"]]
    ]
    assert shown == [True, True, False, True], "the end of a deletion shows what was deleted"


def test_a_console_that_does_not_stop_keeps_its_node_and_is_told_between(listener: Any):
    site = listener.site
    told_to_fail = {"fake": {"fail": ["console.stop_console"]}}
    node = site.enrol(console_enabled=True, driver_info=told_to_fail)
    listener.forget()
    with pytest.raises(errors.BmcRefused):
        site.order("destroy_node", node)
    assert [(m["event_type"], m["priority"]) for m in listener.messages()] == [
        ("baremetal.node.delete.start", "INFO"),
        ("baremetal.node.console_set.start", "INFO"),
        ("baremetal.node.console_set.error", "ERROR"),
        ("baremetal.node.delete.error", "ERROR"),
    ]
    [data] = listener.data("node.console_set.error")
    assert data["console_enabled"] is True
    assert "told to fail" in data["last_error"]


def test_a_console_is_told_in_the_form_that_consumers_know(listener: Any):
    site = listener.site
    node = site.enrol(provision_state="active")
    listener.forget()
    site.order("set_console_mode", node, True)
    site.wait_for_state(node, "active")
    site.provision(node, "deleted")
    site.wait_for_state(node, "available")
    consoles = [m for m in listener.messages() if ".console_" in m["event_type"]]
    assert [m["event_type"].removeprefix("baremetal.node.") for m in consoles] == [
        "console_set.start",
        "console_set.end",
        "console_stop.start",
        "console_stop.end",
    ]
    shown = [m["payload"]["ironic_object.data"]["console_enabled"] for m in consoles]
    assert shown == [False, True, True, False]
    for message in consoles:
        assert message["publisher_id"] == "ironic-conductor.bm-cond-1"
        assert message["payload"]["ironic_object.name"] == "NodePayload"
        assert message["payload"]["ironic_object.version"] == "1.17"


def test_ports_are_told(listener: Any):
    site = listener.site
    node = site.enrol()
    listener.forget()
    port = str(uuid.uuid4())
    site.order(
        "create_record", "port", {"uuid": port, "node_uuid": node, "address": "52:54:00:aa:bb:01"}
    )
    patch = [{"op": "replace", "path": "/extra", "value": {"a": 1}}]
    site.order("update_record", "port", port, patch)
    site.order("destroy_record", "port", port)
    assert listener.types() == [
        f"port.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    [asked], [stored] = listener.data("port.create.start"), listener.data("port.create.end")
    assert (asked["pxe_enabled"], asked["created_at"]) == (None, None)
    assert asked["available_for_dynamic_portgroup"] is True
    assert (stored["pxe_enabled"], stored["node_uuid"]) == (True, node)
    assert listener.data("port.delete.end")[0]["extra"] == {"a": 1}


def test_port_groups_are_told(listener: Any):
    site = listener.site
    node = site.enrol()
    listener.forget()
    group = str(uuid.uuid4())
    site.order("create_record", "portgroup", {"uuid": group, "node_uuid": node, "name": "bond0"})
    patch = [{"op": "replace", "path": "/extra", "value": {"a": 1}}]
    site.order("update_record", "portgroup", group, patch)
    site.order("destroy_record", "portgroup", group)
    assert listener.types() == [
        f"portgroup.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    [asked] = listener.data("portgroup.create.start")
    [stored] = listener.data("portgroup.create.end")
    assert (asked["mode"], asked["standalone_ports_supported"], asked["extra"]) == (None, None, {})
    assert (stored["mode"], stored["standalone_ports_supported"]) == ("active-backup", True)
    assert (stored["name"], stored["node_uuid"], stored["dynamic_portgroup"]) == (
        "bond0", node, False,
    )  # fmt: skip
    assert listener.data("portgroup.delete.end")[0]["extra"] == {"a": 1}


def test_chassis_are_told(listener: Any):
    site = listener.site
    chassis = str(uuid.uuid4())
    site.order("create_record", "chassis", {"uuid": chassis, "description": "row B"})
    patch = [{"op": "replace", "path": "/extra", "value": {"a": 1}}]
    site.order("update_record", "chassis", chassis, patch)
    site.order("destroy_record", "chassis", chassis)
    assert listener.types() == [
        f"chassis.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    assert listener.data("chassis.create.end")[0]["description"] == "row B"
    assert listener.data("chassis.delete.end")[0]["extra"] == {"a": 1}


def test_a_port_group_with_ports_that_is_not_deleted_is_told_as_an_error(listener: Any):
    site = listener.site
    node, group = site.enrol(), str(uuid.uuid4())
    site.order("create_record", "portgroup", {"uuid": group, "node_uuid": node})
    port = {"uuid": str(uuid.uuid4()), "node_uuid": node, "address": "52:54:00:aa:bb:01"}
    site.order("create_record", "port", port | {"portgroup_uuid": group})
    listener.forget()
    with pytest.raises(errors.PortgroupNotEmpty):
        site.order("destroy_record", "portgroup", group)
    assert listener.types() == ["portgroup.delete.start", "portgroup.delete.error"]


def test_ports_that_follow_their_group_are_told(listener: Any):
    site = listener.site
    node, group, port = site.enrol(), str(uuid.uuid4()), str(uuid.uuid4())
    site.order("create_record", "portgroup", {"uuid": group, "node_uuid": node})
    values = {"uuid": port, "node_uuid": node, "address": "52:54:00:aa:bb:01"}
    site.order("create_record", "port", values | {"portgroup_uuid": group})
    listener.forget()
    patch = [{"op": "add", "path": "/physical_network", "value": "b"}]
    site.order("update_record", "portgroup", group, patch)
    assert listener.types() == [
        "port.update.start",
        "port.update.end",
        "portgroup.update.start",
        "portgroup.update.end",
    ]
    [told] = listener.data("port.update.end")
    assert (told["uuid"], told["physical_network"]) == (port, "b")


REFUSED = {
    "a locked node": (
        "update",
        "update_node",
        [[{"op": "add", "path": "/name", "value": "new"}], False],
    ),
    "a node that must stay": ("delete", "destroy_node", []),
    "maintenance of a locked node": ("maintenance_set", "set_maintenance", [True, "why"]),
    "too many traits": ("update", "add_node_traits", [[f"CUSTOM_{n}" for n in range(60)], False]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_although_its_object_is_there_is_told_as_an_error(
    listen: Listen, case: str
):
    action, method, args = REFUSED[case]
    listener = listen(patience_s=0.0)
    site = listener.site
    node = site.enrol(protected=True)
    if "locked" in case:
        site.set(node, reservation="another-host")
    listener.forget()
    with pytest.raises(errors.Failure) as caught:
        site.order(method, node, *args)
    assert not isinstance(caught.value, errors.NotFound)
    assert listener.types() == [f"node.{action}.start", f"node.{action}.error"]
    assert [message["priority"] for message in listener.messages()] == ["INFO", "ERROR"]
    start, error = (m["payload"]["ironic_object.data"] for m in listener.messages())
    assert start == error
    wanted = {"update_node": ("name", "new"), "set_maintenance": ("maintenance_reason", "why")}
    if method in wanted:
        field, value = wanted[method]
        assert start[field] == value


def test_a_node_whose_name_is_taken_is_told_as_an_error(listener: Any):
    site = listener.site
    site.enrol(name="web-1")
    listener.forget()
    with pytest.raises(errors.DuplicateName):
        site.enrol(name="web-1")
    assert listener.types() == ["node.create.start", "node.create.error"]


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("update_node", [[{"op": "replace", "path": "/extra/no/such", "value": 1}], False]),
        ("destroy_record", []),
    ],
)
def test_what_is_refused_before_there_is_an_object_is_not_told(
    listener: Any, method: str, args: list[Any]
):
    site = listener.site
    node = site.enrol()
    listener.forget()
    subject = [node] if method == "update_node" else ["port", str(uuid.uuid4())]
    with pytest.raises(errors.Failure):
        site.order(method, *subject, *args)
    assert listener.types() == []


def test_only_errors_are_sent_where_only_errors_are_asked(listen: Listen):
    listener = listen("error", patience_s=0.0)
    site = listener.site
    node = site.enrol(provision_state="available")
    site.set(node, reservation="another-host")
    with pytest.raises(errors.NodeLocked):
        site.order("set_maintenance", node, True, None)
    assert listener.types() == ["node.maintenance_set.error"]


def test_what_happened_while_nobody_relayed_is_told_later(listen: Listen):
    listener = listen()
    site = listener.site
    listener.messages()
    listener.relay.stop()
    site.enrol()
    again = make_relay(listener.conf, site.db)
    listener.relay = again
    again.start()
    try:
        assert listener.types() == ["node.create.start", "node.create.end"]
    finally:
        again.stop()


def test_without_a_sink_events_are_rows_without_a_snapshot_and_refusals_none(site: Site):
    node = site.enrol(provision_state="available", protected=True)
    site.deploy(node)
    site.wait_for_state(node, "active")
    site.order("change_node_power_state", node, "power off", None)
    site.wait_for_state(node, "active")
    assert {row["snapshot"] for row in site.events(node)} == {None}
    written = len(site.events(node))
    meter = Meter(site.db)
    with pytest.raises(errors.NodeProtected):
        site.order("destroy_node", node)
    assert (len(site.events(node)), meter.commits) == (written, 0)


def test_a_snapshot_costs_a_move_no_statement_and_no_commit(make_site: Callable[..., Site]):
    counts = []
    for snapshots in (False, True):
        site = make_site(snapshots=snapshots)
        node = site.enrol(provision_state="available")
        meter = Meter(site.db)
        with site.acquire(node) as task:
            task.process_event("manage")
        counts.append((len(meter.statements), meter.commits))
    assert counts[0] == counts[1]
