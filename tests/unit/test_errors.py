from __future__ import annotations

import time

import pytest

from bloomery import errors


def test_nearest_names_what_was_probably_meant():
    assert errors.nearest("propertis", ["type", "properties"]) == " Did you mean 'properties'?"


def test_nearest_is_silent_where_nothing_is_like_it():
    assert not errors.nearest("x", ["type", "properties"])
    assert not errors.nearest(None, [])


def test_nearest_ends_soon_whatever_it_is_given():
    began_at = time.process_time()
    errors.nearest("ab" * 10**6, (f"{'ba' * 10_000}{n}" for n in range(10**9)))
    assert time.process_time() - began_at < 5


@pytest.mark.parametrize("length", [1, errors.MOST_CHARS, errors.MOST_CHARS + 1, 500_000])
def test_a_fault_of_a_template_can_be_read_whatever_its_names_are(length):
    fault = errors.StackValidationFailed(reason="r" * length, path=["p" * length])
    assert len(str(fault)) < 2 * errors.MOST_CHARS + 20
    assert ("..." in str(fault)) == (length > errors.MOST_CHARS)
    assert fault.facts["reason"] == "r" * length
    assert str(errors.revive(*fault.packed())) == str(fault)
