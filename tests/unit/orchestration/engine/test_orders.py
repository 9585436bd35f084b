"""What each order does, in the traces of Heat's convergence engine."""

from __future__ import annotations

import pytest

from bloomery.model.stacks import OrderKind
from tests.kit.stacks import tree_world
from tests.kit.stacks.simulations import expand

CHAIN = """
resources:
  a: {type: Test::Thing, properties: {value: VALUE, wait_s: WAIT}}
  b: {type: Test::Thing, depends_on: a, properties: {value: "SICK"}}
  c: {type: Test::Thing, depends_on: b}
"""


def chain(value="x", wait_s="0", sick="well"):
    return CHAIN.replace("VALUE", value).replace("WAIT", wait_s).replace("SICK", sick)


@pytest.fixture
def store():
    """In memory; whoever has another store runs these tests on it by another fixture."""
    return tree_world.Strict()


@pytest.fixture
def world(store):
    return tree_world.World(store)


@pytest.fixture
def created(world):
    world.create(chain())
    world.run()
    return world


def since(world, before):
    return world.lines()[before:]


# ---------------------------------------------------------------- suspend, resume, check, snapshot


def test_a_suspend_goes_backwards_and_a_resume_forwards(created):
    before = len(created.lines())
    created.order(OrderKind.SUSPEND)
    created.run()
    suspended = states("S SUSPEND>, c SUSPEND+, b SUSPEND+, a SUSPEND+, S SUSPEND.")
    assert since(created, before) == suspended
    before = len(created.lines())
    created.order(OrderKind.RESUME)
    created.run()
    resumed = states("S RESUME>, a RESUME+, b RESUME+, c RESUME+, S RESUME.")
    assert since(created, before) == resumed
    assert created.state == "RESUME_COMPLETE"


def states(text):
    """As ``expand``, with whole words: ``a SUSPEND+``."""
    ends = {">": ["IN_PROGRESS"], "+": ["IN_PROGRESS", "COMPLETE"], ".": ["COMPLETE"]}
    ends |= {"!": ["IN_PROGRESS", "FAILED"], "x": ["FAILED"]}
    lines = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        who, what = part.split()
        lines += [f"{who} {what[:-1]}_{end}" for end in ends[what[-1]]]
    return lines


def test_a_suspend_does_not_wait_for_an_update_that_is_under_way(created):
    created.update(chain("y", "5"))
    created.run(before_s=created.clock.now() + 1)
    before = len(created.lines())
    created.order(OrderKind.SUSPEND)
    created.run()
    assert since(created, before)[:2] == ["S SUSPEND_IN_PROGRESS", "c SUSPEND_IN_PROGRESS"]
    assert "S SUSPEND_FAILED" in since(created, before)
    assert created.row("a").action == "UPDATE"
    assert "State ('UPDATE', 'IN_PROGRESS') invalid for suspend" in created.root.reason


def test_what_was_not_suspended_cannot_be_resumed(created):
    created.order(OrderKind.RESUME)
    created.run()
    assert created.state == "RESUME_FAILED"
    said = "Error: resources.a: State ('CREATE', 'COMPLETE') invalid for resume"
    assert created.root.reason == f"Resource RESUME failed: {said}"


def test_a_check_of_a_stack_that_is_being_created_does_not_call_it_whole(world):
    world.create(chain("x", "5"))
    world.run(before_s=world.clock.now() + 1)
    world.order(OrderKind.CHECK)
    world.run()
    assert world.state == "CHECK_FAILED"
    assert "State ('INIT', 'COMPLETE') invalid for check" in world.root.reason
    assert world.row("c").action == "INIT"


def test_a_check_goes_on_when_one_resource_is_sick(world):
    world.create(chain(sick="sick"))
    world.run()
    before = len(world.lines())
    world.order(OrderKind.CHECK)
    world.run()
    assert since(world, before) == states("S CHECK>, a CHECK+, b CHECK!, c CHECK+, S CHECKx")
    assert world.root.reason == "Resource CHECK failed: ValueError: resources.b: it is sick"


def test_a_kind_that_cannot_be_checked_says_so(world):
    world.create("resources: {a: {type: OS::Heat::RandomString}}")
    world.run()
    world.order(OrderKind.CHECK)
    world.run()
    assert world.state == "CHECK_COMPLETE"
    suffix = "'CHECK' not fully supported (see resources)"
    assert world.root.reason == f"Stack CHECK completed successfully. {suffix}"
    assert world.reasons("a")[-1] == "CHECK not supported for OS::Heat::RandomString"


def test_a_snapshot_keeps_what_each_resource_has(created):
    created.order(OrderKind.SNAPSHOT, snapshot="one")
    created.run()
    kept = created.store.snapshots["one"]
    assert (kept.status, created.state) == ("COMPLETE", "SNAPSHOT_COMPLETE")
    assert kept.data["resources"]["a"]["resource_data"] == {"snapshot": "kept"}
    assert kept.data["resources"]["a"]["resource_id"] == created.row("a").physical_id
    assert kept.data["template"]["resources"]["c"] == {"type": "Test::Thing", "depends_on": "b"}


