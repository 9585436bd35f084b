"""Stacks below a simulated stack: nested templates, groups and chains."""

from __future__ import annotations

import pytest

from bloomery.orchestration import simulation
from tests.kit.clock import EnteredClock
from tests.kit.stacks.simulations import expand, lines, stack

CHILD = """
heat_template_version: 2021-04-16
parameters:
  p: {type: string, default: x}
  fail: {type: boolean, default: false}
resources:
  in: {type: OS::Heat::TestResource, properties: {value: {get_param: p}, fail: {get_param: fail}}}
  facade: {type: OS::Heat::Value, properties: {value: {resource_facade: metadata}}}
outputs:
  out: {value: {get_attr: [in, output]}}
  seen: {value: {get_attr: [facade, value]}}
  bad: {value: {get_param: nope}}
"""
FILES = {"child.yaml": CHILD}
PARENT = """
resources:
  n: {type: child.yaml, metadata: {m: 1}, properties: {p: VALUE, fail: FAIL}}
  after: {type: OS::Heat::None, depends_on: n}
outputs:
  out: {value: {get_attr: [n, out]}}
  first: {value: {get_attr: [n, out, 0]}}
  seen: {value: {get_attr: [n, seen]}}
  bad: {value: {get_attr: [n, bad]}}
  id: {value: {get_resource: n}}
  in: {value: {get_attr: [n, resource.in]}}
  inner: {value: {get_attr: [n, resource.in, output]}}
"""


def parent(value="abc", fail="false", **given):
    text = PARENT.replace("VALUE", value).replace("FAIL", fail)
    return stack(text, files=FILES, **given)


def test_a_nested_template_is_a_stack_of_its_own():
    result = simulation.run(parent())
    assert result.status == "CREATE_COMPLETE", result.error
    assert lines(result.events) == expand("S C>, n C+, after C+, S C.")
    below = "S C>, in C>, facade C>, in C., facade C., S C."
    assert lines(result.events, depth=1) == expand(below)
    name = next(event.stack for event in result.events if event.depth == 1)
    assert name.startswith("S-n-")
    values = {name: output.value for name, output in result.outputs.items() if not output.error}
    assert values.pop("id").startswith(f"arn:openstack:heat::{''}:stacks/{name}/")
    assert values.pop("in").startswith(f"{name}-in-")
    assert values == {"out": "abc", "first": "a", "seen": {"m": 1}, "inner": "abc"}
    assert result.outputs["bad"].error.type == "StackValidationFailed"


def test_what_fails_below_is_told_with_its_whole_path():
    result = simulation.run(parent(fail="true"), rollback=True)
    assert result.status == "ROLLBACK_COMPLETE"
    assert lines(result.events) == expand("S C>, n C!, S Cx, S R>, n D+, S R.")
    said = "ValueError: resources.n.resources.in: Test Resource failed in"
    assert result.error == simulation.Error(
        type="ResourceFailure", message=f"Resource CREATE failed: {said}"
    )
    assert "S ROLLBACK_IN_PROGRESS" not in lines(result.events, depth=1)
    assert lines(result.events, depth=1)[-1] == "S DELETE_COMPLETE"


def test_an_update_is_always_handed_down_and_touches_only_what_has_changed():
    life = simulation.Lifecycle()
    created = life.create(parent())
    ids = {name: created.outputs[name].value for name in ("id", "in")}
    same = life.update(parent())
    seen = same.events[len(created.events) :]
    assert lines(seen) == expand("S U>, n U+, S U.")
    assert lines(seen, depth=1) == expand("S U+")
    changed = life.update(parent("xyz"))
    seen = changed.events[len(same.events) :]
    assert lines(seen, depth=1) == expand("S U>, in U+, S U.")
    assert changed.outputs["out"].value == "xyz"
    assert {name: changed.outputs[name].value for name in ids} == ids


