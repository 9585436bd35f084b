"""The contract means the same over every transport: arguments, results, errors, versions."""

from __future__ import annotations

import contextvars
import string
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.cmd import log
from bloomery.model.request import IN_LOG, Request
from bloomery.rpc import contract, transports
from bloomery.rpc.dispatch import Dispatcher
from bloomery.rpc.methods import list_methods, since
from bloomery.rpc.remote import Cap
from tests.kit.servers import rpc
from tests.kit.waiting import wait_for
from tools.servers import free_port

REQUEST = Request(
    request_id="req-1", user="u", user_name="Zoë", project="p", roles=("admin", "member"),
    system_scope="all", is_admin_project=True, wait_s=1.5,
)  # fmt: skip
EXAMPLES: dict[str, Any] = {
    "str": "text", "bool": True, "float | None": 2.5, "str | None": None, "Json": {"a": [1, None]},
    "list[Json]": [{"op": "add", "path": "/extra/ü", "value": {"deep": [{"er": 1.25}]}}],
    "list[str]": ["CUSTOM_A"], "list[str] | None": None,
}  # fmt: skip
FAILURES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.Failure)
]


def arguments_of(name: str) -> dict[str, Any]:
    annotations = getattr(contract.Conductor, name).__annotations__
    return {field: EXAMPLES[annotations[field]] for field in contract.METHODS[name].parameters}


@pytest.mark.parametrize("name", contract.METHODS)
def test_every_method_is_called_with_what_was_said(link, name):
    arguments = arguments_of(name)
    link.endpoint.answer = lambda method, **_: {"method": method}
    assert getattr(link.conductor, name)(REQUEST, **arguments) == {"method": name}
    assert link.endpoint.calls == [(name, REQUEST, arguments)]


def test_arguments_may_be_said_by_place(link):
    link.conductor.set_maintenance(REQUEST, "a node", True, "why")
    ((_, _, arguments),) = link.endpoint.calls
    assert list(arguments.values()) == ["a node", True, "why"]


@pytest.mark.parametrize(
    "value",
    [
        None, True, "ünï ☃ \U0001f600 \x00", [[], {}], {"n": 2**70, "m": -(2**65)}, 1.5,
        "x" * 3_000_000,
    ],
    ids=["null", "true", "unicode", "empty", "long numbers", "float", "3 MB"],
)  # fmt: skip
def test_values_come_and_go_as_they_are(link, value):
    link.endpoint.answer = lambda _, vif_info, **__: vif_info["value"]
    assert link.conductor.vif_attach(REQUEST, "a node", {"value": value}) == value


def example(kind: type[errors.Failure]) -> errors.Failure:
    if issubclass(kind, errors.Misplaced):  # it works out by itself what its text names
        return kind(reason="x", path=["resources", 0], error="x")
    named = [name for _, name, _, _ in string.Formatter().parse(kind.text) if name]
    return kind(**{name.partition("!")[0]: "ß" for name in named})


def test_every_error_comes_back_as_itself(link):
    for kind in FAILURES:
        error = example(kind)

        def fail(_method, error=error, **_arguments):
            raise error

        link.endpoint.answer = fail
        with pytest.raises(errors.Failure) as caught:
            link.conductor.inject_nmi(REQUEST, "a node")
        again = caught.value
        assert (type(again), str(again), again.status) == (kind, str(error), error.status)


class OutOfTree(errors.Failure):
    code, status, text = "plugin.refused", 418, "the plug-in {name} refuses"


def test_an_error_that_callers_do_not_know_keeps_its_status_and_sentence(link):
    def fail(_method, **_arguments):
        raise OutOfTree(name="tea")

    link.endpoint.answer = fail
    with pytest.raises(errors.Failure, match="the plug-in tea refuses") as caught:
        link.conductor.vif_list(REQUEST, "a node")
    assert caught.value.status == 418


def test_secret_facts_of_an_error_stay_where_they_are(remote_link):
    def fail(_method, **_arguments):
        raise errors.Invalid(reason="no", password="hunter2")

    remote_link.endpoint.answer = fail
    with pytest.raises(errors.Invalid) as caught:
        remote_link.conductor.vif_list(REQUEST, "a node")
    assert "hunter2" not in repr(caught.value.facts)


