"""Rules of the operator's file."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery import errors
from bloomery.conductor import inspection
from bloomery.conf import Conf
from bloomery.conf.inspection import InspectionRules, Inspector
from bloomery.inspection import rule_check

RULE = """
- description: Racks
  priority: 20000
  conditions: [{op: is-true, args: {value: "{inventory[ready]}"}}]
  actions: [{op: fail, args: ["no"]}]
- uuid: mine
  sensitive: true
  actions: [{op: log, args: {msg: seen}}]
"""


def test_a_file_has_rules_in_the_form_of_the_api(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULE)
    one, other = rule_check.load_built_in(str(path))
    assert (one.uuid, one.priority, one.description) == ("built-in 0", 20000, "Racks")
    assert (other.uuid, other.sensitive, other.conditions) == ("mine", True, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "takes a list"),
        ("[5]", "rule 0 takes"),
        ("[{actions: [{op: log, args: [x]}], more: 1}]", "rule 0 takes"),
        ("[{actions: []}]", "rule 0/actions"),
        ("[{actions: [{op: explode, args: []}]}]", "rule 0/actions/0/op"),
        ("[{actions: [{op: log, args: [x]}], conditions: 5}]", "conditions takes a list"),
        ("[{actions: [{op: log, args: [x]}], priority: high}]", "rule 0/priority"),
        ("[{actions: [{op: log, args: [x]}], phase: late}]", "phase"),
        ("[{actions: [{op: set-attribute, args: [a, {$sealed: x}]}]}]", "sealed"),
        ("{", "rules.yaml"),
    ],
)
def test_a_file_that_nobody_can_follow_stops_the_start(tmp_path, text, message):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    conf = dataclasses.replace(Conf(), inspection_rules=InspectionRules(built_in_rules=str(path)))
    with pytest.raises(errors.CannotStart, match="built_in_rules") as refusal:
        inspection.check_options(conf)
    assert message in str(refusal.value)


def test_hooks_that_are_not_there_stop_the_start():
    conf = dataclasses.replace(Conf(), inspector=Inspector(hooks=("nonsense",)))
    with pytest.raises(errors.CannotStart, match=r"\[inspector\]hooks.*nonsense"):
        inspection.check_options(conf)