def test_another_template_changes_the_stack_that_is_there():
    fewer = CHILD.replace("p: {type: string, default: x}", "q: {type: string, default: y}")
    files = FILES | {"other.yaml": fewer.replace("get_param: p", "get_param: q")}
    before = "resources: {n: {type: child.yaml, properties: {p: abc}}}\n" + ASKED
    life = simulation.Lifecycle()
    created = life.create(stack(before, files=files))
    after = before.replace("child.yaml", "other.yaml").replace("p: abc", "q: xyz")
    result = life.update(stack(after, files=files))
    seen = result.events[len(created.events) :]
    assert lines(seen) == expand("S U>, n U+, S U.")
    assert lines(seen, depth=1) == expand("S U>, in U+, S U.")
    assert [event.type for event in seen if event.resource == "n"] == ["child.yaml", "other.yaml"]
    assert {name: output.value for name, output in result.outputs.items()} == {
        "id": created.outputs["id"].value,
        "in": created.outputs["in"].value,
        "out": "xyz",
    }


ASKED = """
outputs:
  out: {value: {get_attr: [n, out]}}
  id: {value: {get_resource: n}}
  in: {value: {get_attr: [n, resource.in]}}
"""


def test_a_failed_update_below_is_rolled_back_from_above():
    life = simulation.Lifecycle()
    life.create(parent())
    result = life.update(parent("xyz", fail="true"), rollback=True)
    assert result.status == "ROLLBACK_COMPLETE"
    assert result.outputs["out"].value == "abc"
    assert "S ROLLBACK_IN_PROGRESS" not in lines(result.events, depth=1)


def test_a_deletion_takes_everything_below_with_it():
    life = simulation.Lifecycle()
    created = life.create(parent())
    result = life.delete()
    seen = result.events[len(created.events) :]
    assert lines(seen) == expand("S D>, after D+, n D+, S D.")
    assert lines(seen, depth=1) == expand("S D>, in D>, facade D>, in D., facade D., S D.")
    assert life.stack.stacks == {}


def test_time_that_is_up_above_stops_what_runs_below():
    waits = CHILD.replace("value: {get_param: p}", "value: {get_param: p}, wait_secs: -1")
    text = PARENT.replace("VALUE", "x").replace("FAIL", "false")
    result = simulation.run(stack(text, files={"child.yaml": waits}, timeout_s=30))
    assert (result.status, result.reason) == ("CREATE_FAILED", "Timed out")
    assert lines(result.events)[-2:] == ["n CREATE_FAILED", "S CREATE_FAILED"]
    assert lines(result.events, depth=1)[-1] == "S CREATE_FAILED"
    assert result.events[-1].at_s == 30


def test_a_child_that_was_never_made_is_made_by_the_next_update():
    life = simulation.Lifecycle()
    life.create(parent(fail="true"))
    result = life.update(parent())
    assert result.status == "UPDATE_COMPLETE"
    assert result.outputs["out"].value == "abc"


# --------------------------------------------------------------------------------------- groups

GROUP = """
parameters: {count: {type: number}}
resources:
  g:
    type: OS::Heat::ResourceGroup
    update_policy: {rolling_update: {max_batch_size: 1, min_in_service: 3, pause_time: 10}}
    properties:
      count: {get_param: count}
      removal_policies: [{resource_list: REMOVED}]
      resource_def:
        type: OS::Heat::TestResource
        properties: {value: "VALUE%index%"}
outputs:
  map: {value: {get_attr: [g, refs_map]}}
  values: {value: {get_attr: [g, attributes, output]}}
"""


def group(count=3, value="a", removed="[]"):
    text = GROUP.replace("REMOVED", removed).replace("VALUE", value)
    return stack(text, given={"count": count})


def test_a_group_changes_batch_by_batch():
    """As Heat did it; see the table in the tests of batches."""
    life = simulation.Lifecycle()
    created = life.create(group())
    result = life.update(group(value="b", removed="['1']"))
    seen = result.events[len(created.events) :]
    assert lines(seen) == expand("S U>, g U+, S U.")
    assert lines(seen, depth=1) == expand(
        "S U>, 3 C>, 1 D>, 3 C., 1 D., S U., S U>, 4 C+, S U., S U>, 2 U+, S U., S U>, 0 U+, S U.,"
        "S U>, 4 D+, S U."
    )
    assert result.outputs["values"].value == {"0": "b0", "2": "b2", "3": "b3"}
    assert result.events[-1].at_s >= 4 * 10