def test_a_fault_of_the_handler_is_told_without_its_words(remote_link, caplog):
    def fail(_method, **_arguments):
        raise RuntimeError("hunter2")

    remote_link.endpoint.answer = fail
    caplog.handler.setFormatter(log.LineFormatter("%(message)s"))
    with pytest.raises(errors.Failure, match="its log has it under req-1") as caught:
        remote_link.conductor.vif_list(REQUEST, "a node")
    assert caught.value.status == 500
    assert "hunter2" not in str(caught.value)
    assert "[req-1 u] call vif_list failed unexpectedly" in caplog.text


def test_an_answer_that_does_not_come_is_a_503_that_says_it_may_have_been_done(remote_link):
    go_on = threading.Event()
    remote_link.endpoint.answer = lambda *_, **__: go_on.wait(20)
    impatient = remote_link.client._response_timeout_s
    remote_link.client._response_timeout_s = 0.3
    try:
        with pytest.raises(errors.ConductorSilent, match="it may have been done"):
            remote_link.conductor.inject_nmi(Request.new(), "a node")
    finally:
        remote_link.client._response_timeout_s = impatient
        go_on.set()
    wait_for(lambda: remote_link.client.limits.calls == 0, "the call to be over")


def test_a_caller_who_waits_for_a_node_is_waited_for(remote_link):
    """With no time for the answer itself, ``wait_s`` alone lets it come."""
    moment = threading.Event()
    remote_link.endpoint.answer = lambda *_, **__: moment.wait(0.2)
    patience = remote_link.client._response_timeout_s
    remote_link.client._response_timeout_s = 0.01
    try:
        assert remote_link.conductor.inject_nmi(REQUEST, "a node") is False
    finally:
        remote_link.client._response_timeout_s = patience


def test_a_message_that_comes_twice_changes_nothing_twice(remote_link):
    message = message_of(remote_link, "inject_nmi", node_uuid="a node")
    remote_link.endpoint.answer = lambda *_, **__: len(remote_link.endpoint.calls)
    replies = [
        remote_link.client._channel.call(remote_link.host, dict(message), 5) for _ in range(2)
    ]
    assert [reply["result"] for reply in replies] == [1, 1]
    assert len(remote_link.endpoint.calls) == 1


def test_a_message_that_comes_while_its_twin_is_at_work_waits_for_it(remote_link):
    message, go_on, results = (
        message_of(remote_link, "inject_nmi", node_uuid="n"),
        threading.Event(),
        [],
    )
    remote_link.endpoint.answer = lambda *_, **__: go_on.wait(10)

    def call() -> None:
        results.append(
            remote_link.client._channel.call(remote_link.host, dict(message), 10)["result"]
        )

    twins = [threading.Thread(target=call) for _ in range(2)]
    for twin in twins:
        twin.start()
    wait_for(lambda: remote_link.endpoint.calls, "the first one")
    go_on.set()
    for twin in twins:
        twin.join()
    assert (results, len(remote_link.endpoint.calls)) == ([True, True], 1)


def test_a_question_is_answered_as_often_as_it_comes(remote_link):
    message = message_of(remote_link, "vif_list", node_uuid="a node")
    remote_link.endpoint.answer = lambda *_, **__: [{"id": str(len(remote_link.endpoint.calls))}]
    replies = [
        remote_link.client._channel.call(remote_link.host, dict(message), 5) for _ in range(2)
    ]
    assert [reply["result"][0]["id"] for reply in replies] == ["1", "2"]


def message_of(link: rpc.Link, method: str, **arguments: Any) -> dict[str, Any]:
    return {
        "method": method, "version": "1.0", "call_id": f"twice-{method}-{id(arguments)}",
        "host": link.host, "context": {"request_id": "req-2", "added_by_a_broker": 1},
        "arguments": arguments,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"method": "set_fire"}, "MethodUnknown"),
        ({"method": "__init__"}, "MethodUnknown"),
        ({"version": "1.99"}, "MethodUnknown"),
        ({"version": "2.0"}, "MethodUnknown"),
        ({"version": "new"}, "MethodUnknown"),
        ({"arguments": {}}, "CallMalformed"),
        ({"arguments": {"node_uuid": "a", "more": 1}}, "CallMalformed"),
        ({"context": {}}, "CallMalformed"),
        ({"host": "somebody-else"}, "ConductorUnreached"),
    ],
)
def test_what_is_no_call_of_the_contract_is_refused(remote_link, change, failure):
    message = message_of(remote_link, "inject_nmi", node_uuid="a node") | change
    if (
        change.get("method", "").startswith("_")
        and remote_link.conf.default.rpc_transport == "oslo"
    ):
        with pytest.raises(errors.ConductorSilent):
            remote_link.client._channel.call(remote_link.host, message, 5)
    else:
        reply = remote_link.client._channel.call(remote_link.host, message, 5)
        assert reply["failure"]["class"] == failure
    assert not remote_link.endpoint.calls


