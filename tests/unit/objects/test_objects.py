from __future__ import annotations

import itertools

import pytest

from bloomery.objects import base

NAMES = (f"TestObject{number}" for number in itertools.count())


@pytest.mark.parametrize(
    ("kind", "value", "wire"),
    [
        ("ident", "a", "a"),
        ("text", None, None),
        ("text", 7, "7"),
        ("bool", "yes", True),
        ("int", "7", 7),
        ("time", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"),
        ("object", None, {}),
        ("object", {"a": [1]}, {"a": [1]}),
        ("texts", ["a"], ["a"]),
        ("texts", None, None),
        ("objects", [{"a": 1}], [{"a": 1}]),
    ],
)
def test_values_take_the_form_of_their_field(kind: str, value: object, wire: object):
    made = base.make(next(NAMES), "1.0", {"it": kind})
    assert base.primitive(made, {"it": value})["ironic_object.data"] == {"it": wire}


def test_an_object_says_its_name_namespace_and_version_and_no_changes():
    made = base.make(name := next(NAMES), "1.17", {"it": "text"})
    assert base.primitive(made, {"it": "a"}) == {
        "ironic_object.name": name,
        "ironic_object.namespace": "ironic",
        "ironic_object.version": "1.17",
        "ironic_object.data": {"it": "a"},
    }


def test_an_object_comes_back_as_it_left():
    made = base.make(next(NAMES), "1.0", {"it": "object", "at": "time"})
    wire = base.primitive(made, {"it": {"a": 1}, "at": "2026-03-01T10:00:00Z"})
    again = base.Object.obj_from_primitive(wire)
    assert isinstance(again, made)
    assert again.it == {"a": 1}
    assert again.at.isoformat() == "2026-03-01T10:00:00+00:00"


@pytest.mark.parametrize("kind", ["object", "objects", "int", "time", "texts"])
def test_a_value_of_another_kind_is_refused(kind: str):
    made = base.make(next(NAMES), "1.0", {"it": kind})
    with pytest.raises((TypeError, ValueError)):
        base.primitive(made, {"it": "neither"})


def test_every_kind_but_an_identity_may_be_null():
    for kind in base.FIELD_OF.keys() - {"ident"}:
        base.primitive(base.make(next(NAMES), "1.0", {"it": kind}), {"it": None})
    with pytest.raises(ValueError, match="None"):
        base.primitive(base.make(next(NAMES), "1.0", {"it": "ident"}), {"it": None})
