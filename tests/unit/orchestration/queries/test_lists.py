"""Lists of stacks: which, in which order, page by page, and never another project's."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.model.stack_views import ResourceQuery, StackIdentity, StackQuery
from tests.kit.clients.stack_calls import StackCalls, caller
from tests.kit.stacks import trees


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path, hidden_stack_tags=("secret",))


def names(calls, request=None, **query):
    page = calls.operations.list_stacks(request or calls.member, StackQuery(**query))
    return [each.name for each in page]


@pytest.fixture
def three(calls):
    made = [
        calls.create("a", tags=["x", "y"]), calls.create("b", tags=["x"], timeout_mins=5),
        calls.create("c", disable_rollback=False),
    ]  # fmt: skip
    calls.change(made[1], action="UPDATE", status="FAILED", updated_at=trees.AT)
    return made


def test_the_newest_comes_first(calls, three):
    assert names(calls) == ["c", "b", "a"]
    assert names(calls, descending=False) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"filters": {"status": ["FAILED"]}}, "b"),
        ({"filters": {"status": ["UPDATE_FAILED"]}}, "b"),
        ({"filters": {"status": ["CREATE_FAILED"]}}, ""),
        ({"filters": {"status": ["FAILED", "CREATE_IN_PROGRESS"]}}, "cba"),
        ({"filters": {"action": ["CREATE"]}}, "ca"),
        ({"filters": {"name": ["a", "c"]}}, "ca"),
        ({"filters": {"timeout_mins": ["5"]}}, "b"),
        ({"filters": {"timeout_mins": ["five"]}}, ""),
        ({"filters": {"disable_rollback": ["False"]}}, "c"),
        ({"filters": {"user": ["ann"]}}, "cba"),
        ({"filters": {"project": ["p2"]}}, ""),
        ({"filters": {"stack_user_project": ["p1"]}}, ""),
        ({"tags": ["x"]}, "ba"),
        ({"tags": ["x", "y"]}, "a"),
        ({"tags": ["x"], "filters": {"name": ["b"]}}, "b"),
        ({"tags_any": ["y", "z"]}, "a"),
        ({"tags": ["x", "x"]}, "ba"),
        ({"tags": [str(number) for number in range(5000)]}, ""),
        ({"not_tags": [str(number) for number in range(5000)]}, "cba"),
        ({"filters": {"status": [f"CREATE_{number}" for number in range(5000)]}}, ""),
        ({"not_tags": ["x", "y"]}, "cb"),
        ({"not_tags_any": ["x", "y"]}, "c"),
        ({"sort_keys": ["name"]}, "abc"),
        ({"sort_keys": ["name"], "descending": True}, "cba"),
        ({"sort_keys": ["status", "name"]}, "bac"),
        ({"sort_keys": ["updated_at", "name"]}, "acb"),
        ({"sort_keys": ["nonsense"]}, "cba"),
        ({"limit": 0}, ""),
        ({"limit": 2}, "cb"),
        ({"marker": "nobody"}, "cba"),
    ],
)
def test_a_list_is_what_was_asked(calls, three, query, expected):
    assert "".join(names(calls, **query)) == expected


@pytest.mark.parametrize("keys", [[], ["name"], ["updated_at"], ["updated_at", "status", "name"]])
@pytest.mark.parametrize("descending", [None, True, False])
def test_pages_make_up_the_whole(calls, three, keys, descending):
    order = {"sort_keys": keys, "descending": descending}
    whole = names(calls, **order)
    uuids = {each.name: each.uuid for each in three}
    pages, marker = [], None
    for _ in range(4):
        page = names(calls, **order, limit=1, marker=marker)
        pages += page
        marker = uuids[page[0]] if page else marker
    assert pages == whole
    assert calls.operations.count_stacks(calls.member, StackQuery(**order, limit=1)) == 3


def test_hidden_deleted_and_nested_ones_are_shown_when_asked(calls):
    calls.create("hidden", tags=["secret"])
    calls.change(calls.create("gone"), deleted_at=trees.AT, live_name=None)
    owner = calls.create("top")
    calls.change(calls.create("below"), owner_uuid=owner.uuid, live_name=None)
    assert names(calls) == ["top"]
    shown = {"show_hidden": True, "show_deleted": True, "show_nested": True}
    assert sorted(names(calls, **shown)) == ["below", "gone", "hidden", "top"]


def test_another_project_sees_nothing(calls, three):
    other = caller("member", "reader", project="p2")
    assert names(calls, other) == []
    assert names(calls, other, filters={"project": ["p1"]}) == []
    assert calls.operations.count_stacks(other, StackQuery()) == 0
    for identity in (three[0], StackIdentity(project="p2", name="a", uuid=three[0].uuid)):
        for ask in (
            lambda: calls.operations.show_stack(other, identity),  # noqa: B023
            lambda: calls.operations.delete_stack(other, identity),  # noqa: B023
            lambda: calls.operations.list_stack_resources(other, identity, ResourceQuery()),  # noqa: B023
        ):
            with pytest.raises(errors.EntityNotFound):
                ask()
    for ident in (three[0].uuid, "a", f"arn:openstack:heat::p1:stacks/a/{three[0].uuid}"):
        with pytest.raises(errors.EntityNotFound):
            calls.operations.identify_stack(other, ident)


def test_all_projects_are_listed_by_whoever_may(calls, tmp_path):
    calls.create("mine")
    calls.create("theirs", request=caller("member", project="p2"))
    assert names(calls, everybody=True) == ["theirs", "mine"]  # nobody has roles here
    ruled = StackCalls.over(calls, tmp_path)
    with pytest.raises(errors.Forbidden, match="global_index"):
        names(ruled, caller("reader", "admin", system_scope="all"), everybody=True)


def test_a_stack_is_known_by_id_name_and_arn(calls):
    made = calls.create("web")
    arn = f"arn:openstack:heat::p1:stacks/web/{made.uuid}"
    for ident in (made.uuid, "web", arn, arn + "/resources/a"):
        assert calls.operations.identify_stack(calls.member, ident) == made
    for ident in ("Web", arn.replace("/web/", "/wob/"), "arn:openstack:heat::p1:web"):
        with pytest.raises(errors.EntityNotFound):
            calls.operations.identify_stack(calls.member, ident)


def test_a_deleted_stack_is_known_by_id_alone(calls):
    made = calls.create("web")
    calls.change(made, deleted_at=trees.AT, live_name=None)
    assert calls.operations.identify_stack(calls.member, made.uuid) == made
    with pytest.raises(errors.EntityNotFound):
        calls.operations.identify_stack(calls.member, "web")


def test_name_and_id_must_belong_together(calls):
    made = calls.create("web")
    with pytest.raises(errors.EntityNotFound):
        calls.operations.show_stack(
            calls.member, StackIdentity(project="p1", name="wob", uuid=made.uuid)
        )
