"""What kinds remember of hidden values is sealed with the rest of their resource."""

from __future__ import annotations

from bloomery.db import tables
from tests.kit.clients.stack_calls import StackCalls


def test_data_of_a_resource_with_hidden_values_are_sealed(tmp_path):
    calls = StackCalls(tmp_path)
    web = calls.create()
    for name, hidden in (("a", True), ("b", False)):
        calls.add_resource(web, name, data={"value": "correct horse"}, has_secret=hidden)
    values = [row.value for row in calls.rows(tables.RESOURCE_DATA)]
    assert [("correct horse" in value) for value in values] == [False, True]
