"""Kinds at work in trees: signalled, scaled, suspended, checked, and under engines that die."""

from __future__ import annotations

import pytest

from tests.kit.clock import EnteredClock
from tests.kit.stacks.simulations import expand, lines, stack
from tests.kit.stacks.stack_lives import Life, MortalSimulation, StoredSimulation

WAIT = """
resources:
  h: {type: OS::Heat::WaitConditionHandle}
  w:
    type: OS::Heat::WaitCondition
    properties: {handle: {get_resource: h}, timeout: 600, count: COUNT}
  after: {type: OS::Heat::Value, properties: {value: {get_attr: [w, data]}}}
outputs:
  data: {value: {get_attr: [after, value]}}
"""


def life_of(**options):
    return Life(StoredSimulation(clock=EnteredClock(), **options))


def waiting(count=2):
    return stack(WAIT.replace("COUNT", str(count)))


def at(life, at_s, name, details=None):
    life.simulation.clock.call_at(at_s, lambda: life.post(name, details))


# ------------------------------------------------------------------------------ wait conditions


def test_a_stack_waits_until_its_handle_is_signalled():
    life = life_of()
    at(life, 10, "h", {"data": "one"})
    at(life, 250, "h", {"id": "x", "data": 2})
    result = life.create(waiting())
    assert result.status == "CREATE_COMPLETE", result.error
    assert lines(result.events) == expand("S C>, h C+, w C>, h S., h S., w C., after C+, S C.")
    signalled = [event for event in result.events if event.action == "SIGNAL"]
    assert [(event.at_s, event.reason) for event in signalled] == [
        (10, "Signal: status:SUCCESS reason:Signal 1 received"),
        (250, "Signal: status:SUCCESS reason:Signal x received"),
    ]
    assert result.outputs["data"].value == '{"1": "one", "x": 2}'
    assert result.events[-1].at_s == 250


@pytest.mark.parametrize(
    ("signal", "reason", "at_s"),
    [
        (
            {"status": "FAILURE", "reason": "no disk"},
            "WaitConditionFailure: resources.w: no disk",
            30,
        ),
        (
            {"status": "MAYBE"},
            "WaitConditionTimeout: resources.w: 0 of 2 received",
            600,
        ),
        (
            {},
            "WaitConditionTimeout: resources.w: 1 of 2 received - Signal 1 received",
            600,
        ),
    ],
)
def test_a_wait_may_fail(signal, reason, at_s):
    life = life_of()
    at(life, 30, "h", signal)
    result = life.create(waiting())
    assert result.status == "CREATE_FAILED"
    assert result.reason == f"Resource CREATE failed: {reason}"
    assert result.events[-1].at_s == at_s


def test_a_refused_signal_leaves_no_event():
    life = life_of()
    at(life, 5, "h", {"status": "MAYBE"})
    at(life, 6, "h", {"id": "a"})
    result = life.create(waiting(count=1))
    assert [event.at_s for event in result.events if event.action == "SIGNAL"] == [6]


def test_signals_stay_when_the_stack_is_updated():
    life = life_of()
    at(life, 1, "h")
    at(life, 500, "h")
    life.create(waiting(count=1))
    began_s = len(life.simulation.events)
    result = life.update(waiting(count=2))
    assert lines(result.events[began_s:])[:3] == expand("S U>, w U>, h S.")
    assert result.status == "UPDATE_COMPLETE", result.error
    assert list(life.row("h").metadata) == ["1", "2"]


UPDATED = """
resources:
  h: {type: OS::Heat::UpdateWaitConditionHandle}
  w:
    type: OS::Heat::WaitCondition
    properties: {handle: {get_resource: h}, timeout: 600}
  v: {type: OS::Heat::Value, properties: {value: VALUE}}
"""


def test_an_update_handle_lets_everybody_signal_again():
    life = life_of()
    at(life, 10, "h", {"UniqueId": "u"})
    life.create(stack(UPDATED.replace("VALUE", "x")))
    first = life.row("h").uuid
    at(life, 50, "h", {"UniqueId": "u"})
    result = life.update(stack(UPDATED.replace("VALUE", "y")))
    assert result.status == "UPDATE_COMPLETE", result.error
    assert result.events[-1].at_s == 50
    assert life.row("h").uuid != first
    gone = [line for line in lines(result.events) if line.endswith("DELETE_COMPLETE")]
    assert gone == ["w DELETE_COMPLETE", "h DELETE_COMPLETE"]