def test_a_conductor_that_is_not_there_is_a_503_that_says_nothing_was_done(remote_link):
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(errors.ConductorUnreached, match="nothing was done"):
        remote_link.client.proxy(nobody).vif_list(REQUEST, "a node")


def test_what_the_contract_does_not_have_cannot_be_asked(remote_link):
    with pytest.raises(AttributeError, match="not in the contract"):
        remote_link.conductor.set_fire(REQUEST)
    with pytest.raises(TypeError, match="without node_uuid"):
        remote_link.conductor.vif_list(REQUEST)
    with pytest.raises(TypeError, match="which it does not take"):
        remote_link.conductor.vif_list(REQUEST, "a node", colour="red")


# ----------------------------------------------------------------------------------- versions


class Later:
    """A contract that has grown."""

    @since("1.0", fields={"mood": "1.2"}, drops_new_fields=True)
    def heartbeat(self, request: Request, node_uuid: str, mood: str | None = None) -> None: ...

    @since("1.0", fields={"mood": "1.2"})
    def order(self, request: Request, node_uuid: str, mood: str | None = None) -> None: ...

    @since("1.1")
    def invent(self, request: Request) -> None: ...


LATER = list_methods(Later)
OLD = Cap(version="1.0", release="0.1")


def test_a_heartbeat_leaves_out_what_a_pinned_release_does_not_know():
    assert OLD.fit(LATER["heartbeat"], {"node_uuid": "a", "mood": "good"}) == {"node_uuid": "a"}


@pytest.mark.parametrize(
    ("method", "arguments"), [("order", {"node_uuid": "a", "mood": "good"}), ("invent", {})]
)
def test_an_order_that_a_pinned_release_does_not_know_is_refused(method, arguments):
    with pytest.raises(errors.MethodPinned, match=r"pin_release_version = 0.1 allows 1.0"):
        OLD.fit(LATER[method], arguments)


def test_an_order_without_what_is_new_is_one_of_the_old_version():
    assert LATER["order"].version_of(OLD.fit(LATER["order"], {"node_uuid": "a"})) == "1.0"


def test_an_old_conductor_says_so_of_a_method_that_came_later():
    endpoint = SimpleNamespace(invent=lambda _request: None)
    old = Dispatcher(endpoint, LATER, host="h", version="1.0")
    call = {
        "method": "invent", "version": "1.1", "call_id": "1", "host": "h",
        "context": {"request_id": "r"}, "arguments": {},
    }  # fmt: skip
    assert "h knows 1.0; upgrade it" in old.dispatch(call)["failure"]["text"]
    new = Dispatcher(endpoint, LATER, host="h", version="1.1")
    assert new.dispatch(call) == {"result": None}
    assert "failure" in new.dispatch(call | {"version": "1.0"})  # no such method in 1.0


def test_a_call_is_logged_in_the_name_of_its_caller_and_what_comes_after_in_nobodys():
    names = []
    endpoint = SimpleNamespace(invent=lambda _request: names.append(IN_LOG.get().request_id))
    call = {
        "method": "invent", "version": "1.1", "call_id": "1", "host": "h",
        "context": {"request_id": "r"}, "arguments": {},
    }  # fmt: skip
    context = contextvars.Context()
    dispatcher = Dispatcher(endpoint, LATER, host="h", version="1.1")
    assert context.run(dispatcher.dispatch, call) == {"result": None}
    assert (names, context.run(IN_LOG.get)) == (["r"], None)


def test_a_pin_to_an_unknown_release_is_refused():
    with pytest.raises(errors.CannotStart, match=r"releases are 0\.1"):
        transports.build_client(rpc.conf_of("json-rpc", pin_release_version="9.9"))