def test_members_that_stay_keep_their_ids():
    life = simulation.Lifecycle()
    before = life.create(group()).outputs["map"].value
    grown = life.update(group(count=5)).outputs["map"].value
    assert {name: grown[name] for name in before} == before
    shrunk = life.update(group(count=2)).outputs["map"].value
    assert shrunk == {name: before[name] for name in ("0", "1")}
    assert life.update(group(count=0)).outputs["map"].value == {}


def test_what_a_group_cannot_know_at_validation_fails_when_its_members_are_made():
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: maybe}}
  g:
    type: OS::Heat::ResourceGroup
    properties:
      resource_def: {type: OS::Heat::TestResource, properties: {fail: {get_attr: [v, value]}}}
"""
    result = simulation.run(stack(text))
    assert result.status == "CREATE_FAILED"
    assert "StackValidationFailed: resources.g" in result.reason


MEMBER = "{heat_template_version: 2021-04-16, resources: {in: {type: OS::Heat::TestResource}}}"


def test_members_of_a_later_batch_keep_the_template_that_went_with_the_update():
    text = """
resources:
  g:
    type: OS::Heat::ResourceGroup
    properties: {count: 3, resource_def: {type: FILE}}
    update_policy: {rolling_update: {max_batch_size: 1, min_in_service: 1}}
"""
    life = simulation.Lifecycle()
    for file in ("before.yaml", "after.yaml"):
        document = stack(text.replace("FILE", file), files={file: MEMBER})
        result = life.update(document) if file == "after.yaml" else life.create(document)
        assert result.error is None, result.error
    assert result.status == "UPDATE_COMPLETE"


def test_a_group_of_more_members_than_a_stack_may_have_is_refused_late_too():
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: 1000000000}}
  g:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_attr: [v, value]}, resource_def: {type: OS::Heat::None}}
"""
    result = simulation.run(stack(text))
    assert "RequestLimitExceeded: resources.g" in result.reason


def test_stacks_below_count_together():
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: 600}}
  g:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_attr: [v, value]}, resource_def: {type: OS::Heat::None}}
  h:
    type: OS::Heat::ResourceGroup
    depends_on: g
    properties: {count: {get_attr: [v, value]}, resource_def: {type: OS::Heat::None}}
"""
    result = simulation.run(stack(text))
    assert "RequestLimitExceeded: resources.h" in result.reason


def test_a_chain_goes_one_by_one():
    text = """
resources:
  c:
    type: OS::Heat::ResourceChain
    properties:
      resources: [OS::Heat::TestResource, OS::Heat::TestResource]
      resource_properties: {wait_secs: 1}
outputs:
  c: {value: {get_attr: [c, output]}}
"""
    result = simulation.run(stack(text))
    assert lines(result.events, depth=1) == expand("S C>, 0 C+, 1 C+, S C.")
    assert result.outputs["c"].value == ["test_string"] * 2


def test_a_group_of_nested_templates_is_two_levels_deep():
    text = """
resources:
  g:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: child.yaml, properties: {p: "v%index%"}}}
outputs:
  out: {value: {get_attr: [g, out]}}
  deep: {value: {get_attr: [g, resource.1.resource.in, output]}}
"""
    result = simulation.run(stack(text, files=FILES))
    assert result.status == "CREATE_COMPLETE", result.error
    assert result.outputs["out"].value == ["v0", "v1"]
    assert len(lines(result.events, depth=2)) == 2 * len(expand("S C+, in C+, facade C+"))
    assert result.outputs["deep"].value == "v1"


@pytest.mark.parametrize("mapped", ["OS::Heat::None", "child.yaml"])
def test_the_environment_reaches_below(mapped):
    environment = {"resource_registry": {"My::Thing": mapped}, "parameter_defaults": {"p": "d"}}
    files = {"child.yaml": CHILD, "outer.yaml": OUTER}
    text = "resources:\n  n: {type: outer.yaml}\noutputs:\n  o: {value: {get_attr: [n, o]}}\n"
    result = simulation.run(stack(text, files=files, environment=environment))
    assert result.status == "CREATE_COMPLETE", result.error
    assert result.outputs["o"].value == (None if mapped == "OS::Heat::None" else "d")


OUTER = """
heat_template_version: 2021-04-16
resources:
  t: {type: My::Thing}
