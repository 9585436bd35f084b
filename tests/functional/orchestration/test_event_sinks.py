"""Events of stacks go to the sinks that their environments name."""

from __future__ import annotations

import pytest

from bloomery import plugins
from bloomery.orchestration.template import environment
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

HEARD: list[tuple[str, dict, dict]] = []


class Listener:
    """A sink that keeps what it hears; the one called broken takes nothing."""

    def __init__(self, target):
        self.target = target

    def consume(self, context, event):
        if self.target == "broken":
            raise ValueError("full")
        HEARD.append((self.target, context, event))


@pytest.fixture
def site(tmp_path, monkeypatch):
    HEARD.clear()
    loaders, sinks = plugins.loaders, {environment.SINK_GROUP: {"listener": lambda: Listener}}
    monkeypatch.setattr(plugins, "loaders", lambda group: sinks.get(group) or loaders(group))
    environment.installed_sinks.cache_clear()
    with Orchestration(tmp_path / "state") as running:
        yield running
    environment.installed_sinks.cache_clear()


def states(target):
    return [
        f"{event['payload']['resource_name']} {event['payload']['resource_action']}"
        f"_{event['payload']['resource_status']}"
        for name, _context, event in HEARD
        if name == target
    ]


def test_events_go_to_each_sink_that_the_environment_names(site, caplog):
    names = [{"type": "listener", "target": each} for each in ("a", "broken", "b")]
    value = template({"v": {"type": "OS::Heat::Value", "properties": {"value": 1}}})
    path = site.create("web", value, environment={"event_sinks": names})
    site.wait_for(path, "CREATE_COMPLETE")
    assert site.ask("DELETE", path)[0] == 204
    wait_for(lambda: "web DELETE_COMPLETE" in states("b"), "the end to be heard of")
    assert states("a") == states("b")
    assert states("a") == [
        "web CREATE_IN_PROGRESS",
        "v CREATE_IN_PROGRESS",
        "v CREATE_COMPLETE",
        "web CREATE_COMPLETE",
        "web DELETE_IN_PROGRESS",
        "v DELETE_IN_PROGRESS",
        "v DELETE_COMPLETE",
        "web DELETE_COMPLETE",
    ]
    _target, context, event = HEARD[0]
    assert context["project_id"] == "admin"
    assert (event["type"], event["version"]) == ("os.heat.event", "0.1")
    assert event["payload"]["stack_id"] == path.rsplit("/", 1)[1]
    assert event["payload"]["resource_status_reason"] == "Stack CREATE started"
    assert "sink listener does not take event" in caplog.text


def test_a_stack_that_names_none_is_heard_of_by_none(site):
    path = site.create("web", template({}))
    site.wait_for(path, "CREATE_COMPLETE")
    assert HEARD == []


def test_a_type_of_sink_that_is_not_installed_is_refused(site):
    body = {"stack_name": "web", "template": template({}), "environment": {}}
    body["environment"]["event_sinks"] = [{"type": "nope"}]
    status, document = site.ask("POST", "/stacks", body)
    assert status == 400
    assert "known are listener" in document["error"]["message"]
