"""What a page or a stack does: it calls operations, without a version, an address or JSON."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.model.request import Page, Request
from bloomery.operations import management, nodes, provision
from bloomery.operations.context import Context


@pytest.fixture
def ctx(world):
    return Context(services=world.site, request=Request.new())


def test_node_is_enrolled_changed_and_read(ctx):
    uuid = nodes.create(ctx, {"driver": "fake-hardware", "name": "any_name~1", "extra": {"a": 1}})
    patch = [{"op": "add", "path": "/shard", "value": "s-1"}]
    assert nodes.update(ctx, "any_name~1", patch) == uuid
    columns = ("uuid", "shard", "provision_state", "extra")
    assert tuple(nodes.get_row(ctx, uuid, columns)) == (uuid, "s-1", State.ENROLL, '{"a":1}')


def test_list_goes_on_from_its_marker(ctx):
    uuids = [nodes.create(ctx, {"driver": "fake-hardware"}) for _ in range(3)]
    rows, marker = nodes.list_rows(ctx, ("name", "uuid"), {}, Page(limit=2))
    assert [row.uuid for row in rows] == uuids[:2]
    rows, marker = nodes.list_rows(ctx, ("name", "uuid"), {}, Page(limit=2, marker=marker))
    assert ([row.uuid for row in rows], marker) == (uuids[2:], None)


def test_list_of_a_conductor_holds_the_columns_that_were_asked_for(ctx):
    uuid = nodes.create(ctx, {"driver": "fake-hardware", "name": "web-1"})
    host = nodes.find_host(ctx, "fake-hardware", "", uuid)
    page = Page(limit=1)
    assert nodes.list_rows(ctx, ("name",), {"conductor": host}, page) == ([("web-1",)], uuid)
    assert nodes.list_rows(ctx, ("name",), {"conductor": "other"}, page) == ([], uuid)


def test_every_verb_and_argument_is_admitted(ctx, world):
    uuid = world.node(provision_state=State.ACTIVE)
    steps = [{"interface": "deploy", "step": "erase"}]
    body = {"target": "service", "service_steps": steps, "disable_ramdisk": True}
    provision.set_provision_state(ctx, uuid, body)
    management.set_power_state(ctx, uuid, "soft power off", 30)


def test_what_refuses_a_feature_is_asked_where_ironic_asks(ctx, world):
    uuid = world.node(provision_state=State.ACTIVE)
    asked = []
    body = {"target": "rebuild", "configdrive": {"meta_data": {}}, "deploy_steps": []}
    terms = provision.ProvisionTerms(admit=lambda *feature: asked.append(feature))
    provision.set_provision_state(ctx, uuid, body, terms)
    assert asked == [
        ("verb", "rebuild"),
        ("configdrive", "rebuild"),
        ("configdrive", "object"),
        ("deploy_steps",),
        ("transition", "rebuild", State.ACTIVE),
    ]


def test_inspected_node_is_left_alone(ctx, world):
    uuid = world.node(provision_state=State.INSPECTING)
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    with pytest.raises(errors.Conflict):
        nodes.update(ctx, uuid, patch)
    terms = nodes.UpdateTerms(while_inspecting=True)
    assert nodes.update(ctx, uuid, patch, terms=terms) == uuid
