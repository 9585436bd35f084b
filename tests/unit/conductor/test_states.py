from __future__ import annotations

import pytest

from bloomery.conductor import states
from bloomery.conductor.states import State
from tests.kit.probes import state_tables

TO = {(source, event): target for source, event, target, _ in state_tables.TRANSITIONS}
AIMS = {(source, event): aim for source, event, _, aim in state_tables.TRANSITIONS}
STATES = [value for value, _, _ in state_tables.CLASSES]
EVENTS = sorted({event for _, event in TO})


def values(text: str) -> set[str]:
    return {word.strip() for word in text.split(",")}


def of_class(word: str) -> set[str]:
    return {value for value, classes, _ in state_tables.CLASSES if word in values(classes)}


def test_there_are_the_states_of_the_specification_and_no_others():
    assert sorted(State) == sorted(STATES)


def test_there_are_the_edges_of_the_specification_and_no_others():
    assert len(state_tables.TRANSITIONS) == len(TO)
    assert {(e.source, e.event): e.target for e in states.EDGES} == TO
    assert len(states.EDGES) == len(TO)
    assert sorted(states.EVENTS) == EVENTS


@pytest.mark.parametrize("state", STATES)
def test_every_state_answers_every_event(state: str):
    for event in EVENTS:
        machine = states.at(state)
        drawn = (state, event) in TO
        assert machine.is_actionable_event(event) == drawn == states.allows(state, event), event
        assert (event in states.events_from(state)) == drawn, event
        if drawn:
            machine.process_event(event)
        else:
            with pytest.raises(states.InvalidState):
                machine.process_event(event)
        assert machine.current_state == TO.get((state, event), state), event


@pytest.mark.parametrize(("state", "event"), list(TO))
def test_a_move_aims_for_the_target_of_the_specification(state: str, event: str):
    machine = states.at(state)
    machine.process_event(event)
    settled = machine.is_stable(machine.current_state)
    assert (None if settled else machine.target_state) == (
        None if AIMS[state, event] == "none" else AIMS[state, event]
    )


@pytest.mark.parametrize("state", STATES)
def test_states_are_stable_where_the_specification_says_so(state: str):
    assert states.at(state).is_stable(state) == (state in of_class("stable"))
    own = {value: target for value, _, target in state_tables.CLASSES}[state]
    assert states.at(state).target_state == (None if own == "none" else own)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("STABLE_STATES", "stable"),
        ("UNSTABLE_STATES", "unstable"),
        ("FAILURE_STATES", "failed"),
        ("WAIT_STATES", "wait"),
        ("HOLD_STATES", "hold"),
    ],
)
def test_the_classes_are_those_of_the_specification(name: str, word: str):
    assert set(getattr(states, name)) == of_class(word)


@pytest.mark.parametrize("name", state_tables.SETS)
def test_the_named_sets_are_those_of_the_specification(name: str):
    assert set(getattr(states, name)) == values(state_tables.SETS[name])


def test_every_named_set_is_in_the_specification_or_known_to_be_ours():
    ours = {
        "INTERFACE_CHANGE_STATES", "HEARTBEAT_STATES", "HEARTBEAT_RESUMES_STATES",
        "FASTTRACK_HEARTBEAT_STATES", "BAD_STATES", "STATES_OF_ERRORS", "INSTANCE_STATES",
    }  # fmt: skip
    classes = {f"{word}_STATES" for word in ("STABLE", "UNSTABLE", "FAILURE", "WAIT", "HOLD")}
    named = {name for name, value in vars(states).items() if isinstance(value, frozenset)}
    named -= {"DRAWN", "ENDS_ON"}
    assert named - {"STUCK_STATES_TREATED_AS_FAIL"} == (set(state_tables.SETS) | classes | ours) - {
        "STUCK_STATES_TREATED_AS_FAIL"
    }


def test_the_targets_are_all_stable():
    assert set(states.TARGETS.values()) <= states.STABLE_STATES
    assert not states.TARGETS.keys() & states.STABLE_STATES


def test_every_state_can_be_reached_and_left():
    assert {e.target for e in states.EDGES} | {State.ENROLL} == set(State)
    assert {e.source for e in states.EDGES} == set(State)


@pytest.mark.parametrize(("verb", "event", "admitted"), state_tables.VERBS)
def test_verbs_are_admitted_where_the_specification_says_so(verb: str, event: str, admitted: str):
    assert states.VERBS[verb] == event
    assert {s.value for s in State if states.allows(s, event)} == values(admitted)
    assert {s.value for s in State if verb in states.verbs_from(s)} == values(admitted)


def test_there_are_no_other_verbs():
    assert set(states.VERBS) == {verb for verb, _, _ in state_tables.VERBS}


def test_a_target_that_is_given_wins():
    machine = states.at("manageable")
    machine.process_event("clean", target_state="manageable")
    assert machine.target_state == "manageable"
    machine.process_event("wait", target_state="manageable")
    assert machine.target_state == "manageable"


def test_hold_forgets_a_target_that_was_given():
    machine = states.at("clean wait", "manageable")
    machine.process_event("hold")
    assert machine.target_state == "available"


@pytest.mark.parametrize("target", ["deploying", "clean failed", "nowhere"])
def test_a_target_must_be_a_stable_state(target: str):
    machine = states.at("manageable")
    with pytest.raises(states.InvalidState):
        machine.process_event("clean", target_state=target)
    assert machine.current_state == "manageable"


@pytest.mark.parametrize("state", [None, "nowhere", ""])
def test_nobody_stands_in_a_state_that_is_not_there(state: str | None):
    with pytest.raises(states.InvalidState):
        states.at(state)
    with pytest.raises(states.InvalidState):
        states.at("active").is_stable(state)


def test_machines_stand_apart_and_the_table_cannot_be_changed():
    one, other = states.at("available"), states.at("available")
    one.process_event("deploy")
    assert (one.current_state, other.current_state) == ("deploying", "available")
    assert states.MACHINE.frozen
    assert one.frozen


@pytest.mark.parametrize(
    ("state", "verb", "first"),
    [
        ("enroll", "active", ["manage", "provide"]),
        ("manageable", "active", ["provide"]),
        ("clean failed", "provide", ["manage"]),
        ("available", "clean", ["manage"]),
        ("available", "provide", []),
        ("manageable", "manage", []),
        ("available", "active", []),
        ("active", "manage", []),
        ("deploying", "active", []),
    ],
)
def test_verbs_before_lead_to_the_verb_without_a_loss(
    state: str, verb: str, first: list[str]
) -> None:
    assert states.verbs_before(state, verb) == first
