"""The engine: defaults, policy files, callers without roles, and rules asked in every mode."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.api import OsloPolicy
from bloomery.conf.default import Default
from bloomery.model.request import Request
from bloomery.operations import policy
from bloomery.operations.policy_engine import Policies
from bloomery.operations.policy_rules import RULES
from tests.kit.clients import callers
from tests.kit.probes import ironic_roles

POWER = "baremetal:node:set_power_state"
TYPE = "resource_types:OS::Heat::Value"


def caller(*roles, **more):
    return dataclasses.replace(Request.new(), roles=roles, **more)


def context(policies, request=None):
    services = SimpleNamespace(policies=policies)
    return SimpleNamespace(services=services, request=request or caller())


@pytest.fixture(scope="module")
def enforced(tmp_path_factory):
    return Policies(Conf(), [tmp_path_factory.mktemp("no-policy-file")], enforced=True)


def write(path, text):
    path.write_text(text)
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1))


def test_names_of_rules_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", [each.name for each in RULES if each.name in ironic_roles.TABLE])
def test_defaults_are_those_of_ironic(enforced, rule):
    of_places = {"node.owner": "owner", "node.lessee": "lessee", "allocation.owner": "owner",
                 "runbook.owner": "owner"}  # fmt: skip
    for place, role in itertools.product(ironic_roles.PLACES, callers.ROLES):
        where = {"system_scope": "all"} if place == "system" else {"project": place}
        request = caller(*callers.ROLES[role], **where)
        expected = ironic_roles.allows(rule, place, role)
        assert enforced.allow(request, rule, of_places) is expected, (place, role)


def test_callers_without_roles_may_everything_but_see_secrets(tmp_path):
    ctx = context(Policies(Conf(), [tmp_path]))
    policy.authorize(ctx, POWER)
    assert policy.visible_project(ctx, "node", "asked") == "asked"
    assert not policy.bare_fields(ctx)


def test_engine_is_loaded_only_where_it_is_asked():
    program = (
        "import sys; from bloomery.conf import Conf; "
        "from bloomery.operations.policy_engine import Policies; Policies(Conf()); "
        "sys.exit('oslo_policy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_refusal_names_the_rule(enforced):
    with pytest.raises(errors.Forbidden, match=POWER) as refused:
        policy.authorize(context(enforced), POWER)
    assert refused.value.status == 403


def test_unknown_rule_is_an_error_of_ours(enforced):
    with pytest.raises(Exception, match="nonsense"):
        policy.authorize(context(enforced, caller("admin", system_scope="all")), "nonsense")


def test_caller_without_a_project_owns_no_ownerless_node(enforced):
    owner = policy.node_target(SimpleNamespace(owner=None, lessee=None))
    assert not policy.may(context(enforced, caller("admin", "reader")), "baremetal:node:get", owner)


def test_service_of_another_project_needs_the_option(tmp_path):
    service = caller("service", project="p", project_name="service")
    for trusted in (False, True):
        conf = Conf(default=Default(rbac_service_role_elevated_access=trusted))
        ctx = context(Policies(conf, [tmp_path], enforced=True), service)
        assert policy.may(ctx, "baremetal:node:list_all") is trusted


def test_system_rules_let_no_project_pass(enforced):
    ctx = context(enforced, caller("admin", "reader", project="p"))
    assert not policy.may(ctx, "baremetal:driver:get")


def test_list_is_limited_to_the_callers_project(enforced):
    ctx = context(enforced, caller("reader", project="p"))
    assert policy.visible_project(ctx, "node") == "p"
    assert policy.visible_project(ctx, "node", "p") == "p"
    with pytest.raises(errors.Forbidden):
        policy.visible_project(ctx, "node", "q")
    with pytest.raises(errors.Forbidden):
        policy.visible_project(context(enforced, caller("reader")), "node")
    system = context(enforced, caller("reader", system_scope="all"))
    assert policy.visible_project(system, "node", "q") == "q"


def test_file_changes_a_rule_in_every_mode(tmp_path):
    write(tmp_path / "policy.yaml", "show_password: user_id:ann\n")
    policies = Policies(Conf(), [tmp_path / "nowhere", tmp_path])
    assert policy.bare_fields(context(policies, caller(user="ann")))
    assert not policy.bare_fields(context(policies, caller(user="bob")))


def test_folder_counts_after_the_file(tmp_path):
    write(tmp_path / "policy.yaml", f"'{POWER}': role:one\n")
    (tmp_path / "policy.d").mkdir()
    write(tmp_path / "policy.d" / "10.yaml", f"'{POWER}': role:two\n")
    policies = Policies(Conf(), [tmp_path], enforced=True)
    assert policy.may(context(policies, caller("two")), POWER)
    assert not policy.may(context(policies, caller("one")), POWER)


def test_changed_file_counts_at_the_next_request_and_a_broken_one_leaves_the_last(tmp_path, caplog):
    path = tmp_path / "policy.yaml"
    write(path, f"'{POWER}': role:one\n")
    policies = Policies(Conf(), [tmp_path], enforced=True)

    def may():
        return policy.may(context(policies, caller("two")), POWER)

    assert not may()
    write(path, f"'{POWER}': role:two\n")
    assert may()
    for broken in (
        "{",
        "- a\n- b\n",
        "5\n",
        f"'{POWER}': 'role:x and ('\n",
        f"'{POWER}': nobody\n",
    ):
        write(path, broken)
        caplog.clear()
        assert may()
        assert may()
        assert sum("stay in force" in line for line in caplog.messages) == 1
    path.unlink()
    assert not may()


@pytest.mark.parametrize(("check", "asked"), [("role:one", 2), ("role:one or http://x.test/", 4)])
def test_the_same_question_is_asked_once_unless_another_server_answers_it(
    tmp_path, monkeypatch, check, asked
):
    write(tmp_path / "policy.yaml", f"'{POWER}': {check}\n")
    policies = Policies(Conf(), [tmp_path], enforced=True)
    questions = []
    enforce = policies.enforcer.enforce
    monkeypatch.setattr(policies.enforcer, "enforce",
                        lambda *args: questions.append(args) or enforce(*args))  # fmt: skip
    for owner in ("p", "q", "p", "q"):
        request = caller("one", project="p")
        assert policies.allow(request, POWER, {"node.owner": owner})
    assert len(questions) == asked


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: '!'\nb: {", r"policy\.yaml, line 2: it is not YAML \(.*\); write"),
        ("a: '\0'", r"policy\.yaml: it is not YAML \(.*\); write"),
        ("- a\n", r"policy\.yaml, line 1: there is no rule; write"),
        ("5\n", r"policy\.yaml, line 1: there is no rule; write"),
        ("5: '!'\n", "line 1: the name of a rule must be text, not 5; mend"),
        ("a: '!'\nshow_password: 5\n", "line 2: the check of rule 'show_password' must be text"),
        ("show_password:\n", "must be text in quotes, not None; mend"),
        ("show_password: [[5]]\n", "must be text in quotes"),
        ("show_password: [[role:a, nobody]]\n", "'nobody' is no comparison"),
        ("show_password: 'rolle:x and ('\n", "brackets, .* do not fit"),
        ("show_password: '(role:x'\n", "brackets, .* do not fit"),
        ("show_password: 'role:x or nobody'\n", "'nobody' is no comparison"),
        ("show_password: 'user_id:%(node.owner'\n", "has a %"),
    ],
)
def test_broken_file_keeps_us_from_starting(tmp_path, caplog, text, problem):
    write(tmp_path / "policy.yaml", text)
    with pytest.raises(errors.CannotStart, match=problem) as refused:
        Policies(Conf(), [tmp_path])
    assert len(str(refused.value).splitlines()) == 1
    assert not caplog.messages


@pytest.mark.parametrize(
    "check", ["", "!", "@", "( ! )", "not (role:a OR rule:is_member)", [["@"]]]
)
def test_sound_checks_are_taken(tmp_path, caplog, check):
    write(tmp_path / "policy.yaml", f"show_password: {check!r}\n")
    assert Policies(Conf(), [tmp_path]).enforcer
    assert not caplog.messages


@pytest.mark.parametrize(
    ("enforced", "names"),
    [(False, [["show_passwort"], [POWER, TYPE]]), (True, [["show_passwort"]])],
)
def test_rules_without_effect_are_named(tmp_path, caplog, enforced, names):
    rules = {"show_passwort": "!", POWER: "!", "show_password": "not rule:mine", "mine": "role:a"}
    rules[TYPE] = "!"
    write(tmp_path / "policy.yaml", json.dumps(rules))
    Policies(Conf(), [tmp_path], enforced=enforced)
    warnings = [line for line in caplog.messages if "no effect" in line]
    listed = [line.split(";")[0].removeprefix("policy files: no effect: ") for line in warnings]
    assert [line.split(", ") for line in listed] == names


def test_file_that_is_named_must_be_there(tmp_path):
    conf = Conf(oslo_policy=OsloPolicy(policy_file="rules.yaml"))
    with pytest.raises(errors.CannotStart, match=r"rules\.yaml"):
        Policies(conf, [tmp_path])
    write(tmp_path / "rules.yaml", "")
    Policies(conf, [tmp_path])


def test_types_are_allowed_unless_a_rule_of_a_file_says_otherwise(tmp_path):
    rules = {"resource_types:OS::Heat::Value": "role:admin", "resource_types:Site::*": "role:staff"}
    write(tmp_path / "policy.yaml", json.dumps(rules))
    policies = Policies(Conf(), [tmp_path], enforced=True)
    allowed = {
        name: [policies.allow_type(caller(role), name, {}) for role in ("member", "admin", "staff")]
        for name in ("OS::Heat::Value", "OS::Heat::None", "Site::Rack::Lamp", "Site")
    }
    assert allowed == {
        "OS::Heat::Value": [False, True, False],
        "OS::Heat::None": [True, True, True],
        "Site::Rack::Lamp": [False, False, True],
        "Site": [True, True, True],
    }


@pytest.mark.parametrize(
    ("rule", "reader", "member", "admin", "agent"),
    [
        ("stacks:index", True, False, True, False),
        ("stacks:create", False, True, True, False),
        ("stacks:update_no_change", False, True, True, False),
        ("stacks:global_index", False, False, False, False),
        ("stacks:lookup", True, False, True, True),
        ("actions:suspend", False, True, True, False),
        ("resource:signal", False, True, True, True),
        ("service:index", False, False, True, False),
    ],
)
def test_rules_of_stacks_look_at_role_and_project(enforced, rule, reader, member, admin, agent):
    target = {"project_id": "p1"}
    callers = [caller("reader", project="p1"), caller("member", project="p1"),
               caller("admin", system_scope="all"), caller("heat_stack_user", project="p0"),
               caller("reader", "member", "admin", project="p2")]  # fmt: skip
    answers = [enforced.allow(each, rule, target) for each in callers]
    assert answers == [reader, member, admin, agent, False]
