"""What kinds may do to a simulation: fail, wait, be retried, be cancelled, misbehave."""

from __future__ import annotations

import itertools
from typing import ClassVar

import pytest

from bloomery import errors
from bloomery.orchestration import simulation
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.outcome import Again
from tests.kit.stacks.simulations import expand, lines, stack


class Scripted(base.Resource):
    """Does in each handler what the next entry of its script says; entries are shared."""

    properties_schema: ClassVar = {"size": Schema(Type.INTEGER, default=1, update_allowed=True)}
    attributes_schema: ClassVar = {"size": Attribute("Its size.")}
    script: ClassVar[dict[str, list]] = {}

    def _next(self, handler):
        said = self.script.get(handler)
        step = said.pop(0) if said else None
        if isinstance(step, BaseException):
            raise step
        return step

    def handle_create(self):
        self.resource_id_set("real")
        return self._next("create")

    def check_create_complete(self, token):
        step = self._next("check")
        return True if step is None else step

    def handle_update(self, definition, tmpl_diff, prop_diff):
        return self._next("update")

    def handle_delete(self):
        return self._next("delete")

    def resolve_attribute(self, name, path=()):
        step = self._next("attribute")
        return self.properties["size"] if step is None else step


ONE = "resources:\n  a: {type: Test::Scripted, properties: {size: SIZE}}\n"
TWO = ONE + "  b: {type: Test::Scripted, depends_on: a}\n"


def scripted(text=ONE, size="1", **script):
    class Own(Scripted):
        pass

    Own.script = script
    return stack(text.replace("SIZE", size), more={"Test::Scripted": Own})


def in_error():
    return base.ResourceInError("ERROR", "no host")


def conflict():
    return errors.Conflict(reason="busy")


def half_chance():
    return simulation.Simulation(random=lambda: 0.5)


# ---------------------------------------------------------------------------------------- retries


def test_a_real_thing_in_error_is_deleted_and_made_again():
    result = simulation.run(scripted(create=[in_error(), None]), simulation=half_chance())
    assert result.status == "CREATE_COMPLETE"
    assert lines(result.events) == expand("S C>, a C!, a D+, a C+, S C.")
    failed, made = result.events[2], result.events[5]
    assert failed.reason == 'ResourceInError: resources.a: Went to status ERROR due to "no host"'
    assert made.at_s - failed.at_s == 2**1 + 1


def test_the_wait_doubles_and_after_six_attempts_the_first_failure_is_told():
    create = [base.ResourceInError("ERROR", "first"), conflict(), *(in_error() for _ in range(9))]
    result = simulation.run(scripted(create=create), simulation=half_chance())
    assert result.status == "CREATE_FAILED"
    begun = [event.at_s for event in result.events[1:] if event.state == "CREATE_IN_PROGRESS"]
    waits = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert waits == [2**n + 1 for n in range(1, 6)]
    assert 'ResourceInError: resources.a: Went to status ERROR due to "first"' in result.reason


def test_another_failure_is_final():
    result = simulation.run(
        scripted(create=[in_error(), ValueError("no"), None]), simulation=half_chance()
    )
    assert lines(result.events) == expand("S C>, a C!, a D+, a C!, S Cx")
    assert result.reason == "Resource CREATE failed: ValueError: resources.a: no"


def test_a_deletion_in_conflict_is_tried_again():
    life = simulation.Lifecycle(half_chance())
    made = scripted(delete=[conflict(), conflict(), None])
    created = life.create(made)
    result = life.delete()
    assert lines(result.events)[len(created.events) :] == expand("S D>, a D!, a D!, a D+, S D.")


@pytest.mark.parametrize(
    ("delete", "attempts"), [([ValueError("no")], 1), ([conflict() for _ in range(9)], 6)]
)
def test_a_deletion_that_fails_fails_the_stack_and_may_be_asked_again(delete, attempts):
    life = simulation.Lifecycle(half_chance())
    life.create(scripted(delete=[*delete]))
    result = life.delete()
    assert result.status == "DELETE_FAILED"
    assert lines(result.events).count("a DELETE_FAILED") == attempts
    assert result.resources[0].physical_id == "real"
    if attempts == 1:
        assert life.delete().status == "DELETE_COMPLETE"


# ---------------------------------------------------------------------------------------- waiting


def test_a_check_is_asked_until_it_says_true_and_may_ask_for_rest():
    check = [False, Again(after_s=30, reason=""), 0, None]
    result = simulation.run(scripted(check=check))
    assert result.events[-1].at_s == 1 + 30 + 1


class Cancelled(base.Resource):
    """Never ready; notes that it was told to give up."""

    tokens: ClassVar[list] = []

    def handle_create(self):
        return {"job": 7}

    def check_create_complete(self, token):
        return False

    def handle_create_cancel(self, token):
        self.tokens.append(token)


