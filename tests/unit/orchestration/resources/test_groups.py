"""Names, definitions and templates of members."""

from __future__ import annotations

import pytest

from bloomery.orchestration.resources import groups


@pytest.mark.parametrize(
    ("count", "skipped", "names"),
    [
        (0, (), []),
        (3, (), ["0", "1", "2"]),
        (3, {"1"}, ["0", "2", "3"]),
        (2, {"0", "1", "5"}, ["2", "3"]),
        (1, {"x"}, ["0"]),
    ],
)
def test_names_are_indices_without_the_removed_ones(count, skipped, names):
    assert groups.names(count, skipped) == names


@pytest.mark.parametrize(
    ("definition", "made"),
    [
        ({"type": "T"}, {"type": "T"}),
        ({"type": "T%index%"}, {"type": "T%index%"}),
        ({"type": "T", "properties": None}, {"type": "T"}),
        (
            {"type": "T", "properties": {"a": "%index%-%index%", "%index%": [1, "x%index%", None]}},
            {"type": "T", "properties": {"a": "7-7", "%index%": [1, "x7", None]}},
        ),
        (
            {"type": "T", "properties": {"a": {"b": ["%index%"]}}, "metadata": {"m": "%index%"}},
            {"type": "T", "properties": {"a": {"b": ["7"]}}, "metadata": {"m": "%index%"}},
        ),
    ],
)
def test_the_index_replaces_its_variable_in_values_of_properties_alone(definition, made):
    assert groups.member(definition, "7", "%index%") == made


def test_the_template_of_a_group_gives_its_members_back():
    members = {"0": {"type": "T"}, "2": {"type": "T"}}
    document = groups.document(members)
    assert document == {"heat_template_version": "2015-04-30", "resources": members}
    assert groups.members_of(document) == members
    assert groups.members_of({"heat_template_version": "2015-04-30", "resources": None}) == {}


REFERENCES = {"0": "id-a", "1": "id-b", "2": 17}


@pytest.mark.parametrize(
    ("remembered", "named", "references", "forget", "skipped"),
    [
        ([], ["1", 7], None, False, ["1", "7"]),  # before there is a group: any name
        ([], ["1", 7], REFERENCES, False, ["1"]),  # later: members, and
        (["7"], ["1", 7], REFERENCES, False, ["7", "1"]),  # those removed before
        ([], [1], REFERENCES, False, ["1"]),
        ([], ["id-b", 17], REFERENCES, False, ["1", "2"]),
        (["5"], [], REFERENCES, False, ["5"]),  # for good
        (["5"], ["0"], REFERENCES, True, ["0"]),
        (["5"], [], REFERENCES, True, []),
        (["5"], ["5"], REFERENCES, True, ["5"]),
        (["5"], ["0", "0"], REFERENCES, False, ["5", "0"]),
    ],
)
def test_removal_policies_name_members_by_index_or_reference(
    remembered, named, references, forget, skipped
):
    assert groups.skip_list(remembered, named, references, forget=forget) == skipped


@pytest.mark.parametrize(
    ("policies", "named"),
    [
        (None, []),
        ([], []),
        ([{}], []),
        ([{"resource_list": None}], []),
        ([{"resource_list": ["a"]}, {"resource_list": [1, "b"]}], ["a", 1, "b"]),
    ],
)
def test_policies_are_read_in_order(policies, named):
    assert groups.resource_lists(policies) == named


@pytest.mark.parametrize(
    ("at_once", "waits"),
    [(1, [None, ["0"], ["1"]]), (2, [None, None, ["0"]]), (5, [None, None, None])],
)
def test_a_member_of_a_chain_waits_for_the_one_before(at_once, waits):
    made = groups.chain_document(["A", "B", "A"], {"p": 1}, at_once=at_once)["resources"]
    assert [member["type"] for member in made.values()] == ["A", "B", "A"]
    assert [member.get("depends_on") for member in made.values()] == waits
    assert all(member["properties"] == {"p": 1} for member in made.values())


def test_a_chain_without_properties_says_nothing_of_them():
    assert groups.chain_document(["A"], None, at_once=1)["resources"] == {"0": {"type": "A"}}
