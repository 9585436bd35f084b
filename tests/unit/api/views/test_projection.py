"""Projections: what a version sees of a row, and its document."""

from __future__ import annotations

import orjson
import pytest

from bloomery import errors
from bloomery.api.versions import MAX
from bloomery.api.views import projection
from bloomery.model import node as model

LINKS = projection.link_maker("http://bmc.example", "nodes", "ports")


def test_version_sees_its_fields():
    for version in range(1, MAX + 1):
        shape = projection.project(model.FIELDS, version, None, needed=("uuid",))
        known = {f.name for f in model.FIELDS.values() if f.since <= version}
        assert (version, shape.names) == (version, known)
        printed, secret, uuid = shape.columns
        assert uuid == "uuid"
        of_rows = {f.name for f in model.FIELDS.values() if f.column}
        assert {f.name for f in (*printed.fields, *secret.fields)} == known & of_rows
        assert {f.secret for f in printed.fields} == {False}
        assert {f.secret for f in secret.fields} == {True}


def test_only_the_fields_of_the_client_are_printed():
    shape = projection.project(model.FIELDS, MAX, frozenset({"name"}), needed=("uuid", "driver"))
    printed, *singles = shape.columns
    assert [field.name for field in printed.fields] == ["name"]
    assert (singles, shape.at) == (["uuid", "driver"], {"uuid": 1, "driver": 2})


def test_derived_fields_are_read_singly():
    names = frozenset({"name", "driver_info", "provision_state"})
    derived = ("provision_state", "driver_info", "last_error")
    shape = projection.project(model.FIELDS, MAX, names, derived=derived, needed=("uuid",))
    printed, *singles = shape.columns
    assert [field.name for field in printed.fields] == ["name"]
    assert singles == ["uuid", "provision_state", "driver_info"]
    assert shape.derived == ("provision_state", "driver_info")


@pytest.mark.parametrize(
    ("names", "row", "derived", "document"),
    [
        (["name"], ('"name":"web-1"', "u"), {}, {"name": "web-1"}),
        (["traits"], ("", "u"), {"traits": ["CUSTOM_A"]}, {"traits": ["CUSTOM_A"]}),
        (
            ["driver_info", "name"],
            ('"name":null', '"driver_info":{"password":"x"}', "u"),
            {"conductor": None},
            {"name": None, "driver_info": {"password": "******"}, "conductor": None},
        ),
        (["driver_info"], ("", '"driver_info":{}', "u"), {}, {"driver_info": {}}),
    ],
)
def test_a_document_is_joined_from_its_parts(names, row, derived, document):
    shape = projection.project(model.FIELDS, MAX, frozenset(names), needed=("uuid",))
    links = {
        name: [
            {"href": f"http://bmc.example/v1/nodes/u{end}", "rel": "self"},
            {"href": f"http://bmc.example/nodes/u{end}", "rel": "bookmark"},
        ]
        for name, end in (("links", ""), ("ports", "/ports"))
    }
    for text, members in (("", {}), (LINKS("u"), links)):
        answer = orjson.loads(orjson.dumps(shape.document(row, derived, text)))
        assert answer == document | members


def test_links_to_subresources_may_be_in_one_more_list():
    text = projection.link_maker('http://a"b', "chassis", "nodes", wrapped=True)("u")
    links = orjson.loads(f"{{{text}}}")
    assert links["links"][0] == {"href": 'http://a"b/v1/chassis/u', "rel": "self"}
    assert links["nodes"] == [projection.links('http://a"b', "chassis/u/nodes")]


def test_objects_without_secrets_are_not_decoded():
    text = '"driver_info":{"a" : [1,  2]},"clean_step":{}'
    assert projection.masked_members(text) == text
    assert orjson.dumps(projection.masked("extra", '{"a" : 1}')) == b'{"a" : 1}'


def test_secrets_are_masked_and_the_rest_is_not():
    text = '{"a":1,"password":{"$sealed":"k","token":"t"},"b":{"image_url":"x"}}'
    masked = {"a": 1, "password": "******", "b": {"image_url": "x"}}
    members = projection.masked_members(f'"driver_info":{text},"instance_info":{text}')
    assert orjson.loads(f"{{{members}}}") == {
        "driver_info": masked,
        "instance_info": masked | {"b": {"image_url": "******"}},
    }
    assert orjson.loads(orjson.dumps(projection.masked("driver_info", text))) == masked


def test_masked_texts_are_cached_unless_they_are_long(monkeypatch):
    masked = []
    monkeypatch.setattr(projection.secrets, "may_hold_secret", masked.append)
    short = f'"driver_info":{{"cached":"{"x" * 1900}"}}'
    for text in (short, short + " " * 100):
        for _ in range(2):
            assert projection.masked_members(text) == text
    assert masked == [short, short + " " * 100, short + " " * 100]


def test_field_that_is_too_new_is_not_unknown():
    with pytest.raises(errors.NotAcceptable):
        projection.check_fields(["lessee"], model.FIELDS, 64)
    with pytest.raises(errors.InvalidParameterValue):
        projection.check_fields(["nonsense"], model.FIELDS, 64)