outputs:
  o: {value: {get_attr: [t, out]}}
"""


def test_a_nested_template_sees_the_policies_of_its_resource():
    inner = """
heat_template_version: 2021-04-16
resources:
  a: {type: OS::Heat::Value, properties: {value: {resource_facade: deletion_policy}}}
  b: {type: OS::Heat::Value, properties: {value: {resource_facade: update_policy}}}
outputs:
  a: {value: {get_attr: [a, value]}}
  b: {value: {get_attr: [b, value]}}
"""
    text = """
resources:
  n: {type: inner.yaml, deletion_policy: Retain}
outputs:
  n: {value: {get_attr: [n]}}
"""
    result = simulation.run(stack(text, files={"inner.yaml": inner}))
    assert result.outputs["n"].value == {"a": "Retain", "b": {}}


def test_a_template_gives_its_own_reference_id():
    inner = "heat_template_version: 2021-04-16\noutputs: {OS::stack_id: {value: mine}}"
    text = "resources:\n  n: {type: i.yaml}\noutputs:\n  n: {value: {get_resource: n}}"
    assert simulation.run(stack(text, files={"i.yaml": inner})).outputs["n"].value == "mine"


def test_each_batch_has_its_share_of_the_time():
    text = GROUP.replace("min_in_service: 3", "min_in_service: 0").replace("10}", "1500}")
    text = text.replace("REMOVED", "[]").replace("VALUE", "a")
    waits = text.replace("}\noutputs", ", wait_secs: -1}\noutputs")
    life = simulation.Lifecycle()
    life.create(stack(text, given={"count": 3}))
    result = life.update(stack(waits, given={"count": 3}))
    assert result.reason == "Resource UPDATE failed: resources.g: Timed out"
    below = [event.at_s for event in result.events if event.depth == 1]
    assert below[-1] == 3600 - 2 * 1500


def test_who_is_left_at_work_when_all_is_over_has_the_rest_of_its_time():
    child = CHILD.replace("p}, fail", "p}, action_wait_secs: {delete: -1}, fail")
    text = """
resources:
  n: {type: child.yaml}
  after: {type: OS::Heat::TestResource, depends_on: n, properties: {action_wait_secs: {delete: 9}}}
"""
    life = simulation.Lifecycle()
    life.create(stack(text, files={"child.yaml": child}, timeout_s=30))
    result = life.delete()
    assert (result.status, result.reason) == ("DELETE_FAILED", "Timed out")
    (below,) = (each for each in life.stack.stacks.values() if each.row.depth == 1)
    assert (str(below.status), below.reason) == ("FAILED", "Timed out")
    assert shared_end(life) == 9 + 30


def shared_end(life):
    return life.simulation.events[-1].at_s


def test_a_child_is_deleted_once_however_often_it_is_asked():
    child = CHILD.replace("p}, fail", "p}, action_wait_secs: {delete: 5}, fail")
    life = simulation.Lifecycle(simulation.Simulation(clock=EnteredClock()))
    life.create(stack("resources: {n: {type: child.yaml}}", files={"child.yaml": child}))
    shared, above, tree = life.simulation, life.stack, life.tree
    stack_id = above.rows["n"].physical_id
    above.children.delete(stack_id)
    shared.clock.call_at(2, lambda: above.children.delete(stack_id))
    shared.run_to_completion(tree)
    ends = [event.reason for event in shared.events if event.state.startswith("DELETE_FAILED")]
    assert "Stack DELETE cancelled" in ends
    assert shared.events[-1].state == "DELETE_COMPLETE"
    assert shared.events[-1].at_s == 2 + 5
    assert above.children.find(stack_id) is None
    above.children.delete(stack_id)
    assert tree.is_idle
