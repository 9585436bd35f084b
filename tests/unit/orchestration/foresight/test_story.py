"""Two real templates: what an operator reads before the second one replaces the first."""

from __future__ import annotations

import copy
import uuid

import pytest

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.plan import ExistingStack
from bloomery.orchestration.plan.plans import MAKE, Key, Verb
from bloomery.orchestration.resources.base import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.view import PlainResource
from tests.unit.orchestration.plan.kit import shown
from tests.unit.orchestration.plan.stacks import stack

BEFORE = """
heat_template_version: 2021-04-16
parameters:
  size: {type: number, default: 2}
  password: {type: string, hidden: true}
  with_log: {type: boolean, default: true}
conditions:
  logged: {equals: [{get_param: with_log}, true]}
resources:
  network:
    type: OS::Heat::Value
    properties: {value: 10.0.0.0/24}
  key:
    type: OS::Heat::RandomString
    properties: {length: 16}
  machines:
    type: OS::Heat::ResourceGroup
    update_policy: {rolling_update: {max_batch_size: 1, pause_time: 60}}
    properties:
      count: {get_param: size}
      resource_def:
        type: OS::Heat::TestResource
        properties:
          value: {list_join: ['-', ['machine', '%index%', {get_attr: [network, value]}]]}
  account:
    type: account.yaml
    properties:
      name: {str_replace: {template: user-K, params: {K: {get_resource: key}}}}
      password: {get_param: password}
  log:
    type: OS::Heat::Value
    condition: logged
    deletion_policy: Retain
    properties: {value: {get_attr: [machines, refs]}}
  quiet:
    type: OS::Heat::Delay
    depends_on: [account]
    properties: {min_wait: 1}
"""
AFTER = (
    BEFORE.replace("length: 16", "length: 24")
    .replace("10.0.0.0/24", "10.1.0.0/24")
    .replace("'machine',", "'node',")
)
ACCOUNT = """
heat_template_version: 2021-04-16
parameters: {name: {type: string}, password: {type: string}}
resources:
  user: {type: OS::Heat::Value, properties: {value: {get_param: name}}}
  secret: {type: OS::Heat::Value, properties: {value: {get_param: password}}}
outputs: {name: {value: {get_attr: [user, value]}}}
"""
TEXT = """\
~  network         OS::Heat::Value          update in place
     value: 10.0.0.0/24 -> 10.1.0.0/24
±  key             OS::Heat::RandomString   replace          length cannot change in place
     length: 16 -> 24
-  key             OS::Heat::RandomString   delete           replaced
=  log             OS::Heat::Value          keep             no longer in the template; \
deletion policy Retain
~  machines        OS::Heat::ResourceGroup  update in place
     resource_def.properties.value: null -> (known after network is updated)
~  machines/1      OS::Heat::TestResource   update in place
     value: machine-1-(network.value) -> node-1-(known after network is updated)
:  machines        OS::Heat::ResourceGroup  wait             60 s after batch 1 of 2
~  machines/0      OS::Heat::TestResource   update in place
     value: machine-0-(network.value) -> node-0-(known after network is updated)
~  account         account.yaml             update in place
     name: null -> (known after key is replaced)
     password: ****** -> ****** (parameter password is hidden)
~  account/user    OS::Heat::Value          update in place
     value: user-(key) -> user-(known after key is replaced)
~  account/secret  OS::Heat::Value          update in place
     value: ****** -> ****** (parameter password is hidden)

signs: ~ changed in place, ± replaced by a new one, - deleted, = kept, but not in the stack \
any more, : waits
7 to update in place, 1 to replace, 1 to delete, 1 to keep."""


def of(text: str, password: str = "hunter1", **given: object) -> Stack:
    return stack(text, files={"account.yaml": ACCOUNT}, password=password, **given)


def test_a_whole_update_is_told() -> None:
    made = foresight.plan(of(BEFORE), of(AFTER, "hunter2", with_log=False))
    text = shown(made)
    assert "hunter" not in text
    assert text == TEXT


def test_creation_walked_backward_is_deletion() -> None:
    wanted = of(BEFORE)
    created = [key.name for key, _ in foresight.create(wanted)]
    deleted = [key.name for key, _ in foresight.delete(wanted)]
    assert sorted(created) == sorted(deleted)
    for before, after in [("network", "machines"), ("key", "account"), ("machines", "log")]:
        assert created.index(before) < created.index(after)
        assert deleted.index(after) < deleted.index(before)


def standing(made: Stack) -> ExistingStack:
    """All of a stack as it would stand, each attribute the text ``<name>.<attribute>``."""
    live, records = {}, {}
    for name in made.definitions:
        attributes = {key: f"{name}.{key}" for key in made.kind(name).attributes_schema}
        live[name] = PlainResource(name=name, id=f"id-{name}", values=attributes)
    view = made.definition.view(live)
    for name, definition in made.definitions.items():
        records[name] = StoredResource(
            name=name,
            type=definition.type,
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            action=Action.CREATE,
            properties=made.properties(name, view),
        )
    return ExistingStack(records=records, live=live)


def test_the_same_template_over_what_stands_changes_nothing() -> None:
    made = foresight.plan(of(BEFORE), of(BEFORE), standing(of(BEFORE)))
    assert shown(made) == "Nothing changes."


def test_a_failed_update_is_rolled_back() -> None:
    before, after = of(BEFORE), of(AFTER)
    existing = standing(after)
    records = dict(existing.records or {})
    old_key = copy.copy(records["key"])
    old_key.uuid, old_key.properties = str(uuid.uuid4()), standing(before).records["key"].properties
    records["account"].status = Status.FAILED
    del records["quiet"]
    there = ExistingStack(records=records, leftovers={"key": [old_key]}, live=existing.live)
    made = foresight.rollback(after, before, there)
    assert {name: made.verb(name) for name in before.definitions} == {
        "network": Verb.UPDATE,
        "key": Verb.TAKE_BACK,
        "machines": Verb.UPDATE,
        "account": Verb.UPDATE,
        "log": Verb.UPDATE,
        "quiet": Verb.RECREATE,
    }
    assert made.actions[Key("key", MAKE)].record is old_key
    assert not made.actions[Key("log", MAKE)].certain  # the machines may have other ids


def test_what_a_new_value_breaks_is_told_with_its_place() -> None:
    broken = of(BEFORE.replace("length: 16", "length: {get_param: size}"), size=2)
    changed = of(BEFORE.replace("min_wait: 1", "min_wait: {get_attr: [network, value]}"))
    existing = standing(of(BEFORE))
    assert foresight.plan(of(BEFORE), broken, existing).verb("key") is Verb.REPLACE
    with pytest.raises(errors.StackValidationFailed) as told:
        foresight.plan(of(BEFORE), changed, existing)
    assert told.value.path[:2] == ("resources", "quiet")
