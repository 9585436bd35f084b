"""What a project sees and may change of nodes; what stays the same where callers have no roles."""

from __future__ import annotations

import dataclasses
import uuid

import pytest
from cryptography.fernet import Fernet

from bloomery import secrets
from bloomery.api import app
from bloomery.conf import Conf
from bloomery.operations.policy_engine import Policies
from tests.fakes.client import Client
from tests.functional import conftest as functional
from tests.kit.clients.callers import LESSEE, OWNER, STRANGER, Site


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.db.close()


def uuids(answer, plural="nodes"):
    return {each["uuid"] for each in answer.json[plural]}


def test_lists_hold_what_is_of_the_project(site):
    theirs, other = site.node(), site.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware"})
    port = {"node_uuid": theirs, "address": site.mac()}
    site.as_admin("POST", "/v1/ports", port)
    site.as_admin(
        "POST", "/v1/ports", port | {"node_uuid": other.json["uuid"], "address": site.mac()}
    )
    for place, count in ((OWNER, 1), (LESSEE, 1), (STRANGER, 0), ("system", 2)):
        site.become(place, "reader")
        assert len(uuids(site.ask("GET", "/v1/nodes"))) == count
        assert len(uuids(site.ask("GET", "/v1/nodes/detail"))) == count
        assert len(uuids(site.ask("GET", "/v1/ports"), "ports")) == count
        shards = site.ask("GET", "/v1/ports?conductor_groups=none")
        assert uuids(shards, "ports") == set()
    site.become(OWNER, "reader")
    assert site.ask("GET", f"/v1/nodes?project={STRANGER}").status == 403
    assert uuids(site.ask("GET", f"/v1/nodes?project={OWNER}")) == {theirs}


def test_hidden_node_and_missing_node_get_the_same_words(site):
    node, missing = site.node(), "12345678-1234-4321-8765-123456789012"
    site.become(STRANGER, "admin")
    for path in ("", "/states", "/history", "/ports", "/traits", "/children"):
        hidden, unknown = (site.ask("GET", f"/v1/nodes/{each}{path}") for each in (node, missing))
        assert hidden.status == unknown.status == 404
        assert hidden.said.replace(node, "") == unknown.said.replace(missing, "")


def test_sensors_are_shown_to_whom_the_history_is(site):
    node, statuses = site.node(), {}
    for place in ("system", OWNER, LESSEE, STRANGER):
        site.become(place, "reader")
        statuses[place] = site.ask("GET", f"/ext/v1/nodes/{node}/sensors").status
    assert statuses == {"system": 200, OWNER: 200, LESSEE: 403, STRANGER: 404}


@pytest.mark.parametrize("state", ["boot_mode", "secure_boot"])
def test_who_may_not_is_told_so_before_the_version(site, state):
    path = f"/v1/nodes/{site.node()}/states/{state}"
    for role, status in (("reader", 403), ("admin", 404)):
        site.become("system", role)
        assert site.ask("PUT", path, {"target": "uefi"}, version=75).status == status


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("path", "value", "system", "owner", "lessee"),
    [
        ("/extra/a", 1, "member", "member", "member"),
        ("/description", "x", "member", "member", "member"),
        ("/instance_info/a", 1, "member", "member", "admin"),
        ("/instance_name", "x", "member", "member", "admin"),
        ("/driver_info/a", 1, "member", "member", None),
        ("/properties/a", 1, "member", "member", None),
        ("/lessee", "x", "member", "member", None),
        ("/name", "x", "member", "member", None),
        ("/retired", True, "member", "member", None),
        ("/retired_reason", "x", "member", "member", None),
        ("/driver", "fake-hardware", "member", "admin", None),
        ("/network_interface", "noop", "member", "admin", None),
        ("/automated_clean", True, "member", "member", "member"),
        ("/automated_clean", "off", "admin", None, None),
        ("/owner", "x", "member", None, None),
        ("/conductor_group", "", "member", None, None),
        ("/shard", "x", "admin", None, None),
        ("/disable_power_off", True, "admin", None, None),
    ],
)
def test_patch_asks_the_rule_of_each_path(site, path, value, system, owner, lessee):
    patch = [{"op": "add", "path": path, "value": value}]
    ranks = ["reader", "member", "admin"]
    for place, least in (("system", system), (OWNER, owner), (LESSEE, lessee)):
        for role in ranks:
            node = site.node()
            site.become(place, role)
            passes = least is not None and ranks.index(role) >= ranks.index(least)
            answer = site.ask("PATCH", f"/v1/nodes/{node}", patch)
            assert (answer.status == 403) is not passes, (place, role, answer.body)
            both = [{"op": "add", "path": "/extra/b", "value": 1}, *patch]
            assert (site.ask("PATCH", f"/v1/nodes/{node}", both).status == 403) is not passes


