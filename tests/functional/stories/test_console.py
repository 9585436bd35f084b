"""Consoles: switched on and off on request, and stopped when the node is given up."""

from __future__ import annotations

import pytest

from bloomery.conductor import console
from bloomery.drivers.noop import NoConsole
from bloomery.drivers.registry import Registry
from tests.kit.machines.scripted import Script
from tests.kit.servers import site as kit
from tests.kit.servers.stories import full_pool

REFUSES = {"fail": ["console.start_console"]}
KEEPS_IT = {"fail": ["console.stop_console"]}


@pytest.fixture
def bare(make_stage):
    """A stage whose nodes have no consoles."""
    found = Script().registry()
    interfaces = dict(found.interfaces) | {"console": {"no-console": NoConsole(kit.conf())}}
    return make_stage(registry=Registry(found.types, interfaces, dict.fromkeys(interfaces)))


def path(node):
    return f"/v1/nodes/{node}/states/console"


def switch(stage, node, enabled):
    """Ask for the console and wait until nothing is asked any more."""
    answer = stage.api.put(path(node), {"enabled": enabled})
    assert (answer.status, answer.body) == (202, b""), answer.body
    stage.wait_until_free(node)
    return answer


def is_on(stage, node):
    return stage.show(node)["console_enabled"]


def consoles(stage, node):
    return [one for one in stage.told(node) if one.startswith("console")]


def test_console_is_off_until_it_is_asked_for(stage):
    node = stage.enrol()
    assert stage.api.get(path(node)).json == {"console_enabled": False, "console_info": None}


def test_console_is_switched_on_and_off(stage):
    node = stage.enrol()
    answer = switch(stage, node, True)
    assert answer.headers["location"].endswith(path(node))
    assert stage.api.get(path(node)).json == {"console_enabled": True, "console_info": {}}
    assert stage.api.get(f"/v1/nodes/{node}/states").json["console_enabled"] is True
    switch(stage, node, "off")
    assert stage.api.get(path(node)).json == {"console_enabled": False, "console_info": None}
    assert consoles(stage, node) == ["console_set.start", "console_set.end"] * 2
    told = [fact["console_enabled"] for fact in stage.facts(node, "console_set")]
    assert told == [False, True, True, False]
    assert stage.steps(node, "console") == [("console.switch", "done")] * 2


@pytest.mark.parametrize("enabled", [True, False])
def test_console_that_is_so_already_is_left_alone(stage, enabled):
    node = stage.enrol({"fail": ["console.start_console", "console.stop_console"]},
                       console_enabled=enabled)  # fmt: skip
    switch(stage, node, enabled)
    assert is_on(stage, node) is enabled
    assert consoles(stage, node) == []


def test_console_that_does_not_start_stays_off_and_says_why(stage):
    node = stage.enrol(REFUSES)
    stage.site.set(node, provision_state="manageable")  # in enroll, an error explains the state
    switch(stage, node, True)
    shown = stage.show(node)
    assert shown["console_enabled"] is False
    assert "console.start_console was told to fail" in shown["last_error"]
    assert consoles(stage, node) == ["console_set.start", "console_set.error"]
    assert stage.facts(node, "console_set")[1]["last_error"] == shown["last_error"]
    assert stage.site.history(node)[-1]["event_type"] == "console"
    stage.behave(node)
    switch(stage, node, True)
    assert (is_on(stage, node), stage.show(node)["last_error"]) == (True, None)


def test_console_without_a_worker_is_refused(stage):
    node = stage.enrol()
    with full_pool(stage.site):
        answer = stage.api.put(path(node), {"enabled": True})
    assert answer.status == 503
    assert (is_on(stage, node), consoles(stage, node)) == (False, [])


@pytest.mark.parametrize("enabled", [None, "maybe", 5, [], {}])
def test_console_is_on_or_off(stage, enabled):
    assert stage.api.put(path(stage.enrol()), {"enabled": enabled}).status == 400


def test_console_of_a_node_without_consoles_is_refused(bare):
    answer = bare.api.put(path(bare.enrol()), {"enabled": True})
    assert answer.status == 400
    assert b"does not support console" in answer.body


def test_console_is_stopped_at_tear_down(stage):
    node = stage.bring_to("active")
    switch(stage, node, True)
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    assert is_on(stage, node) is False
    assert consoles(stage, node)[2:] == ["console_stop.start", "console_stop.end"]
    assert [fact["console_enabled"] for fact in stage.facts(node, "console_stop")] == [True, False]


