"""Who asks for which node: a project for its own, the system for anybody."""

from __future__ import annotations

import pytest

from tests.kit.clients.callers import OWNER, STRANGER, Site

A = "/v1/allocations"
LARGE = {"resource_class": "large"}


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.db.close()


def ask(site, place, role="member", **body):
    site.become(place, role)
    return site.ask("POST", A, LARGE | body)


def listed(site, place, query=""):
    site.become(place, "reader")
    answer = site.ask("GET", f"{A}{query}")
    return answer.status, [row["owner"] for row in answer.json.get("allocations", [])]


def test_a_project_owns_what_it_asks_for(site):
    for body in ({}, {"owner": OWNER}, {"owner": None}, {"owner": ""}):
        assert ask(site, OWNER, **body).json["owner"] == OWNER


def test_only_the_system_asks_for_others(site):
    assert ask(site, STRANGER, owner=OWNER).status == 403
    assert ask(site, "system", owner=OWNER).json["owner"] == OWNER
    assert ask(site, "system").json["owner"] is None
    assert ask(site, OWNER, "reader").status == 403


def test_a_project_sees_its_own_alone(site):
    own, other = ask(site, OWNER).json["uuid"], ask(site, STRANGER).json["uuid"]
    ask(site, "system")
    assert listed(site, OWNER) == listed(site, OWNER, f"?owner={OWNER}") == (200, [OWNER])
    assert listed(site, OWNER, f"?owner={STRANGER}") == (403, [])
    assert listed(site, "system") == (200, [OWNER, STRANGER, None])
    assert listed(site, "system", f"?owner={STRANGER}") == (200, [STRANGER])
    site.become(OWNER, "admin")
    assert site.ask("GET", f"{A}/{own}").status == 200
    for method, body in (("GET", None), ("PATCH", []), ("DELETE", None)):
        assert site.ask(method, f"{A}/{other}", body).status == 404


@pytest.mark.parametrize("name", ["node", "candidate_nodes"])
def test_a_node_of_others_is_no_node(site, name):
    for ident in (site.node(), "nobody"):
        answer = ask(site, STRANGER, **{name: ident if name == "node" else [ident]})
        assert (answer.status, "no such node" in answer.said) == (400, True)