# ------------------------------------------------------------------------------------- scaling

SCALED = """
resources:
  g:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 4
      cooldown: 60
      resource: {type: OS::Heat::TestResource, properties: {value: VALUE, wait_secs: 5}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {get_resource: g}
      adjustment_type: change_in_capacity
      scaling_adjustment: 2
outputs:
  size: {value: {get_attr: [g, current_size]}}
  values: {value: {get_attr: [g, outputs_list, output]}}
"""


def scaled(value="x"):
    return stack(SCALED.replace("VALUE", value))


def test_a_signal_scales_a_group_while_its_stack_rests():
    life = life_of()
    life.create(scaled())
    began = len(life.simulation.events)
    result = life.signal("up")
    assert result.outputs["size"].value == 3
    new = result.events[began:]
    assert lines(new) == expand("up S.")
    assert lines(new, depth=1)[0] == "S UPDATE_IN_PROGRESS"
    assert lines(new, depth=1)[-1] == "S UPDATE_COMPLETE"
    assert "Signal: g turns from 1 to 3 members" in [event.reason for event in new]
    assert life.stack.action == "CREATE"


def test_a_group_that_cools_down_hears_nothing():
    life = life_of()
    life.create(scaled())
    life.signal("up")
    began = len(life.simulation.events)
    life.signal("up")
    assert life.simulation.events[began:] == []
    life.simulation.clock.wait(life.simulation.clock.now() + 60)
    assert life.signal("up").outputs["size"].value == 4


def test_an_update_after_scaling_changes_the_definition_one_by_one():
    life = life_of()
    life.create(scaled())
    life.signal("up")
    began = len(life.simulation.events)
    result = life.update(scaled("y"))
    assert result.status == "UPDATE_COMPLETE", result.error
    assert result.outputs["values"].value == ["y", "y", "y"]
    updates = lines(result.events[began:], depth=1)
    assert updates.count("S UPDATE_COMPLETE") == 3


# --------------------------------------------------------------------------- what is handed on

NESTED = """
resources:
  n: {type: nested.yaml}
  g: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: OS::Heat::Delay}}}
  s: {type: OS::Heat::Stack, properties: {template: {get_file: nested.yaml}}}
"""
INNER = """
heat_template_version: 2018-08-31
resources:
  d:
    type: OS::Heat::Delay
    properties: {min_wait: 3, actions: [SUSPEND, RESUME]}
"""


def nested():
    return stack(NESTED, files={"nested.yaml": INNER})


@pytest.mark.parametrize(
    ("verbs", "states", "took_s"),
    [
        (["suspend"], "SUSPEND_COMPLETE", 3),
        (["suspend", "resume"], "RESUME_COMPLETE", 6),
        (["suspend", "check", "resume"], "RESUME_COMPLETE", 6),
        (["suspend", "snapshot", "resume"], "RESUME_COMPLETE", 6),
        (["check"], "CHECK_COMPLETE", 0),
        (["snapshot"], "SNAPSHOT_COMPLETE", 0),
    ],
)
def test_what_is_asked_of_a_stack_is_asked_of_those_below(verbs, states, took_s):
    life = life_of()
    life.create(nested())
    for verb in verbs:
        result = getattr(life, verb)()
        assert result.error is None
    assert result.status == states
    ended = {event.stack for event in result.events if event.depth and event.state == states}
    assert len(ended) == 3
    assert result.events[-1].at_s == took_s
    below = {line for line in lines(result.events, depth=1) if line.endswith(states)}
    assert {"0 " + states, "1 " + states, "d " + states} <= below


def test_a_check_of_a_stack_tells_of_those_below_that_are_gone():
    life = life_of()
    life.create(nested())
    child = life.row("n").physical_id
    del life.tree.stacks[child]
    result = life.check()
    assert result.status == "CHECK_FAILED"
    assert "resources.n: its stack is gone" in result.reason


# ------------------------------------------------------------------------------------- software

DEPLOYED = """
resources:
  c:
    type: OS::Heat::SoftwareConfig
    properties: {config: run, group: script, outputs: [{name: url}]}
  d:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: c}, server: s-1, actions: [CREATE, DELETE]}
outputs:
  url: {value: {get_attr: [d, url]}}
  code: {value: {get_attr: [d, deploy_status_code]}}
"""


