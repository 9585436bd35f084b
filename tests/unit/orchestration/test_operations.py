"""Who may ask what: each method of the contract, and each kind of caller."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.model.stack_views import (
    EventQuery,
    ResourceQuery,
    StackArguments,
    StackIdentity,
    StackQuery,
)
from bloomery.operations import policy_rules
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.operations import OPERATIONS
from bloomery.orchestration.queries import access
from tests.kit.clients.stack_calls import VALUE, StackCalls, caller, template

NEW = StackArguments(template=template(resources={"a": VALUE}))
PATCH = StackArguments(existing=True, parameters={})
# Which callers each method lets pass: r(eader), m(ember), a(dmin), i(nstance); and its arguments
# after the request.  STACK stands for a stack of project p1.
STACK = object()
READ, WRITE = "ra", "ma"
MATRIX = {
    "identify_stack": ("rai", ["web"], {}),
    "list_stacks": (READ, [StackQuery()], {}),
    "list_stacks_in_detail": (READ, [StackQuery()], {}),
    "count_stacks": (READ, [StackQuery()], {}),
    "show_stack": (READ, [STACK], {}),
    "create_stack": (WRITE, ["new", NEW], {}),
    "preview_stack": (READ, ["new", NEW], {}),
    "update_stack": (WRITE, [STACK, NEW], {}),
    "preview_update_stack": (WRITE, [STACK, NEW], {}),
    "delete_stack": (WRITE, [STACK], {}),
    "abandon_stack": (WRITE, [STACK], {}),
    "export_stack": (WRITE, [STACK], {}),
    "get_template": (READ, [STACK], {}),
    "get_template_text": (READ, [STACK], {}),
    "get_environment": (READ, [STACK], {}),
    "get_files": (READ, [STACK], {}),
    "list_outputs": (READ, [STACK], {}),
    "show_output": (READ, [STACK, "o"], {}),
    "explain_stack": (READ, [STACK], {}),
    "describe_graph": (READ, [STACK], {}),
    "list_stack_revisions": (READ, [STACK], {}),
    "show_stack_revision": (READ, [STACK, 1], {}),
    "compare_stack_revisions": (READ, [STACK, 1, 1], {}),
    "stack_suspend": (WRITE, [STACK], {}),
    "stack_resume": (WRITE, [STACK], {}),
    "stack_check": (WRITE, [STACK], {}),
    "stack_cancel_update": (WRITE, [STACK], {}),
    "stack_cancel_without_rollback": (WRITE, [STACK], {}),
    "stack_snapshot": (WRITE, [STACK, None], {}),
    "stack_list_snapshots": (READ, [STACK], {}),
    "show_snapshot": (READ, [STACK, "s"], {}),
    "delete_snapshot": (WRITE, [STACK, "s"], {}),
    "stack_restore": (WRITE, [STACK, "s"], {}),
    "list_stack_resources": (READ, [STACK, ResourceQuery()], {}),
    "describe_stack_resource": ("rai", [STACK, "a"], {}),
    "get_resource_metadata": ("rai", [STACK, "a"], {}),
    "resource_signal": ("mai", [STACK, "a", None], {}),
    "resource_mark_unhealthy": (WRITE, [STACK, "a"], {"mark_unhealthy": True}),
    "list_events": (READ, [STACK, EventQuery()], {}),
    "show_event": (READ, [STACK, "a", "e"], {}),
    "list_services": ("a", [], {}),
    "validate_template": (WRITE, [NEW], {}),
    "list_resource_types": (READ, [], {}),
    "resource_schema": (READ, ["OS::Heat::Value"], {}),
    "generate_template": (READ, ["OS::Heat::Value"], {}),
    "list_template_versions": (READ, [], {}),
    "list_template_functions": (READ, ["heat_template_version.2021-04-16"], {}),
    "get_revision": (READ, [], {}),
}
# Methods of another room, with a matrix of their own.
ELSEWHERE = {name for name in OPERATIONS if "software" in name}
ELSEWHERE.add("log_agent_in")  # by a password: its story is that of deployed servers
CALLERS = {
    "r": caller("reader"),
    "m": caller("member"),
    "a": caller("admin", system_scope="all"),
    "i": caller("heat_stack_user"),
    "n": caller(),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    options = {"enable_stack_abandon": True, "max_stacks_per_tenant": -1}
    return StackCalls(tmp_path_factory.mktemp("calls"), enforced=True, **options)


@pytest.fixture
def web(calls, request):
    made = calls.create(f"s{abs(hash(request.node.name))}")
    calls.add_resource(made, "a", {"value": 1})
    return made


def answer(calls, name, request, web):
    """How a call ends, as far as policies go: "forbidden", "missing", or "passed"."""
    _, arguments, more = MATRIX[name]
    given = [web if each is STACK else web.name if each == "web" else each for each in arguments]
    if name == "create_stack":
        given[0] = f"new-{web.name}-{'-'.join(request.roles) or 'none'}"
    try:
        getattr(calls.operations, name)(request, *given, **more)
    except errors.Forbidden:
        return "forbidden"
    except errors.EntityNotFound as exc:
        return "missing" if type(exc) is errors.EntityNotFound else "passed"
    except errors.Failure:
        return "passed"
    return "passed"


def test_every_operation_stands_in_the_matrix_and_has_a_rule_or_asks_one():
    assert MATRIX.keys() | ELSEWHERE == OPERATIONS.keys()
    asked = {operation.rule for operation in OPERATIONS.values()}
    assert asked - {None} <= {rule.name for rule in policy_rules.RULES}
    assert [name for name, operation in OPERATIONS.items() if operation.rule is None] == [
        "update_stack", "preview_update_stack", "get_resource_metadata", "resource_signal",
        "log_agent_in", "list_software_configs",
    ]  # fmt: skip


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("name", MATRIX)
def test_a_method_lets_pass_whom_its_rule_names(calls, web, name, who):
    allowed = who in MATRIX[name][0]
    ended = answer(calls, name, CALLERS[who], web)
    assert ended == ("passed" if allowed else "forbidden")


@pytest.mark.parametrize("name", [name for name, row in MATRIX.items() if STACK in row[1]])
def test_a_stack_of_another_project_is_not_there(calls, web, name):
    everything = caller("reader", "member", "admin", project="p2")
    before = calls.row(web)
    assert answer(calls, name, everything, web) == "missing"
    foreign = StackIdentity(project="p2", name=web.name, uuid=web.uuid)
    assert answer(calls, name, everything, foreign) == "missing"
    assert calls.row(web) == before


@pytest.fixture(scope="module")
def unruled(tmp_path_factory):
    return StackCalls(tmp_path_factory.mktemp("unruled"), enable_stack_abandon=True)


@pytest.mark.parametrize("name", MATRIX)
def test_callers_without_roles_may_everything_where_nobody_has_any(unruled, name):
    made = unruled.create(f"open-{name}")
    assert answer(unruled, name, caller(), made) == "passed"


# ------------------------------------------------------------------------------------------ types

GROUP = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": VALUE}}
NESTED = json.dumps(template(resources={"inner": VALUE}))


@pytest.fixture
def ruled(tmp_path):
    rules = {
        "resource_types:OS::Heat::Value": "role:admin", "stacks:update": "role:reader",
        "stacks:preview": "role:reader",
    }  # fmt: skip
    (tmp_path / "policy.json").write_text(json.dumps(rules))
    calls = StackCalls(tmp_path)
    conf = dataclasses.replace(
        Conf(), oslo_policy=dataclasses.replace(Conf().oslo_policy, policy_file="policy.json")
    )
    policies = Policies(conf, [tmp_path], enforced=True)
    return StackCalls.with_policies(calls, policies)


@pytest.mark.parametrize(
    "more",
    [
        {"resources": {"a": VALUE}},
        {"resources": {"g": GROUP}},
        {"resources": {"n": {"type": "nested.yaml"}}, "files": {"nested.yaml": NESTED}},
        {
            "resources": {"m": VALUE | {"type": "My::Own"}},
            "environment": {"resource_registry": {"My::Own": "OS::Heat::Value"}},
        },
        {
            "resources": {"m": VALUE | {"type": "My::Value"}},
            "environment": {"resource_registry": {"My::*": "OS::Heat::*"}},
        },
    ],
    ids=["plain", "member", "nested", "mapped", "mapped by a wildcard"],
)
def test_a_type_that_is_not_allowed_is_not_allowed_anywhere(ruled, more):
    with pytest.raises(errors.Forbidden, match="OS::Heat::Value"):
        ruled.create(**more)
    arguments = ruled.arguments(**more)
    with pytest.raises(errors.Forbidden, match="OS::Heat::Value"):
        ruled.operations.preview_stack(ruled.member, "web", arguments)
    made = ruled.create(resources={"a": {"type": "OS::Heat::None"}})
    with pytest.raises(errors.Forbidden, match="OS::Heat::Value"):
        ruled.operations.update_stack(ruled.member, made, arguments)
    boss = caller("admin", "member", "reader")
    assert ruled.create("boss", request=boss, **more)


def test_what_holds_a_type_that_is_not_allowed_is_left_alone(ruled):
    made = ruled.create("old", request=caller("admin", "member"), resources={"a": VALUE})
    ruled.finish(made)
    ruled.add_resource(made, "a", {"value": 1})
    for ask in (
        ruled.operations.delete_stack, ruled.operations.stack_suspend,
        ruled.operations.stack_resume,
    ):  # fmt: skip
        with pytest.raises(errors.Forbidden, match="OS::Heat::Value"):
            ask(ruled.member, made)
    ruled.operations.stack_check(ruled.member, made)


def test_an_engine_asks_in_the_name_of_the_last_caller(ruled):
    made = ruled.create(request=caller("admin", "member"), resources={"a": VALUE})
    row = ruled.row(made)
    check = access.stored_type_check(ruled.services)
    check(row, ["OS::Heat::Value", "OS::Heat::None"])
    ruled.finish(made)
    ruled.operations.stack_check(ruled.member, made)
    check(row, ["OS::Heat::None"])
    with pytest.raises(errors.Forbidden, match="OS::Heat::Value"):
        check(row, ["OS::Heat::Value"])
