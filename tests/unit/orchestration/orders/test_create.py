"""Stacks accepted: what is refused first, and what one commit holds."""

from __future__ import annotations

import json
import threading

import pytest

from bloomery import errors
from bloomery.db import event_numbers, tables
from bloomery.db.events import list_after
from tests.kit.clients import stack_calls
from tests.kit.clients.stack_calls import VALUE, StackCalls, caller


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path)


def test_one_commit_holds_all_that_clients_see(calls):
    made = calls.create(tags=["blue", "big"], timeout_mins=7, disable_rollback=False)
    row = calls.row(made)
    assert (row.name, row.project, row.user) == ("web", "p1", "ann")
    assert (row.action, row.status, row.reason) == ("CREATE", "IN_PROGRESS", "Stack CREATE started")
    assert (row.tags, row.timeout_mins, row.disable_rollback) == (("blue", "big"), 7, False)
    assert (row.deadline_at - row.created_at).total_seconds() == pytest.approx(420, abs=1)
    assert calls.orders() == [("create", {})]
    assert calls.accepted == [made.uuid]
    (event,) = calls.rows(tables.STACK_EVENTS)
    assert (event.name, event.physical_id, event.type) == ("web", made.uuid, "OS::Heat::Stack")
    if not calls.db.is_sqlite:
        calls.db.transact(event_numbers.assign)
    with calls.db.read() as conn:
        (told,) = list_after(conn, 0, 10)
    assert (told.object, told.action, told.status) == ("stack", "create", "start")
    (who,) = calls.rows(tables.CREDENTIALS)
    assert (who.user, who.project, who.roles) == ("ann", "p1", '["member","reader"]')


def test_a_request_without_a_word_on_rollback_gets_none(calls):
    assert calls.row(calls.create()).disable_rollback is True


def test_a_template_that_is_refused_leaves_nothing(calls):
    with pytest.raises(errors.StackValidationFailed, match=r"No::Such"):
        calls.create(resources={"a": {"type": "No::Such"}})
    with pytest.raises(errors.UserParameterMissing, match="size"):
        calls.create(declared={"size": {"type": "number"}})
    with pytest.raises(errors.TemplateUnreadable, match="template"):
        calls.create(resources=None)
    assert calls.rows(tables.STACKS) == calls.rows(tables.RAW_TEMPLATES) == calls.orders() == []
    assert calls.accepted == []


@pytest.mark.parametrize("name", ["", None, 5, "1st", "a/b", "a" * 256, "ä"])
def test_a_name_that_is_none_is_refused(calls, name):
    with pytest.raises(errors.StackValidationFailed, match="stack name"):
        calls.create(name)


def test_a_name_is_taken_by_what_lives(calls):
    made = calls.create()
    with pytest.raises(errors.StackExists, match="web"):
        calls.create()
    assert calls.create(request=caller("member", project="p2")).project == "p2"
    calls.change(made, deleted_at=calls.row(made).created_at, live_name=None)
    assert calls.create().uuid != made.uuid


def test_of_two_that_ask_for_one_name_at_once_one_gets_it(calls, monkeypatch):
    """Both pass the first look; the constraint decides."""
    both = threading.Barrier(2)
    monkeypatch.setattr("bloomery.db.stacks.is_taken", lambda *args: both.wait(10) < 0)
    answers = []

    def ask():
        try:
            answers.append(calls.create())
        except errors.StackExists:
            answers.append(None)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer is None for answer in answers) == [False, True]
    assert len(calls.rows(tables.STACKS)) == len(calls.orders()) == 1


def test_a_project_has_so_many_stacks_and_no_more(tmp_path):
    calls = StackCalls(tmp_path, max_stacks_per_tenant=1)
    calls.create("one")
    with pytest.raises(errors.RequestLimitExceeded, match="max_stacks_per_tenant"):
        calls.create("two")
    calls.create("two", request=caller("member", project="p2"))


def test_resources_are_counted(tmp_path):
    calls = StackCalls(tmp_path, max_resources_per_stack=1)
    with pytest.raises(errors.RequestLimitExceeded):
        calls.create(resources={"a": VALUE, "b": VALUE})


def test_hidden_parameters_stand_in_no_row_in_plain(calls, tmp_path):
    made = calls.create(
        declared={"key": {"type": "string", "hidden": True}},
        resources={"a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "key"}}}},
        environment={"parameters": {"key": "correct horse"}},
    )
    calls.db.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("rows.sqlite*"))
    assert b"correct horse" not in stored
    shown = calls.operations.show_stack(calls.member, made)
    assert shown.parameters["key"] == "******"
    assert calls.operations.get_environment(calls.member, made)["parameters"] == {"key": "******"}


def test_adoption_is_off_until_it_is_turned_on(calls):
    with pytest.raises(errors.NotSupported, match="Adopt"):
        calls.create(adopt_data={"template": stack_calls.template()})


def test_adopted_data_bring_template_and_parameters(tmp_path):
    calls = StackCalls(tmp_path, enable_stack_adopt=True)
    data = {
        "template": stack_calls.template(
            parameters={"size": {"type": "number"}, "name": {"type": "string"}},
            resources={"a": VALUE},
        ),
        "environment": {"parameters": {"size": 1, "name": "old"}},
        "resources": {"a": {"resource_id": "17"}},
    }
    made = calls.create(resources=None, adopt_data=data, parameters={"name": "new"})
    assert calls.row(made).action == "ADOPT"
    assert calls.orders() == [("adopt", {"data": data})]
    parameters = calls.operations.show_stack(calls.member, made).parameters
    assert (parameters["size"], parameters["name"]) == ("1", "new")


def test_what_another_project_has_is_not_there_to_be_adopted(tmp_path):
    calls = StackCalls(tmp_path, enable_stack_adopt=True)
    foreign = calls.create("secret", request=caller("member", project="p2"))
    data = {
        "template": stack_calls.template(resources={"a": VALUE}),
        "resources": {"a": {"resource_id": foreign.uuid}},
    }
    with pytest.raises(errors.EntityNotFound) as refused:
        calls.create(resources=None, adopt_data=data)
    assert "secret" not in str(refused.value)
    with pytest.raises(errors.EntityNotFound):
        calls.create(resources={"a": VALUE | {"external_id": foreign.uuid}})
    inner = stack_calls.template(resources={"a": VALUE | {"external_id": foreign.uuid}})
    with pytest.raises(errors.EntityNotFound):
        calls.create(resources={"n": {"type": "n.yaml"}}, files={"n.yaml": json.dumps(inner)})


@pytest.mark.parametrize("text", ["\ud800", "x\0y", "a" * 256])
def test_texts_that_no_row_could_hold_are_refused_by_name(tmp_path, text):
    calls = StackCalls(tmp_path, enable_stack_adopt=True)
    with pytest.raises(errors.InvalidParameterValue, match="tag"):
        calls.create(tags=[text])
    with pytest.raises(errors.StackValidationFailed, match="stack name"):
        calls.create(text + "/")
    data = {
        "template": stack_calls.template(resources={"a": VALUE}),
        "resources": {"a": {"resource_id": text}},
    }
    made = calls.create(resources=None, adopt_data=data)
    calls.finish(made)
    with pytest.raises(errors.InvalidParameterValue, match="snapshot"):
        calls.operations.stack_snapshot(calls.member, made, text)