def test_owner_of_a_node_in_use_is_changed_by_admins_of_the_system(site):
    node = site.node()
    site.set(node, provision_state="active")
    patch = [{"op": "replace", "path": "/owner", "value": "x"}]
    site.become("system", "member")
    assert site.ask("PATCH", f"/v1/nodes/{node}", patch).status == 409
    site.become("system", "admin")
    assert site.ask("PATCH", f"/v1/nodes/{node}", patch).status == 200


def test_node_that_a_project_enrols_is_its_own(site):
    site.become(OWNER, "admin")
    body = {"driver": "fake-hardware"}
    assert site.ask("POST", "/v1/nodes", body).json["owner"] == OWNER
    assert site.ask("POST", "/v1/nodes", body | {"owner": OWNER}).status == 201
    assert site.ask("POST", "/v1/nodes", body | {"owner": STRANGER}).status == 400
    site.become("system", "admin")
    assert site.ask("POST", "/v1/nodes", body | {"owner": STRANGER}).json["owner"] == STRANGER
    assert site.ask("POST", "/v1/nodes", body).json["owner"] is None


def test_parent_that_may_not_be_read_is_not_there(site):
    node, parent = site.node(), site.node()
    site.set(parent, owner=STRANGER, lessee=None)
    site.become(STRANGER, "admin")
    site.set(node, owner=STRANGER)
    patch = [{"op": "add", "path": "/parent_node", "value": parent}]
    assert site.ask("PATCH", f"/v1/nodes/{node}", patch).status == 403
    site.become(OWNER, "admin")
    body = {"driver": "fake-hardware", "parent_node": parent}
    assert site.ask("POST", "/v1/nodes", body).status == 400


def test_lessee_does_not_read_what_tells_of_the_infrastructure(site):
    node = site.node()
    site.set(node, last_error="host 10.0.0.7 refused", driver_info='{"a": "b"}')
    for path in (f"/v1/nodes/{node}", "/v1/nodes/detail"):
        for place, hidden in ((LESSEE, True), (OWNER, False), ("system", False)):
            site.become(place, "reader")
            shown = site.ask("GET", path).json
            shown = shown["nodes"][0] if "nodes" in shown else shown
            assert ("redacted" in shown["last_error"]) is hidden
            assert ("redacted" in str(shown["driver_info"])) is hidden
            assert ("redacted" in str(shown["driver_internal_info"])) is hidden
            assert ("redacted" in str(shown["reservation"])) is hidden
            assert "lessee" in shown
    site.become(LESSEE, "reader")
    assert "redacted" not in site.ask("GET", f"/v1/nodes/{node}?fields=uuid").body.decode()


def test_steps_have_rules_of_their_own(tmp_path):
    rule = "baremetal:node:set_provision_state:clean_steps"
    (tmp_path / "policy.yaml").write_text(f"'{rule}': '!'\n")
    site = Site(tmp_path)
    node = site.node()
    site.set(node, provision_state="manageable")
    site.become("system", "admin")
    steps = [{"interface": "deploy", "step": "erase_devices"}]
    clean = {"target": "clean", "clean_steps": steps}
    answer = site.ask("PUT", f"/v1/nodes/{node}/states/provision", clean)
    assert answer.status == 403
    assert rule in answer.said
    assert (
        site.ask("PUT", f"/v1/nodes/{node}/states/provision", {"target": "provide"}).status == 202
    )
    site.db.close()


@pytest.mark.parametrize("key", [True, False])
def test_policy_may_show_secrets_in_every_mode(tmp_path, key):
    services, _ = functional.build(tmp_path, Conf())
    sealer = secrets.Sealer(Fernet.generate_key())
    node = Client(app.make_app(services)).node()["uuid"]
    for rule, bare in (("!", False), ("@", True)):
        (tmp_path / "policy.yaml").write_text(f"show_password: '{rule}'\n")
        policies = Policies(Conf(), [tmp_path])
        world = dataclasses.replace(services, policies=policies, sealer=sealer if key else None)
        api = Client(app.make_app(world))
        sealed = sealer.seal({"redfish_password": "hush", "a": 1})
        functional.World(services, api, None, None, None).set(node, driver_info=sealed)
        shown = api.get(f"/v1/nodes/{node}").json["driver_info"]
        assert shown == {"redfish_password": "hush" if bare and key else "******", "a": 1}
    services.db.close()


