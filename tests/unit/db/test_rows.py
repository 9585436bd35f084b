from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import orjson
import pytest

from bloomery.db import rows


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": [1, 2.5, None, True, "é"]},
        {"big": 2**64, "bigger": [-(2**200)]},
        {"half a pair": "\ud800"},
        [{"deep": {"deeper": 2**63}}],
    ],
    ids=str,
)
def test_a_document_comes_back_as_it_was(document: Any):
    text = rows.dump_document(document)
    assert rows.load_document(text) == document
    assert json.loads(text) == document  # for whoever reads the column by other means


def test_integers_beyond_64_bits_stay_integers():
    text = rows.dump_document([2**64])
    assert isinstance(orjson.loads(text)[0], float)  # what would become of them
    assert rows.load_document(text) == [2**64]


def test_a_document_may_hold_mappings_and_sets_of_any_kind():
    document = {"a": MappingProxyType({"b": frozenset({"y", "x"})})}
    assert rows.load_document(rows.dump_document(document)) == {"a": {"b": ["x", "y"]}}
    assert rows.load_document(rows.dump_document({1: 2, **document})) == {
        "1": 2,
        "a": {"b": ["x", "y"]},
    }


def test_what_is_no_json_is_named():
    with pytest.raises(TypeError, match="cannot store object as JSON"):
        rows.dump_document({"a": object()})
