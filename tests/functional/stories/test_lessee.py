"""A node that is deployed for a project is leased to it until its instance goes."""

from __future__ import annotations

import pytest

INSTANCE = {"instance_info": {"project_id": "p"}}


def deploy(stage, node, verb="active"):
    stage.ask(node, verb)
    return stage.wait_for(node, "active")["lessee"]


def test_the_project_of_the_instance_is_the_lessee_as_long_as_it_lives(stage):
    node = stage.bring_to("available", **INSTANCE)
    assert deploy(stage, node) == "p"
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["lessee"] is None
    assert "automatic_lessee" not in stage.show(node)["driver_internal_info"]
    assert deploy(stage, node) is None, "the instance said nothing"


def test_a_lessee_that_an_operator_has_set_stays(stage):
    node = stage.bring_to("available", lessee="q", **INSTANCE)
    assert deploy(stage, node) == "q"
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["lessee"] == "q"


@pytest.mark.parametrize("project", [7, "", "p" * 256, ["p"]])
def test_what_is_no_project_leases_nothing(stage, project):
    node = stage.bring_to("available", instance_info={"project_id": project})
    assert deploy(stage, node) is None


def test_an_operator_may_lease_nothing_by_itself(make_stage):
    stage = make_stage(automatic_lessee=False)
    assert deploy(stage, stage.bring_to("available", **INSTANCE)) is None


def test_it_may_be_the_project_of_who_asks(make_stage):
    stage = make_stage(automatic_lessee_source="request")
    node = stage.bring_to("available", **INSTANCE)
    asked = stage.site.request(project="mine")
    stage.site.order("do_provisioning_action", node, "active", {}, request=asked)
    assert stage.wait_for(node, "active")["lessee"] == "mine"
