"""Names, ids and ARNs lead to the address of a stack, whatever the method."""

from __future__ import annotations

import pytest

from bloomery import errors
from tests.fakes.stack_operations import STACK
from tests.unit.api.orchestration.conftest import BASE, URL, fault

ARN = f"arn:openstack:heat::p1:stacks/web/{STACK.uuid}"
PARTS = ("resources", "events", "template", "actions", "environment", "files")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_name_leads_to_the_address_and_nothing_is_done(api, engine, method):
    answer = api.ask(method, f"{BASE}/stacks/web?a=1&a=b%20c", {"template": "no: [json"})
    assert (answer.status, answer.headers["location"]) == (302, f"{URL}?a=1&a=b%20c")
    assert answer.json["title"] == "Found"
    assert engine.asked == [("identify_stack", ("web",), {})]


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_stack_are_reached_by_its_name(api, part):
    answer = api.get(f"{BASE}/stacks/web/{part}?limit=1")
    assert (answer.status, answer.headers["location"]) == (302, f"{URL}/{part}?limit=1")


@pytest.mark.parametrize("part", ["resources", "events", "template", "actions"])
def test_orders_to_parts_are_redirected(api, part):
    assert api.post(f"{BASE}/stacks/web/{part}").headers["location"] == f"{URL}/{part}"


@pytest.mark.parametrize("part", ["outputs", "snapshots", "export", "preview"])
def test_other_parts_have_no_name_form(api, engine, part):
    engine.answers["show_stack"] = errors.EntityNotFound(entity="Stack", name="web")
    assert fault(api.get(f"{BASE}/stacks/web/{part}")) == (404, "EntityNotFound")
    assert engine.asked[-1][1][0].uuid == part  # as the id of a stack
    assert fault(api.post(f"{BASE}/stacks/web/{part}")) == (405, "HTTPMethodNotAllowed")


@pytest.mark.parametrize("arn", [ARN, ARN.replace("/", "%2F"), ARN.replace("arn", "ARN", 1)])
def test_arn_is_looked_up_as_one(api, engine, arn):
    answer = api.get(f"{BASE}/stacks/{arn}")
    assert (answer.status, answer.headers["location"]) == (302, URL)
    assert engine.asked[-1][1][0].lower() == ARN


def test_arn_of_something_of_a_stack_leads_to_that(api, engine):
    answer = api.get(f"{BASE}/stacks/{ARN}/resources/a%20b?x=y")
    assert answer.headers["location"] == f"{URL}/resources/a%20b?x=y"
    assert engine.asked[-1][1] == (ARN,)


@pytest.mark.parametrize("arn", ["arn:", "arn:a:b", "arn:openstack:heat::p1:nodes/a/b", "ARN:::::"])
def test_arn_of_nothing_is_a_name_that_nobody_has(api, engine, arn):
    engine.answers["identify_stack"] = errors.EntityNotFound(entity="Stack", name=arn)
    assert fault(api.get(f"{BASE}/stacks/{arn}")) == (404, "EntityNotFound")
    assert engine.asked[-1][1] == (arn,)


def test_location_names_the_project_of_the_stack(api, engine):
    assert api.get(f"{BASE}/stacks/web").headers["location"].startswith("http://localhost/v1/p1/")
