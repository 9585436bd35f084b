"""Projections: what a version sees of a row."""

from __future__ import annotations

import orjson
import pytest

from bloomery import errors
from bloomery.api.versions import MAX
from bloomery.api.views import projection
from bloomery.model import node as model

PROJECTIONS = projection.Projections(model.FIELDS, "uuid", "driver")


def test_version_sees_its_fields():
    for version in range(1, MAX + 1):
        shape = PROJECTIONS.of(version, None)
        known = {f.name for f in model.FIELDS.values() if f.since <= version}
        assert (version, shape.names) == (version, known)
        assert len(set(shape.columns)) == len(shape.columns)


def test_columns_are_pruned_to_what_is_asked():
    shape = PROJECTIONS.of(MAX, ["name", "conductor"])
    assert shape.columns == ("name", "uuid", "driver")
    assert shape.extra == ("uuid", "driver")
    assert shape.finish(shape.values(("web-1", "u", "d"))) == {"name": "web-1"}


def test_shape_is_compiled_once():
    assert PROJECTIONS.of(MAX, ["name", "uuid"]) is PROJECTIONS.of(MAX, ("uuid", "name"))


def test_shapes_are_forgotten_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(projection, "MAX_PROJECTIONS", 5)
    shapes = projection.Projections(model.FIELDS)
    for version in range(1, MAX + 1):
        shapes.of(version, None)
    assert len(shapes._compiled) <= 7


def test_object_without_secrets_is_not_decoded():
    text = '{"a" : [1,  2]}'
    assert orjson.dumps(projection.masked("driver_info", text)) == text.encode()


def test_secrets_are_masked_and_the_rest_is_not():
    text = '{"a":1,"password":{"$sealed":"k","token":"t"},"b":{"image_url":"x"}}'
    shown = projection.masked("driver_info", text)
    assert shown == {"a": 1, "password": "******", "b": {"image_url": "x"}}
    assert projection.masked("instance_info", text)["b"] == {"image_url": "******"}


def test_field_that_is_too_new_is_not_unknown():
    with pytest.raises(errors.NotAcceptable):
        projection.check_fields(["lessee"], model.FIELDS, 64)
    with pytest.raises(errors.InvalidParameterValue):
        projection.check_fields(["nonsense"], model.FIELDS, 64)
