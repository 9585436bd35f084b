from __future__ import annotations

import time

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