def test_who_waits_when_time_is_up_is_told_to_give_up_once():
    Cancelled.tokens = []
    text = "resources:\n  a: {type: Test::Cancelled}"
    made = stack(text, more={"Test::Cancelled": Cancelled}, timeout_s=5)
    result = simulation.run(made)
    assert result.reason == "Timed out"
    assert Cancelled.tokens == [{"job": 7}]


def test_a_simulation_may_run_on_another_clock_and_tell_as_it_goes():
    clock, heard = simulation.SimulatedClock(1000), []
    here = simulation.Simulation(clock=clock, on_event=heard.append)
    result = simulation.run(scripted(check=[False, None]), simulation=here)
    assert tuple(heard) == result.events
    assert [event.at_s for event in heard] == [1000, 1000, 1001, 1001]


# ---------------------------------------------------------------------------------- misbehaviour


@pytest.mark.parametrize(
    "exc",
    [
        KeyError("x"),
        RecursionError(),
        AssertionError(),
        errors.StackValidationFailed(reason="no", path=["p"]),
        ExceptionGroup("several", [ValueError("x")]),
    ],
)
@pytest.mark.parametrize("handler", ["create", "check"])
def test_whatever_a_kind_raises_is_a_failure_of_the_resource(handler, exc):
    result = simulation.run(scripted(TWO, **{handler: [exc]}))
    assert lines(result.events) == expand("S C>, a C!, S Cx")
    assert result.error.type == "ResourceFailure"
    assert result.reason.startswith(f"Resource CREATE failed: {type(exc).__name__}: resources.a")


def test_a_kind_may_ask_to_be_replaced_while_it_is_updated():
    life = simulation.Lifecycle()
    created = life.create(scripted())
    result = life.update(scripted(size="2", update=[base.UpdateReplace()]))
    trace = "S U>, a U+, a C+, a D+, S U."
    assert lines(result.events)[len(created.events) :] == expand(trace)


def test_an_output_that_cannot_be_told_spoils_no_other():
    text = """
resources:
  a: {type: Test::Scripted}
outputs:
  bad: {value: {get_attr: [a, size]}}
  good: {value: {get_attr: [a, size]}}
  unknown: {value: {get_param: nope}, description: What?}
  file: {value: {get_file: nope}}
  never: {value: {get_resource: nope}, condition: false}
"""
    result = simulation.run(scripted(text, attribute=[KeyError("x")]))
    assert result.status == "CREATE_COMPLETE"
    shown = result.document()["outputs"]
    assert shown["bad"] == {"error": {"type": "KeyError", "message": "'x'"}}
    assert shown["good"] == {"value": 1}
    assert shown["unknown"]["error"]["type"] == "StackValidationFailed"
    assert shown["file"]["error"]["type"] == "StackValidationFailed"
    assert shown["never"] == {"value": None}
    assert result.outputs["unknown"].description == "What?"
    assert result.error is None


def test_a_property_that_turns_out_wrong_fails_its_resource():
    text = """
resources:
  a: {type: Test::Scripted}
  v: {type: OS::Heat::Value, properties: {value: many}}
  b: {type: Test::Scripted, properties: {size: {get_attr: [v, value]}}}
"""
    result = simulation.run(scripted(text))
    place = "StackValidationFailed: resources.b: Property error: resources.b.properties.size: "
    assert result.reason.startswith(f"Resource CREATE failed: {place}")
    assert result.error.type == "ResourceFailure"


def test_a_kind_is_asked_again_once_its_values_are_known():
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: 2}}
  r:
    type: OS::Heat::RandomString
    properties: {length: {get_attr: [v, value]}, character_classes: [{class: digits, min: 3}]}
"""
    result = simulation.run(stack(text))
    assert result.reason.startswith("Resource CREATE failed: StackValidationFailed: resources.r: ")


def test_an_update_whose_values_cannot_be_read_fails_at_that_resource():
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: VALUE}}
  b: {type: Test::Scripted, properties: {size: {get_attr: [v, value]}}}
"""
    life = simulation.Lifecycle()
    created = life.create(scripted(text.replace("VALUE", "1")))
    result = life.update(scripted(text.replace("VALUE", "many")))
    assert result.status == "UPDATE_FAILED"
    assert lines(result.events)[len(created.events) :] == expand("S U>, v U+, b U!, S Ux")


def test_a_failed_resource_that_is_as_wanted_and_stays_is_complete_again():
    class Forgiving(Scripted):
        script: ClassVar = {"update": [ValueError("no")]}

        @classmethod
        def needs_replace_failed(cls):
            return False

    def made(size):
        return stack(ONE.replace("SIZE", size), more={"Test::Scripted": Forgiving})

    life = simulation.Lifecycle()
    life.create(made("1"))
    assert life.update(made("2")).resources[0].state == "UPDATE_FAILED"
    result = life.update(made("1"))
    assert result.resources[0].state == "UPDATE_COMPLETE"


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("resources:\n  a: {type: OS::Heat::Nome}", "StackValidationFailed"),
        ("resources:\n  a: {type: OS::Heat::None, depends_on: b}", "InvalidTemplateReference"),
        ("parameters: {p: {type: string}}", "UserParameterMissing"),
    ],
)
def test_a_template_that_is_refused_begins_nothing(text, kind):
    result = simulation.run(stack(text))
    assert (result.status, result.error.type) == (None, kind)
    assert result.document() == {
        "status": None,
        "outputs": {},
        "error": {"type": kind, "message": result.error.message},
    }


