"""Whatever a function is given, it gives a value or a named refusal, and leaves its view alone."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template import view
from bloomery.orchestration.template.functions import base, tables
from tests.kit.sampling import count
from tests.kit.stacks.function_vectors import AWS, VECTORS, VIEW, Vector, parsed

SMALL = Limits(
    result_nodes=2000, result_chars=5000, replaced_chars=100_000, yaql_calls=5000, pattern_s=0.05
)
SEEN = view.Plain(
    parameters=VIEW.parameters, files=VIEW.files, ids=VIEW.ids, attributes=VIEW.attributes,
    conditions=VIEW.conditions, mappings=VIEW.mappings, limits=SMALL,
)  # fmt: skip

WORDS = st.sampled_from([
    "a", "ab", "b", ",", "s", "n", "j", "l", "r", "r2", "unready", "value", "map", "k", "z", "yes",
    "no", "nope", "template", "params", "for_each", "permutations", "keys", "values", "expression",
    "data", "scheme", "host", "port", "path", "query", "metadata", "Metadata", "m", "md5",
])  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 70_000), st.floats(), WORDS, st.text(max_size=6),
    st.sampled_from(["$.data", "$.data.select($)", "$ + 1", "1", "0", "\ud800", "a" * 3000]),
)  # fmt: skip
ARGUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(WORDS, st.integers(0, 3), st.booleans()), inner, max_size=4),
    ),
    max_leaves=12,
)


def _mutations(data: st.DataObject, tree):
    """Return ``tree`` with some of its parts replaced by something else."""
    if data.draw(st.integers(0, 7)) == 0:
        return data.draw(ARGUMENTS)
    if isinstance(tree, dict):
        return {key: _mutations(data, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_mutations(data, value) for value in tree]
    return tree


def _never_surprises(vector: Vector):
    try:
        tree = parsed(vector, SEEN)
        list(base.references(tree, SEEN))
        base.validate(tree, SEEN)
    except errors.Failure:
        return
    try:
        found = base.resolve(tree, SEEN)
    except errors.Failure as exc:
        str(exc)
        return
    if found is not base.ABSENT:
        repr(found)
        json.dumps(found, skipkeys=True)


@pytest.mark.sampled
@pytest.mark.parametrize("version", ["2013-05-23", "2015-04-30", "2018-08-31", "2021-04-16", AWS])
@settings(max_examples=count(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_function_of_random_arguments_gives_a_value_or_a_named_failure(version, data):
    offered = tables.cfn(version) if version == AWS else tables.hot(version)
    deciding = bool(offered.conditions) and data.draw(st.booleans())
    names = sorted(offered.conditions if deciding else offered.functions)
    snippet = {data.draw(st.sampled_from(names)): data.draw(ARGUMENTS)}
    _never_surprises(Vector("", snippet, None, version, deciding))


@settings(max_examples=count(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_good_call_with_parts_exchanged_gives_a_value_or_a_named_failure(data):
    vector = data.draw(st.sampled_from(VECTORS))
    if isinstance(vector.snippet, dict):
        name, args = next(iter(vector.snippet.items()))
        vector = vector._replace(snippet={name: _mutations(data, args)})
    _never_surprises(vector)


@settings(max_examples=count(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_resolving_changes_nothing_and_gives_the_same_twice(data):
    vector = data.draw(st.sampled_from(VECTORS))
    before = copy.deepcopy((vector.snippet, VIEW.parameters, VIEW.attributes))
    try:
        tree = parsed(vector)
        first = base.resolve(tree, VIEW)
    except errors.Failure:
        return
    assert base.resolve(tree, VIEW) == first
    assert (vector.snippet, VIEW.parameters, VIEW.attributes) == before
