"""What keeps secrets from readers of a stack is switched off, part by part, and a test goes red."""

from __future__ import annotations

import pytest

from bloomery.orchestration.queries import access
from bloomery.orchestration.stack import validation
from bloomery.orchestration.stack.secrecy import Secrecy
from tests.unit.orchestration.queries import test_readers as readers
from tests.unit.orchestration.queries.test_readers import calls, software, web  # noqa: F401  fixtures
from tests.unit.orchestration.stack import test_nesting as nesting


@pytest.fixture
def everybody_may_signal(monkeypatch):
    monkeypatch.setattr(access, "may", lambda _ctx, _rule: True)


@pytest.mark.parametrize(
    "probe",
    [readers.test_configs_of_stacks_tell_readers_no_secret,
     readers.test_deployments_of_stacks_tell_readers_no_secret],
)  # fmt: skip
def test_a_reader_who_counts_as_an_agent_is_noticed(probe, calls, software, everybody_may_signal):  # noqa: F811
    with pytest.raises(AssertionError):
        probe(calls, software)


def test_a_token_in_attributes_is_noticed(calls, web, everybody_may_signal):  # noqa: F811
    with pytest.raises(AssertionError):
        readers.test_tokens_are_for_those_who_may_signal(calls, web)


def test_attributes_that_are_shown_as_they_are_are_noticed(calls, web, monkeypatch):  # noqa: F811
    monkeypatch.setattr(
        Secrecy, "serialized_attributes", lambda _self, _name, values, _props: values
    )
    with pytest.raises(AssertionError):
        readers.test_attributes_have_stars_where_properties_have_them(
            calls, web, "verbatim", {"value": readers.STARS}
        )


def test_members_that_are_never_known_are_noticed(monkeypatch):
    monkeypatch.setattr(validation, "_are_members_known", lambda _resource, _child: False)
    with pytest.raises(pytest.fail.Exception):
        nesting.test_members_of_a_group_are_looked_at_with_the_values_that_are_known(
            1, "{type: OS::Heat::Value}", "Property error: "
        )