def test_a_snapshot_that_is_superseded_has_failed(world):
    world.create("resources: {a: {type: Test::Thing}, b: {type: Test::Thing, depends_on: a}}")
    world.run()
    world.order(OrderKind.SNAPSHOT, snapshot="one")
    world.run(lambda: world.row("a").action == "SNAPSHOT")
    world.delete()
    world.run()
    assert world.state == "DELETE_COMPLETE"
    kept = world.store.snapshots["one"]
    assert (kept.status, kept.reason) == ("FAILED", "Stack SNAPSHOT cancelled")


def test_a_restore_is_an_update_by_another_name(created):
    before, old = len(created.lines()), created.root.template_uuid
    created.restore(chain("y") + "  d: {type: Test::Thing}\n")
    created.run()
    seen = since(created, before)
    assert (seen[0], seen[-1]) == ("S RESTORE_IN_PROGRESS", "S RESTORE_COMPLETE")
    assert sorted(seen[1:-1]) == sorted(expand("a U+, d C+"))
    assert (created.state, created.root.previous_template_uuid) == ("RESTORE_COMPLETE", None)
    assert created.root.template_uuid != old


# ----------------------------------------------------------------------------- cancel, supersede


def test_a_cancelled_update_fails_at_once_and_what_runs_ends_by_itself(created):
    created.update(chain("y", "5"))
    created.run(before_s=created.clock.now() + 1)
    before = len(created.lines())
    created.cancel(rollback=False)
    created.run()
    assert since(created, before) == expand("S Ux, a U.")
    assert created.root.reason == "Stack UPDATE cancelled"
    assert created.reality.called("update", "b") == 0


def test_a_cancel_with_rollback_updates_back_what_has_ended(created):
    created.update(chain("y", "5"))
    created.run(before_s=created.clock.now() + 1)
    before = len(created.lines())
    created.cancel(rollback=True)
    created.run()
    assert since(created, before) == expand("S R>, a U., a U+, S R.")
    assert created.row("a").template_uuid == created.root.template_uuid


def test_a_second_update_waits_for_the_row_that_is_under_way_alone(created):
    text = chain("y", "5") + "  d: {type: Test::Thing}\n"
    created.update(text)
    created.run(before_s=created.clock.now() + 1)
    before = len(created.lines())
    created.update(chain("z") + "  e: {type: Test::Thing}\n")
    created.run()
    seen = since(created, before)
    assert seen[:2] == expand("S U>, e C>")
    assert seen.index("e CREATE_COMPLETE") < seen.index("a UPDATE_COMPLETE")
    assert seen.count("a UPDATE_COMPLETE") == 2
    assert created.state == "UPDATE_COMPLETE"
    assert created.reality.called("create", "d") == 1
    assert "d" not in created.reality.things.values()


def test_what_a_row_in_progress_needed_goes_after_it(world):
    """The second update removes what the first one, which is under way, has let go."""
    text = "resources:\n  a: {type: Test::Thing}\n  b: {type: Test::Thing, BODY}\n"
    world.create(text.replace("BODY", "depends_on: a"))
    world.run()
    alone = "resources:\n  b: {type: Test::Thing, properties: {wait_s: 5}}\n"
    world.update(alone)
    world.run(before_s=world.clock.now() + 1)
    before = len(world.lines())
    world.update(alone + "outputs: {o: {value: 1}}\n")
    world.run()
    assert since(world, before) == expand("S U>, b U., a D+, S U.")


def test_a_delete_aborts_what_is_under_way(world):
    world.create(chain(wait_s="50"))
    world.run(before_s=1)
    world.delete()
    world.run()
    assert world.lines() == expand("S C>, a C>, S Cx, S D>, a Cx, a D+, S D.")
    assert "CREATE aborted (user triggered cancel)" in world.reasons("a")
    assert world.reality.called("create_cancel", "a") == 1
    assert world.reality.things == {}
    assert world.root.deleted_at is not None


def test_an_abandoned_stack_leaves_what_is_there(created):
    created.delete(abandon=True)
    created.run()
    assert created.state == "DELETE_COMPLETE"
    assert sorted(created.reality.things.values()) == ["a", "b", "c"]
    assert created.reality.called("delete", "a") == 0


# -------------------------------------------------------------------------------------- adoption


def test_an_adopted_stack_has_the_ids_and_the_memory_of_the_old_one(world):
    world.create(chain())
    row = world.root
    resources = {
        name: {"resource_id": f"real-{name}", "resource_data": {"k": name}, "metadata": {}}
        for name in "abc"
    }
    (order,) = world.store.orders.values()
    world.store.orders[order.id] = type(order)(
        id=order.id,
        root_uuid=row.uuid,
        stack_uuid=row.uuid,
        kind=OrderKind.ADOPT,
        payload={"data": {"resources": resources}},
    )
    world.store.stacks[row.uuid] = type(row)(
        **{name: getattr(row, name) for name in row.__slots__} | {"action": "ADOPT"}
    )
    world.run()
    assert world.state == "ADOPT_COMPLETE"
    assert world.row("b").physical_id == "real-b"
    assert world.row("b").data == {"k": "b"}
    assert world.reality.things == {}
    assert "b ADOPT_COMPLETE" in world.lines()


