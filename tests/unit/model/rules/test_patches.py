"""Form and reach of JSON patches."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.model.rules import patches


def add(path, value=1):
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize("path", ["/extra/a", "/extra/a-b_c/0", "/extra/-", "/name", "/extra/ä"])
def test_plain_paths_are_taken(path):
    patches.check_form([add(path)])


@pytest.mark.parametrize(
    "path", ["", "/", "extra", "/extra/", "//extra", "/a b", "/a~2b", "/a~", "/a.b", "/a\n"]
)
def test_odd_paths_are_refused(path):
    with pytest.raises(errors.Invalid, match="path"):
        patches.check_form([add(path)])


def test_last_operation_on_an_attribute_counts():
    patch = [
        add("/driver", "a"),
        add("/extra/a"),
        add("/driver", "b"),
        {"op": "remove", "path": "/name"},
    ]
    assert patches.last_values(patch) == {"driver": "b", "name": None}