def test_tear_down_fails_where_the_console_stays(stage):
    node = stage.bring_to("active", console_enabled=True)
    stage.behave(node, **KEEPS_IT)
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "error")
    assert "console.stop_console was told to fail" in shown["last_error"]
    assert shown["console_enabled"] is True
    assert stage.told(node)[-3:] == [
        "console_stop.start", "console_stop.error", "provision_set.error",
    ]  # fmt: skip
    assert "told to fail" in stage.facts(node, "console_stop")[1]["last_error"]
    stage.behave(node)
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    assert is_on(stage, node) is False


def test_console_is_restored_when_a_node_is_adopted(stage):
    node = stage.bring_to("manageable", console_enabled=True)
    stage.ask(node, "adopt")
    stage.wait_for(node, "active")
    assert consoles(stage, node) == ["console_restore.start", "console_restore.end"]


def test_adoption_fails_where_the_console_does_not_start(stage):
    node = stage.bring_to("manageable", REFUSES, console_enabled=True)
    stage.ask(node, "adopt")
    shown = stage.wait_for(node, "adopt failed")
    assert "console.start_console was told to fail" in shown["last_error"]
    assert consoles(stage, node) == ["console_restore.start", "console_restore.error"]


def test_console_is_stopped_before_its_node_is_deleted(stage):
    node = stage.enrol(console_enabled=True)
    assert stage.api.delete(f"/v1/nodes/{node}").status == 204
    assert stage.api.get(f"/v1/nodes/{node}").status == 404
    assert stage.told(node)[-4:] == [
        "delete.start", "console_set.start", "console_set.end", "delete.end",
    ]  # fmt: skip


def test_node_whose_console_stays_is_not_deleted(stage):
    node = stage.enrol(KEEPS_IT, console_enabled=True)
    answer = stage.api.delete(f"/v1/nodes/{node}")
    assert answer.status >= 400
    assert b"console.stop_console was told to fail" in answer.body
    shown = stage.show(node)
    assert (shown["console_enabled"], shown["reservation"]) == (True, None)
    stage.behave(node)
    assert stage.api.delete(f"/v1/nodes/{node}").status == 204


def test_node_without_consoles_is_deleted_whatever_its_client_said(bare):
    node = bare.enrol(console_enabled=True)
    assert bare.api.delete(f"/v1/nodes/{node}").status == 204


@pytest.mark.parametrize("rule", ["protected", "instance_uuid"])
def test_node_that_must_stay_keeps_its_console(stage, rule):
    node = stage.enrol(console_enabled=True)
    value = True if rule == "protected" else "11111111-2222-3333-4444-555555555555"
    stage.site.set(node, **{rule: value})
    assert stage.api.delete(f"/v1/nodes/{node}").status in (403, 409)
    assert (is_on(stage, node), consoles(stage, node)) == (True, [])


# ------------------------------------------------------------------------ conductors that died


def restart(stage):
    """Let the conductor look for consoles in its next life."""
    stage.site.service.registration.begin(alone=True)
    console.take_over_all(stage.site.runtime)


def test_console_of_a_life_before_is_started_anew(stage):
    node = stage.bring_to("active")
    switch(stage, node, True)
    console.take_over_all(stage.site.runtime)
    assert consoles(stage, node) == ["console_set.start", "console_set.end"], "it runs already"
    restart(stage)
    assert consoles(stage, node)[2:] == ["console_restore.start", "console_restore.end"]
    console.take_over_all(stage.site.runtime)
    assert len(consoles(stage, node)) == 4, "and once is enough"


def test_console_that_does_not_start_anew_stays_wished_for_and_says_why(stage):
    node = stage.bring_to("active")
    switch(stage, node, True)
    stage.behave(node, **REFUSES)
    restart(stage)
    shown = stage.show(node)
    assert shown["console_enabled"] is True
    assert "cannot restart the console: " in shown["last_error"]
    assert consoles(stage, node)[2:] == ["console_restore.start", "console_restore.error"]
    why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    assert "console.start_console was told to fail" in why["cause"]
    stage.behave(node)
    switch(stage, node, True)
    assert stage.why(node)["cause"] == "nothing is wrong: it is active"


def test_console_of_a_node_that_is_busy_is_left_to_the_next_look(stage):
    node = stage.enrol(console_enabled=True)
    with stage.site.acquire(node, purpose="a test"):
        console.take_over_all(stage.site.runtime)
    assert consoles(stage, node) == []
    console.take_over_all(stage.site.runtime)
    assert consoles(stage, node) == ["console_restore.start", "console_restore.end"]