# ---------------------------------------------------------------------------------------- hooks

HOOKED = {"resource_registry": {"resources": {"b": {"hooks": ["pre-create", "post-create"]}}}}


def test_a_hook_stops_its_resource_until_it_is_cleared_and_survives_another_engine(world):
    text = chain() + "  d: {type: Test::Thing}\n"
    world.create(text, environment=HOOKED)
    world.run(before_s=100)
    assert world.row("b").data == {"pre-create": True}
    assert (world.row("b").action, world.row("d").status) == ("INIT", "COMPLETE")
    world.tree = None  # another engine
    world.ask(OrderKind.UNSET_HOOK, "b", hook="pre-create")
    world.run(before_s=200)
    assert world.row("b").data == {"post-create": True}
    assert world.row("c").action == "INIT"
    world.tree = None
    world.ask(OrderKind.UNSET_HOOK, "b", hook="post-create")
    world.run()
    assert world.state == "CREATE_COMPLETE"
    assert world.reasons("b") == [
        "CREATE paused until Hook pre-create is cleared",
        "Hook pre-create is cleared",
        "state changed",
        "state changed",
        "CREATE paused until Hook post-create is cleared",
        "Hook post-create is cleared",
    ]
    assert world.reality.called("create", "b") == 1


@pytest.mark.parametrize("hook", ["pre-update", "post-update"])
def test_a_hook_of_an_update_is_passed_once(created, hook):
    hooked = {"resource_registry": {"resources": {"a": {"hooks": [hook]}}}}
    created.update(chain("y"), environment=hooked)
    created.run(before_s=created.clock.now() + 100)
    assert created.row("a").data == {hook: True}
    created.tree = None
    created.ask(OrderKind.UNSET_HOOK, "a", hook=hook)
    created.run()
    assert created.state == "UPDATE_COMPLETE"
    assert created.reality.called("update", "a") == 1


def test_a_hook_of_a_delete_is_passed_once(world):
    hooked = {"resource_registry": {"resources": {"b": {"hooks": ["pre-delete", "post-delete"]}}}}
    world.create(chain(), environment=hooked)
    world.run()
    world.delete()
    for hook in ("pre-delete", "post-delete"):
        world.run(before_s=world.clock.now() + 100)
        world.tree = None
        assert world.row("b").data == {hook: True}
        world.ask(OrderKind.UNSET_HOOK, "b", hook=hook)
    world.run()
    assert world.state == "DELETE_COMPLETE"
    assert world.reality.called("delete", "b") == 1


def test_time_that_is_up_at_a_hook_clears_it(world):
    world.deadline_s = 60
    world.create(chain(), environment=HOOKED)
    world.run()
    assert (world.state, world.root.reason) == ("CREATE_FAILED", "Timed out")
    assert world.row("b").data == {}
    assert world.reasons("b")[-1] == "Hook pre-create is cleared"


# ------------------------------------------------------------------------- signals, unhealthy ones


def test_a_signal_is_told_to_its_resource_and_in_an_event(created):
    before = len(created.lines())
    created.ask(OrderKind.SIGNAL, "a", details="go")
    created.run()
    assert since(created, before) == ["a SIGNAL_COMPLETE"]
    assert created.reasons("a")[-1] == "Signal: go"
    assert created.row("a").data == {"signal": "go"}


@pytest.mark.parametrize("details", ["break", "nothing"])
def test_a_signal_that_does_nothing_or_breaks_leaves_no_trace(created, details):
    before = len(created.lines())
    created.ask(OrderKind.SIGNAL, "a", details=details)
    created.run()
    assert since(created, before) == []


def test_an_unhealthy_resource_is_made_anew_by_the_next_update(created):
    created.ask(OrderKind.MARK_UNHEALTHY, "b", unhealthy=True, reason="too hot")
    created.run()
    assert (created.row("b").action, created.row("b").status) == ("CHECK", "FAILED")
    assert created.row("b").reason == "too hot"
    old, before = created.row("b").physical_id, len(created.lines())
    created.update(chain())
    created.run()
    assert since(created, before) == expand("S U>, b C+, b D+, S U.")
    assert created.row("b").physical_id != old


# ------------------------------------------------------------------------- several orders at once


def test_of_several_orders_that_wait_the_last_one_counts(created):
    created.update(chain("y"))
    created.update(chain("z"))
    before = len(created.lines())
    created.run()
    assert since(created, before) == expand("a U+, S U.")
    assert created.store.orders == {}


def test_a_delete_that_failed_may_be_asked_again(world):
    world.create("resources: {a: {type: Test::Thing, deletion_policy: Retain}}")
    world.run()
    world.delete()
    world.run()
    assert world.state == "DELETE_COMPLETE"
    assert list(world.reality.things.values()) == ["a"]