def test_a_deployment_is_answered_by_a_signal_and_cleans_up_after_itself():
    life = life_of()
    at(life, 20, "d", {"url": "u", "deploy_status_code": 0})
    result = life.create(stack(DEPLOYED))
    assert (result.status, result.events[-1].at_s) == ("CREATE_COMPLETE", 20), result.error
    assert (result.outputs["url"].value, result.outputs["code"].value) == ("u", 0)
    assert "Signal: deployment succeeded" in [event.reason for event in result.events]
    at(life, 80, "d", {"deploy_status_code": 0})
    assert life.delete().status == "DELETE_COMPLETE"
    assert life.simulation.clock.now() == 80
    assert (life.simulation.site.software.configs, life.simulation.site.software.deployments) == (
        {},
        {},
    )


# ------------------------------------------------------------------------------- engines that die

EVERYTHING = """
resources:
  h: {type: OS::Heat::WaitConditionHandle}
  w: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: h}, timeout: 600}}
  t: {type: OS::Heat::TestResource, properties: {value: VALUE, wait_secs: 30}}
  delay: {type: OS::Heat::Delay, properties: {min_wait: 7, actions: [CREATE, DELETE]}}
  n: {type: nested.yaml}
  s: {type: OS::Heat::Stack, properties: {template: {get_file: nested.yaml}}}
  c: {type: OS::Heat::SoftwareConfig, properties: {config: VALUE}}
  d:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: c}, server: s-1, actions: [CREATE, UPDATE, DELETE]}
  chain:
    type: OS::Heat::ResourceChain
    properties: {resources: [OS::Heat::Delay, OS::Heat::None], resource_properties: {min_wait: 2}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 3
      resource_def: {type: OS::Heat::TestResource, properties: {value: VALUE, wait_secs: 4}}
    update_policy:
      batch_create: {max_batch_size: 2, pause_time: 10}
      rolling_update: {max_batch_size: 1, pause_time: 5}
  g:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 2
      max_size: 4
      resource: {type: OS::Heat::TestResource, properties: {value: VALUE, wait_secs: 4}}
outputs:
  refs: {value: {get_attr: [group, value]}}
  values: {value: {get_attr: [g, outputs_list, output]}}
"""


def everything(value):
    text = EVERYTHING.replace("VALUE", value)
    return stack(text, files={"nested.yaml": INNER})


def lived(life):
    """Create, update and delete; return what was told of, and left."""
    told_of = []
    at(life, 9, "h", {"data": 1})
    at(life, 11, "d", {"deploy_status_code": 0})
    result = life.create(everything("x"))
    told_of.append((result.status, result.error, life.simulation.clock.now()))
    at(life, life.simulation.clock.now() + 50, "d", {"deploy_status_code": 0})
    result = life.update(everything("y"))
    told_of.append((result.status, result.error, life.simulation.clock.now()))
    assert result.outputs["values"].value == ["y", "y"]
    told_of += [
        (getattr(life, verb)().status, None, life.simulation.clock.now())
        for verb in ("suspend", "resume")
    ]
    at(life, life.simulation.clock.now() + 50, "d", {"deploy_status_code": 0})
    result = life.delete()
    told_of.append((result.status, result.error, life.simulation.clock.now()))
    return told_of


def ends(events):
    """How each resource ended what it did, in no particular order."""
    return sorted(
        f"{event.depth} {event.type} {event.state}"
        for event in events
        if not event.state.endswith("IN_PROGRESS")
    )


def test_an_engine_that_dies_after_each_turn_is_followed_without_a_difference():
    quiet, mortal = life_of(), Life(MortalSimulation(clock=EnteredClock()))
    mortal.simulation.life = mortal
    undisturbed, before = lived(quiet), MortalSimulation.deaths
    assert [status for status, _, _ in undisturbed] == [
        f"{action}_COMPLETE" for action in ("CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE")
    ]
    assert lived(mortal) == undisturbed
    assert MortalSimulation.deaths - before > 30
    assert ends(mortal.simulation.events) == ends(quiet.simulation.events)
    for life in (quiet, mortal):
        software = life.simulation.site.software
        assert (software.configs, software.deployments) == ({}, {})
        assert life.simulation.rows.resources == {}