def test_what_is_not_there_can_neither_be_changed_nor_deleted():
    life = simulation.Lifecycle()
    assert life.delete().error.type == "NotFound"
    life.create(scripted())
    assert life.delete().status == "DELETE_COMPLETE"
    assert life.update(scripted()).error.type == "NotFound"


def test_a_stack_that_could_not_be_deleted_takes_no_update():
    life = simulation.Lifecycle()
    life.create(scripted(delete=[ValueError("no")]))
    assert life.delete().status == "DELETE_FAILED"
    assert life.update(scripted()).error.type == "NotSupported"


def test_an_immutable_parameter_keeps_its_value():
    text = "parameters: {p: {type: string, immutable: true}}"
    life = simulation.Lifecycle()
    life.create(stack(text, given={"p": "x"}))
    assert life.update(stack(text, given={"p": "x"})).status == "UPDATE_COMPLETE"
    result = life.update(stack(text, given={"p": "y"}))
    assert (result.status, result.error.type) == (None, "ImmutableParameterModified")


def test_pseudo_parameters_know_the_stack():
    text = """
resources:
  a: {type: OS::Heat::Value, properties: {value: [{get_param: OS::stack_name}, {get_param: ID}]}}
outputs:
  a: {value: {get_attr: [a, value]}}
"""
    here = simulation.Simulation(new_id=iter([f"{n:032x}" for n in range(9)]).__next__)
    result = simulation.run(stack(text.replace("ID", "OS::stack_id")), simulation=here)
    assert result.outputs["a"].value == ["S", "0" * 32]


def test_an_adopted_resource_is_looked_at_where_its_kind_can():
    class Looking(Scripted):
        def handle_check(self):
            if self.record.physical_id == "gone":
                raise errors.NotFound(reason="it is gone")

    def made(real):
        text = f"resources:\n  a: {{type: Test::Looking, external_id: {real}}}"
        return stack(text, more={"Test::Looking": Looking})

    assert lines(simulation.run(made("there")).events) == expand("S C>, a A+, a K+, S C.")
    result = simulation.run(made("gone"))
    assert lines(result.events) == expand("S C>, a A+, a K!, S Cx")
    assert result.reason == "Resource CHECK failed: NotFound: resources.a: it is gone"


def test_a_fault_of_the_simulation_itself_fails_the_stack():
    here = simulation.Simulation(new_id=iter(["0" * 32]).__next__)
    result = simulation.run(scripted(), simulation=here)
    assert result.status == "CREATE_FAILED"
    assert result.error.type == "StopIteration"


def test_all_attributes_of_a_resource_come_as_a_map():
    text = "resources:\n  a: {type: Test::Scripted}\noutputs:\n  a: {value: {get_attr: [a]}}"
    assert simulation.run(scripted(text)).outputs["a"].value == {"size": 1}


def test_what_failed_before_it_had_values_is_deleted_without_its_kind():
    text = """
resources:
  a: {type: OS::Heat::Value, properties: {value: many}}
  b: {type: Test::Scripted, properties: {size: {get_attr: [a, value]}}}
"""
    life = simulation.Lifecycle()
    assert life.create(scripted(text)).status == "CREATE_FAILED"
    assert life.delete().status == "DELETE_COMPLETE"
    life.create(scripted(text, delete=[ValueError("asked to delete what never was")]))
    assert life.delete().status == "DELETE_COMPLETE"


def test_what_failed_or_was_never_made_has_no_attributes_and_is_known_by_its_name():
    text = """
resources:
  a: {type: Test::Scripted}
  v: {type: OS::Heat::Value, depends_on: a, properties: {value: 1}}
outputs:
  a: {value: [{get_attr: [a, size]}, {get_resource: a}]}
  v: {value: [{get_attr: [v, value]}, {get_resource: v}, {get_attr: [v]}]}
"""
    result = simulation.run(scripted(text, check=[ValueError("no")]))
    assert result.resources[0].physical_id == "real"
    assert result.outputs["a"].value == [None, "a"]
    assert result.outputs["v"].value == [None, "v", None]


def test_what_resources_hold_is_counted_until_they_are_gone():
    text = "resources:\n  a: {type: OS::Heat::Value, properties: {value: [x, yy]}}\n"
    life = simulation.Lifecycle()
    life.create(stack(text))

    def held():
        stored_size = life.tree.changes.stored_size
        return stored_size.nodes, stored_size.chars

    assert held() == (6, len("value") + len("type") + 3)
    life.update(stack(text.replace("[x, yy]", "[x]")))
    assert held() == (5, len("value") + len("type") + 1)
    life.delete()
    assert held() == (0, 0)