def test_a_record_goes_to_no_node_that_its_owner_may_not_see(site):
    own, hidden = site.node(), site.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware"})
    target = hidden.json["uuid"]
    group = site.as_admin("POST", "/v1/portgroups", {"node_uuid": own}).json["uuid"]
    port = {"node_uuid": own, "address": site.mac()}
    port = site.as_admin("POST", "/v1/ports", port).json["uuid"]
    site.become(OWNER, "admin")
    for plural, ident in (("portgroups", group), ("ports", port)):
        patch = [{"op": "replace", "path": "/node_uuid", "value": target}]
        refused = site.ask("PATCH", f"/v1/{plural}/{ident}", patch)
        assert (refused.status, "no such node" in refused.said) == (400, True)
    site.become("system", "admin")
    assert site.ask("GET", f"/v1/portgroups/{group}").json["node_uuid"] == own


def test_steps_on_child_nodes_ask_the_rules_of_each_child(site):
    parent, own, other = site.node(), site.node(), site.node()
    site.set(parent, provision_state="manageable")
    site.set(own, parent_node=parent)
    site.set(other, parent_node=parent, lessee="somebody")
    step = {"interface": "power", "step": "power_on", "execute_on_child_nodes": True}
    path = f"/v1/nodes/{parent}/states/provision"

    def clean(**limit):
        body = {"target": "clean", "clean_steps": [step | limit]}
        return site.ask("PUT", path, body)

    site.become(LESSEE, "admin")
    refused = clean()
    assert refused.status == 400
    assert "some child nodes" in refused.said
    assert other not in refused.said
    hidden = clean(limit_child_node_execution=[own, other])
    unknown = clean(limit_child_node_execution=[own, str(uuid.uuid4())])
    assert hidden.status == unknown.status == 404
    assert f"Node {other} could not be found" in hidden.said
    assert clean(limit_child_node_execution=[own]).status == 202
    site.become(OWNER, "member")
    assert clean().status == 202


@pytest.mark.parametrize("key", ["clean_steps", "service_steps", "deploy_steps", "runbook"])
def test_a_step_that_has_a_rule_asks_it(tmp_path, key):
    rule = '"baremetal:step:execute:power.reboot": "role:reboots"'
    (tmp_path / "policy.yaml").write_text(rule)
    site = Site(tmp_path)
    verb, state = {
        "clean_steps": ("clean", "manageable"), "service_steps": ("service", "active"),
        "deploy_steps": ("active", "available"), "runbook": ("clean", "manageable"),
    }[key]  # fmt: skip
    node = site.node()

    def ask(step="reboot"):
        site.set(node, provision_state=state, target_provision_state=None, reservation=None)
        entry = {"interface": "power", "step": step}
        entry |= {"args": {}, "priority": 1} if key == "deploy_steps" else {}
        value = "mine" if key == "runbook" else [entry]
        return site.ask("PUT", f"/v1/nodes/{node}/states/provision", {"target": verb, key: value})

    if key == "runbook":
        step = {"interface": "power", "step": "reboot", "order": 1}
        site.become(OWNER, "admin")
        assert site.ask("POST", "/v1/runbooks", {"name": "mine", "steps": [step]}).status == 201
        traits = {"traits": ["CUSTOM_A"]}
        assert site.ask("PUT", "/v1/runbooks/mine/traits", traits).status == 204
        assert site.as_admin("PUT", f"/v1/nodes/{node}/traits", traits).status == 204
    site.become(OWNER, "admin")
    refused = ask()
    assert refused.status == 403
    assert "baremetal:step:execute:power.reboot" in refused.said
    assert key == "runbook" or ask("power_on").status == 202
    site.claims.caller["roles"] = (*site.claims.caller["roles"], "reboots")
    assert ask().status == 202
    site.db.close()


def test_properties_of_a_target_are_for_admins_and_readers_of_the_system(site):
    node = site.node()
    body = {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0,
            "properties": {"target_portal": "10.0.0.1"}}  # fmt: skip
    target = site.as_admin("POST", "/v1/volume/targets", body).json["uuid"]
    sees = {("system", "reader"): True, (OWNER, "member"): False, (OWNER, "admin"): True}
    for (place, role), shown in sees.items():
        site.become(place, role)
        documents = [
            site.ask("GET", f"/v1/volume/targets/{target}").json,
            *site.ask("GET", "/v1/volume/targets?detail=true").json["targets"],
            *site.ask("GET", "/v1/volume/targets?fields=properties").json["targets"],
        ]
        for document in documents:
            assert (document["properties"] == body["properties"]) is shown
            assert ("redacted_contents" in document["properties"]) is not shown
        assert "properties" not in site.ask("GET", "/v1/volume/targets").json["targets"][0]
